"""The noise of a layer: found once, shown in words and as a curve, passed to every page."""

from typing import Any

from numpy.typing import NDArray

from vnlem.napari.settings import Settings
from vnlem.noise import NoiseModel
from vnlem.noise.auto import estimate_of_planes
from vnlem.noise.find import ABOUT_NOISE
from vnlem.pipeline.image import Planes, to_planes
from vnlem.repair import EVERY_PIXEL, as_planes, split, without_missing


def find_noise(page: NDArray[Any], settings: Settings, channel_axis: int | None = None) -> NoiseModel:
    """The noise the settings name; what they leave open is estimated from the page, without its NaN.

    >>> import numpy as np
    >>> page = np.random.default_rng(0).normal(0, 3.0, (64, 64))
    >>> find_noise(page, Settings(noise="gaussian", sigma=2.0)).describe()
    'white noise, sigma 2'
    """
    if settings.noise == "file":
        return _saved(settings)
    if settings.noise == "gaussian" and settings.sigma is not None:
        return NoiseModel.white(settings.sigma)
    if settings.noise == "poisson-gaussian" and settings.gain is not None:
        return NoiseModel.camera(settings.gain, settings.offset or 0.0, settings.read_noise or 0.0)
    told = {name: value for name, value in settings.noise_arguments().items() if name in ("coils", "looks")}
    whole, missing = split(page, EVERY_PIXEL)
    planes = to_planes(whole, channel_axis)

    def estimate(planes: Planes) -> NoiseModel:
        # The page may be a part of a larger one: lines and fields would be those of the part.
        return estimate_of_planes(
            planes, settings.noise, None, settings.caution, options=told, in_place=False
        )

    if missing is not None:
        planes, _ = without_missing(planes, as_planes(missing, channel_axis), estimate)
    return estimate(planes)


def noise_arguments(settings: Settings) -> dict[str, Any]:
    """All arguments of ``vnlem.denoise`` that say what the noise is.

    >>> noise_arguments(Settings(noise="gaussian", sigma=2.0))["sigma"]
    2.0
    """
    none = {"sigma": None, "noise_model": "auto", **dict.fromkeys(ABOUT_NOISE)}
    if settings.noise == "file":
        return {**none, "noise_model": _saved(settings)}
    return {**none, **settings.noise_arguments()}


def _saved(settings: Settings) -> NoiseModel:
    if not settings.model_file:
        raise ValueError("choose the file of a saved noise model first")
    return NoiseModel.load(settings.model_file)
