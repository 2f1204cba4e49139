"""SNR, PSNR and RMS: three readings of the root mean square error."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.metrics._arrays import check_data_range, data_range_of, pair_of
from vnlem.pipeline.sigma import root_mean_square


def snr(clean: ArrayLike, other: ArrayLike) -> float:
    r"""Signal-to-noise ratio in decibels; higher is better.

    Parameters
    ----------
    clean, other : array_like
        Two arrays of the same shape, in the same units.

    Returns
    -------
    float
        :math:`20 \log_{10}(\mathrm{std}(clean) / \mathrm{rmse})`: infinite for equal arrays, minus infinite
        for a constant `clean` that `other` differs from.

    Notes
    -----
    Does not change when both images are scaled and shifted alike, so it is the same before and after
    standardisation.

    Examples
    --------
    >>> float(round(snr([0.0, 2.0, 0.0, 2.0], [0.1, 2.1, -0.1, 1.9]), 6))
    20.0
    """
    first, second = pair_of(clean, other)
    return _decibels(root_mean_square(_deviations(first)), root_mean_square(second - first))


def psnr(clean: ArrayLike, other: ArrayLike, data_range: float | None = None) -> float:
    r"""Peak signal-to-noise ratio in decibels; higher is better.

    Parameters
    ----------
    clean, other : array_like
        Two arrays of the same shape, in the same units.
    data_range : float, optional
        The peak, e.g. 255 for 8-bit images or 1 for floats in 0..1. For integers it defaults to the span of
        their dtype (of its positive half where `clean` has no negative value), as in scikit-image. Floats
        say nothing about their scale: for them it is required.

    Returns
    -------
    float
        :math:`20 \log_{10}(\mathtt{data\_range} / \mathrm{rmse})`, infinite for equal arrays.

    Notes
    -----
    The same as :math:`\mathrm{SNR} + 20 \log_{10}(\mathtt{data\_range} / \mathrm{std}(clean))`.

    Examples
    --------
    >>> clean = np.array([100, 100, 100, 140], np.uint8)
    >>> noisy = np.array([103, 97, 103, 137], np.uint8)
    >>> round(psnr(clean, noisy), 6), round(psnr(clean / 255, noisy / 255, data_range=1), 6)
    (38.588379, 38.588379)
    """
    first, second = pair_of(clean, other)
    peak = data_range_of(clean) if data_range is None else check_data_range(data_range)
    return _decibels(peak, root_mean_square(second - first))


def psnr_paper(clean: ArrayLike, other: ArrayLike) -> float:
    r"""The paper's peak signal-to-noise ratio in decibels, which is not the usual one; higher is better.

    Parameters
    ----------
    clean, other : array_like
        Two arrays of the same shape, in the same units.

    Returns
    -------
    float
        :math:`20 \log_{10}(\max|clean - mean| / \mathrm{rmse})`: infinite for equal arrays, minus infinite
        for a constant `clean` that `other` differs from.

    Notes
    -----
    The peak is the largest absolute value of the standardised clean image, so this PSNR exceeds the SNR by
    :math:`20 \log_{10} \max|clean - mean| / \mathrm{std}(clean)`.

    Examples
    --------
    >>> round(psnr_paper([100.0, 100.0, 100.0, 140.0], [103.0, 97.0, 103.0, 137.0]), 6)
    20.0
    """
    first, second = pair_of(clean, other)
    return _decibels(float(np.abs(_deviations(first)).max()), root_mean_square(second - first))


def rms(clean: ArrayLike, other: ArrayLike, data_range: float = 255) -> float:
    """Root mean square error on the [0, 1] grey scale; lower is better.

    Parameters
    ----------
    clean, other : array_like
        Two arrays of the same shape, in the same units.
    data_range : float
        Width of the grey scale, by which the error is divided.

    Returns
    -------
    float
        The root of the mean squared difference, divided by `data_range`.

    Examples
    --------
    >>> rms([0, 0, 255], [51, 51, 204])
    0.2
    """
    first, second = pair_of(clean, other)
    return root_mean_square(second - first) / check_data_range(data_range)


def _deviations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    peak = float(np.abs(values).max()) or 1.0
    low, high = float(values.min()), float(values.max())
    # Rounding of the mean must not push it outside the values: a constant image deviates by exactly zero.
    mean = min(max(float(np.mean(values / peak)) * peak, low), high)
    return values - mean


def _decibels(signal: float, error: float) -> float:
    if error == 0:
        return math.inf
    if signal == 0:
        return -math.inf
    return 20 * (math.log10(signal) - math.log10(error))
