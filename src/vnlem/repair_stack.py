"""Stacks with missing or defective pixels: filled first, and filled again with the denoised result."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.pages import has_maps
from vnlem.noise.stack_holes import HoleSurvey, Seen, count_rounds, find_repair
from vnlem.pipeline import checks
from vnlem.pipeline.axes import PagesOf, check_axes, series_of
from vnlem.pipeline.device import lies_on_gpu, to_host
from vnlem.pipeline.stack_input import is_list_of_pages
from vnlem.repair import EVERY_PIXEL, PixelOptions, finish_pages, split, with_image
from vnlem.stack_plan import varied_channels
from vnlem.stacks import denoise_stack

Mask = NDArray[np.bool_]


def denoise_repaired_stack(image: Any, sigma: Any, pixels: PixelOptions, options: dict[str, Any]) -> Any:
    """`denoise` of a stack: see :func:`vnlem.stacks.denoise_stack`, whose options these are."""
    axes = options["axes"]
    if is_list_of_pages(image, axes):
        if pixels.maps:
            raise ValueError(
                "mask, defects and protect are for arrays, and this is a list of images; set missing pixels "
                "to NaN, or denoise the images one by one"
            )
        array, letters = list(image), "NYX"
        pages = [split(page, pixels) for page in array]
        whole: Any = [page for page, _ in pages]
        missing: Any = [np.zeros(page.shape, bool) if gone is None else gone for page, gone in pages]
        missing = None if all(gone is None for _, gone in pages) else missing
    elif lies_on_gpu(image):
        if pixels != replace(EVERY_PIXEL, impulses=pixels.impulses) or pixels.impulses is True:
            raise ValueError(
                "missing pixels, impulses, protect and strength of a stack need it in memory; "
                "bring it there and pass device='cuda'"
            )
        return denoise_stack(image, sigma, **options)
    else:
        array = checks.as_array("the stack", image)
        letters = check_axes(axes, array.shape)
        whole, missing = split(array, pixels)
        _refuse_empty(missing, letters)
    asked = _searched(pixels.impulses, options["noise_model"], options["about_noise"])
    found = _repairs(whole, missing, letters, sigma, asked, options.get("delay"))
    broken = missing is not None or any(one.repair.finds for one in found)
    if not broken and not pixels.keeps_input:
        return denoise_stack(image, sigma, **options)
    given, holes, impulses, repaired = whole, None, None, {}
    if broken:
        given, holes, impulses = _filled(whole, missing, letters, found)
        varied = varied_channels(given, letters, options["noise_model"], options.get("delay"))
        kept = found if varied is None else [found[channel] for channel in varied]
        repaired = {"holes": holes, "rounds": count_rounds(kept)}
    result = denoise_stack(given, sigma, **options, **repaired)

    ended = partial(finish_pages, options=pixels)
    done = with_image(result, lambda done: _each(ended, done, given, array, holes, missing))
    if isinstance(done, tuple) and holes is not None:
        details = done[1].details | {"missing": _count(holes), "impulses": _count(impulses)}
        done = (done[0], replace(done[1], details=details))
    return done


def _each(change: Callable[..., Any], *stacks: Any) -> Any:
    """What a function makes of arrays, or of each image of lists; None goes with both."""
    count = next((len(stack) for stack in stacks if isinstance(stack, list)), None)
    if count is None:
        return change(*stacks)
    every = (repeat(None, count) if stack is None else stack for stack in stacks)
    return [change(*images) for images in zip(*every, strict=True)]


def _count(masks: Any) -> int:
    return int(sum(map(np.count_nonzero, masks)))


def shows_impulses(
    pages: Any, sigma: Any, *, axes: str, noise_model: Any, impulses: str | bool = "auto", **options: Any
) -> bool:
    """Whether `denoise`, with these arguments, replaces impulses in a stack, which may be on a disk."""
    letters = check_axes(axes, pages.shape)
    asked = _searched(impulses, noise_model, options)
    found = _repairs(pages, None, letters, sigma, asked, options.get("delay"))
    return any(one.repair.finds for one in found)


def _searched(impulses: str | bool, noise_model: Any, about_noise: dict[str, Any]) -> str | bool:
    """Whether impulses are searched for: pixels that the maps of a sensor even out look like impulses."""
    return False if impulses == "auto" and has_maps(noise_model, about_noise) else impulses


def _refuse_empty(missing: Mask | None, letters: str) -> None:
    if missing is None:
        return
    page = tuple(letters.index(letter) for letter in "YX")
    empty = np.argwhere(np.atleast_1d(missing.all(axis=page)))
    if len(empty):
        others = [letter for letter in letters if letter not in "YX"]
        where = ", ".join(f"{letter}={int(at)}" for letter, at in zip(others, empty[0], strict=False))
        raise ValueError(
            f"all pixels of {len(empty)} of the stack's pages are NaN or masked, the first at {where}; "
            "leave these pages out"
        )


def _channels(array: Any, letters: str) -> list[list[PagesOf]]:
    """The pages of each channel separately."""
    if isinstance(array, list):
        return [[PagesOf(page, "YX", one) for page in array for one in series_of("YX", page.shape, "")]]
    found: dict[int, list[PagesOf]] = {}
    for one in series_of(letters, array.shape, ""):
        found.setdefault(one.channel, []).append(PagesOf(array, letters, one))
    return list(found.values())


def _repairs(
    array: Any, missing: Any, letters: str, sigma: Any, asked: str | bool, delay: Any
) -> list[HoleSurvey]:
    """How each channel is repaired; with a delay, decided on the first pages."""
    if sigma is not None and np.ndim(sigma) > 0:
        sigma = float(np.mean(sigma))
    repairs = []
    for pages, gone in zip(_channels(array, letters), _gone(missing, letters), strict=False):

        def page_at(number: int, pages: Any = pages, gone: Any = gone) -> Seen:
            return to_host(pages[number][0]), None if gone is None else gone[number][0]

        repairs.append(find_repair(len(pages), page_at, sigma, asked, over_time="T" in letters, delay=delay))
    return repairs


def _gone(missing: Any, letters: str) -> Iterable[Any]:
    return repeat(None) if missing is None else _channels(missing, letters)


def _filled(array: Any, missing: Any, letters: str, repairs: list[HoleSurvey]) -> tuple[Any, Any, Any]:
    """A stack with a first guess in its holes, page by page; the holes; and those that are impulses."""
    filled = _each(lambda pages: pages.copy(), array)
    impulses = _each(lambda pages: np.zeros(pages.shape, bool), array)
    every = zip(
        _channels(filled, letters), _channels(impulses, letters), _gone(missing, letters), strict=False
    )
    for one, (pages, spots, gone) in zip(repairs, every, strict=True):
        for number, (page, own) in enumerate(zip(pages, spots, strict=True)):
            known = None if gone is None else gone[number][0]
            found = one.repair.impulses(page[0], known)
            own.put(0, found)
            page.put(0, one.repair.fill(page[0], found if known is None else found | known))
    holes = impulses if missing is None else _each(np.logical_or, missing, impulses)
    return filled, holes, impulses
