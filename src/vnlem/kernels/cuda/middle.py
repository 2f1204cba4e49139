"""The median over planes, on a device (middle.cu)."""

from typing import Any

import numpy as np

from vnlem.kernels.cuda.engine import THREADS, Engine

Array = Any  # of the engine's library, float32 and contiguous


def middle_of_planes(engine: Engine, planes: Array, out: Array, most: int) -> None:
    """The median over planes (planes, pixels), written to `out` (pixels,); of at most `most` planes."""
    count, pixels = planes.shape
    given = {"planes": planes, "out": out, "pixels": np.int64(pixels), "count": count}
    engine.launch("middle", (-(-pixels // THREADS),), given, MOST=most)
