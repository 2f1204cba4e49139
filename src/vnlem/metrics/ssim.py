"""SSIM, the structural similarity of Wang et al. 2004: one window and one set of constants everywhere."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from vnlem.metrics._arrays import check_data_range, data_range_of, pair_of_planes

SSIM_WINDOW = 11  # side of the Gaussian window of Wang et al. 2004, standard deviation 1.5


def ssim(
    clean: ArrayLike, other: ArrayLike, data_range: float | None = None, channel_axis: int | None = None
) -> float:
    """Structural similarity, 1 at best; higher is better.

    Parameters
    ----------
    clean, other : array_like
        Two images of the same shape, in the same units, with at least 11 pixels a side.
    data_range : float, optional
        Width of the grey scale; from the dtype for integers, required for floats.
    channel_axis : int, optional
        The axis of the channels of colour images.

    Returns
    -------
    float
        The mean over pixels and channels.

    Notes
    -----
    With the Gaussian window of standard deviation 1.5 and the population covariance, as in the article:
    scikit-image's ``structural_similarity(..., gaussian_weights=True, use_sample_covariance=False)``. Its own
    default is a uniform window of 7 pixels, which gives other values.

    Examples
    --------
    >>> clean = np.eye(32)
    >>> ssim(clean, clean, data_range=1), ssim(clean, clean / 2, data_range=1) < 1
    (1.0, True)
    """
    planes = pair_of_planes(clean, other, channel_axis)
    width = data_range_of(clean) if data_range is None else check_data_range(data_range)
    found = ssim_of_planes(*planes, width)
    if found is None:
        height, columns = planes[0].shape[1:]
        raise ValueError(f"SSIM needs images of at least {SSIM_WINDOW} pixels a side, got {height}x{columns}")
    return found


def ssim_of_planes(clean: NDArray[np.float64], other: NDArray[np.float64], data_range: float) -> float | None:
    """SSIM of channel planes (C, H, W); None if a side is below its window.

    >>> ssim_of_planes(np.eye(12)[None], np.eye(12)[None], 1.0)
    1.0
    """
    if min(clean.shape[1:]) < SSIM_WINDOW:
        return None
    # Grey scale [0, 1]: no square under- or overflows.
    return float(
        np.mean([_ssim_of_plane(x / data_range, y / data_range) for x, y in zip(clean, other, strict=True)])
    )


def _ssim_of_plane(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """The mean over the pixels whose window lies in the image; grey scale of width 1."""
    half = SSIM_WINDOW // 2

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        smooth = ndimage.gaussian_filter(values, 1.5, radius=half)
        return np.asarray(smooth[half:-half, half:-half])

    mean_x, mean_y = mean(x), mean(y)
    products = mean_x * mean_y
    squares = mean_x**2 + mean_y**2
    covariance = mean(x * y) - products
    variances = mean(x**2 + y**2) - squares
    c1, c2 = 0.01**2, 0.03**2
    found = (2 * products + c1) * (2 * covariance + c2) / ((squares + c1) * (variances + c2))
    return float(found.mean())
