"""Stacks with missing or broken pixels: they are filled before, and once more with what was found."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.missing import FEW, first_guess, levels_of
from vnlem.noise.find import CAMERA
from vnlem.noise.fit import are_maps
from vnlem.noise.impulses import ImpulseRule, find_rule
from vnlem.noise.model import NoiseModel
from vnlem.noise.white import estimate_sigma_of_planes
from vnlem.pipeline import checks
from vnlem.pipeline.axes import PagesOf, check_axes, series_of
from vnlem.pipeline.device import lies_on_gpu, to_host
from vnlem.pipeline.dtypes import as_dtype
from vnlem.pipeline.sigma import check_sigma
from vnlem.pipeline.stack_input import is_list_of_pages
from vnlem.repair import EVERY_PIXEL, PixelOptions, finish, fitting, kept, split, with_image
from vnlem.stacks import denoise_stack

Mask = NDArray[np.bool_]

SAMPLE = 4  # pages that say whether impulses are plain
MOST_PAGES = 16  # whose mean shows pixels that are broken in all of them


def denoise_repaired_stack(image: Any, sigma: Any, pixels: PixelOptions, options: dict[str, Any]) -> Any:
    """What `denoise` does with a stack: see :func:`vnlem.stacks.denoise_stack`, whose options these are."""
    axes = options["axes"]
    if is_list_of_pages(image, axes):
        if pixels.mask is not None or pixels.defects is not None or pixels.protect is not None:
            raise ValueError(
                "mask, defects and protect are for arrays, and this is a list of images; set missing pixels "
                "to NaN, or denoise the images one by one"
            )
        pages = [split(page, pixels) for page in image]
        if not pixels.keeps_input and all(missing is None for _, missing in pages):
            return denoise_stack(image, sigma, **options)
        return _list_of_pages(image, sigma, pixels, options)
    if lies_on_gpu(image):
        if pixels != replace(EVERY_PIXEL, impulses=pixels.impulses) or pixels.impulses is True:
            raise ValueError(
                "missing pixels, impulses, protect and strength of a stack need it in memory; "
                "bring it there and pass device='cuda'"
            )
        return denoise_stack(image, sigma, **options)
    array = checks.as_array("the stack", image)
    letters = check_axes(axes, array.shape)
    whole, missing = split(array, pixels)
    _refuse_empty(missing, letters)
    # Pixels that the maps of a sensor even out look like impulses.
    asked = False if pixels.impulses == "auto" and _has_maps(options) else pixels.impulses
    impulses = _find(whole, missing, letters, sigma, asked)
    if missing is None and impulses is None and not pixels.keeps_input:
        return denoise_stack(image, sigma, **options)
    holes: Any = missing
    if impulses is not None:
        holes = impulses if missing is None else missing | impulses
    given, rounds = whole, 1
    if holes is not None:
        given = _filled(whole, holes, letters)
        rounds = 2 if np.mean(holes) >= FEW else 1
    result: Any = None
    for number in range(rounds):
        last = number + 1 == rounds
        result = denoise_stack(given, sigma, **options | ({} if last else {"return_info": False}))
        if not last:
            given = np.where(holes, result, whole).astype(array.dtype)

    def ended(done: Any) -> Any:
        if pixels.keeps_input:
            protect = (
                None if pixels.protect is None else fitting("protect", pixels.protect, array.shape, None)
            )
            mixed = finish(given.astype(np.float64), done.astype(np.float64), pixels, holes, protect)
            done = as_dtype(mixed, done.dtype)
        return done if missing is None or pixels.fill else kept(done, array, missing, pixels)

    done = with_image(result, ended)
    if isinstance(done, tuple) and holes is not None:
        found = 0 if impulses is None else int(impulses.sum())
        details = done[1].details | {"missing": int(holes.sum()), "impulses": found}
        done = (done[0], replace(done[1], details=details))
    return done


def _has_maps(options: dict[str, Any]) -> bool:
    """Whether the noise was given with a map."""
    model, about = options["noise_model"], options["about_noise"]
    if isinstance(model, NoiseModel):
        return model.maps is not None
    return are_maps({name: about.get(name) for name in CAMERA})


def _list_of_pages(images: list[Any], sigma: Any, pixels: PixelOptions, options: dict[str, Any]) -> Any:
    """Images of a set, with NaN that are missing."""
    pages, holes = zip(*(split(image, pixels) for image in images), strict=True)
    filled = [
        page if missing is None else _filled_page(page, missing)
        for page, missing in zip(pages, holes, strict=True)
    ]
    result = denoise_stack(filled, sigma, **options)

    def ended(done: list[Any]) -> list[Any]:
        found = []
        for page, given, image, missing in zip(done, filled, images, holes, strict=True):
            if pixels.keeps_input:
                mixed = finish(given.astype(np.float64), page.astype(np.float64), pixels, missing)
                page = as_dtype(mixed, page.dtype)
            found.append(page if missing is None or pixels.fill else kept(page, image, missing, pixels))
        return found

    return with_image(result, ended)


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


def _pages(array: Any, letters: str) -> list[PagesOf]:
    """Pages along time, else each on its own; every channel apart."""
    return [
        PagesOf(array, letters, one) for one in series_of(letters, array.shape, "T" if "T" in letters else "")
    ]


@np.errstate(invalid="ignore")  # pages that are not finite are refused later
def _find(array: Any, missing: Mask | None, letters: str, sigma: Any, asked: str | bool) -> Mask | None:
    """The impulses of a stack, of single pages and, with time, of all pages; None where there are none."""
    if asked is False:
        return None
    if sigma is not None and np.ndim(sigma) > 0:
        sigma = float(np.mean(sigma))
    found = np.zeros(array.shape, bool)
    for series, holes, gone in zip(
        _pages(array, letters),
        _pages(found, letters),
        [None] * array.size if missing is None else _pages(missing, letters),
        strict=False,
    ):
        # A broken pixel stays at its place, while noise and what moves average out.
        count = len(series)
        fixed: Any = False
        if count > 2:
            chosen = np.unique(np.linspace(0, count - 1, MOST_PAGES).astype(int))
            mean = np.mean([_page(series, gone, int(k)) for k in chosen], axis=0)
            rule = _rule([mean], None if sigma is None else check_sigma(sigma) / len(chosen) ** 0.5, asked)
            fixed = False if rule is None else rule.find(mean[None])[0]
        sampled = np.unique(np.linspace(0, count - 1, SAMPLE).astype(int))
        rule = _rule([_page(series, gone, int(k)) for k in sampled], sigma, asked)
        if rule is None and fixed is False:
            continue
        for index in range(count):
            own = fixed
            if rule is not None:
                own = own | rule.find(_page(series, gone, index)[None])[0]
            holes.put(index, own if gone is None else own & ~gone[index])
    return found if found.any() else None


def _rule(pages: list[Any], sigma: Any, asked: str | bool) -> ImpulseRule | None:
    sample = np.concatenate(pages)[None]
    level = estimate_sigma_of_planes(sample) if sigma is None else check_sigma(sigma)
    return find_rule(sample, NoiseModel.white(level), asked)


def _page(series: PagesOf, missing: PagesOf | None, index: int) -> NDArray[np.float64]:
    page: NDArray[np.float64] = np.asarray(to_host(series[index]), np.float64)
    if missing is None or not missing[index].any():
        return page
    holes = missing[index][None]
    filled: NDArray[np.float64] = first_guess(page[None], holes, levels_of(page[None], holes))[0]
    return filled


def _filled(array: Any, holes: Mask, letters: str) -> Any:
    """A stack with a first guess of its missing pixels, page by page."""
    result = array.copy()
    for pages, own in zip(_pages(result, letters), _pages(holes, letters), strict=True):
        for index in range(len(pages)):
            if own[index].any():
                pages.put(index, _filled_page(pages[index], own[index]))
    return result


def _filled_page(page: Any, missing: Mask) -> Any:
    planes = np.asarray(page, np.float64)[None]
    holes = np.ascontiguousarray(missing)[None]
    return as_dtype(first_guess(planes, holes, levels_of(planes, holes))[0], page.dtype)
