"""The noise of a layer: found once, shown in words and as a curve, handed to every page."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.napari.settings import Settings
from vnlem.noise import GainModel, estimate_gain, estimate_sigma

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """What is known about the noise of some pages.

    Examples
    --------
    >>> noise = white(5.0)
    >>> noise.words, noise.deviation(np.array([10.0, 20.0])).tolist(), noise.arguments
    ('white noise, sigma 5', [5.0, 5.0], {'sigma': 5.0})
    """

    words: str
    deviation: Callable[[Float], Float]  # brightness -> standard deviation of the noise there
    arguments: dict[str, Any] = field(default_factory=dict)  # of `vnlem.denoise`


def white(sigma: float, remark: str = "") -> Noise:
    """White noise of one standard deviation."""
    return Noise(
        f"white noise, sigma {sigma:.4g}{remark}",
        lambda brightness: np.full(np.shape(brightness), float(sigma)),
        {"sigma": float(sigma)},
    )


def photons(model: GainModel, remark: str = "") -> Noise:
    """Photon noise and read noise."""
    return Noise(
        f"photon noise, gain {model.gain:.4g}, offset {model.offset:.4g}, "
        f"read noise {model.read_noise:.4g}{remark}",
        lambda brightness: np.sqrt(model.variance(np.asarray(brightness, np.float64))),
        {
            "noise_model": "poisson-gaussian",
            "gain": model.gain,
            "offset": model.offset,
            "read_noise": model.read_noise,
        },
    )


def find_noise(page: NDArray[Any], settings: Settings, channel_axis: int | None = None) -> Noise:
    """The noise the settings name; what they leave open is estimated from the page.

    Examples
    --------
    >>> page = np.random.default_rng(0).normal(0, 3.0, (64, 64))
    >>> find_noise(page, Settings(noise="gaussian", sigma=2.0)).words
    'white noise, sigma 2'
    """
    if settings.noise == "poisson-gaussian":
        if settings.gain is None:
            return photons(estimate_gain(page, channel_axis), " (estimated)")
        return photons(GainModel(settings.gain, settings.offset or 0.0, settings.read_noise or 0.0))
    if settings.sigma is not None and settings.noise == "gaussian":
        return white(settings.sigma)
    return white(float(estimate_sigma(page, channel_axis)), " (estimated)")
