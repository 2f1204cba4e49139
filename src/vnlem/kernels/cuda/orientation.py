"""Orientations of all pixels on a device (orientation.cu)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cuda.engine import THREADS, Engine

Array = Any  # of the engine's library

_THREADS = 128  # of the histograms, which fill shared memory


def gradients(
    engine: Engine, padded: Array, gauss: NDArray[np.float32], slope: NDArray[np.float32], smallest: float
) -> tuple[Array, Array]:
    """Magnitude and direction, in turns, of the gradient; see `vnlem.kernels.cpu.orientation.gradients`."""
    xp = engine.xp
    radius = len(gauss) - 1
    height, width = padded.shape[0] - 2 * radius, padded.shape[1] - 2 * radius
    magnitude, direction = (xp.empty((height, width), np.float32) for _ in range(2))
    engine.launch(
        "orientation",
        (height, -(-width // THREADS)),
        {
            "padded": padded,
            "gauss": engine.constant(gauss),
            "slope": engine.constant(slope),
            "magnitude": magnitude,
            "direction": direction,
            "height": height,
            "width": width,
            "radius": radius,
            "smallest": smallest,
        },
        kernel="gradients",
        THREADS=_THREADS,
    )
    return magnitude, direction


def directions(
    engine: Engine,
    magnitude: Array,
    direction: Array,
    disc: tuple[NDArray[np.int64], NDArray[np.float32]],
    taper: NDArray[np.float32],
) -> Array:
    """The dominant direction around every pixel, in radians; disc: offsets and weights of its pixels."""
    xp = engine.xp
    offsets, weights = disc
    border = int(np.abs(offsets).max())
    height, width = magnitude.shape[0] - 2 * border, magnitude.shape[1] - 2 * border
    angle = xp.empty((height, width), np.float32)
    engine.launch(
        "orientation",
        (height, -(-width // _THREADS)),
        {
            "magnitude": magnitude,
            "direction": direction,
            "offsets": engine.constant(offsets.astype(np.int32)),
            "weights": engine.constant(weights),
            "taper": engine.constant(taper),
            "angle": angle,
            "height": height,
            "width": width,
            "border": border,
            "n_offsets": len(offsets),
            "reach": len(taper) - 1,
        },
        kernel="directions",
        threads=_THREADS,
        THREADS=_THREADS,
    )
    return angle
