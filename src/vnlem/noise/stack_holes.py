"""Missing and broken pixels of stacks: found and filled page by page, in memory and in parts alike.

Every decision uses `REACH` pixels around, so a part of a page gets the same bytes as the whole page.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate import missing as holes_of
from vnlem.noise.impulses import ImpulseRule, find_rule
from vnlem.noise.model import NoiseModel
from vnlem.noise.pages import Pages, StackNoise, mosaic
from vnlem.noise.white import estimate_sigma_of_planes
from vnlem.pipeline import checks
from vnlem.pipeline.dtypes import as_dtype
from vnlem.pipeline.regions import Region
from vnlem.pipeline.sigma import check_sigma

Mask = NDArray[np.bool_]
Float = NDArray[np.float64]
# A page (H, W) without NaN, and its missing pixels; None if there are none.
Seen = tuple[NDArray[Any], Mask | None]

SAMPLE = 4  # pages that are checked for obvious impulses and for many missing pixels
SAMPLE_PIXELS = 2**24  # the most pixels for that, but at least one page
MOST_PAGES = 16  # whose mean shows pixels that are broken in all of them
# Impulses are searched for after missing pixels are filled; then both are filled.
REACH = 2 * holes_of.REACH + holes_of.FOUND_REACH


@dataclass(frozen=True)
class PageRepair:
    """How the holes in the pages of a channel are found and filled. It holds plain values: it can be sent."""

    level: float  # of holes without a valid pixel in reach
    rule: ImpulseRule | None = None
    fixed: Mask | None = None  # (H, W), impulses of all pages

    @property
    def finds(self) -> bool:
        """Whether it finds impulses."""
        return self.rule is not None or self.fixed is not None

    def impulses(self, page: NDArray[Any], missing: Mask | None, region: Region | None = None) -> Mask:
        """The impulses of a page (H, W), or of what a region reads of it.

        >>> page = np.full((16, 16), 50.0)
        >>> page[5, 7] = 200
        >>> repair = PageRepair(50.0, ImpulseRule(NoiseModel.white(2.0), 100.0))
        >>> np.argwhere(repair.impulses(page, None)).tolist()
        [[5, 7]]
        """
        found: Mask = np.zeros(page.shape, bool)
        if self.rule is not None:
            with np.errstate(invalid="ignore"):  # non-finite pages are refused later
                found = self.rule.find(_even(page, missing, self.level)[None])[0]
        if self.fixed is not None:
            found |= self.fixed if region is None else self.fixed[region.read.slices]
        return found if missing is None else found & ~missing

    def fill(self, page: NDArray[Any], holes: Mask) -> NDArray[Any]:
        """A page (H, W), or a part of it, whose holes are filled with means of their surroundings."""
        return as_dtype(_even(page, holes, self.level), page.dtype) if holes.any() else page

    def describe(self) -> dict[str, Any]:
        """Everything the result depends on, as plain values."""
        return {
            "level": self.level,
            "impulses": None if self.rule is None else self.rule.describe(),
            "fixed": None if self.fixed is None else sha256(self.fixed.tobytes()).hexdigest()[:32],
        }


class HoleSurvey(NamedTuple):
    """What a sample of the pages of a channel shows."""

    repair: PageRepair
    share: float  # of missing pixels
    missing: bool  # whether there are any


def find_repair(
    count: int,
    page_at: Callable[[int], Seen],
    sigma: Any,
    asked: str | bool,
    *,
    over_time: bool,
    delay: Any = None,
) -> HoleSurvey:
    """How the pages of a channel are repaired, decided on some of them.

    count: of the pages.
    page_at: gives a page by its number.
    sigma: of the noise; estimated when None.
    asked: "auto", True or False, whether impulses are searched for.
    over_time: whether the pages are frames: then a broken pixel stays at its place, while noise and moving
        things average out.
    delay: at most that number of pages after the first are looked at.
    """
    if delay is not None:
        count = min(count, checks.whole("delay", delay, 0) + 1)
    first = page_at(0)
    most = max(1, min(SAMPLE, SAMPLE_PIXELS // max(first[0].size, 1)))
    sample = [first, *map(page_at, _spread(count, most)[1:])]
    valid = [page if missing is None else page[~missing] for page, missing in sample]
    size = sum(values.size for values in valid)
    level = sum(float(values.sum(dtype=np.float64)) for values in valid) / max(size, 1)
    rule, fixed = None, None
    if asked is not False and size:
        rule = _rule([_even(*seen, level) for seen in sample], sigma, asked)
    if asked is not False and size and over_time and count > 2:
        chosen = _spread(count, MOST_PAGES)
        mean: Any = sum(_even(*page_at(number), level) for number in chosen) / len(chosen)
        of_mean = _rule([mean], None if sigma is None else check_sigma(sigma) / len(chosen) ** 0.5, asked)
        found = None if of_mean is None else of_mean.find(mean[None])[0]
        fixed = found if found is not None and found.any() else None
    repair = PageRepair(level, rule, fixed)
    shares = []
    for page, missing in sample:
        gone = 0 if missing is None else np.count_nonzero(missing)
        if repair.finds:
            gone += np.count_nonzero(repair.impulses(page, missing))
        shares.append(gone / max(page.size, 1))
    return HoleSurvey(repair, float(np.mean(shares)), any(missing is not None for _, missing in sample))


def count_rounds(found: Sequence[HoleSurvey]) -> int:
    """How often a stack is denoised: many holes are filled again from the first result."""
    return 2 if float(np.mean([one.share for one in found])) >= holes_of.FEW else 1


def denoise_in_rounds(
    pages: Pages, holes: Pages, rounds: int, solve: Callable[[Any, int], Iterator[Any]]
) -> Iterator[NDArray[Any]]:
    """The denoised pages of a series with holes.

    pages, holes: filled pages, and where the holes were.
    solve: denoises pages; it receives the number of the round.
    """
    for number in range(rounds - 1):
        pages = [
            as_dtype(holes_of.next_guess(page.astype(np.float64), done, gone), page.dtype)
            for page, done, gone in zip(pages, solve(pages, number), holes, strict=True)
        ]
    yield from solve(pages, rounds - 1)


class LevelsWithHoles:
    """Pages of the standard deviation of white noise: filled pixels have less.

    >>> holes = np.array([[[True, False]]])
    >>> LevelsWithHoles(holes, StackNoise(NoiseModel.white(2.0)))[0].round(2)
    array([[[0.96, 2.  ]]])
    """

    def __init__(self, holes: Any, noise: StackNoise, levels: Any = None) -> None:
        self._holes, self._sigma, self._levels = holes, noise.sigma, levels

    def __getitem__(self, index: int) -> Float:
        share = holes_of.relative_noise(self._holes[index]) ** 2
        # Channels that are denoised together have one map.
        relative = np.sqrt(share.mean(axis=0) if share.ndim == 3 else share)[None]
        level = self._sigma if self._levels is None else self._levels[index]
        found: Float = level * relative
        return found


def _spread(count: int, most: int) -> list[int]:
    return [int(number) for number in np.unique(np.linspace(0, count - 1, most).astype(int))]


def _even(page: NDArray[Any], missing: Mask | None, level: float) -> Float:
    """A page as numbers, with a first guess of its missing pixels."""
    values: Float = np.asarray(page, np.float64)
    if missing is None or not missing.any():
        return values
    filled: Float = holes_of.first_guess(values[None], np.ascontiguousarray(missing)[None], (level,))[0]
    return filled


def _rule(pages: list[Float], sigma: Any, asked: str | bool) -> ImpulseRule | None:
    sample = mosaic(pages)[None]
    if not np.isfinite(sample).all():
        return None  # pages that are not finite are refused later
    level = estimate_sigma_of_planes(sample) if sigma is None else check_sigma(sigma)
    return find_rule(sample, NoiseModel.white(level), asked)
