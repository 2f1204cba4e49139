"""Statistics and units of an image on a GPU, each in one kernel.

CuPy compiles every operation on its first use, for a third of a second each: few kernels make a short first
call, and few launches a short call on a small image.
"""

import importlib
import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Beyond this a float64 sum of squares could overflow however carefully it is scaled.
LARGEST_VALUE = 1e300
SHORT = 64  # channels, not pixels, lie along an axis that is shorter


def usable(array: Any) -> bool:
    """Whether an array is CuPy's own, and these functions can be used.

    Examples
    --------
    >>> usable(np.zeros(3))
    False
    """
    library = type(array).__module__.partition(".")[0]
    return library == "cupy" and hasattr(importlib.import_module("cupy"), "ReductionKernel")


@cache
def _kernels() -> Any:
    cupy = importlib.import_module("cupy")
    return (
        # A value that is no number counts as infinite.
        cupy.ReductionKernel(
            "float64 x, float64 shift",
            "float64 y",
            "x == x ? abs(x - shift) : __longlong_as_double(0x7ff0000000000000ll)",
            "max(a, b)",
            "y = a",
            "0",
            "vnlem_largest",
        ),
        cupy.ReductionKernel(
            "float64 x, float64 shift, float64 scale, int32 squared",
            "float64 y",
            "squared ? (x - shift) / scale * ((x - shift) / scale) : (x - shift) / scale",
            "a + b",
            "y = a",
            "0",
            "vnlem_sum",
        ),
        cupy.ElementwiseKernel(
            "float64 x, float64 mean, float64 scale",
            "float32 y",
            "y = (float)((x - mean) / scale)",
            "vnlem_standardise",
        ),
        cupy.ElementwiseKernel(
            "float64 x, float32 before, float32 after, float64 scale",
            "float64 y",
            "y = x + ((double)after - (double)before) * scale",
            "vnlem_add_change",
        ),
    )


def largest(values: Any, shift: float = 0.0) -> float:
    """The largest absolute difference from `shift`; infinite where a value is not finite."""
    return float(_line_by_line(_kernels()[0], values, shift).max())


def mean_of(values: Any, shift: float, scale: float, squared: bool = False) -> float:
    """The mean of (values - shift) / scale, or of its square."""
    sums = _line_by_line(_kernels()[1], values, shift, scale, int(squared))
    return float(sums.sum()) / int(values.size)


def _line_by_line(kernel: Any, values: Any, *settings: float) -> NDArray[np.float64]:
    """A reduction of every line, and the rest on the host: to one number it would use one block only."""
    lines = values.shape[0] if values.shape[-1] < SHORT else math.prod(values.shape[:-1])
    result: NDArray[np.float64] = kernel(values.reshape(lines, -1), *settings, axis=1).get()
    return result


def standardised(values: Any, mean: float, scale: float) -> Any:
    """(values - mean) / scale in single precision."""
    return _kernels()[2](values, mean, scale)


def with_change(values: Any, before: Any, after: Any, scale: float) -> Any:
    """values + (after - before) * scale."""
    return _kernels()[3](values, before, after, scale)


def moments(values: Any) -> tuple[float, float]:
    """Mean and standard deviation, whatever the units."""
    peak = largest(values) or 1.0
    if peak > LARGEST_VALUE:
        raise ValueError(f"the image holds values beyond {LARGEST_VALUE:g}; divide it by a constant first")
    mean = mean_of(values, 0.0, peak) * peak
    # Squares neither overflow nor vanish beside the peak, unless the image hardly varies.
    deviation = peak * np.sqrt(mean_of(values, mean, peak, squared=True))
    if deviation < 1e-6 * peak:
        spread = largest(values, mean)
        deviation = spread * np.sqrt(mean_of(values, mean, spread, squared=True)) if spread > 0 else 0.0
    return mean, float(deviation)
