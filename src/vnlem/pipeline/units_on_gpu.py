"""Statistics and units of an image on a GPU, each in one kernel.

CuPy compiles every operation on its first use, for a third of a second each: few kernels make the first call
short, and few launches and few waits for the device make calls on small images short.
"""

import importlib
import sys
from functools import cache
from typing import Any, NamedTuple

import numpy as np

# Above this a float64 sum of squares could overflow even with scaling.
LARGEST_VALUE = 1e300
# Squares of values between these neither overflow nor vanish, nor do sums of them.
SQUARABLE = (1e-120, 1e140)
PARTS = 256  # of an image, each summed by one block
THREADS = 256

# Every part of an image is summed about its own first value, and parts are joined in pairs: no digits are
# lost if the mean is far from zero. Sums have a fixed order.
_SOURCE = r"""
struct Part {
    double count, mean, squares, lowest, highest; // squares: the sum of squared differences from the mean
};

__device__ void join(Part& a, const Part& b) {
    const double count = a.count + b.count, d = b.mean - a.mean;
    if (b.count > 0.0) {
        a.mean += d * (b.count / count);
        a.squares += b.squares + d * d * (a.count * (b.count / count));
    }
    a.count = count;
    a.lowest = min(a.lowest, b.lowest);
    a.highest = max(a.highest, b.highest);
}

__device__ void join_all(Part* parts, int count) {
    for (int half = count / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) join(parts[threadIdx.x], parts[threadIdx.x + half]);
    }
    __syncthreads();
}

extern "C" __global__ void vnlem_parts(const double* values, long long count, double scale, Part* found) {
    __shared__ Part parts[THREADS];
    const long long each = (count + gridDim.x - 1) / gridDim.x;
    const long long first = each * blockIdx.x, last = min(first + each, count);
    const double shift = first < last ? values[first] : 0.0;
    const double infinite = __longlong_as_double(0x7ff0000000000000ll);
    double number = 0.0, sum = 0.0, squares = 0.0, lowest = infinite, highest = -infinite;
    for (long long i = first + threadIdx.x; i < last; i += THREADS) {
        const double value = values[i], d = (value - shift) / scale;
        number += 1.0;
        sum += d;
        squares += d * d;
        lowest = min(lowest, value == value ? value : -infinite);
        highest = max(highest, value == value ? value : infinite);
    }
    const double beside = number > 0.0 ? sum / number : 0.0;
    parts[threadIdx.x] = {number, shift / scale + beside, max(squares - sum * beside, 0.0), lowest, highest};
    join_all(parts, THREADS);
    if (threadIdx.x == 0) found[blockIdx.x] = parts[0];
}

extern "C" __global__ void vnlem_whole(const Part* found, double* statistics) {
    __shared__ Part parts[PARTS];
    parts[threadIdx.x] = found[threadIdx.x];
    join_all(parts, PARTS);
    if (threadIdx.x > 0) return;
    statistics[0] = parts[0].mean;
    statistics[1] = sqrt(parts[0].squares / parts[0].count);
    statistics[2] = parts[0].lowest;
    statistics[3] = parts[0].highest;
}
"""
OPTIONS = ("-std=c++17", f"-DTHREADS={THREADS}", f"-DPARTS={PARTS}")


def usable(array: Any) -> bool:
    """Whether an array is CuPy's own, and these functions can be used.

    >>> usable(np.zeros(3))
    False
    """
    library = type(array).__module__.partition(".")[0]
    return library == "cupy" and hasattr(sys.modules["cupy"], "RawKernel")


@cache
def _kernels() -> Any:
    cupy = importlib.import_module("cupy")
    module = cupy.RawModule(code=_SOURCE, options=OPTIONS)
    return (
        (module.get_function("vnlem_parts"), module.get_function("vnlem_whole")),
        cupy.ElementwiseKernel(
            "float64 x, float64 mean, float64 scale",
            "float32 y",
            "y = (float)((x - mean) / scale)",
            "vnlem_standardise",
        ),
        cupy.ElementwiseKernel(
            "float64 x, float32 before, float32 after, float64 scale",
            "T y",
            # Product and sum are rounded separately, as on the host.
            "y = (T)__dadd_rn(x, __dmul_rn((double)after - (double)before, scale))",
            "vnlem_add_change",
        ),
        cupy.ElementwiseKernel(
            "float64 x, float64 below, float64 above, T lowest, T highest",
            "T y",
            "y = x >= above ? highest : x <= below ? lowest : (T)rint(x)",
            "vnlem_rounded",
        ),
    )


class Statistics(NamedTuple):
    """Of an image."""

    mean: float
    deviation: float  # the standard deviation
    lowest: float  # minus infinity if a value is not a number
    highest: float  # then infinity

    @property
    def largest(self) -> float:
        """The largest absolute value; infinite if a value is not finite."""
        return max(self.highest, -self.lowest)


def statistics(values: Any, scale: float = 1.0) -> Statistics:
    """Of an array; mean and deviation divided by `scale`."""
    cupy = sys.modules["cupy"]
    values = cupy.ascontiguousarray(values)
    parts, found = cupy.empty((PARTS, 5), np.float64), cupy.empty(4, np.float64)
    first, second = _kernels()[0]
    first((PARTS,), (THREADS,), (values, np.int64(values.size), np.float64(scale), parts))
    second((1,), (PARTS,), (parts, found))
    return Statistics(*found.get().tolist())


def standardised(values: Any, mean: float, scale: float) -> Any:
    """(values - mean) / scale in single precision."""
    return _kernels()[1](values, mean, scale)


def with_change(values: Any, before: Any, after: Any, scale: float, dtype: Any = np.float64) -> Any:
    """values + (after - before) * scale, in single or double precision."""
    out = sys.modules["cupy"].empty(values.shape, dtype)
    return _kernels()[2](values, before, after, scale, out)


def rounded(values: Any, dtype: np.dtype[Any]) -> Any:
    """Floats as integers, clipped to the dtype's range."""
    limits = np.iinfo(dtype)
    ends = (dtype.type(limits.min), dtype.type(limits.max))
    out = sys.modules["cupy"].empty(values.shape, dtype)
    return _kernels()[3](values, float(limits.min), float(limits.max), *ends, out)


def moments(values: Any, known: Statistics | None = None) -> tuple[float, float]:
    """Mean and standard deviation, in any units; `known`: the statistics, if known."""
    known = known or statistics(values)
    mean, deviation, peak = known.mean, known.deviation, known.largest
    if peak > LARGEST_VALUE:
        raise ValueError(f"the image holds values beyond {LARGEST_VALUE:g}; divide it by a constant first")
    if peak == 0 or SQUARABLE[0] < peak < SQUARABLE[1]:
        return mean, deviation
    scaled = statistics(values, peak)
    return scaled.mean * peak, scaled.deviation * peak
