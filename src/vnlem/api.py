"""The one entry point: ``vnlem.denoise(image, sigma, method=...)``."""

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from vnlem.features.channels import handling
from vnlem.noise.advice import advise
from vnlem.noise.auto import find_noise
from vnlem.noise.model import NoiseModel
from vnlem.noise.rounds import count_scales, in_rounds
from vnlem.pipeline import checks
from vnlem.pipeline.device import is_lazy, lies_on_gpu, to_host, where_it_is_asked
from vnlem.pipeline.dtypes import as_dtype, check_dtype, taken_up
from vnlem.pipeline.image import Planes, check_values, to_planes
from vnlem.pipeline.progress import Progress
from vnlem.pipeline.run import Info, Result
from vnlem.pipeline.stack_input import back_as, is_list_of_images, only_page
from vnlem.pipeline.warn import silent
from vnlem.pipeline.workers import check_workers
from vnlem.registry import DEFAULT_METHOD, DEFAULT_SCALES, find_method
from vnlem.stacks import denoise_stack

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
    axes: str | None = None,
    workers: int | None = None,
    progress: Progress = False,
    return_info: bool = False,
    device: str | None = None,
    noise_model: "str | NoiseModel" = "auto",
    gain: float | None = None,
    offset: float | None = None,
    read_noise: float | None = None,
    caution: str = "auto",
    coils: int | None = None,
    looks: float | None = None,
    domain: str | None = None,
    dtype: DTypeLike | None = None,
    **params: Any,
) -> Result:
    """Denoise an image.

    Parameters
    ----------
    image : array_like
        Grey image (H, W); colour image with `channel_axis`; stack with `axes`; or a list of images. The
        methods nlm, nlem and nlpr also take a signal (N,). A dask array gives a lazy dask array. Integers
        come back in their dtype, rounded and clipped, unless `dtype` says otherwise; floats are never
        rescaled or clipped.
    sigma : float, optional
        Standard deviation of white noise, or of the complex noise behind magnitudes ("rician"), in the units
        of the pixels. When None the noise is estimated. May be a map, one number for each pixel.
    method : str
        Name of the method, a key of ``vnlem.registry.METHODS``; - and _ are the same.
    preset : {"auto", "paper"}
        "auto": parameters that follow sigma. "paper": exactly the paper's parameters, for the methods
        that have it.
    channel_axis : int, optional
        Axis of the colour channels.
    axes : str, optional
        A letter for each axis of a stack: T (time), Z (depth), C (channels), N (several images), Y and X, in
        any order, such as "TYX" or "TZCYX". VNLR lets the pages along depth or time (of both, the one whose
        neighbours are more alike), else the images of a set, help each other; so does NLM along depth or
        time. The other methods work page by page. Each channel has a noise of its own, estimated once for all
        its pages.
    workers : int, optional
        Threads; all cores when None. The result does not depend on it.
    progress : bool or callable(done, total)
        Show a bar, or report to a function of your own.
    return_info : bool
        Return (image, info): the noise and the parameters used, timings, and the device it ran on.
    device : {None, "cpu", "cuda", "cuda:1", "auto"}
        Where to run. None: where the image lies. So a NumPy array is denoised on the CPU, and a CuPy array or
        a CUDA tensor on its own GPU, from which it comes back as what it was. "auto": on a GPU if CuPy is
        installed and a device answers.
    noise_model : {"auto", "gaussian", "poisson-gaussian", "correlated", "rician", "speckle"} or NoiseModel
        "auto": white noise where `sigma` is given; else whatever :func:`vnlem.estimate_noise` finds in the
        image. "gaussian": white noise of standard deviation `sigma`. "poisson-gaussian": photon noise and
        read noise of cameras and microscopes. "correlated": noise that neighbouring pixels share and that
        may depend on the brightness. "rician": magnitudes of complex images (MRI), and the result is the
        signal. "speckle": light, sound or radar that interferes (OCT, ultrasound, SAR). A NoiseModel:
        estimated before, e.g. on another image of the same detector. `sigma` goes with white and Rician
        noise. Noise that is not white is made so before the method runs, and the result is taken back without
        bias.
    gain, offset, read_noise : float, optional
        The model pixel = offset + gain * Poisson(photons) + Normal(0, read_noise^2), for "auto" and
        "poisson-gaussian"; without `gain` all three are estimated by :func:`vnlem.noise.estimate_gain`.
        Offset and read noise are 0 when only the gain is given.
    caution : {"auto", "safe", "strong"}
        What to take for noise in doubt, where the noise is estimated. "safe": the least that explains the
        image, so that texture stays. "strong": the most, for images that are known to be noisy.
    coils : int, optional
        Of Rician noise: coils whose squares were added up (non-central chi); one when None.
    looks : float, optional
        Of speckle: independent pictures whose intensities were averaged; estimated when None.
    domain : {"intensity", "amplitude", "log"}, optional
        Of speckle: what the pixels are. "log": a logarithm was taken already, as in exports of OCT and
        ultrasound, and the result is the mean of the logarithms. When None, "log" where the noise does not
        rise with the brightness, else "intensity".
    dtype : dtype, optional
        Of the result; that of the image when None. "float32" where integers are small numbers of photons,
        whose means would be rounded away.
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
    if device != "cpu" and sigma is not None and noise_model == "auto":
        # On a GPU a given sigma is taken at its word: to doubt it, the image would have to come to the host.
        noise_model = "gaussian"
    wanted = None if dtype is None else check_dtype(dtype)
    about_noise: dict[str, Any] = {
        "gain": gain,
        "offset": offset,
        "read_noise": read_noise,
        "caution": caution,
        "coils": coils,
        "looks": looks,
        "domain": domain,
    }
    options: dict[str, Any] = {
        "preset": preset,
        "workers": workers,
        "progress": progress,
        "return_info": return_info,
        "device": device,
        **params,
    }
    result: Result
    if noise_model == "rician" and np.ndim(sigma) > 1:
        rest = {"method": method, "channel_axis": channel_axis, "axes": axes, **about_noise, **options}
        return _with_sigma_map(image, sigma, wanted, rest)
    if axes is not None or (channel_axis is None and is_list_of_images(image)):
        if is_lazy(image):
            raise ValueError(
                f"a dask array must be one image, and axes={axes!r} names a stack; use vnlem.denoise_large, "
                "or pass a NumPy array (image.compute())"
            )
        if channel_axis is not None:
            raise ValueError("channel_axis and axes exclude each other; name the channels C in axes")
        page = only_page(image, axes, sigma)
        if page is not None:
            level = sigma if sigma is None else np.ravel(sigma)[0]
            same: dict[str, Any] = {"method": method, "noise_model": noise_model, "dtype": wanted}
            result = denoise(page, level, **same, **about_noise, **options)
            result = back_as(result, str(axes), np.shape(image))
        else:
            result = denoise_stack(
                image,
                sigma,
                axes=axes,
                method=method,
                noise_model=noise_model,
                about_noise=about_noise,
                dtype=wanted,
                **options,
            )
        return result
    known = _parameters_of(function)
    unknown = [name for name in params if name not in known]
    if unknown:
        own = [name for name in known if name not in ("image", "sigma") and name not in _COMMON]
        raise TypeError(f"method {method!r} has no parameter {unknown[0]!r}; it has {', '.join(own)}")
    if is_lazy(image):
        from vnlem.large.dask_arrays import denoise_lazily

        if return_info or progress:
            raise ValueError(
                "a dask array is denoised when it is computed; leave return_info and progress out"
            )
        more = {"preset": preset, "device": device, "noise_model": noise_model, **about_noise, **params}
        result = denoise_lazily(image, sigma, method, channel_axis, workers, dtype=wanted, **more)
        return result
    options["channel_axis"] = channel_axis
    if wanted is None:
        return _denoise_image(function, image, sigma, noise_model, about_noise, options)
    result = _denoise_image(function, taken_up(image, wanted), sigma, noise_model, about_noise, options)
    if isinstance(result, tuple):
        return as_dtype(result[0], wanted), result[1]
    return as_dtype(result, wanted)


def _with_sigma_map(image: Any, sigma: Any, dtype: np.dtype[Any] | None, options: dict[str, Any]) -> Result:
    """Denoise magnitudes whose sigma is a map: divided by it, their noise is the same everywhere."""
    pixels = checks.numbers("the image", to_host(image))
    levels = checks.finite("sigma", to_host(sigma))
    try:
        fits = np.broadcast_shapes(levels.shape, pixels.shape) == pixels.shape
    except ValueError:
        fits = False
    if not fits or levels.ndim < 2:
        raise ValueError(
            f"sigma must be a number or a map of the image's shape {pixels.shape}, or of its last axes, "
            f"got an array of shape {levels.shape}"
        )
    if levels.min() <= 0:
        raise ValueError(
            f"sigma of Rician noise must be larger than 0 everywhere, and the map holds {levels.min():g}; "
            "set it to a small number where nothing was measured"
        )
    result = denoise(pixels / levels, 1.0, noise_model="rician", **options)
    denoised, *info = result if isinstance(result, tuple) else (result,)
    given = as_dtype(denoised * levels, np.asarray(image).dtype if dtype is None else dtype)
    if not info:
        return given
    level = float(np.sqrt(np.mean(levels**2)))
    return given, replace(info[0], sigma=level, noise=NoiseModel.rician(level, options["coils"] or 1))


def _denoise_image(
    function: Callable[..., Result],
    image: Any,
    sigma: Any,
    noise_model: Any,
    about_noise: dict[str, Any],
    options: dict[str, Any],
) -> Result:
    """Denoise one image, where it lies."""
    known = _parameters_of(function)
    channel_axis, workers = options["channel_axis"], options["workers"]
    plain = options["preset"] == "paper"
    # The noise is looked for on the host; the denoising goes where it was asked for. Where all is told, what
    # lies on a GPU is left to the method.
    unseen = sigma is not None and noise_model == "gaussian" and lies_on_gpu(image)
    host = np.zeros((1, 1)) if unseen else to_host(image) if lies_on_gpu(image) else image
    planes = to_planes(host, None if unseen else channel_axis, signals=True)
    check_values(planes)
    begun = time.perf_counter()
    model = find_noise(planes, sigma, noise_model, about_noise, plain=plain, workers=workers)
    seconds = time.perf_counter() - begun
    if model is not None and not unseen:
        advise(model, planes, rounded=planes.dtype.kind in "iu")
        if channel_axis is not None and options.get("channels", "auto") == "auto" and "channels" in known:
            shared, seen = model.ties_channels, model.seen_in(planes.data)
            options = options | {"channels": handling("auto", *seen, shared_noise=shared)}
    if (sigma is None or noise_model == "rician") and "scales" in known:
        options = {"scales": DEFAULT_SCALES} | options
    if model is None or model.is_white:
        result = function(image, sigma if model is None else model.sigma, **options)
    elif float(np.ptp(planes.data)) == 0:
        # Without any noise there is no bias that the inverse of the transform could take back.
        result = function(image, 0.0, **options)
    else:
        result = _between_transforms(function, planes, model, options)
    if not isinstance(result, tuple):
        return result
    denoised, info = result
    timings = {**info.timings, "estimate_noise": seconds, "total": time.perf_counter() - begun}
    level = info.sigma if model is None or model.is_white else model.sigma
    return denoised, replace(info, sigma=level, timings=timings, noise=model)


def _between_transforms(
    function: Callable[..., Result], planes: Planes, model: NoiseModel, options: dict[str, Any]
) -> Result:
    """Denoise with a method for white noise: make the noise white, denoise, take the result back."""
    # Halved before it is stabilised; what is correlated is halved after it was made white.
    halved = model.varies and not model.is_correlated and "scales" in options
    scales = options["scales"] if halved else 1
    options = {name: value for name, value in options.items() if not (halved and name == "scales")}
    infos: list[Info] = []

    def of_white_noise(stable: Any, level: Any, report: Progress) -> tuple[Any, Any]:
        # Of few photons less noise is left than a sigma of one, and there is no sigma to be warned of.
        with silent():
            result = function(planes.layout(stable), level, **options | {"progress": report})
        found, about = result if isinstance(result, tuple) else (result, None)
        if about is not None:
            infos.append(about)
        return to_planes(found, planes.channel_axis, signals=True).data, about

    threads = check_workers(options["workers"])
    back, info = in_rounds(model, planes.data, options["progress"], of_white_noise, scales, threads)
    denoised = planes.restore(back)
    if info is None:
        return denoised
    spent = {name: sum(one.timings[name] for one in infos) for name in info.timings}
    height, width = planes.data.shape[1:]
    used = {"scales": count_scales(height, width, scales)} if halved else {}
    return denoised, replace(info, timings=spent, details=info.details | used)


@cache
def _parameters_of(function: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters
