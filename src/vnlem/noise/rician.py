"""Noise of magnitude images (MRI): Rician for one coil, non-central chi for the sum of squares of several.

    pixel = sqrt(|signal + complex noise|^2 summed over the coils), each part of the noise Normal(0, sigma^2)

Where there is no signal the pixels pile up at a positive floor, 1.25 sigma for one coil, and their noise is
weaker than sigma. A transform makes its standard deviation one at every brightness, and the exact unbiased
inverse gives the signal itself, not the mean of the pixels [1]_ [2]_.

.. [1] A. Foi, "Noise estimation and removal in MR imaging: the variance-stabilization approach", IEEE
   International Symposium on Biomedical Imaging, 2011. :DOI:`10.1109/ISBI.2011.5872758`
.. [2] C. G. Koay, P. J. Basser, "Analytically exact correction scheme for signal extraction from noisy
   magnitude MR signals", Journal of Magnetic Resonance 179, 2006. :DOI:`10.1016/j.jmr.2006.01.016`
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.pipeline import checks
from vnlem.pipeline.sigma import check_sigma

Float = NDArray[np.float64]

MOST_COILS = 128
# The tables reach to this signal and a little beyond, in sigma times the root of the coils; from there on the
# noise is normal.
LAST_SIGNAL, BEYOND = 12.0, 7.0
STEP = 0.01  # of the pixels in the tables, in the same units
SIGNALS = 240
ROUNDS = 12  # in which the transform is improved
# Signals below the first count as zero and above the second as real, in sigma, for one coil. The inverse is
# so steep at the floor that noise left in air after denoising would become a signal: 1 % of sigma becomes
# 0.18 sigma, and 10 % becomes 0.6 sigma.
NOTHING, SOMETHING = 0.75, 1.0


@dataclass(frozen=True)
class Rician:
    """Noise of magnitudes.

    sigma: standard deviation of the real and of the imaginary part of the noise, in the units of the pixels.
    coils: number of coils whose squares were added up; one is Rician noise.
    share: share of the noise left after averaging.

    >>> law = Rician(sigma=2.0)
    >>> air = 2.0 * np.random.default_rng(0).rayleigh(size=100000)
    >>> round(float(law.stabilise(air).std()), 1), float(law.unstabilise(law.stabilise(air).mean()))
    (1.0, 0.0)
    """

    sigma: float
    coils: int = 1
    share: float = 1.0

    name = "rician"

    @property
    def floor(self) -> float:
        """Mean of the pixels where there is no signal."""
        return float(self._tables.means[0] * self.sigma)

    @property
    def levels(self) -> tuple[float, ...]:
        """The range of brightness over which the noise changes."""
        means = self._tables.means
        return tuple(float(self.sigma * means[at]) for at in (0, SIGNALS // 12, SIGNALS // 6, SIGNALS // 3))

    def with_share(self, share: float) -> "Rician":
        """The noise of share * pixel + (1 - share) * its mean."""
        return replace(self, share=share * self.share)

    def halved(self, times: int) -> "Rician":
        """The noise of the image halved this often."""
        return self.with_share(0.5**times)

    def variance(self, brightness: ArrayLike) -> Float:
        """Variance of the pixels at a mean value."""
        tables = self._tables
        x = np.asarray(brightness, np.float64) / self.sigma
        deviations = np.interp(x, tables.means, tables.deviations, right=self.share)
        return np.asarray((self.sigma * deviations) ** 2)

    def stabilise(self, values: ArrayLike) -> Float:
        """Values whose noise has standard deviation one."""
        tables = self._tables
        x = np.asarray(values, np.float64) / self.sigma
        ends = tables.pixels[0], tables.pixels[-1]
        inside = np.interp(x, tables.pixels, tables.transform)
        slope = (tables.transform[1] - tables.transform[0]) / (tables.pixels[1] - tables.pixels[0])
        return np.asarray(
            inside + np.maximum(x - ends[1], 0.0) / self.share + np.minimum(x - ends[0], 0.0) * slope
        )

    def unstabilise(self, values: ArrayLike) -> Float:
        """The signal, from means of stabilised values."""
        tables = self._tables
        y = np.asarray(values, np.float64)
        inside = np.interp(y, tables.stable, _without_air(tables.signals, self.coils))
        # The pixel exceeds a strong signal by (2 coils - 1) / (2 signal).
        last = tables.signals[-1]
        excess = (2 * self.coils - 1) / 2
        pixel = last + excess / last + np.maximum(y - tables.stable[-1], 0.0) * self.share
        beyond = (pixel + np.sqrt(pixel**2 - 4 * excess)) / 2
        return np.asarray(self.sigma * np.where(y > tables.stable[-1], beyond, inside))

    def check(self, low: float) -> None:
        """Refuse an image whose smallest value no magnitude has."""
        if low < 0:
            raise ValueError(
                f"Rician noise is that of magnitudes, which are not negative, and the image holds {low:g}; "
                "pass the magnitude (abs of the complex image), or noise_model='gaussian' for other values"
            )

    @property
    def _tables(self) -> "_Tables":
        return _tables(self.coils, self.share)

    def describe(self) -> str:
        """In words."""
        kind = "Rician noise" if self.coils == 1 else f"non-central chi noise of {self.coils} coils"
        return f"{kind} of magnitudes, sigma {self.sigma:.3g}"

    def to_dict(self) -> dict[str, Any]:
        """The law as plain values."""
        return {"name": self.name, "sigma": self.sigma, "coils": self.coils}


def check_rician(sigma: Any, coils: Any = 1) -> Rician:
    """Valid noise of magnitudes, or a clear error.

    >>> check_rician(2)
    Rician(sigma=2.0, coils=1, share=1.0)
    """
    level = check_sigma(sigma)
    if level == 0:
        raise ValueError("sigma of Rician noise must be larger than 0; leave it out to have it estimated")
    return Rician(level, checks.whole("coils", 1 if coils is None else coils, 1, MOST_COILS))


class _Tables(NamedTuple):
    """Moments and transform of pixels, in units of sigma."""

    signals: Float
    means: Float  # of the pixels, by the signal
    deviations: Float  # of the pixels, by the signal
    stable: Float  # means of the transformed pixels, by the signal
    pixels: Float
    transform: Float  # by the pixel


@lru_cache(maxsize=32)
def _tables(coils: int, share: float) -> _Tables:
    """The transform begins as the integral of 1 / deviation and is corrected by the deviation it gives."""
    wider = coils**0.5
    step = STEP * wider
    signals = LAST_SIGNAL * wider * np.linspace(0.0, 1.0, SIGNALS) ** 1.5
    pixels = np.arange(step / 2, (LAST_SIGNAL + BEYOND) * wider, step)
    weights = _density(pixels, signals, coils)
    means, deviations = _moments(weights, pixels)
    if share < 1:
        # A mean of several pixels is nearly normal.
        weights = np.exp(-0.5 * ((pixels - means[:, None]) / (share * deviations[:, None])) ** 2)
        weights /= weights.sum(axis=1, keepdims=True)
        deviations = share * deviations
    slope = 1 / np.interp(pixels, means, deviations, right=share)
    for _ in range(ROUNDS):
        transform = np.cumsum(slope) * step
        found = _moments(weights, transform)[1]
        slope = slope / np.interp(pixels, means, found, right=1.0)
    transform = np.cumsum(slope) * step
    return _Tables(signals, means, deviations, weights @ transform, pixels, transform)


def _density(pixels: Float, signals: Float, coils: int) -> Float:
    """Probability of every pixel (signals, pixels)."""
    from scipy import special

    order = coils - 1
    strength = np.maximum(signals, 1e-2)[:, None] if order else signals[:, None]
    product = pixels * strength
    scaled = special.ive(order, product)
    # If the function itself is too small for double precision, use the first terms of its series.
    small = order * np.log(np.maximum(product, 1e-300) / 2) - special.gammaln(coils)
    small += product**2 / (4 * coils) - product
    bessel = np.where(scaled > 1e-280, np.log(np.maximum(scaled, 1e-300)), small)
    logs = coils * np.log(pixels) - 0.5 * (pixels - strength) ** 2 + bessel
    if order:
        logs -= order * np.log(strength)
    density = np.exp(logs - logs.max(axis=1, keepdims=True))
    density /= density.sum(axis=1, keepdims=True)
    return np.asarray(density)


def _moments(weights: Float, values: Float) -> tuple[Float, Float]:
    mean = weights @ values
    return mean, np.sqrt(np.maximum(weights @ values**2 - mean**2, 1e-30))


def _without_air(signals: Float, coils: int) -> Float:
    """Set the weakest signals to zero and reduce the next ones."""
    # With several coils the floor is flatter by this factor.
    flatter = coils**0.25
    part = np.clip((signals / flatter - NOTHING) / (SOMETHING - NOTHING), 0.0, 1.0)
    return np.asarray(signals * part * part * (3 - 2 * part))


def add_rician(image: ArrayLike, sigma: float, *, coils: int = 1, seed: Any = None) -> Float:
    """Add the noise of magnitude images.

    Parameters
    ----------
    image : array_like
        The signal, any shape.
    sigma : float
        Standard deviation of the real and of the imaginary part of the noise.
    coils : int
        Number of coils whose squares are added up; the signal is that of all of them.
    seed : int, numpy.random.Generator or None
        What ``numpy.random.default_rng`` takes.

    Returns
    -------
    ndarray of float64

    Examples
    --------
    >>> round(float(add_rician(np.zeros((500, 500)), 2.0, seed=0).mean()), 1)
    2.5
    """
    values = checks.finite("image", image)
    law = check_rician(sigma, coils)
    rng = np.random.default_rng(seed)
    squares = (values + rng.normal(0, law.sigma, values.shape)) ** 2
    for _ in range(2 * law.coils - 1):
        squares += rng.normal(0, law.sigma, values.shape) ** 2
    return np.asarray(np.sqrt(squares))
