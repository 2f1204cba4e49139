"""Correlation of planes with a few taps along one axis (filters.cu)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cuda.engine import THREADS, Engine

Array = Any  # of the engine's library


def correlate_lines(engine: Engine, planes: Array, taps: NDArray[np.float64], axis: int) -> Array:
    """Planes (count, H, W) of float64, correlated along axis 1 or 2 with an odd number of taps."""
    count, height, width = planes.shape
    planes = engine.xp.ascontiguousarray(planes, np.float64)
    out = engine.xp.empty_like(planes)
    engine.launch(
        "filters",
        (height, -(-width // THREADS), count),
        {
            "planes": planes,
            "taps": engine.constant(taps),
            "out": out,
            "height": height,
            "width": width,
            "half": len(taps) // 2,
            "along": axis - 1,
        },
        kernel="correlate_lines",
    )
    return out
