"""The brightness of a mosaic, with one value per pixel, and how the colours differ from it.

Edges and texture are mostly brightness, which every pixel of a mosaic shows, of any colour. A mosaic
minus the differences of its colours is therefore a grey image with one sample per pixel. It has no cells, so
its patches may be compared at every shift and at several sizes. The differences are smooth, or follow the
brightness, and a denoised mosaic shows them well enough for a first colour image.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

SMOOTH = 1.5  # pixels; standard deviation of the means for the first differences
SMOOTHER = 4.0  # pixels; of wider means, which hold almost no noise of a single pixel
WINDOW = 2.0  # pixels; standard deviation of the windows in which differences are fitted to the brightness
RIDGE = 0.1  # added to the variance of the brightness in the fit, in units of the noise variance
# Noise of an estimated colour, relative to a measured one: best of 0.3 to 1 on movies_colour and on half-size
# photographs of polyu and photo_pairs.
ESTIMATED_NOISE = 0.6
FARTHEST = 9.0  # a colour's contrast counts as at most this many times the mean one, and as at least 1/this


def colours(
    mosaic: Float, denoised: Float, which: NDArray[np.intp], denoise: Callable[[Float, Float], Float]
) -> Float:
    """All colours (colours, H, W) at all pixels.

    The differences of the colours in a denoised mosaic give the brightness, which in turn gives better
    differences.

    mosaic: (H, W), with noise of standard deviation one.
    denoised: (H, W), the denoised mosaic.
    which: (H, W), the number of each pixel's colour.
    denoise: denoises a grey image, given a map of its noise.

    >>> which = np.tile([[0, 1], [1, 0]], (8, 8))
    >>> mosaic = np.where(which == 0, 5.0, 1.0)
    >>> colours(mosaic, mosaic, which, lambda grey, sigma: grey)[:, 4, 4].round(2)
    array([5., 1.])
    """
    factor = factors(denoised, which)
    scale = factor[which]
    differences = smooth_differences(denoised / scale, which)
    brightness = denoise(mosaic / scale - sampled(differences, which), 1 / scale)
    differences = fitted_differences(denoised / scale, which, brightness)
    found: Float = (brightness + differences) * factor[:, None, None]
    return found


def completed(mosaic: Float, colours: Float, which: NDArray[np.intp]) -> tuple[Float, Float]:
    """Colours (colours, H, W) with the mosaic's own pixels in their places, and a map of their noise.

    >>> which = np.array([[0, 1], [1, 0]])
    >>> filled, noise = completed(np.full((2, 2), 9.0), np.zeros((2, 2, 2)), which)
    >>> filled[0].tolist(), noise[0].tolist()
    ([[9.0, 0.0], [0.0, 9.0]], [[1.0, 0.6], [0.6, 1.0]])
    """
    own = which == np.arange(len(colours))[:, None, None]
    return np.where(own, mosaic, colours), np.where(own, 1.0, ESTIMATED_NOISE)


def sampled(planes: Float, which: NDArray[np.intp]) -> Float:
    """The mosaic (H, W) that shows planes (colours, H, W).

    >>> sampled(np.array([[[1, 2]], [[3, 4]]]), np.array([[1, 0]]))
    array([[3, 2]])
    """
    mosaic: Float = np.take_along_axis(planes, which[None], 0)[0]
    return mosaic


def factors(mosaic: Float, which: NDArray[np.intp]) -> Float:
    """Divisors of the colours that make edges about equally high in all of them.

    They are the roots of the contrasts: the contrasts themselves would spread noise of a pale colour to the
    others.

    mosaic: (H, W), denoised.
    which: (H, W), the number of each pixel's colour.

    >>> mosaic = np.tile([[0.0, 0.0], [1.0, 3.0]], (4, 4))
    >>> factors(mosaic, np.tile([0, 1], (8, 4))) ** 2
    array([0.5, 1.5])
    """
    spreads = np.array([mosaic[which == colour].std() for colour in range(which.max() + 1)])
    mean = spreads.mean()
    if mean == 0:
        return np.ones_like(spreads)
    found: Float = np.sqrt(np.clip(spreads / mean, 1 / FARTHEST, FARTHEST))
    return found


def smooth_differences(mosaic: Float, which: NDArray[np.intp], width: float = SMOOTH) -> Float:
    """Low frequencies of each colour minus those of the brightness, (colours, H, W).

    >>> which = np.tile([[0, 1], [1, 0]], (8, 8))
    >>> smooth_differences(np.where(which == 0, 5.0, 1.0), which)[:, 4, 4]
    array([ 2., -2.])
    """
    shares = np.bincount(which.ravel()) / which.size
    smooth = np.stack([_mean_of(mosaic, which == colour, width) for colour in range(len(shares))])
    differences: Float = smooth - np.tensordot(shares, smooth, 1)
    return differences


def fitted_differences(mosaic: Float, which: NDArray[np.intp], brightness: Float) -> Float:
    """Differences of each colour from the brightness, (colours, H, W): a line in each window.

    Where colours change, brightness mostly does too. A line through the pixels of a window puts the change of
    colour where the brightness has its edge [1]_.

    .. [1] K. He, J. Sun, X. Tang, "Guided image filtering", IEEE Transactions on Pattern Analysis and Machine
       Intelligence 35, 2013. :DOI:`10.1109/TPAMI.2012.213`

    >>> brightness = np.tile(np.repeat([10.0, 30.0], 8), (16, 1))
    >>> which = np.tile([[0, 1], [1, 0]], (8, 8))
    >>> mosaic = np.where(which == 0, 1.5, 0.5) * brightness
    >>> fitted_differences(mosaic, which, brightness)[0, 8, [2, 7, 8, 13]].round()
    array([ 5.,  5., 15., 15.])
    """
    from scipy.ndimage import gaussian_filter

    found = []
    for colour in range(which.max() + 1):
        known = which == colour
        guide = _mean_of(brightness, known, WINDOW)
        difference = _mean_of(mosaic - brightness, known, WINDOW)
        spread = _mean_of(brightness**2, known, WINDOW) - guide**2
        shared = _mean_of((mosaic - brightness) * brightness, known, WINDOW) - guide * difference
        slope = shared / (np.maximum(spread, 0.0) + RIDGE)
        level = difference - slope * guide
        slope, level = (gaussian_filter(one, WINDOW, mode="mirror") for one in (slope, level))
        found.append(slope * brightness + level)
    return np.stack(found)


def _mean_of(values: Float, known: NDArray[np.bool_], width: float) -> Float:
    """Weighted means of the known values around every pixel."""
    from scipy.ndimage import gaussian_filter

    weights = gaussian_filter(known.astype(np.float64), width, mode="mirror")
    mean: Float = gaussian_filter(np.where(known, values, 0.0), width, mode="mirror") / weights
    return mean
