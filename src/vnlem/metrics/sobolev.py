"""The Sobolev index: a root mean square error that counts high frequencies more."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft

from vnlem.metrics._arrays import check_data_range, pair_of_planes
from vnlem.pipeline import checks


def sobolev(
    clean: ArrayLike,
    other: ArrayLike,
    kappa: float = 0.5,
    data_range: float = 255,
    *,
    channel_axis: int | None = None,
) -> float:
    r"""Sobolev index on the [0, 1] grey scale; lower is better.

    Parameters
    ----------
    clean, other : array_like
        Two images of the same shape, in the same units.
    kappa : float
        Order of the Sobolev norm; zero gives :func:`rms`.
    data_range : float
        Width of the grey scale, by which the error is divided.
    channel_axis : int, optional
        The axis of the channels, over which the squares are averaged.

    Returns
    -------
    float
        :math:`[\,|\Omega|^{-2} \sum_\omega (1 + |\eta_\omega|^2)^\kappa |\hat e(\omega)|^2\,]^{1/2}`
        divided by `data_range`, with :math:`e` the difference of the images, :math:`\hat e` its unnormalised
        discrete Fourier transform, :math:`|\Omega|` the number of pixels and :math:`\eta` in cycles per
        pixel.

    Notes
    -----
    Frequencies lie in [-1/2, 1/2), so the weight stays between 1 and 1.5 to the power of `kappa`: the index
    lies a few per cent above the RMS error.

    Examples
    --------
    An error at the highest frequency of the rows alone has weight ``(1 + 1/4)**kappa``.

    >>> stripes = 255 * np.tile([0.1, -0.1], (4, 2))
    >>> round(sobolev(np.zeros((4, 4)), stripes, kappa=0.5), 6), round(0.1 * 1.25**0.25, 6)
    (0.105737, 0.105737)
    """
    order = checks.real("kappa", kappa)
    width = check_data_range(data_range)
    first, second = pair_of_planes(clean, other, channel_axis)
    error = second - first
    peak = float(np.abs(error).max())
    if peak == 0:
        return 0.0
    rows, columns = error.shape[1:]
    squared_frequency = fft.fftfreq(rows)[:, None] ** 2 + fft.fftfreq(columns)[None, :] ** 2
    weight = (1 + squared_frequency) ** order
    # Parseval: the mean of squares of the transform with 1/sqrt(pixels) is that of the error itself.
    energy = np.abs(fft.fft2(error / peak, norm="ortho")) ** 2
    return peak * float(np.sqrt(np.mean(weight * energy))) / width
