"""The one entry point: ``vnlem.denoise(image, sigma, method=...)``."""

import time
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from vnlem.call import CallOptions, Noise, check_parameters, denoise_planes, noise_of, with_check
from vnlem.noise.find import ABOUT_NOISE, check_noise_model
from vnlem.noise.model import NoiseModel
from vnlem.pipeline import checks
from vnlem.pipeline.device import is_lazy, lies_on_gpu, run_where_asked, to_host
from vnlem.pipeline.dtypes import as_dtype, check_dtype, taken_up
from vnlem.pipeline.image import Planes, to_planes
from vnlem.pipeline.method import Method
from vnlem.pipeline.progress import Progress
from vnlem.pipeline.run import Result
from vnlem.pipeline.sigma import check_positive_map
from vnlem.pipeline.stack_input import (
    as_array,
    back_as,
    for_all_channels,
    is_list_of_images,
    only_page,
    sigma_of_page,
)
from vnlem.pipeline.warn import said_once
from vnlem.pipeline.workers import check_workers
from vnlem.registry import DEFAULT_METHOD, find_method, for_one_page
from vnlem.repair import (
    NAMES,
    Holes,
    as_planes,
    check_options,
    denoise_complex,
    fitting,
    impulse_rule,
    is_complex,
    kept,
    split,
    with_image,
    without_impulses,
    without_mask,
    without_missing,
)
from vnlem.repair_stack import denoise_repaired_stack


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
    gain: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    read_noise: ArrayLike | None = None,
    caution: str = "auto",
    lines: bool | str = "auto",
    coils: int | None = None,
    looks: float | None = None,
    domain: str | None = None,
    dtype: DTypeLike | None = None,
    impulses: str | bool = "auto",
    mask: ArrayLike | None = None,
    fill: bool = True,
    defects: ArrayLike | None = None,
    protect: ArrayLike | None = None,
    strength: float = 1.0,
    **params: Any,
) -> Result:
    """Denoise an image.

    Parameters
    ----------
    image : array_like
        Grey image (H, W); colour image with `channel_axis`; stack with `axes`; or a list of images. The
        methods nlm, nlem and nlpr also take a signal (N,). A dask array gives a lazy dask array. Integers
        keep their dtype, rounded and clipped, unless `dtype` is given; floats are never rescaled or clipped.
        NaN marks missing pixels. Complex images are denoised as two joint channels, their real and imaginary
        parts, and `sigma` is that of each.
    sigma : float, optional
        Standard deviation of white noise, or of the complex noise behind magnitudes ("rician"), in the units
        of the pixels; estimated when None. May be a map; that of a stack has all its axes: (frames, 1, 1).
    method : {"vnlr", "vnlem", "vnlem-dd", "nlem", "nlpr", "nlm"}
        Name of the method, or of one that another package adds; - and _ are the same.
    preset : {"auto", "paper"}
        "auto": parameters that follow sigma. "paper": exactly the paper's parameters, for methods that have
        this preset.
    channel_axis : int, optional
        Axis of the colour channels.
    axes : str, optional
        A letter for each axis of a stack: T (time), Z (depth), C (channels), N (several images), Y and X, in
        any order, such as "TYX" or "TZCYX". With VNLR the pages along depth or time (if there are both, the
        axis whose neighbouring pages are more alike), or the images of a set, help each other; with NLM the
        pages along depth or time. The other methods work page by page. The noise is estimated once for all
        pages. VNLR denoises colours together and unrelated channels one by one, unless `channels` is given.
    workers : int, optional
        Threads; all cores when None. The result does not depend on it.
    progress : bool or callable(done, total)
        Show a bar, or call your own function.
    return_info : bool
        Return (image, info): the noise and the parameters used, timings, and the device it ran on.
    device : {None, "cpu", "cuda", "cuda:1", "auto"}
        Where to run. None: where the image is, so a NumPy array is denoised on the CPU, and a CuPy array or a
        CUDA tensor on its own GPU; the result has the type of the input. "auto": on a GPU if CuPy is
        installed and a device answers.
    noise_model : str or NoiseModel
        "auto": white noise if `sigma` is given, otherwise whatever :func:`vnlem.estimate_noise` finds in the
        image. "gaussian": white noise of standard deviation `sigma`. "poisson-gaussian": photon noise and
        read noise of cameras and microscopes. "correlated": noise that neighbouring pixels share and that may
        depend on the brightness. "field": white noise that is stronger in some parts of the image. "rician":
        magnitudes of complex images (MRI); the result is the signal. "speckle": interfering light, sound or
        radar (OCT, ultrasound, SAR). A NoiseModel: estimated before, e.g. from another image of the same
        detector. `sigma` applies to white and Rician noise. Other noise is whitened before the method runs,
        and the transform is inverted without bias.
    gain, offset, read_noise : float or array_like, optional
        The model pixel = offset + gain * Poisson(photons) + Normal(0, read_noise^2), for "auto" and
        "poisson-gaussian"; without `gain` all three are estimated by :func:`vnlem.noise.estimate_gain`.
        Offset and read noise are 0 when only the gain is given. Each may be a map of the image's last two
        axes, one number for each pixel; the result is then corrected for the differences of the pixels.
    caution : {"auto", "safe", "strong"}
        If the noise is estimated and texture could be noise: "safe" assumes the least noise that explains the
        image, so that texture stays; "strong" assumes the most, for images known to be noisy.
    lines : {"auto", True, False}
        Whether to remove offsets between rows and between columns, which infrared and sCMOS sensors and
        scanners have. "auto": if they are obvious and nothing else is given about the noise.
    coils : int, optional
        For Rician noise: number of coils whose squares were summed (non-central chi); one when None.
    looks : float, optional
        For speckle: number of independent pictures whose intensities were averaged; estimated when None.
    domain : {"intensity", "amplitude", "log"}, optional
        For speckle: what the pixels are. "log": logarithms, as in exports of OCT and ultrasound; the result
        is the mean of the logarithms. When None, "log" if the noise does not rise with the brightness,
        otherwise "intensity".
    dtype : dtype, optional
        Dtype of the result; that of the image when None. Use "float32" for low photon counts stored as
        integers, whose means would be rounded away.
    impulses : {"auto", True, False}
        Whether to find and replace hot, dead and stuck pixels, salt-and-pepper noise and cosmic rays. "auto":
        if they are obvious.
    mask : array_like of bool, optional
        True for missing pixels, as in NumPy's masked arrays, which you can also pass, and in scikit-image's
        inpainting. Missing pixels are ignored everywhere.
    fill : bool
        Whether to fill missing pixels or leave them unchanged.
    defects : array_like of bool, optional
        True for defective pixels of the detector, e.g. from :func:`vnlem.noise.defect_map`; they are always
        filled.
    protect : array_like, optional
        Weights from 0 to 1, or a mask, for pixels that keep the input.
    strength : float
        Share of the noise to remove, from 0 (the input) to 1 (the full result).
    **params
        Parameters of the method: see ``vnlem.denoise_nlm`` and its companions.

    Returns
    -------
    ndarray, or (ndarray, Info) with `return_info`
        The denoised image in the units, dtype and layout of the input.

    See Also
    --------
    estimate_noise : the noise of an image.
    denoise_large : files and stores larger than memory.
    compare_view : a before/after slider of the image and the result.

    Examples
    --------
    >>> import numpy as np, vnlem
    >>> noisy = np.random.default_rng(0).normal(100, 20, (32, 32)).astype(np.uint8)
    >>> noisy[8:24, 8:24] += 90
    >>> vnlem.denoise(noisy, sigma=20, method="nlm").dtype
    dtype('uint8')
    """
    arguments = dict(locals())
    method_given = find_method(method)
    wanted = None if dtype is None else check_dtype(dtype)
    check_noise_model(noise_model)
    sigma = checks.listed("sigma", sigma)
    for name in ("gain", "offset", "read_noise"):
        arguments[name] = checks.listed(name, arguments[name])
    about_noise = {name: arguments[name] for name in ABOUT_NOISE}
    about_pixels = {name: arguments[name] for name in NAMES}
    given = {"preset": preset, **params}
    apart = ("image", "sigma", "noise_model", "dtype", "params")
    rest = {name: value for name, value in arguments.items() if name not in apart} | params
    if np.ma.isMaskedArray(image):
        data, rest["mask"] = without_mask(image, mask)
        done = denoise(data, sigma, noise_model=noise_model, dtype=dtype, **rest)
        own = np.ma.getmaskarray(image)
        return cast(Result, with_image(done, lambda found: np.ma.array(found, mask=own)))
    if is_complex(image):
        return cast(Result, denoise_complex(denoise, image, sigma, noise_model, dtype, rest))
    if noise_model == "rician" and np.ndim(sigma) > 1:
        return _with_sigma_map(image, sigma, wanted, rest)
    pixels = check_options(**about_pixels)
    stack = axes is not None or (channel_axis is None and is_list_of_images(image))
    if is_lazy(image):
        from vnlem.large.dask_arrays import denoise_lazily

        options: dict[str, Any] = {"device": device, "noise_model": noise_model, "pixels": pixels}
        options |= about_noise | given
        reports = bool(return_info or progress)
        with said_once():
            lazy = denoise_lazily(
                image, sigma, method, channel_axis, axes, workers, reports, wanted, **options
            )
        return cast(Result, lazy)
    if stack and channel_axis is not None:
        raise ValueError("channel_axis and axes exclude each other; name the channels C in axes")
    channel = str(axes).upper().find("C")
    if channel >= 0 and pixels.maps:
        shape = as_array(image).shape
        pixels = pixels.each(lambda _, values: for_all_channels(values, shape, channel))

    def at(array: Any, level: Any, where: str) -> Result:
        """The call on a device, with arrays on that device."""
        common = CallOptions(channel_axis, workers, progress, return_info, where, pixels=pixels)
        model: Any = noise_model
        if where != "cpu" and level is not None and model == "auto":
            # A given sigma is not checked, because that would copy the image to the host.
            model = "gaussian"
        if not stack:
            return denoise_image(method_given, array, level, model, about_noise, given, common, wanted)
        # With a delay even one frame is a movie, as in a stream.
        page = only_page(array, axes, level) if given.get("delay") is None else None
        if page is not None:
            shape = np.shape(array)
            level = sigma_of_page(level, str(axes), shape)
            own = pixels.each(lambda name, map_: only_page(fitting(name, map_, shape, None), axes, None))
            common = replace(common, pixels=own, channel_axis=0 if page.ndim == 3 else None)
            own_given = for_one_page(method_given.name, str(axes).upper(), given)
            done = denoise_image(method_given, page, level, model, about_noise, own_given, common, wanted)
            return cast(Result, back_as(done, str(axes), np.shape(array)))
        options: dict[str, Any] = {
            "axes": axes,
            "method": method_given.name,
            "noise_model": model,
            "about_noise": about_noise,
            "workers": workers,
            "progress": progress,
            "return_info": return_info,
            "device": where,
            "dtype": wanted,
            **given,
        }
        return cast(Result, denoise_repaired_stack(array, level, pixels, options))

    return run_where_asked(at, image, sigma, device, in_pages=stack)


def _with_sigma_map(image: Any, sigma: Any, dtype: np.dtype[Any] | None, options: dict[str, Any]) -> Result:
    """Denoise magnitudes with a map of sigma: dividing by it makes the noise the same everywhere."""
    pixels = checks.numbers("the image", to_host(image))
    levels = check_positive_map(to_host(sigma), pixels.shape)
    result = denoise(pixels / levels, 1.0, noise_model="rician", **options)
    denoised, *info = result if isinstance(result, tuple) else (result,)
    given = as_dtype(denoised * levels, np.asarray(image).dtype if dtype is None else dtype)
    if not info:
        return given
    level = float(np.sqrt(np.mean(levels**2)))
    return given, replace(info[0], sigma=level, noise=NoiseModel.rician(level, options["coils"] or 1))


def denoise_image(
    method: Method,
    image: Any,
    sigma: Any,
    noise_model: Any,
    about_noise: dict[str, Any],
    given: dict[str, Any],
    common: CallOptions,
    dtype: np.dtype[Any] | None,
) -> Result:
    """Denoise one image on the device where it is."""
    if dtype is not None:
        image = taken_up(image, dtype)
    begun = time.perf_counter()
    params = method.with_defaults(given)
    check_parameters(method, params)
    came = image
    image, missing = split(image, common.pixels, common.channel_axis)
    planes = to_planes(image, common.channel_axis, signals=method.signals)
    check_workers(common.workers)

    def find(seen: Planes) -> tuple[Noise, dict[str, Any], Planes | None]:
        there = lies_on_gpu(image)
        return noise_of(method, seen, sigma, noise_model, about_noise, params, common, there)

    estimate = None if sigma is not None else lambda seen: find(seen)[0].model
    holes: Holes | None = None
    if missing is not None:
        planes, holes = without_missing(planes, as_planes(missing, planes.channel_axis), estimate)
    noise, decided, host = find(planes)
    asked = common.pixels.impulses
    if host is not None and asked is not False:
        gone = None if holes is None else holes.missing
        maps = noise.maps
        even = host if maps is None else replace(host, data=maps.enter(host.data))
        own = noise.sigma_map  # with a map, a pixel may be noisier than its neighbours
        again = estimate if maps is None else None
        rule = impulse_rule(even, gone, noise.model, asked, again, own, common.workers)
        units = None if maps is None else even.data
        found = None if rule is None else without_impulses(host, holes, rule, estimate, units, own)
        if found is not None:
            planes, holes = found
            noise, decided, host = find(planes)
    if (noise.maps is not None or not noise.model.is_white) and host is not None and holes is None:
        planes = host
    maps = noise.maps
    if maps is not None:
        noise, planes = replace(noise, before=planes.data), replace(planes, data=maps.enter(planes.data))
        holes = None if holes is None else replace(holes, filled=maps.enter(holes.filled))
    result = denoise_planes(method, image, planes, noise, decided, common, begun, holes)
    if isinstance(result, tuple) and not common.pixels.keeps_input:
        result = with_check(result, host, noise, begun)
    if not common.pixels.fill and missing is not None:
        result = with_image(result, lambda done: kept(done, came, missing, common.pixels))
    return result if dtype is None else with_image(result, lambda done: as_dtype(done, dtype))
