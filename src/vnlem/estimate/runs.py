"""The mean of two runs, with small patches and with large ones, in which each counts most where it is better.

Small patches keep texture and edges, large ones leave less noise in flat areas.
"""

from typing import Any

import numpy as np

from vnlem.estimate.change import in_strips, window_means
from vnlem.pipeline.device import lies_on_gpu, namespace
from vnlem.pipeline.workers import Pool

REACH = 4  # pixels; the local standard deviation is that of 9 x 9 pixels
# Where the local standard deviation is this many times that of the noise, both runs count the same.
EQUAL = 0.75


def mean_of_runs(small: Any, large: Any, sigma: Any) -> Any:
    """The weighted mean of two results (channels, height, width), of small and of large patches.

    sigma: float32, of the noise, broadcastable to them.

    A pixel does not depend on its place in the array, if `REACH` pixels around it are there. The arrays may
    be those of a device.

    >>> flat = np.zeros((1, 20, 20), np.float32)
    >>> bool((mean_of_runs(flat, flat + np.float32(1), np.float32(9)) > 0.9).all())
    True
    """
    xp = namespace(small)
    # In units of the noise, which may be zero. Where there is little, only double precision resolves it.
    levels = ((small + large) / (2 * sigma + np.float32(1e-12))).astype(np.float64)
    variance: Any = 0.0
    for level in levels:
        mean = window_means(level, REACH)
        variance = variance + xp.maximum(window_means(level * level, REACH) - mean * mean, 0) / len(levels)
    deviation = xp.sqrt(variance)
    return large + (deviation / (deviation + EQUAL)).astype(large.dtype) * (small - large)


def mean_of_runs_in_strips(small: Any, large: Any, sigma: Any, pool: Pool) -> Any:
    """`mean_of_runs`, strip by strip on all workers, with the same bytes as the whole."""
    if lies_on_gpu(small):
        return mean_of_runs(small, large, sigma)
    return in_strips(mean_of_runs, (small, large, np.atleast_3d(sigma)), REACH, pool)
