"""The one entry point: ``vnlem.denoise(image, sigma, method=...)``."""

import inspect
from dataclasses import asdict, replace
from typing import Any

from numpy.typing import ArrayLike

from vnlem.noise.poisson_gaussian import GainModel, find_model, stabilise, unstabilise
from vnlem.pipeline import checks
from vnlem.pipeline.device import to_host, where_it_is_asked
from vnlem.pipeline.image import to_planes
from vnlem.pipeline.progress import Progress
from vnlem.pipeline.run import Result
from vnlem.registry import DEFAULT_METHOD, find_method

# Arguments of `denoise` itself, the same for every method.
_COMMON = ("preset", "channel_axis", "workers", "progress", "return_info", "device")


@where_it_is_asked
def denoise(
    image: ArrayLike,
    sigma: Any = None,
    *,
    method: str = DEFAULT_METHOD,
    preset: str = "auto",
    channel_axis: int | None = None,
    workers: int | None = None,
    progress: Progress = False,
    return_info: bool = False,
    device: str | None = None,
    noise_model: str = "gaussian",
    gain: float | None = None,
    offset: float | None = None,
    read_noise: float | None = None,
    **params: Any,
) -> Result:
    """Denoise an image.

    Parameters
    ----------
    image : array_like
        Grey image (H, W), or colour image with `channel_axis`; the methods nlm, nlem and nlpr also take a
        signal (N,). Integers come back in their dtype, rounded and clipped; floats are never rescaled or
        clipped.
    sigma : float, optional
        Standard deviation of the noise, in the units of the pixels; estimated when None.
    method : str
        Name of the method, a key of ``vnlem.registry.METHODS``; - and _ are the same.
    preset : {"auto", "paper"}
        "auto": parameters that follow sigma. "paper": exactly the paper's parameters, for the methods
        that have it.
    channel_axis : int, optional
        Axis of the colour channels.
    workers : int, optional
        Threads; all cores when None. The result does not depend on it.
    progress : bool or callable(done, total)
        Show a bar, or report to a function of your own.
    return_info : bool
        Return (image, info): the sigma and the parameters used, timings, and the device it ran on.
    device : {None, "cpu", "cuda", "cuda:1", "auto"}
        Where to run. None: where the image lies. So a NumPy array is denoised on the CPU, and a CuPy array or
        a CUDA tensor on its own GPU, from which it comes back as what it was. "auto": on a GPU if CuPy is
        installed and a device answers.
    noise_model : {"gaussian", "poisson-gaussian"}
        "gaussian": white noise of standard deviation `sigma`. "poisson-gaussian": photon noise and read
        noise of cameras and microscopes; the image is stabilised by the generalised Anscombe transform,
        denoised, and taken back by its exact unbiased inverse. `sigma` must then be None.
    gain, offset, read_noise : float, optional
        The model pixel = offset + gain * Poisson(photons) + Normal(0, read_noise^2), for
        "poisson-gaussian"; without `gain` all three are estimated by :func:`vnlem.noise.estimate_gain`.
        Offset and read noise are 0 when only the gain is given.
    **params
        Parameters of the method: see ``vnlem.denoise_nlm`` and its companions.

    Returns
    -------
    ndarray, or (ndarray, Info) with `return_info`
        The denoised image in the units, dtype and layout of the input.

    Examples
    --------
    >>> import numpy as np, vnlem
    >>> noisy = np.random.default_rng(0).normal(100, 20, (32, 32)).astype(np.uint8)
    >>> noisy[8:24, 8:24] += 90
    >>> vnlem.denoise(noisy, sigma=20, method="nlm").dtype
    dtype('uint8')
    """
    function = find_method(method)
    known = inspect.signature(function).parameters
    unknown = [name for name in params if name not in known]
    if unknown:
        own = [name for name in known if name not in ("image", "sigma") and name not in _COMMON]
        raise TypeError(f"method {method!r} has no parameter {unknown[0]!r}; it has {', '.join(own)}")
    checks.choice("noise_model", noise_model, ("gaussian", "poisson-gaussian"))
    model: GainModel | None = None
    original = image
    if noise_model == "poisson-gaussian":
        if sigma is not None:
            raise ValueError(
                "with noise_model='poisson-gaussian' the noise follows from gain, offset and read_noise; "
                f"leave sigma out, got {sigma!r}"
            )
        # The model and the transform work on the host; the denoising in between where it was asked for.
        image = original = to_host(image)
        to_planes(image, channel_axis, signals=True)  # its errors come before those of the transform
        model = find_model(image, channel_axis, gain, offset, read_noise)
        image = stabilise(image, model)
        sigma = 1.0
    elif not (gain is None and offset is None and read_noise is None):
        raise ValueError(
            "gain, offset and read_noise belong to noise_model='poisson-gaussian'; pass that too"
        )
    result: Result = function(
        image,
        sigma,
        preset=preset,
        channel_axis=channel_axis,
        workers=workers,
        progress=progress,
        return_info=return_info,
        device=device,
        **params,
    )
    if model is None:
        return result
    denoised, info = result if isinstance(result, tuple) else (result, None)
    back = to_planes(original, channel_axis, signals=True).like(unstabilise(denoised, model))
    if info is None:
        return back
    return back, replace(info, details={**info.details, "noise_model": asdict(model)})
