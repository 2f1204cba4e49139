"""Movies, volumes, sets of images: the plan of a stack carried out, series by series.

`vnlem.denoise(..., axes=...)` comes here.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.find import ABOUT_NOISE
from vnlem.noise.model import NoiseModel
from vnlem.noise.pages import Pages, StackNoise, checked_page
from vnlem.noise.predictive import NoiseCheck, check_result, worst
from vnlem.noise.stack_holes import LevelsWithHoles, denoise_in_rounds
from vnlem.pipeline import checks
from vnlem.pipeline.axes import PagesOf, check_axes, helpful_axis, series_of
from vnlem.pipeline.device import choose, current, namespace
from vnlem.pipeline.dtypes import as_dtype, readable_as, taken_up
from vnlem.pipeline.progress import Progress, ProgressCallback, reporting
from vnlem.pipeline.run import Info
from vnlem.pipeline.sigma import root_mean_square
from vnlem.pipeline.stack_input import as_array, is_list_of_pages, sigma_map_of, sigma_per_channel
from vnlem.pipeline.warn import said_once
from vnlem.pipeline.workers import check_workers
from vnlem.series import denoise_series, first_pages, share, takes_sigma_maps, units_on
from vnlem.stack_plan import GivenNoise, StackPlan, channels_of_stack, plan_stack, varied_channels


def denoise_pages_on_disk(
    pages: Any,
    out: Any,
    sigma: Any,
    *,
    device: str | None,
    **options: Any,
) -> Any:
    """Denoise a stack that is not in memory: read whole pages from `pages` and write them to `out`.

    pages, out: arrays with a shape, whose pages are read or set by index.
    sigma, device, options: as in :func:`vnlem.denoise`.

    Returns (out, Info).
    """
    about_noise = {name: options.pop(name, None) for name in ABOUT_NOISE}
    name = choose(device)
    with said_once(), current(name):
        given: dict[str, Any] = {"about_noise": about_noise, "return_info": True, "device": name}
        return denoise_stack(pages, sigma, out=out, **given, **options)


def denoise_stack(
    image: Any,
    sigma: Any,
    *,
    axes: str | None,
    method: str,
    noise_model: Any,
    about_noise: dict[str, Any],
    workers: int | None,
    progress: Progress,
    return_info: bool,
    out: Any = None,
    device: str = "cpu",
    dtype: np.dtype[Any] | None = None,
    holes: Any = None,
    rounds: int = 1,
    **params: Any,
) -> Any:
    """Denoise a stack: see :func:`vnlem.denoise`, whose arguments these are.

    sigma: one number, or one per channel.
    about_noise: what else is known about the noise: ABOUT_NOISE, None for unknown values.
    workers, progress, return_info, params: as in :func:`vnlem.denoise`.
    out: receives the result. It and the stack may be on disk: only whole pages are read and written, and only
        the pages in flight are in memory.
    device: "cpu" or "cuda:N"; on a GPU several pages are in flight at a time.
    dtype: dtype of the result, and of `out` if given; that of the stack when None.
    holes: pixels that hold a guess.
    rounds: how often the array is denoised, each time with a better guess there.

    Returns an array, or a list of arrays for a list; with `return_info` (that, Info).
    """
    begun = time.perf_counter()
    check_workers(workers)
    given = GivenNoise(sigma, noise_model, about_noise, params.get("preset") == "paper")
    if is_list_of_pages(image, axes):
        plan, series, result = _plan_images(image, holes, method, params, given, dtype, device)
    else:
        plan, series, result = _plan_array(image, out, holes, axes, method, params, given, dtype)
    infos: list[dict[str, Any]] = []
    options = {"method": method, "workers": workers, "info": infos, "device": device, **params}
    options["same"] = plan.handling == "same"
    looks: dict[int, tuple[NoiseModel, NoiseCheck]] = {}  # at the middle page of each channel
    done, total = 0, rounds * sum(len(one.pages) for one in series)
    with reporting(progress, method) as report:
        for one in series:
            size = len(one.pages)
            shares = [share(report, done + turn * size, size, total) for turn in range(rounds)]
            for index, page in enumerate(_denoised(one, shares, options)):
                page = page if dtype is None else as_dtype(page, dtype)
                if return_info and one.channel not in looks and index == size // 2:
                    before = checked_page(one.pages, index)
                    shown = one.noise.of_page(before)
                    looks[one.channel] = shown, check_result(before, page, shown)
                one.put(index, page)
            done += rounds * size
    if not return_info:
        return result
    models, checks_of_noise = (list(found) for found in zip(*looks.values(), strict=True))
    details = {"axes": axes, "series": [one.kind for one in series], "noise_checks": checks_of_noise}
    rms = float(np.sqrt(np.mean(np.square(plan.sigmas))))
    timings = {"total": time.perf_counter() - begun}
    about = {"noise": models[0], "noise_check": worst(checks_of_noise)}
    parameters = infos[0] if infos else {}
    details |= plan.describe(models)
    return result, Info(method, rms, parameters, timings, details, device=device, **about)


class _Series(NamedTuple):
    """A series of pages, and where their results go."""

    kind: str
    channel: int
    noise: StackNoise
    pages: Pages
    put: Callable[[int, NDArray[Any]], None]
    levels: Pages | None = None  # of the noise, if it is not one number
    holes: Any = None  # the pixels of each page that hold a guess, if there are any


def _plan_images(
    images: Sequence[Any],
    holes: Any,
    method: str,
    params: dict[str, Any],
    given: GivenNoise,
    dtype: np.dtype[Any] | None,
    device: str,
) -> tuple[StackPlan, list[_Series], list[Any]]:
    """A set of images, which may have several sizes: one series; and the list of its results."""
    pages: Pages = list(images) if dtype is None else [taken_up(page, dtype) for page in images]
    given = given._replace(sigmas=sigma_per_channel(given.sigmas, 1))
    handling, _ = channels_of_stack(method, "N", [pages], params, given)
    first = first_pages(pages, params.get("delay"))
    noise = StackNoise.of([first], given.sigmas[0], given.model, given.others, plain=given.plain)
    result: list[Any] = [None] * len(images)

    def put(index: int, page: NDArray[Any]) -> None:
        # A copy, not in page-locked memory.
        result[index] = page if device == "cpu" else namespace(page).array(page)

    return StackPlan(handling, [], {0: noise}), [_Series("N", 0, noise, pages, put, None, holes)], result


def _plan_array(
    image: Any,
    out: Any,
    holes: Any,
    axes: str | None,
    method: str,
    params: dict[str, Any],
    given: GivenNoise,
    dtype: np.dtype[Any] | None,
) -> tuple[StackPlan, list[_Series], Any]:
    """The series of an array, and the array of their results, which has the constant channels already."""
    array = as_array(image) if out is None else image
    letters = check_axes(axes, array.shape)
    result = namespace(array).empty_like(array, dtype=dtype) if out is None else out
    read = None if dtype is None else readable_as(array.dtype, dtype)
    count, delay = dict(zip(letters, array.shape, strict=True)).get("C", 1), params.get("delay")
    spread = sigma_map_of(given.sigmas, array.shape)
    sigmas = [] if spread is not None else sigma_per_channel(given.sigmas, count)
    varied = varied_channels(array, letters, given.model, delay)
    kind = helpful_axis(array, letters, varied)
    if not kind and delay is not None:
        kind = "T" if "T" in letters else ""  # a movie of one frame, denoised as in a stream
    if spread is not None:
        sigmas = _levels(_first(spread, letters, kind, delay), letters, given.model)
        given = given._replace(model="gaussian")
        if not _same_in_all_channels(spread, letters, range(count) if varied is None else varied):
            params["channels"] = "separate"
    given = given._replace(sigmas=sigmas)
    plan = plan_stack(array, letters, kind, varied, method, params, given, dtype=read)
    constant = [channel for channel in range(count) if channel not in plan.denoised]
    for one in series_of(letters, array.shape, "", channels=constant) if constant else ():
        page = PagesOf(array, letters, one, read)[0]
        PagesOf(result, letters, one).put(0, page if dtype is None else as_dtype(page, dtype))
    series = [
        _Series(
            kind,
            one.channel,
            plan.noises[one.channel],
            PagesOf(array, letters, one, read),
            PagesOf(result, letters, one).put,
            None if spread is None else PagesOf(spread, letters, one),
            None if holes is None else PagesOf(holes, letters, one),
        )
        for one in plan.series
    ]
    return plan, series, result


def _denoised(
    one: _Series, shares: list[ProgressCallback | None], options: dict[str, Any]
) -> Iterator[NDArray[Any]]:
    """The denoised pages of a series; shares: the progress of each round."""
    noise = one.noise
    levels: Any = one.levels
    if one.holes is not None:
        if takes_sigma_maps(options["method"], one.kind, len(one.pages), noise, options["device"]):
            levels = LevelsWithHoles(one.holes, noise, levels)
        units = units_on(options["device"], first_pages(one.pages, options.get("delay")), noise)
        options = options | {"units": units}

    def solve(pages: Pages, turn: int) -> Iterator[NDArray[Any]]:
        return denoise_series(pages, one.kind, noise, report=shares[turn], sigma_map=levels, **options)

    if one.holes is None:
        return solve(one.pages, 0)
    return denoise_in_rounds(one.pages, one.holes, len(shares), solve)


def _first(spread: NDArray[np.float64], letters: str, kind: str, delay: Any) -> NDArray[np.float64]:
    """What is known about a map of the noise when the first page must be returned."""
    if delay is None or not kind:
        return spread
    axis = letters.index(kind)
    return spread.take(range(min(checks.whole("delay", delay, 0) + 1, spread.shape[axis])), axis)


def _levels(spread: NDArray[np.float64], letters: str, noise_model: Any) -> list[float]:
    """The root mean square of a map of the noise in each channel."""
    if noise_model not in ("auto", "gaussian"):
        raise ValueError(
            f"a sigma that varies within a stack is for white noise; leave noise_model {noise_model!r} out"
        )
    planes = np.moveaxis(spread, letters.index("C"), 0) if "C" in letters else spread[None]
    return [root_mean_square(plane) for plane in planes]


def _same_in_all_channels(spread: NDArray[np.float64], letters: str, channels: Sequence[int]) -> bool:
    planes = np.moveaxis(spread, letters.index("C"), 0) if "C" in letters else spread[None]
    return all(np.array_equal(planes[channel], planes[channels[0]]) for channel in channels[1:])
