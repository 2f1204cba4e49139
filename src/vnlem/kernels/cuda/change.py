"""How much of the change of an estimate is kept, on a device (change.cu)."""

from typing import Any

import numpy as np

from vnlem.kernels.cuda.engine import THREADS, Engine
from vnlem.kernels.cuda.filters import correlate_lines

Array = Any  # of the engine's library, float32


def shrink_change(
    engine: Engine, noisy: Array, estimate: Array, variance: Array, reach: int, limits: tuple[float, float]
) -> Array:
    """`vnlem.estimate.change.shrink_change` for images (channels, height, width) that are contiguous.

    reach: of the windows, in pixels. limits: root mean squares of a change, in units of the noise; below the
    first nothing of it is kept, above the second all.
    """
    _, height, width = noisy.shape
    energy = engine.xp.empty((1, height, width), np.float64)
    given = {"noisy": noisy, "estimate": estimate, "variance": variance, "energy": energy}
    _launch(engine, "change_energy", given, limits, noisy.shape)
    taps = np.full(2 * reach + 1, 1 / (2 * reach + 1))
    means = correlate_lines(engine, correlate_lines(engine, energy, taps, 1), taps, 2)
    out = engine.xp.empty_like(estimate)
    _launch(engine, "shrink_change", given | {"means": means, "out": out}, limits, noisy.shape)
    return out


def _launch(
    engine: Engine, kernel: str, given: dict[str, Any], limits: tuple[float, float], shape: tuple[int, ...]
) -> None:
    channels, height, width = shape
    argument = {
        "noisy": None,
        "estimate": None,
        "variance": None,
        "energy": None,
        "means": None,
        "out": None,
        "pixels": np.int64(height * width),
        "channels": channels,
        "nothing": limits[0],
        "everything": limits[1],
    }
    engine.launch("change", (-(-height * width // THREADS),), argument | given, kernel=kernel)
