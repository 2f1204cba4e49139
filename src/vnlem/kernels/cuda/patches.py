"""Sums over patches and the means of what was put back (patches.cu)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cuda.engine import THREADS, Engine
from vnlem.pipeline.device import to_host

Array = Any  # of the engine's library


def _blocks(width: int) -> int:
    return -(-width // THREADS)


def patch_energy(
    engine: Engine,
    image: Array,
    patch_size: int,
    outside: Array | None = None,
    *,
    into: Array | None = None,
    first: int = 0,
) -> Array:
    """Squared norms of the patches of an image (channels, rows, stride): (rows - p + 1, stride).

    outside: (rows, stride) uint8, pixels that belong to no patch; there the norm is infinite. With `into`, an
    earlier result, rows from `first` on are replaced in it.
    """
    channels, rows, stride = image.shape
    energy = engine.xp.empty((rows - patch_size + 1, stride), np.float32) if into is None else into
    engine.launch(
        "patches",
        (len(energy) - first, _blocks(stride)),
        {
            "image": image,
            "outside": outside,
            "energy": energy,
            "channels": channels,
            "rows": rows,
            "stride": stride,
            "size": patch_size,
            "first": first,
        },
        kernel="patch_energy",
    )
    return energy


def patch_penalty(
    engine: Engine,
    image: Array,
    variance: Array,
    patch_size: int,
    *,
    share: float,
    flat: float | None,
) -> Array:
    """share * the noise energy of every patch; infinite if the patch is flat.

    A patch is flat if its energy about its mean is below flat * its noise energy.
    """
    channels, height, width = image.shape
    penalty = engine.xp.empty((height - patch_size + 1, width - patch_size + 1), np.float32)
    engine.launch(
        "patches",
        (len(penalty), _blocks(width)),
        {
            "image": image,
            "variance": variance,
            "penalty": penalty,
            "channels": channels,
            "height": height,
            "width": width,
            "size": patch_size,
            "first": flat is not None,
            "share": np.float64(share),
            "flat": np.float64(flat or 0.0),
        },
        kernel="patch_penalty",
    )
    return penalty


def patch_maps(
    engine: Engine,
    noisy: Array | None,
    working: Array,
    variance: Array,
    patch_size: int,
    *,
    into: tuple[Array, Array] | None = None,
    first: int = 0,
    noise_too: bool = True,
) -> tuple[Array, Array]:
    """Patch sums of (noisy - working)^2 and of the variance, (channels, rows - p + 1, stride).

    Without `noisy`, `working` holds the squared differences. With `into`, an earlier result, rows from
    `first` on are replaced in it, those of the variance only if `noise_too`.
    """
    channels, rows, stride = working.shape
    shape = (channels, rows - patch_size + 1, stride)
    residual, noise = into or (engine.xp.empty(shape, np.float32) for _ in range(2))
    engine.launch(
        "patches",
        (shape[1] - first, _blocks(stride), channels),
        {
            "noisy": noisy,
            "working": working,
            "changed": working if noisy is None else None,
            "variance": variance,
            "residual": residual,
            "noise": noise if noise_too else None,
            "rows": rows,
            "stride": stride,
            "size": patch_size,
            "first": first,
        },
        kernel="patch_maps",
    )
    return residual, noise


class Sums(NamedTuple):
    """What groups put back, as integers (see ridge.cu)."""

    sums: Array  # int64 (channels, height, width, 2)
    weights: Array  # int64 (channels, height, width)
    unit: float  # a sum of 1 is this number
    weight_unit: float
    most: float  # the largest term


def weighted_means(
    engine: Engine, sums: Sums, working: Array, taps: NDArray[np.float32]
) -> tuple[Array, Array]:
    """The new pilot and the new working image, (channels, height, width); taps: see `ridge.Rule.taps`."""
    channels, height, width = working.shape
    pilot, blended = (engine.xp.empty_like(working) for _ in range(2))
    engine.launch(
        "patches",
        (height, _blocks(width), channels),
        {
            "sums": sums.sums,
            "weights": sums.weights,
            "working": working,
            "taps": engine.constant(taps),
            "new_pilot": pilot,
            "new_working": blended,
            "height": height,
            "width": width,
            "size": len(taps),
            "unit": np.float64(sums.unit / sums.weight_unit),
        },
        kernel="weighted_means",
    )
    return pilot, blended


def largest_magnitude(engine: Engine, values: Array) -> float:
    """The largest absolute value."""
    bits = engine.xp.zeros(1, np.uint32)
    engine.launch(
        "patches",
        (min(_blocks(values.size), 1024),),
        {"values": values, "bits": bits, "count": np.int64(values.size)},
        kernel="largest_magnitude",
    )
    return float(to_host(bits).view(np.float32)[0])
