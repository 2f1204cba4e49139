"""``vnlem.check_noise``: compare denoised tiles plus simulated noise with the image."""

from typing import Any

from numpy.typing import ArrayLike

from vnlem.api import denoise_image
from vnlem.call import CallOptions
from vnlem.noise.auto import estimate_of_planes
from vnlem.noise.model import NoiseModel
from vnlem.noise.predictive import NoiseCheck, check_by_tiles, check_model
from vnlem.pipeline.image import check_values, to_planes
from vnlem.registry import find_method


def check_noise(
    image: ArrayLike,
    noise_model: NoiseModel | None = None,
    channel_axis: int | None = None,
    *,
    workers: int | None = None,
) -> NoiseCheck:
    """Check a noise model: denoise some tiles, add simulated noise, and compare them with the image.

    Parameters
    ----------
    image : array_like
        A grey image, or a colour image with `channel_axis`.
    noise_model : NoiseModel, optional
        What the noise is; :func:`vnlem.estimate_noise` of the image when None.
    channel_axis : int, optional
        The axis of the channels.
    workers : int, optional
        Threads; all cores when None. The result does not depend on it.

    Returns
    -------
    NoiseCheck
        Its `verdict` is "yes", "mostly", "no" or "unknown"; `describe()` says it in words, with the reason.

    Notes
    -----
    VNLR with the profile "fast" denoises at most nine tiles of 128x128 pixels. See
    :func:`vnlem.noise.predictive_check` for what is compared. ``vnlem.denoise(..., return_info=True)`` does
    the same with the whole result: its `info.noise_check`.

    Examples
    --------
    >>> import numpy as np, vnlem
    >>> noisy = np.tile(np.linspace(0, 200, 96), (96, 1)) + np.random.default_rng(0).normal(0, 9, (96, 96))
    >>> vnlem.check_noise(noisy).describe()
    'simulated noise of this kind looks like your image: yes'
    >>> vnlem.check_noise(noisy, vnlem.NoiseModel.white(18.0)).verdict
    'no'
    """
    planes = to_planes(image, channel_axis)
    check_values(planes)
    if noise_model is None:
        noise_model = estimate_of_planes(planes, workers=workers)
    else:
        check_model("noise_model", noise_model, planes)
    common = CallOptions(planes.channel_axis, workers, warns=False)

    def denoised(tile: Any, model: NoiseModel) -> Any:
        given = {"preset": "auto", "profile": "fast"}
        return denoise_image(find_method("vnlr"), tile, None, model, {}, given, common, None)

    return check_by_tiles(planes, noise_model, denoised)
