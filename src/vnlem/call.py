"""One call on one image: planes, noise, plan, execution, and the result in the layout of the input."""

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.execute import execute
from vnlem.features.channels import CHANNELS, handling, handling_for
from vnlem.noise.advice import advise
from vnlem.noise.find import find_noise
from vnlem.noise.lines import check_lines
from vnlem.noise.maps import PixelMaps
from vnlem.noise.model import NoiseModel
from vnlem.noise.predictive import check_result
from vnlem.noise.white import estimate_sigma_of_planes
from vnlem.pipeline import checks
from vnlem.pipeline.device import namespace, run_where_asked, to_host
from vnlem.pipeline.image import Planes, check_smallest, check_values, to_planes
from vnlem.pipeline.method import CALL, Method
from vnlem.pipeline.progress import Progress, reporting
from vnlem.pipeline.run import Info, Result
from vnlem.pipeline.sigma import check_sigma, check_sigma_map, root_mean_square
from vnlem.pipeline.workers import Pool, check_workers
from vnlem.plan import Plan, Sample, make_plan
from vnlem.registry import check_preset
from vnlem.repair import EVERY_PIXEL, Holes, PixelOptions, finish, protect_of, with_repair


@dataclass(frozen=True)
class Noise:
    """What is known about the noise of an image before the plan is made."""

    model: NoiseModel  # white, of the root mean square, if there is a map
    sigma_map: Any = None  # (channels or 1, height or 1, width or 1), if the noise is not one number
    given: bool = True  # whether the user gave it as sigma, and no model was estimated
    found: NoiseModel | None = None  # what was found, if another model is used
    maps: PixelMaps | None = None  # applied to the planes; the model is for the result
    before: Any = None  # the planes before that


@dataclass(frozen=True)
class CallOptions:
    """The arguments of a call that every method has."""

    channel_axis: int | None = None
    workers: int | None = None
    progress: Progress = False
    return_info: bool = False
    device: str = "cpu"
    warns: bool = True  # whether to warn about a sigma that leaves nothing of the image
    pixels: PixelOptions = EVERY_PIXEL


def denoise_with(method: Method, image: ArrayLike, sigma: Any = None, **arguments: Any) -> Result:
    """Run the public function of a method: white noise, estimated if sigma is None.

    `arguments` are those of the public function, including defaults.

    >>> from vnlem.registry import find_method
    >>> nlm = find_method("nlm")
    >>> denoise_with(nlm, np.arange(64.0).reshape(8, 8), 1.0, **nlm.with_defaults({})).shape
    (8, 8)
    """
    sigma = checks.listed("sigma", sigma)
    params = {name: value for name, value in arguments.items() if name not in CALL}
    common = {name: value for name, value in arguments.items() if name in CALL}
    asked = common.pop("device", None)

    def at(array: Any, level: Any, device: str) -> Result:
        call = CallOptions(**common, device=device)
        begun = time.perf_counter()
        planes = to_planes(array, call.channel_axis, signals=method.signals)
        check_workers(call.workers)
        check_parameters(method, params)
        noise, channels = white_noise(method, planes, level, params, call)
        return denoise_planes(method, array, planes, noise, params | {"channels": channels}, call, begun)

    return run_where_asked(at, image, sigma, asked)


def check_parameters(method: Method, params: dict[str, Any]) -> None:
    """Refuse a preset, an engine or a handling of channels that the method does not have."""
    check_preset(method, params.get("preset", "auto"))
    if "channels" in params:
        checks.choice("channels", params["channels"], CHANNELS)


def white_noise(
    method: Method, planes: Planes, sigma: Any, params: dict[str, Any], common: CallOptions
) -> tuple[Noise, str]:
    """White noise, given or estimated, and how channels are denoised."""
    wanted, count = params.get("channels", "joint"), len(planes.data)
    spread = None
    if sigma is not None and np.ndim(sigma) > 0:
        if not method.sigma_maps:
            check_sigma(sigma)  # raises: it must be one number
        spread = check_sigma_map(sigma, planes)
    elif sigma is not None:
        check_sigma(sigma)
    each: list[float] | None = None
    if count > 1 and wanted != "joint" and sigma is None:
        each = [estimate_sigma_of_planes(to_host(plane)[None]) for plane in planes.data]

    def seen() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if spread is not None:
            every = np.broadcast_to(to_host(spread), (count, *spread.shape[1:]))
            levels = [root_mean_square(one) for one in every]
        else:
            levels = each or [check_sigma(sigma)] * count
        return to_host(planes.data), np.array(levels)

    channels = handling(wanted, count, seen)
    if channels == "separate" and each is not None:
        spread = np.array(each)[:, None, None]
    if spread is not None:
        full = np.broadcast_to(to_host(spread), planes.data.shape)
        return Noise(NoiseModel.white(root_mean_square(full)), spread), channels
    if sigma is not None:
        return Noise(NoiseModel.white(check_sigma(sigma))), channels
    with Pool(check_workers(common.workers)) as pool:
        level = (
            each[0] if channels == "same" and each else estimate_sigma_of_planes(to_host(planes.data), pool)
        )
    return Noise(NoiseModel.white(level)), channels


def with_maps(model: NoiseModel, method: Method) -> Noise:
    """Split a model into maps that are applied before the plan is made, and the remaining noise.

    A method that takes maps of sigma gets one; for the others the image is divided by the map.
    """
    maps, even = model.maps, model.evened
    if maps is None:
        return Noise(model, given=False)
    if maps.sigma is None or not (method.sigma_maps and even.is_white):
        return Noise(even, given=False, found=model, maps=maps)
    spread = even.sigma * maps.sigma[None].astype(np.float64)
    left = maps.without_sigma
    return Noise(even, spread, given=False, found=model, maps=None if left == PixelMaps() else left)


def noise_of(
    method: Method,
    planes: Planes,
    sigma: Any,
    noise_model: Any,
    about_noise: dict[str, Any],
    params: dict[str, Any],
    common: CallOptions,
    on_gpu: bool,
) -> tuple[Noise, dict[str, Any], Planes | None]:
    """Find the noise of an image and decide how its channels are denoised; also return it on the host.

    If the noise is given, an image on a GPU stays there.
    """
    # The noise is estimated on the host.
    unseen = on_gpu and sigma is not None and noise_model == "gaussian"
    unseen = unseen and check_lines(about_noise.get("lines")) is not True
    host = planes
    if unseen:
        host = to_planes(np.zeros((1, 1)))
    elif on_gpu:
        host = planes.on_host()
    check_values(host)
    plain = params["preset"] == "paper"
    model = find_noise(host, sigma, noise_model, about_noise, plain=plain, workers=common.workers)
    if model is None or unseen:
        noise, channels = white_noise(method, planes, sigma, params, common)
        noise = replace(noise, given=model is None, model=model or noise.model)
        return noise, params | {"channels": channels}, None if unseen else host
    if common.warns:
        advise(model, host, rounded=planes.dtype.kind in "iu")
    channels = handling_for(model, params.get("channels", "joint"), len(planes.data), lambda: host.data)
    if not model.is_white and float(np.ptp(host.data)) == 0:
        # The inverse of the transform corrects a bias that an image without noise does not have.
        return Noise(NoiseModel.white(0.0), given=False, found=model), params | {"channels": channels}, host
    noise = with_maps(model, method)
    return noise, params | {"channels": channels}, host


def denoise_planes(
    method: Method,
    image: Any,
    planes: Planes,
    noise: Noise,
    params: dict[str, Any],
    common: CallOptions,
    begun: float,
    holes: Holes | None = None,
) -> Result:
    """Plan, execute, restore.

    image: as given, on the device of the call.
    planes: of the image; on the host if the noise is not white.
    params: all parameters of the method; "channels" is already decided.
    begun: when the call began, for its timings.
    holes: missing pixels; `planes` are then filled, and as noisy there as elsewhere.
    """
    threads = check_workers(common.workers)
    channels = params["channels"]
    estimated = time.perf_counter()
    details: dict[str, Any] = {}
    with reporting(common.progress, method.name) as report:
        with Pool(threads) as pool:

            def plan_with(other: dict[str, Any]) -> Plan:
                chosen = params | other
                return make_plan(
                    method.name,
                    {name: chosen[name] for name in method.parameters},
                    Sample(planes.data, _shape(planes), True, noise.sigma_map, planes.statistics),
                    noise.model,
                    channels=channels,
                    device=common.device,
                    ndim=planes.ndim,
                    warns=common.warns,
                    pool=pool,
                )

            plan = plan_with({})
            if holes is not None:
                plan = with_repair(plan, holes.filled, holes.missing, plan_with)
        pixels = planes.data if holes is None else holes.filled
        if holes is None and noise.maps is None and all(group.is_negligible for group in plan.groups()):
            result: NDArray[Any] = namespace(image).array(image, order="C")
        else:
            smallest = max(method.min_size(group.params) for group in plan.sizes[0].groups)
            check_smallest(_shape(planes), smallest, planes.ndim)
            done = execute(
                plan,
                pixels,
                workers=threads,
                progress=report,
                sigma_map=noise.sigma_map,
                missing=None if holes is None else holes.missing,
                details=details if common.return_info else None,
            )
            if noise.maps is not None:
                done = noise.maps.kept(noise.maps.leave(done), noise.before, planes.dtype)
            if common.pixels.keeps_input:
                protect = protect_of(common.pixels, np.shape(image), planes.channel_axis)
                gone = None if holes is None else holes.missing
                given = pixels if noise.maps is None else noise.before
                done = finish(given, done, common.pixels, gone, protect)
            result = planes.restore(done)
    if not common.return_info:
        return result
    if holes is not None:
        details["missing"] = int(holes.missing.sum())
        details["impulses"] = 0 if holes.impulses is None else int(holes.impulses.sum())
    if "scales" in params:
        details["scales"] = len(plan.sizes)
    ended = time.perf_counter()
    timings = {"estimate_noise": estimated - begun, "denoise": ended - estimated, "total": ended - begun}
    return result, _info(plan, noise, timings, details, common.device)


def with_check(
    result: tuple[NDArray[Any], Info], host: Planes | None, noise: Noise, begun: float
) -> tuple[NDArray[Any], Info]:
    """Add the noise check to the result: whether simulated noise of its model looks like the image."""
    denoised, info = result
    if noise.given or host is None:
        return result
    done = time.perf_counter()
    check = check_result(host, to_host(denoised), noise.found or noise.model)
    ended = time.perf_counter()
    timings = info.timings | {"check_noise": ended - done, "total": ended - begun}
    return denoised, replace(info, timings=timings, noise_check=check)


def _info(plan: Plan, noise: Noise, timings: dict[str, float], details: dict[str, Any], device: str) -> Info:
    group = plan.sizes[0].groups[0]
    model = noise.found or noise.model
    parameters: dict[str, Any] = asdict(group.params)
    told = None if noise.given else model
    return Info(plan.method, model.sigma, parameters, timings, details, device, told, plan)


def _shape(planes: Planes) -> tuple[int, int]:
    _, height, width = planes.data.shape
    return height, width
