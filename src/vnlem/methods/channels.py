"""Images of several channels: together, one by one, or as the one picture they are."""

from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.features.channels import handling
from vnlem.pipeline.device import lies_on_gpu, namespace, to_host
from vnlem.pipeline.image import Planes, to_planes
from vnlem.pipeline.progress import Progress
from vnlem.pipeline.run import Info, Result
from vnlem.pipeline.stand_in import StandIn

# picture, its sigma, its channel axis, progress -> result
Denoise = Callable[[Any, Any, int | None, Progress], Result]


def choose_handling(image: ArrayLike, sigma: Any, axis: int) -> str:
    """How the channels of an image ask to be denoised: "joint", "separate" or "same"."""
    planes = to_planes(to_host(image), axis)
    levels = _levels(planes, sigma.noise if isinstance(sigma, StandIn) else sigma)
    if len(planes.data) == 1 or levels is None:
        return "joint"
    noise = np.array([float(np.sqrt(np.mean(np.square(level)))) for level in levels])
    return handling("auto", planes.data, noise)


def by_channels(
    denoise: Denoise, image: ArrayLike, sigma: Any, axis: int, progress: Progress, channels: str
) -> Result:
    """Denoise an image with channels, where it lies; channels: "joint", "separate" or "same"."""
    planes = to_planes(image, axis)
    count = len(planes.data)
    stands = isinstance(sigma, StandIn)
    levels = _levels(planes, sigma.noise if stands else sigma)
    if channels == "joint" or count == 1 or levels is None:
        return denoise(image, sigma, axis, progress)
    if channels == "same":
        mean = planes.data.mean(axis=0)
        level = sigma.part(lambda every: every.mean(axis=0, keepdims=True)) if stands else levels[0]
        done = denoise(mean, level, None, progress)
        result, info = done if isinstance(done, tuple) else (done, None)
        restored = planes.restore(planes.data + (result - mean))
        return restored if info is None else (restored, info)
    parts = []
    for number, (plane, level) in enumerate(zip(planes.data, levels, strict=True)):
        own = sigma.part(itemgetter(slice(number, number + 1))) if stands else level
        parts.append(denoise(plane, own, None, _share(progress, number, count)))
    images = [part[0] if isinstance(part, tuple) else part for part in parts]
    restored = planes.restore(namespace(images[0]).stack(images))
    infos = [part[1] for part in parts if isinstance(part, tuple)]
    return (restored, _together(infos)) if infos else restored


def _levels(planes: Planes, sigma: Any) -> list[Any] | None:
    """Noise of each channel, a number or a map; None where sigma is no noise level: told later."""
    count = len(planes.data)
    if sigma is None:
        from vnlem.noise.white import estimate_sigma_of_planes

        return [estimate_sigma_of_planes(to_host(plane)[None]) for plane in planes.data]
    sigma = to_host(sigma) if lies_on_gpu(sigma) else sigma
    try:
        values = np.asarray(sigma, np.float64)
    except (TypeError, ValueError):
        return None
    if isinstance(sigma, str | bytes | bool) or not np.isfinite(values).all() or (values < 0).any():
        return None
    if values.ndim == 0:
        return [sigma] * count
    if values.shape == (count,):
        return [float(value) for value in values]
    if values.shape == planes.data.shape[1:]:
        return [values] * count
    axis = planes.channel_axis
    if values.ndim == 3 and axis is not None and np.moveaxis(values, axis, 0).shape == planes.data.shape:
        return list(np.moveaxis(values, axis, 0))
    return None


def _share(progress: Progress, number: int, count: int) -> Progress:
    """Progress of one channel as part of all."""
    if not callable(progress):
        return progress
    return lambda done, total: progress(number * total + done, count * total)


def _together(infos: list[Info]) -> Info:
    """What the channels used and found."""
    timings = {key: sum(info.timings[key] for info in infos) for key in infos[0].timings}
    sigma = float(np.sqrt(np.mean([info.sigma**2 for info in infos])))
    # A channel without noise is left as it is and has no details.
    found = [info.details for info in infos if info.details]
    details: dict[str, NDArray[Any] | list[Any]] = {
        key: np.mean([detail[key] for detail in found], axis=0).tolist()
        for key in (found[0] if found else {})
    }
    return replace(infos[0], sigma=sigma, timings=timings, details=details)
