"""Movies, volumes, sets of images: which pages help each other, and the method that takes them.

`vnlem.denoise(..., axes=...)` comes here. A method that says how (``METHOD.stack``) gets all pages of
a series; any other gets them one by one, with the noise estimated once for all.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.features.channels import CHANNELS, handling
from vnlem.noise.advice import advise
from vnlem.noise.find import ABOUT_NOISE
from vnlem.noise.pages import (
    Pages,
    StackNoise,
    StackUnits,
    checked_page,
    mosaic,
    planes_of,
    sampled_pages,
    units_of,
)
from vnlem.noise.predictive import NoiseCheck, check_result, worst
from vnlem.pipeline import checks, units_on_gpu
from vnlem.pipeline.axes import PagesOf, check_axes, helpful_axis, series_of, shapes_of
from vnlem.pipeline.carrier import Carrier
from vnlem.pipeline.device import choose, current, lies_on_gpu, namespace, side_by_side, to_host
from vnlem.pipeline.dtypes import as_dtype, readable_as, taken_up
from vnlem.pipeline.image import Planes, check_values
from vnlem.pipeline.method import arguments_of
from vnlem.pipeline.places import load
from vnlem.pipeline.progress import Progress, ProgressCallback, reporting
from vnlem.pipeline.run import NEGLIGIBLE, Info
from vnlem.pipeline.stack_input import as_array, is_list_of_pages, sigma_per_channel
from vnlem.pipeline.stack_task import Part, StackTask
from vnlem.pipeline.warn import said_once
from vnlem.pipeline.workers import check_workers
from vnlem.registry import find_function, stack_method

# Arguments of a method's function that are no parameters of the method.
_ARGUMENTS = ("image", "sigma", "task", "workers", "progress", "return_info", "channel_axis")


def denoise_pages_on_disk(
    pages: Any,
    out: Any,
    sigma: Any,
    *,
    device: str | None,
    **options: Any,
) -> Any:
    """Denoise a stack that is not in memory: whole pages are asked of `pages` and given to `out`.

    Parameters
    ----------
    pages, out
        Arrays with a shape and with pages that can be had, or set, by their index.
    sigma, device, options
        As in :func:`vnlem.denoise`.

    Returns
    -------
    (out, Info)
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
    **params: Any,
) -> Any:
    """Denoise a stack: see :func:`vnlem.denoise`, whose arguments these are.

    Parameters
    ----------
    image : array_like or list of ndarray
    sigma : float or one number per channel, optional
    axes : str or None
    method : str
    noise_model : str or NoiseModel
    about_noise : dict
        What else is known: ABOUT_NOISE, None where it is not.
    workers, progress, return_info, params
        As in :func:`vnlem.denoise`.
    out : array_like, optional
        Takes the result. It and the stack may then lie on the disk: they are asked for whole pages and given
        whole pages, and those in flight are in memory.
    device : str
        "cpu" or "cuda:N"; on a GPU some pages are under way at a time.
    dtype : dtype, optional
        Of the result, and of `out` where it is given; that of the stack when None.

    Returns
    -------
    ndarray, list of ndarray for a list, or (that, Info) with `return_info`
    """
    begun = time.perf_counter()
    check_workers(workers)
    plain = params.get("preset") == "paper"
    # The noise is one for all pages of a channel, or of all channels: estimated once.
    known: dict[int, StackNoise] = {}
    channels, n_channels, sigmas = "separate", 1, [sigma]
    pages_given = image if is_list_of_pages(image, axes) else None
    if pages_given is not None:
        given = pages_given if dtype is None else [taken_up(page, dtype) for page in pages_given]
        plans: list[tuple[str, int, Pages]] = [("N", 0, list(given))]
        sigmas = sigma_per_channel(sigma, 1)
        params.pop("channels", None)
        result: Any = [None] * len(pages_given)
    else:
        array = as_array(image) if out is None else image
        letters = check_axes(axes, array.shape)
        result = namespace(array).empty_like(array, dtype=dtype) if out is None else out
        read = None if dtype is None else readable_as(array.dtype, dtype)
        n_channels = dict(zip(letters, array.shape, strict=True)).get("C", 1)
        kind = helpful_axis(array, letters)
        all_series = series_of(letters, array.shape, kind, joint=True)
        series_pages = [PagesOf(array, letters, one, read) for one in all_series]
        sigmas = sigma_per_channel(sigma, n_channels)
        given_noise = (sigmas, noise_model, about_noise, plain)
        channels, common = channels_of_stack(method, kind, series_pages, params, given_noise)
        if common is None:
            all_series = series_of(letters, array.shape, kind)
            series_pages = [PagesOf(array, letters, one, read) for one in all_series]
        else:
            known[0] = common
        plans = [
            (kind, one.channel, pages) for one, pages in zip(all_series, series_pages, strict=True)
        ]
        outputs = [PagesOf(result, letters, one) for one in all_series]
    total = sum(len(pages) for _, _, pages in plans)
    infos: list[dict[str, Any]] = []
    looks: dict[int, NoiseCheck] = {}
    with reporting(progress, method) as report:
        at = 0
        for number, (kind, channel, pages) in enumerate(plans):
            if channel not in known:
                same = [other for _, c, other in plans if c == channel]
                known[channel] = StackNoise.of(same, sigmas[channel], noise_model, about_noise, plain=plain)
            part = _share(report, at, len(pages), total)
            done = denoise_series(
                pages,
                kind,
                known[channel],
                method=method,
                workers=workers,
                report=part,
                info=infos,
                device=device,
                same=channels == "same",
                **params,
            )
            for index, page in enumerate(done):
                page = page if dtype is None else as_dtype(page, dtype)
                if return_info and channel not in looks and index == len(pages) // 2:
                    looks[channel] = check_result(checked_page(pages, index), page, known[channel].model)
                if pages_given is not None:
                    # Not in memory that is locked for copies.
                    result[index] = namespace(page).array(page) if device != "cpu" else page
                else:
                    outputs[number].put(index, namespace(result).asarray(page))
            at += len(pages)
    if not return_info:
        return result
    if channels == "separate":
        levels = [known[channel].model.sigma for channel in range(n_channels)]
    else:
        levels = known[0].levels(n_channels)
    details = {
        "axes": axes,
        "channels": channels,
        "series": [kind for kind, _, _ in plans],
        "sigma_per_channel": levels,
        "noise_models": [noise.model for noise in known.values()],
        "noise_checks": list(looks.values()),
    }
    elapsed = time.perf_counter() - begun
    rms = float(np.sqrt(np.mean(np.square(levels))))
    parameters = infos[0] if infos else {}
    timings = {"total": elapsed}
    about = {"noise": known[0].model, "noise_check": worst(list(looks.values()))}
    return result, Info(method, rms, parameters, timings, details, device=device, **about)


def channels_of_stack(
    method: str,
    kind: str,
    series: Sequence[Pages],
    params: dict[str, Any],
    about: tuple[list[Any], Any, dict[str, Any], bool],
) -> tuple[str, StackNoise | None]:
    """How the channels of a stack are denoised, decided once for all of it, and the noise they have together.

    Parameters
    ----------
    method, kind
        Of the series.
    series : sequence of Pages
        With all channels; some of their pages decide.
    params : dict
        "channels" is taken out of it.
    about : tuple
        What was said of the noise: a sigma for each channel, the noise model, what else is known, and whether
        white noise is looked for.

    Returns
    -------
    (str, StackNoise or None)
        "joint", "separate" or "same"; no noise where each channel has its own.
    """
    wanted = params.pop("channels", "auto")
    checks.choice("channels", wanted, CHANNELS)
    sigmas, *rest = about
    together = stack_method(method, kind) if kind and len(series[0]) > 1 else None
    if wanted == "separate" or len(sigmas) == 1:
        return "separate", None
    if together is None or not together.channels:
        if wanted != "auto":
            raise ValueError(
                f"method {method!r} denoises the channels of a stack one by one, so channels={wanted!r} is "
                "not possible; leave channels out, or use method='vnlr'"
            )
        return "separate", None
    noise = StackNoise.of_channels(list(series), sigmas, *rest)
    if noise is None:
        return "separate", None
    if wanted == "auto":
        sample = mosaic(sampled_pages(list(series)))
        wanted = handling("auto", *noise.model.seen_in(sample), shared_noise=noise.model.ties_channels)
    return wanted, None if wanted == "separate" else noise


def denoise_series(
    pages: Pages,
    kind: str,
    noise: StackNoise,
    *,
    method: str,
    workers: int | None,
    report: ProgressCallback | None,
    info: list[dict[str, Any]],
    units: StackUnits | None = None,
    part: Part | None = None,
    device: str = "cpu",
    same: bool = False,
    **params: Any,
) -> Generator[NDArray[Any], None, None]:
    """The denoised pages of one series, in order; only pages in flight are held as floats.

    `units` are those of the pages themselves when None; `part` says where the pages lie in a larger stack;
    `same`: the channels of a page are one picture, and their mean is denoised.
    """
    together = stack_method(method, kind) if kind and len(pages) > 1 else None
    prepare = None if together is None else load(together.prepare)
    bring = _Bring(pages, noise, device)
    mean, scale, peak = 0.0, 0.0, 0.0
    if prepare is not None:
        check_params(prepare, method, params)
        mean, scale, peak = units or units_on(device, pages, noise)
    if prepare is None:
        params = params | {"device": device}
        yield from _page_by_page(pages, noise, method, workers, report, info, params)
        return
    if noise.sigma <= NEGLIGIBLE * scale:
        yield from (noise.wanted(namespace(pages[index]).array(pages[index])) for index in range(len(pages)))
        return
    shapes = shapes_of(pages)
    task = StackTask(
        kind,
        [noise.size_of(shape) for shape in shapes],
        noise.sigma / scale,
        check_workers(workers),
        report=report,
        device=device,
        part=part,
        peak=peak,
        channels=1 if same or len(shapes[0]) == 2 else shapes[0][0],
    )
    used, solve = prepare(task, **params)
    if is_dataclass(used) and not isinstance(used, type):
        info.append(asdict(used))
    # Pages wait as they came: as floats they would take several times the memory until they are needed again.
    waiting: deque[NDArray[Any]] = deque()

    def standard(given: NDArray[Any], index: int) -> tuple[Planes, Any, Any]:
        """A page as planes, its white values, and these in the units of the solver."""
        planes = bring(given, index)
        if index == 0 and part is None:
            _advise(noise, planes)
        values = noise.forward(planes)
        seen = values.mean(axis=0) if same else values
        if units_on_gpu.usable(seen):
            return planes, values, units_on_gpu.standardised(seen, mean, scale)
        return planes, values, ((seen - mean) / scale).astype(np.float32)

    def entering() -> Iterator[Any]:
        for index in range(len(pages)):
            waiting.append(pages[index])
            yield standard(waiting[-1], index)[2]

    for index, denoised in enumerate(solve(entering())):
        given = waiting.popleft()
        planes, values, pixels = standard(given, index)
        # The change is added, so that single precision rounds the noise and not the image.
        if units_on_gpu.usable(values) and not same:
            changed = units_on_gpu.with_change(values, pixels, denoised, scale)
        elif units_on_gpu.usable(values):
            changed = values + (denoised - pixels) * scale
        else:
            changed = values + (to_host(denoised).astype(np.float64) - pixels) * scale
        result = planes.restore(noise.backward(changed))
        yield bring.back(result, given)


def check_page(planes: Planes, index: int, count: int) -> None:
    """Refuse a page with values that no image has; an error says which page of how many it was."""
    try:
        check_values(planes)
    except ValueError as error:
        if count == 1:
            raise
        raise ValueError(f"page {index + 1} of {count}: {error}") from error


def _advise(noise: StackNoise, planes: Planes) -> None:
    """What is to be told of a stack, from a page that is on the host."""
    if not lies_on_gpu(planes.data):
        advise(noise.model, planes, rounded=planes.dtype.kind in "iu")


class _Bring:
    """Pages of a series as planes, where they are worked on, and back."""

    def __init__(self, pages: Pages, noise: StackNoise, device: str) -> None:
        self._count = len(pages)
        # What is not white is stabilised on the host.
        self._carrier = Carrier(device) if device != "cpu" and noise.model.is_white else None

    def __call__(self, given: NDArray[Any], index: int) -> Planes:
        there = to_host(given) if self._carrier is None else self._carrier.bring(given)
        planes = planes_of(there, index, self._count)
        if not lies_on_gpu(planes.data):
            check_page(planes, index, self._count)
        return planes

    def back(self, result: NDArray[Any], given: NDArray[Any]) -> NDArray[Any]:
        """What was made of a page, where the page was given from."""
        return result if self._carrier is None else self._carrier.take_back(result, given)


def units_on(device: str, pages: Pages, noise: StackNoise) -> StackUnits:
    """The units of a series, measured where it is worked on: sums on a device have another last digit.

    Examples
    --------
    >>> from vnlem.noise.model import NoiseModel
    >>> units_on("cpu", [np.array([[0.0, 10.0]])], StackNoise(NoiseModel.white(3.0)))
    StackUnits(mean=5.0, scale=4.0, peak=1.25)
    """
    bring = _Bring(pages, noise, device)
    return units_of(pages, noise, lambda index: bring(pages[index], index))


def _page_by_page(
    pages: Pages,
    noise: StackNoise,
    method: str,
    workers: int | None,
    report: ProgressCallback | None,
    info: list[dict[str, Any]],
    params: dict[str, Any],
) -> Iterator[NDArray[Any]]:
    """A method that knows single images alone."""
    function = find_function(method)
    check_params(function, method, params)

    white = noise.model.is_white
    carrier = Carrier(params["device"])

    def one(item: tuple[int, NDArray[Any]]) -> tuple[NDArray[Any], Info]:
        index, given = item
        planes = None if white else planes_of(to_host(given), index, len(pages))
        if index == 0 or not lies_on_gpu(given):
            seen = planes or planes_of(to_host(given), index, len(pages))
            check_page(seen, index, len(pages))
            if index == 0:
                _advise(noise, seen)
        page = carrier.bring(given) if planes is None else noise.forward(planes)
        part = _share(report, index, 1, len(pages)) if params["device"] == "cpu" else None
        try:
            denoised, used = function(
                page, noise.sigma, workers=workers, progress=part or False, return_info=True, **params
            )
        except ValueError:
            planes_of(page, index, len(pages))  # says which page, where it is the page's fault
            raise
        if planes is None:
            return carrier.take_back(noise.wanted(denoised), given), used
        return planes.restore(noise.backward(denoised)), used

    items = ((index, pages[index]) for index in range(len(pages)))
    for index, (denoised, used) in enumerate(side_by_side(params["device"], one, items)):
        if not info:
            info.append(used.parameters)
        if report is not None and params["device"] != "cpu":
            report(index + 1, len(pages))
        yield denoised


def check_params(function: Any, method: str, params: dict[str, Any]) -> None:
    """Every parameter must be one that the method has on stacks."""
    known = arguments_of(function)
    unknown = [name for name in params if name not in known or name in _ARGUMENTS]
    if unknown:
        own = [name for name in known if name not in _ARGUMENTS]
        raise TypeError(
            f"method {method!r} on a stack has no parameter {unknown[0]!r}; it has {', '.join(own)}"
        )


def _share(report: ProgressCallback | None, at: int, count: int, total: int) -> ProgressCallback | None:
    """Progress of a part as progress of the whole, in thousandths."""
    if report is None:
        return None
    whole: Callable[[int, int], object] = report
    return lambda done, parts: whole(round(1000 * (at + count * done / max(parts, 1))), 1000 * total)
