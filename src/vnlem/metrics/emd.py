"""Earth mover's distance between the values of two arrays."""

import numpy as np
from numpy.typing import ArrayLike

from vnlem.metrics._arrays import check_data_range, values_of


def emd(x: ArrayLike, y: ArrayLike, data_range: float = 255) -> float:
    r"""Earth mover's (Wasserstein-1) distance between two distributions of values; lower is better.

    Parameters
    ----------
    x, y : array_like
        Samples of the two distributions, of any shapes. To judge a denoiser: the noise it removed,
        ``noisy - denoised``, and the noise that was there, ``noisy - clean``.
    data_range : float
        Width of the grey scale, by which the distance is divided.

    Returns
    -------
    float
        :math:`\int |F_x(t) - F_y(t)|\,dt` divided by `data_range`, with :math:`F` the empirical distribution
        functions: for arrays of one size, the mean absolute difference of the sorted values.

    Examples
    --------
    >>> emd([0, 1, 3], [8, 5, 6], data_range=1)
    5.0
    """
    width = check_data_range(data_range)
    first, second = np.sort(values_of("x", x), axis=None), np.sort(values_of("y", y), axis=None)
    # Both distribution functions are constant between neighbouring values.
    steps = np.sort(np.concatenate([first, second]))
    first_below = np.searchsorted(first, steps[:-1], side="right") / first.size
    second_below = np.searchsorted(second, steps[:-1], side="right") / second.size
    return float(np.sum(np.abs(first_below - second_below) * (np.diff(steps) / width)))
