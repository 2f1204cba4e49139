"""Movies, volumes, sets of images: which pages help each other, and the method that takes them.

`vnlem.denoise(..., axes=...)` comes here. Noise and the handling of channels are decided once for all pages.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.features.channels import CHANNELS, handling_for
from vnlem.noise.find import ABOUT_NOISE
from vnlem.noise.model import NoiseModel
from vnlem.noise.pages import (
    Pages,
    StackNoise,
    checked_page,
    for_every_channel,
    has_maps,
    mosaic,
    noise_of_channels,
    sampled_pages,
    varied_channels,
)
from vnlem.noise.predictive import NoiseCheck, check_result, worst
from vnlem.noise.stack_holes import LevelsWithHoles, denoise_in_rounds
from vnlem.pipeline import checks
from vnlem.pipeline.axes import PagesOf, check_axes, helpful_axis, series_of
from vnlem.pipeline.device import choose, current, namespace
from vnlem.pipeline.dtypes import as_dtype, readable_as, taken_up
from vnlem.pipeline.progress import Progress, reporting
from vnlem.pipeline.run import Info
from vnlem.pipeline.sigma import root_mean_square
from vnlem.pipeline.stack_input import as_array, is_list_of_pages, sigma_map_of, sigma_per_channel
from vnlem.pipeline.warn import said_once
from vnlem.pipeline.workers import check_workers
from vnlem.registry import stack_method
from vnlem.series import denoise_series, first_pages, share, takes_sigma_maps, units_on


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
    plain = params.get("preset") == "paper"
    # All pages of a channel, or of all channels, share one noise, which is estimated once.
    known: dict[int, StackNoise] = {}
    n_channels = 1
    kept: Sequence[int] = [0]  # the channels that are denoised: the others are constant
    maps: list[PagesOf] = []  # of the noise of each series, if it is not one number
    gone: list[Any] = []  # the holes of each series, page by page
    pages_given = image if is_list_of_pages(image, axes) else None
    if pages_given is not None:
        given = pages_given if dtype is None else [taken_up(page, dtype) for page in pages_given]
        plans: list[tuple[str, int, Pages]] = [("N", 0, list(given))]
        sigmas = sigma_per_channel(sigma, 1)
        channels, _ = channels_of_stack(
            method, "N", [given], params, (sigmas, noise_model, about_noise, plain)
        )
        gone = [] if holes is None else [holes]
        result: Any = [None] * len(pages_given)
    else:
        array = as_array(image) if out is None else image
        letters = check_axes(axes, array.shape)
        result = namespace(array).empty_like(array, dtype=dtype) if out is None else out
        read = None if dtype is None else readable_as(array.dtype, dtype)
        n_channels = dict(zip(letters, array.shape, strict=True)).get("C", 1)
        varied = varied_channels(array, letters, noise_model, params.get("delay"))
        if varied is not None:
            noise_model = noise_of_channels(noise_model, varied)
            apart = [channel for channel in range(n_channels) if channel not in varied]
            for one in series_of(letters, array.shape, "", channels=apart):
                page = PagesOf(array, letters, one, read)[0]
                PagesOf(result, letters, one).put(0, page if dtype is None else as_dtype(page, dtype))
        kept = range(n_channels) if varied is None else varied
        kind = helpful_axis(array, letters, kept)
        if not kind and params.get("delay") is not None:
            kind = "T" if "T" in letters else ""  # a movie of one frame, denoised as in a stream
        all_series = series_of(letters, array.shape, kind, joint=True, channels=varied)
        series_pages = [PagesOf(array, letters, one, read) for one in all_series]
        spread = sigma_map_of(sigma, array.shape)
        sigmas = [None] * n_channels if spread is not None else sigma_per_channel(sigma, n_channels)
        noise_name = noise_model
        if spread is not None:
            sigmas = _levels(_first(spread, letters, kind, params.get("delay")), letters, noise_model)
            noise_name = "gaussian"
            if not _same_in_all_channels(spread, letters, kept):
                params = params | {"channels": "separate"}
        given_noise = ([sigmas[channel] for channel in kept], noise_name, about_noise, plain)
        first = [first_pages(pages, params.get("delay")) for pages in series_pages]
        channels, common = channels_of_stack(method, kind, first, params, given_noise)
        if common is None:
            all_series = series_of(letters, array.shape, kind, channels=varied)
            series_pages = [PagesOf(array, letters, one, read) for one in all_series]
        else:
            known[0] = common
        plans = [(kind, one.channel, pages) for one, pages in zip(all_series, series_pages, strict=True)]
        outputs = [PagesOf(result, letters, one) for one in all_series]
        if spread is not None:
            noise_model = "gaussian"
            maps = [PagesOf(spread, letters, one) for one in all_series]
        gone = [] if holes is None else [PagesOf(holes, letters, one) for one in all_series]
    total = sum(len(pages) for _, _, pages in plans)
    infos: list[dict[str, Any]] = []
    looks: dict[int, NoiseCheck] = {}
    shown: dict[int, NoiseModel] = {}  # of the middle page of each channel
    with reporting(progress, method) as report:

        def denoised(number: int, begun: int) -> Iterator[NDArray[Any]]:
            """The denoised pages of a series; begun: the pages done before."""
            kind, channel, pages = plans[number]
            noise = known[channel]
            levels: Any = maps[number] if maps else None
            options = {"method": method, "workers": workers, "info": infos, "device": device, **params}
            if gone:
                if takes_sigma_maps(method, kind, len(pages), noise, device):
                    levels = LevelsWithHoles(gone[number], noise, levels)
                options["units"] = units_on(device, first_pages(pages, params.get("delay")), noise)

            def solve(own: Pages, turn: int) -> Iterator[NDArray[Any]]:
                part = share(report, begun + turn * len(own), len(own), rounds * total)
                same = channels == "same"
                return denoise_series(own, kind, noise, report=part, same=same, sigma_map=levels, **options)

            return denoise_in_rounds(pages, gone[number], rounds, solve) if gone else solve(pages, 0)

        at = 0
        for number, (_, channel, pages) in enumerate(plans):
            if channel not in known:
                same = [first_pages(other, params.get("delay")) for _, c, other in plans if c == channel]
                known[channel] = StackNoise.of(same, sigmas[channel], noise_model, about_noise, plain=plain)
            for index, page in enumerate(denoised(number, at)):
                page = page if dtype is None else as_dtype(page, dtype)
                if return_info and channel not in looks and index == len(pages) // 2:
                    before = checked_page(pages, index)
                    shown[channel] = known[channel].of_page(before)
                    looks[channel] = check_result(before, page, shown[channel])
                if pages_given is not None:
                    # A copy, not in page-locked memory.
                    result[index] = namespace(page).array(page) if device != "cpu" else page
                else:
                    outputs[number].put(index, namespace(result).asarray(page))
            at += rounds * len(pages)
    if not return_info:
        return result
    models = list(shown.values())
    if channels == "separate":
        sigmas = [known[channel].model.sigma for channel in kept]
        models = for_every_channel(models, kept, n_channels, NoiseModel.white(0.0))
    else:
        sigmas = known[0].levels(len(kept))
    details = {
        "axes": axes,
        "channels": channels,
        "series": [kind for kind, _, _ in plans],
        "sigma_per_channel": for_every_channel(sigmas, kept, n_channels, 0.0),
        "noise_models": models,
        "noise_checks": list(looks.values()),
    }
    elapsed = time.perf_counter() - begun
    rms = float(np.sqrt(np.mean(np.square(sigmas))))
    parameters = infos[0] if infos else {}
    timings = {"total": elapsed}
    about = {"noise": shown[plans[0][1]], "noise_check": worst(list(looks.values()))}
    return result, Info(method, rms, parameters, timings, details, device=device, **about)


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


def channels_of_stack(
    method: str,
    kind: str,
    series: Sequence[Pages],
    params: dict[str, Any],
    about: tuple[list[Any], Any, dict[str, Any], bool],
    *,
    in_parts: bool = False,
) -> tuple[str, StackNoise | None]:
    """How the channels of a stack are denoised, decided once for all of it, and their common noise.

    method, kind: of the series.
    series: with all channels; some of their pages decide.
    params: "channels" is removed from it.
    about: what the user passed about the noise: a sigma for each channel, the noise model, other parameters,
        and whether white noise is estimated.
    in_parts: whether pages are denoised part by part.

    Returns "joint", "separate" or "same", and the noise; None if channels have separate noise.
    """
    wanted = params.pop("channels", "auto")
    checks.choice("channels", wanted, CHANNELS)
    sigmas, noise_model, about_noise, plain = about
    together = stack_method(method, kind) if kind else None
    if wanted == "separate" or len(sigmas) == 1:
        return "separate", None
    if together is None or not together.channels:
        if wanted != "auto":
            raise ValueError(
                f"method {method!r} denoises the channels of a stack one by one, so channels={wanted!r} is "
                "not possible; leave channels out, or use method='vnlr'"
            )
        return "separate", None
    noise = StackNoise.of_channels(
        list(series), sigmas, noise_model, about_noise, plain=plain, in_parts=in_parts
    )
    if noise is None:
        if wanted != "auto" and has_maps(noise_model, about_noise):
            raise ValueError(
                "with maps of the noise the channels of a stack are denoised one by one, so "
                f"channels={wanted!r} is not possible; leave channels out"
            )
        return "separate", None
    channels = handling_for(noise.model, wanted, len(sigmas), lambda: mosaic(sampled_pages(list(series))))
    return channels, None if channels == "separate" else noise
