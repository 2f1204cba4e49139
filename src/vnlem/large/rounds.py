"""Few photons in parts: the rounds of `vnlem.noise.rounds`, each around what the one before found.

A later round needs the first result around what it writes, so the halos of the rounds add up. Its units are
those of the image at half its size and not of the first result, so nothing must be known of other parts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.large.halved import (
    DOUBLE_REACH,
    FILTER_REACH,
    double_part,
    grown,
    half_of,
    halve_part,
    needed_to_double,
    part_of,
)
from vnlem.large.scales import Size, reach, solve_at_sizes, work_reach
from vnlem.noise.rounds import mix
from vnlem.pipeline.regions import Region


@dataclass(frozen=True)
class RoundOfParts:
    """One round: how often the image is halved before, and what is known at each size from there on."""

    halvings: int
    sizes: tuple[Size, ...]
    share: float = 1.0  # of the image, in a mixture with what was found before


def solve_in_rounds(
    planes: NDArray[np.float64],
    region: Region,
    rounds: tuple[RoundOfParts, ...],
    solver: Callable[[Any], NDArray[np.float32]],
    workers: int,
) -> NDArray[np.float64]:
    """The pixels of ``region.write`` that the last round gives, from those of ``region.read``.

    `region` and `planes` are those of the image as often halved as it is in the last round.
    """
    *before, last = rounds
    if not before:
        return solve_at_sizes(planes, region, last.sizes, solver, workers)
    shape, write, read = region
    seen = grown(write, reach(last.sizes), shape)
    if before[-1].halvings == last.halvings:
        found = solve_in_rounds(planes, Region(shape, seen, read), tuple(before), solver, workers)
    else:
        smaller, known = halve_part(planes, read, shape)
        below = Region(half_of(shape), needed_to_double(seen, shape), known)
        found = double_part(solve_in_rounds(smaller, below, tuple(before), solver, workers), seen, shape)
    mixture = mix(part_of(planes, read, seen), found, last.share)
    return solve_at_sizes(mixture, Region(shape, write, seen), last.sizes, solver, workers)


def reach_of_rounds(rounds: tuple[RoundOfParts, ...], margin: int = 0) -> int:
    """Pixels around a part that its result, and that `margin` pixels beyond it, depends on."""
    *before, last = rounds
    seen = reach(last.sizes, margin)
    if not before:
        return seen
    if before[-1].halvings == last.halvings:
        return reach_of_rounds(tuple(before), seen)
    return 2 * reach_of_rounds(tuple(before), seen // 2 + 1 + DOUBLE_REACH) + FILTER_REACH


def work_of_rounds(rounds: tuple[RoundOfParts, ...], side: int, margin: int = 0) -> int:
    """Pixels around a part that are worked on, as if it were one round, for parts of `side` pixels."""
    done = whole = 0.0
    halvings = rounds[-1].halvings
    for one in reversed(rounds):
        if one.halvings > halvings:
            margin, halvings = margin // 2 + 1 + DOUBLE_REACH, one.halvings
        length = side / 2**halvings
        done += (length + 2 * work_reach(one.sizes, round(length), margin)) ** 2
        whole += length**2
        margin = reach(one.sizes, margin)
    return int(np.ceil(side / 2 * (np.sqrt(done / whole) - 1)))
