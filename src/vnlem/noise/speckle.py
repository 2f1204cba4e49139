"""Speckle of coherent light, sound and radar: every pixel is its mean times a random number.

    intensity = reflectivity * Gamma(looks) / looks          amplitude = sqrt(intensity)

The logarithm makes the noise the same at every brightness. Its mean is not the logarithm of the mean, so the
inverse adds the difference. At few looks the logarithm has a long tail, and its mean is inefficient: at one
look its variance is 1.64 instead of the possible 1. So the image is mixed with a first result and denoised
again, as with few photons (`vnlem.noise.rounds`): the logarithm of a mixture has no such tail.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.pipeline import checks

Float = NDArray[np.float64]

DOMAINS = ("intensity", "amplitude", "log")
SAMPLES = 20_000  # quantiles that represent a distribution
LEAST_LOOKS, MOST_LOOKS = 0.1, 1e6  # logarithms of far fewer looks overflow
LEAST = 1e-4  # of the mean brightness: darker pixels are raised to it for the logarithm
# Noise with a long tail is best removed as if it were a little stronger. On pictures of set12 this gains 0.2,
# 0.1, 0.06 and 0.03 dB at 1, 4, 16 and 64 looks, on OCT scans 0.03 dB.
TAIL = 1.04
# Levels for a law that has none: a curve of several knots depends on the brightness.
LEVELS = (1.0, 100.0)


@dataclass(frozen=True)
class Speckle:
    """Speckle with a number of looks.

    looks: independent pictures whose intensities were averaged.
    domain: "intensity", "amplitude" or "log", what the pixels are.
    unit: of logarithmic pixels: grey levels for a factor of e in intensity.
    least: darker pixels are raised to this value; not for logarithmic ones.
    share: share of the noise, in a mixture with the previous result.
    averages: number of pixels averaged into one.

    >>> law = Speckle(looks=4.0)
    >>> round(float(law.stabilise(100.0 * np.random.default_rng(0).gamma(4, 1 / 4, 100000)).std()), 1)
    1.0
    """

    looks: float
    domain: str = "intensity"
    unit: float = 1.0
    least: float = 0.0
    share: float = 1.0
    averages: float = 1.0

    name = "speckle"

    @property
    def levels(self) -> tuple[float, ...]:
        """Brightness at the ends of the curve of this law; logarithms have one level."""
        return (0.0,) if self.domain == "log" else LEVELS

    def with_share(self, share: float) -> "Speckle":
        """The noise of share * pixel + (1 - share) * its mean."""
        return replace(self, share=share * self.share)

    def halved(self, times: int) -> "Speckle":
        """The noise of the image halved this often."""
        return replace(self, averages=self.averages * 4**times)

    def variance(self, brightness: ArrayLike) -> Float:
        """Variance of the pixels at a brightness."""
        x = np.asarray(brightness, np.float64)
        if self.domain == "log":
            return np.full(x.shape, (self._scale * self.unit) ** 2)
        return np.asarray(self._moments[2] * np.maximum(x, self.least) ** 2)

    def stabilise(self, values: ArrayLike) -> Float:
        """Values whose noise has a standard deviation of almost one: 1 / TAIL."""
        x = np.asarray(values, np.float64)
        if self.domain == "log":
            return np.asarray(x / (self.unit * self._scale * TAIL))
        return np.asarray(np.log(np.maximum(x, max(self.least, 1e-300))) / (self._scale * TAIL))

    def unstabilise(self, values: ArrayLike) -> Float:
        """The pixels without speckle; the mean of logarithmic ones."""
        y = np.asarray(values, np.float64) * self._scale * TAIL
        if self.domain == "log":
            return np.asarray(y * self.unit)
        return np.asarray(np.exp(np.minimum(y - self._moments[0], 200.0)))

    def check(self, low: float) -> None:
        """Refuse an image whose smallest value has no logarithm."""
        if low < 0 and self.domain != "log":
            raise ValueError(
                f"speckle multiplies an {self.domain}, which is not negative, and the image holds {low:g}; "
                "pass domain='log' (--domain log) if the values are already logarithms"
            )

    @property
    def log_variance(self) -> float:
        """Variance of the logarithm."""
        return float(self._scale**2)

    @property
    def _scale(self) -> float:
        """Standard deviation of the logarithm."""
        if self.domain == "log":  # mixtures and means of logarithms keep their shape
            alone = _moments(self.looks, "intensity", 1.0, 1.0)[1]
            return alone * self.share / math.sqrt(self.averages)
        return self._moments[1]

    @property
    def _moments(self) -> tuple[float, float, float]:
        return _moments(self.looks, self.domain, self.share, self.averages)

    def describe(self) -> str:
        """In words."""
        if self.domain == "log":
            return f"speckle on a logarithmic scale, taken as sigma {self.unit * self._scale:.3g}"
        return f"speckle ({self.domain}), {self.looks:.3g} look{'s' if self.looks != 1 else ''}"

    def to_dict(self) -> dict[str, Any]:
        """The law as plain values."""
        names = ("looks", "domain", "unit", "least")
        return {"name": self.name, **{name: getattr(self, name) for name in names}}


def check_speckle(looks: Any, domain: Any = "intensity", unit: Any = 1.0, least: Any = 0.0) -> Speckle:
    """Valid speckle, or a clear error.

    >>> check_speckle(4).looks
    4.0
    """
    return Speckle(
        checks.real("looks", looks, LEAST_LOOKS, MOST_LOOKS),
        checks.choice("domain", domain, DOMAINS),
        checks.real("unit", unit, 0, open_low=True),
        checks.real("least", least, 0),
    )


@lru_cache(maxsize=64)
def _moments(looks: float, domain: str, share: float, averages: float) -> tuple[float, float, float]:
    """Mean and standard deviation of log(pixel / pixel without speckle), and the variance of the ratio."""
    from scipy import special

    at = (np.arange(SAMPLES) + 0.5) / SAMPLES
    number = looks * averages if domain == "intensity" else looks
    noise = special.gammaincinv(number, at) / number
    if domain == "amplitude":
        noise = np.sqrt(noise)
        if averages > 1:
            # The mean of amplitudes is nearly a gamma variable, of their mean and of less variance.
            mean, relative = float(noise.mean()), float(noise.var() / noise.mean() ** 2) / averages
            noise = mean * special.gammaincinv(1 / relative, at) * relative
    mixed = 1 - share + share * noise
    logs = np.log(np.maximum(mixed, 1e-300))
    return float(logs.mean()), float(logs.std()), float(mixed.var())


def add_speckle(
    image: ArrayLike, looks: float = 1.0, *, domain: str = "intensity", seed: Any = None
) -> Float:
    """Multiply an image with speckle.

    Parameters
    ----------
    image : array_like
        Intensities or amplitudes, not negative; any shape.
    looks : float
        Number of independent pictures that are averaged; one is fully developed speckle.
    domain : {"intensity", "amplitude"}
        What the pixels are. The mean intensity is kept.
    seed : int, numpy.random.Generator or None
        What ``numpy.random.default_rng`` takes.

    Returns
    -------
    ndarray of float64

    Examples
    --------
    >>> speckled = add_speckle(np.full((500, 500), 10.0), looks=4, seed=0)
    >>> round(float(speckled.mean())), round(float(speckled.std()))
    (10, 5)
    """
    values = checks.finite("image", image)
    checks.choice("domain", domain, DOMAINS[:2])
    count = check_speckle(looks).looks
    if values.min() < 0:
        raise ValueError(f"speckle multiplies intensities, which are not negative; got {values.min():g}")
    noise = np.random.default_rng(seed).gamma(count, 1 / count, values.shape)
    return np.asarray(values * (noise if domain == "intensity" else np.sqrt(noise)))
