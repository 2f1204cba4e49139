"""Statistics and units of an image on a GPU, each in one kernel.

CuPy compiles every operation on its first use, for a third of a second each: few kernels make a short first
call, and few launches and few waits for the device a short call on a small image.
"""

import importlib
import sys
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

# Beyond this a float64 sum of squares could overflow however carefully it is scaled.
LARGEST_VALUE = 1e300
# Squares of values between these neither overflow nor vanish, nor do sums of them.
SQUARABLE = (1e-120, 1e140)
PARTS = 256  # of an image, each summed by one block
THREADS = 256

# Every part of an image is summed about its own first value, so that no digits are lost to a mean that is far
# from zero. Sums have a fixed order.
_PARTS_OF_IMAGE = r"""
extern "C" __global__ void vnlem_parts(const double* values, long long count, double scale, double* found) {
    __shared__ double sums[3][THREADS];
    const long long each = (count + gridDim.x - 1) / gridDim.x;
    const long long first = each * blockIdx.x, last = min(first + each, count);
    const double shift = first < last ? values[first] : 0.0;
    double sum = 0.0, squares = 0.0, largest = 0.0;
    for (long long i = first + threadIdx.x; i < last; i += THREADS) {
        const double value = values[i], d = (value - shift) / scale;
        sum += d;
        squares += d * d;
        // A value that is no number counts as infinite.
        largest = max(largest, value == value ? abs(value) : __longlong_as_double(0x7ff0000000000000ll));
    }
    sums[0][threadIdx.x] = sum;
    sums[1][threadIdx.x] = squares;
    sums[2][threadIdx.x] = largest;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half) continue;
        sums[0][threadIdx.x] += sums[0][threadIdx.x + half];
        sums[1][threadIdx.x] += sums[1][threadIdx.x + half];
        sums[2][threadIdx.x] = max(sums[2][threadIdx.x], sums[2][threadIdx.x + half]);
    }
    if (threadIdx.x > 0) return;
    double* mine = found + blockIdx.x;
    mine[0] = (double)max(last - first, 0ll);
    mine[gridDim.x] = shift / scale;
    mine[2 * gridDim.x] = sums[0][0];
    mine[3 * gridDim.x] = sums[1][0];
    mine[4 * gridDim.x] = sums[2][0];
}
"""


def usable(array: Any) -> bool:
    """Whether an array is CuPy's own, and these functions can be used.

    Examples
    --------
    >>> usable(np.zeros(3))
    False
    """
    library = type(array).__module__.partition(".")[0]
    return library == "cupy" and hasattr(sys.modules["cupy"], "RawKernel")


@cache
def _kernels() -> Any:
    cupy = importlib.import_module("cupy")
    return (
        cupy.RawKernel(_PARTS_OF_IMAGE, "vnlem_parts", options=(f"-DTHREADS={THREADS}",)),
        cupy.ElementwiseKernel(
            "float64 x, float64 mean, float64 scale",
            "float32 y",
            "y = (float)((x - mean) / scale)",
            "vnlem_standardise",
        ),
        cupy.ElementwiseKernel(
            "float64 x, float32 before, float32 after, float64 scale",
            "float64 y",
            # Product and sum are rounded one after the other, as on the host.
            "y = __dadd_rn(x, __dmul_rn((double)after - (double)before, scale))",
            "vnlem_add_change",
        ),
    )


class Statistics(NamedTuple):
    """Of an image."""

    mean: float
    deviation: float  # the standard deviation
    largest: float  # absolute value; infinite where a value is not finite


def statistics(values: Any, scale: float = 1.0) -> Statistics:
    """Of an array; mean and deviation divided by `scale`."""
    cupy = importlib.import_module("cupy")
    values = cupy.ascontiguousarray(values)
    found = cupy.empty((5, PARTS), np.float64)
    _kernels()[0]((PARTS,), (THREADS,), (values, np.int64(values.size), np.float64(scale), found))
    return joined(*found.get())


def joined(counts: Float, shifts: Float, sums: Float, squares: Float, largest: Float) -> Statistics:
    """The statistics of an image from those of its parts.

    Parameters
    ----------
    counts, shifts : ndarray
        For each part, how many values it has (may be none), and a value near their mean.
    sums, squares : ndarray
        The sums of (value - shift) and of its squares.
    largest : ndarray
        The largest absolute values.

    Examples
    --------
    >>> parts = np.array([[2.0, 3.0, 2.0, 4.0, 5.0], [1.0, -2.0, 0.0, 0.0, 2.0], [0.0] * 5])
    >>> joined(*parts.T)
    Statistics(mean=2.0, deviation=2.943920288775949, largest=5.0)
    """
    # Sums of values that are not finite, or too large to be squared: the caller looks at the largest first.
    with np.errstate(all="ignore"):
        whole = counts.sum()
        means = shifts + sums / np.maximum(counts, 1)
        mean = (counts @ means) / whole
        inside = np.maximum(squares - sums * sums / np.maximum(counts, 1), 0)
        variance = (inside.sum() + counts @ (means - mean) ** 2) / whole
        return Statistics(float(mean), float(np.sqrt(variance)), float(largest.max()))


def standardised(values: Any, mean: float, scale: float) -> Any:
    """(values - mean) / scale in single precision."""
    return _kernels()[1](values, mean, scale)


def with_change(values: Any, before: Any, after: Any, scale: float) -> Any:
    """values + (after - before) * scale."""
    return _kernels()[2](values, before, after, scale)


def moments(values: Any, known: Statistics | None = None) -> tuple[float, float]:
    """Mean and standard deviation, whatever the units; `known`: the statistics, where they are known."""
    mean, deviation, peak = known or statistics(values)
    if peak > LARGEST_VALUE:
        raise ValueError(f"the image holds values beyond {LARGEST_VALUE:g}; divide it by a constant first")
    if peak == 0 or SQUARABLE[0] < peak < SQUARABLE[1]:
        return mean, deviation
    mean, deviation, _ = statistics(values, peak)
    return mean * peak, deviation * peak
