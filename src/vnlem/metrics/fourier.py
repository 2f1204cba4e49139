"""Fourier ring and shell correlation: up to which frequency two images of the same object agree."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft

from vnlem.metrics._arrays import pair_of
from vnlem.pipeline import checks


@dataclass(frozen=True)
class FourierCorrelation:
    """The correlation of two images on rings (or shells) of equal frequency.

    Attributes
    ----------
    frequency : ndarray
        Middle of each ring, in cycles per unit of `pixel_size`; it ends at half a cycle per pixel.
    correlation : ndarray
        Between -1 and 1; 0 where a ring of one of the images is empty.
    count : ndarray
        Fourier coefficients of each ring.

    Examples
    --------
    >>> image = np.random.default_rng(0).normal(size=(8, 8))
    >>> frc(image, -image)
    FourierCorrelation(frequency=array([0.125, 0.25 , 0.375, 0.5  ]), correlation=array([-1., -1., -1., -1.]),
                       count=array([ 8, 12, 16, 22]))
    """

    frequency: NDArray[np.float64]
    correlation: NDArray[np.float64]
    count: NDArray[np.int64]

    def crossing(self, threshold: float = 0.5) -> float | None:
        """The frequency at which the correlation first falls below a threshold; None if it never does.

        Parameters
        ----------
        threshold : float
            0.5 and 1/7 are usual.

        Examples
        --------
        >>> curve = FourierCorrelation(np.array([0.1, 0.2, 0.3]), np.array([1.0, 0.6, 0.2]), np.ones(3, int))
        >>> round(curve.crossing(0.5), 3), curve.crossing(0.1)
        (0.225, None)
        """
        level = checks.real("threshold", threshold, -1)
        if self.correlation[0] < level:
            return float(self.frequency[0])
        points = list(zip(self.frequency, self.correlation, strict=True))
        for (low, above), (high, below) in pairwise(points):
            if below < level:
                return float(low + (high - low) * (above - level) / (above - below))
        return None


def frc(first: ArrayLike, second: ArrayLike, pixel_size: float = 1.0) -> FourierCorrelation:
    r"""Fourier ring correlation of two images.

    Parameters
    ----------
    first, second : array_like
        Two images (H, W) of one object with independent noise, such as the means of two half sets, or a
        result and the truth.
    pixel_size : float
        Length of a pixel; frequencies are in cycles per that unit.

    Returns
    -------
    FourierCorrelation
        :math:`\mathrm{Re} \sum F_1 \overline{F_2} / \sqrt{\sum |F_1|^2 \sum |F_2|^2}` over the Fourier
        coefficients of each ring, of the images minus their means. Rings are as wide as one cycle along the
        shorter side.

    Notes
    -----
    Denoise the half sets separately and never with a common estimate: what both halves take from a common
    image correlates, and the curve then says nothing about the object.

    References
    ----------
    W. O. Saxton, W. Baumeister, J. Microscopy 127 (1982), doi:10.1111/j.1365-2818.1982.tb00405.x

    Examples
    --------
    Two noisy images of a smooth object agree at low frequencies and not at high ones.

    >>> rng = np.random.default_rng(0)
    >>> y, x = np.mgrid[:64, :64]
    >>> clean = 50 * np.exp(-((y - 32) ** 2 + (x - 32) ** 2) / 60)
    >>> curve = frc(clean + rng.normal(0, 5, clean.shape), clean + rng.normal(0, 5, clean.shape))
    >>> bool(curve.correlation[1] > 0.9), bool(abs(curve.correlation[-1]) < 0.3)
    (True, True)
    >>> 0.05 < curve.crossing(0.5) < 0.2
    True
    """
    return _correlation(first, second, 2, pixel_size)


def fsc(first: ArrayLike, second: ArrayLike, pixel_size: float = 1.0) -> FourierCorrelation:
    """Fourier shell correlation of two volumes.

    Parameters
    ----------
    first, second : array_like
        Two volumes (D, H, W).
    pixel_size : float
        Length of a voxel.

    Returns
    -------
    FourierCorrelation
        As :func:`frc`, over shells.

    References
    ----------
    G. Harauz, M. van Heel, Optik 73 (1986) 146-156.

    Examples
    --------
    >>> volume = np.random.default_rng(0).normal(size=(16, 16, 16))
    >>> bool(np.allclose(fsc(volume, volume).correlation, 1))
    True
    """
    return _correlation(first, second, 3, pixel_size)


def _correlation(first: ArrayLike, second: ArrayLike, ndim: int, pixel_size: float) -> FourierCorrelation:
    size = checks.real("pixel_size", pixel_size, 0, open_low=True)
    one, other = pair_of(first, second, "second", "first")
    if one.ndim != ndim:
        what, cure = ("an image", "fsc is for volumes") if ndim == 2 else ("a volume", "frc is for images")
        raise ValueError(f"first must be {what} of {ndim} axes, got shape {one.shape}; {cure}")
    side = min(one.shape)
    if side < 4:
        raise ValueError(f"the images must have at least 4 pixels a side, got shape {one.shape}")
    one_hat, other_hat = (fft.rfftn(_without_mean(values)) for values in (one, other))
    squared = np.zeros(one_hat.shape)
    for axis, length in enumerate(one.shape):
        steps = fft.rfftfreq(length) if axis == ndim - 1 else fft.fftfreq(length)
        squared += np.expand_dims(steps**2, [k for k in range(ndim) if k != axis])
    ring = np.rint(np.sqrt(squared) * side).astype(int)
    n_rings = side // 2
    # Half of the coefficients represent their conjugates too, except columns that are their own conjugates.
    weight = np.full(one_hat.shape, 2.0)
    weight[..., 0] = 1
    if one.shape[-1] % 2 == 0:
        weight[..., -1] = 1
    inside = (ring > 0) & (ring <= n_rings)

    def total(values: NDArray[np.float64]) -> NDArray[np.float64]:
        found = np.bincount(ring[inside], (weight * values)[inside], n_rings + 1)[1:]
        return np.asarray(found, np.float64)

    cross = total((one_hat * np.conj(other_hat)).real)
    power = np.sqrt(total(np.abs(one_hat) ** 2)) * np.sqrt(total(np.abs(other_hat) ** 2))
    correlation = np.divide(cross, power, out=np.zeros(n_rings), where=power > 0)
    count = total(np.ones(one_hat.shape)).astype(np.int64)
    frequency = np.arange(1, n_rings + 1) / side / size
    return FourierCorrelation(frequency, np.clip(correlation, -1, 1), count)


def _without_mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centred and divided by the largest value, so that squares stay finite."""
    centred = values - values.mean()
    peak = float(np.abs(centred).max())
    return np.asarray(centred / peak if peak > 0 else centred)
