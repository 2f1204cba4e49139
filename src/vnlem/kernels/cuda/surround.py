"""What features look at around the pixels of some rows of an image, on a device (surround.cu)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cuda.engine import THREADS, Engine

Array = Any  # of the engine's library
Rows = tuple[int, int]  # first row, and the one after the last


def grey(engine: Engine, image: Array, rows: Rows, reach: int) -> Array:
    """The mean over the channels of an image (channels, height, width), `reach` pixels around some rows."""
    out = engine.xp.empty((rows[1] - rows[0] + 2 * reach, image.shape[2] + 2 * reach), np.float32)
    _launch(engine, "grey", out.shape, image, rows, reach, grey=out)
    return out


def planes(
    engine: Engine, image: Array, rows: Rows, reach: int, filters: tuple[NDArray[np.float32], int]
) -> Array:
    """The phase planes around some rows; filters: see `vnlem.features.upsample.phase_filters`."""
    taps, before = filters
    extent = (rows[1] - rows[0] + 2 * reach, image.shape[2] + 2 * reach)
    out = engine.xp.empty((len(image), len(taps), len(taps), *extent), np.float32)
    sizes = {"UPSAMPLE": len(taps), "TAPS": taps.shape[1]}
    table = engine.constant(taps)
    _launch(engine, "planes", extent, image, rows, reach, sizes, planes=out, filters=table, before=before)
    return out


def sharpness(engine: Engine, image: Array, rows: Rows, reach: int, lengths: Array, share: float) -> Array:
    """What the discs of `reach` pixels and a half hold beyond the features' squared lengths, or 0.

    share: the factor from the sum of squared pixels to the energy of the disc.
    """
    out = engine.xp.empty_like(lengths)
    _launch(engine, "sharpness", out.shape, image, rows, reach, lengths=lengths, sharp=out, share=share)
    return out


def _launch(
    engine: Engine,
    kernel: str,
    extent: tuple[int, ...],
    image: Array,
    rows: Rows,
    reach: int,
    sizes: dict[str, int] | None = None,
    **given: Any,
) -> None:
    channels, height, width = image.shape
    argument = {
        "image": image,
        "channels": channels,
        "height": height,
        "width": width,
        "top": rows[0],
        "rows": rows[1] - rows[0],
        "reach": reach,
    }
    others: dict[str, Any] = {"grey": None, "planes": None, "filters": None, "before": 0}
    others |= {"lengths": None, "sharp": None, "share": 0.0}
    engine.launch(
        "surround",
        (extent[0], -(-extent[1] // THREADS)),
        argument | others | given,
        kernel=kernel,
        **(sizes or {"UPSAMPLE": 1, "TAPS": 1}),
    )
