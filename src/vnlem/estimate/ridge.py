"""Passes of ridge estimation over all groups: match (or reuse) the groups of each tile, combine, aggregate.

Channels share their groups but not the weights, because their signal-to-noise ratios differ.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.aggregate import Aggregate
from vnlem.kernels.cpu.declare import packed
from vnlem.kernels.cpu.ridge import Corner, GroupImages, Ridge, RidgeRule, filter_tile
from vnlem.kernels.cpu.sheets import Images, Tall, TilePlace
from vnlem.kernels.patch_window import patch_window
from vnlem.neighbours.groups import Matching, Members, TileGrid
from vnlem.neighbours.sheets import ImageSheet, Layout
from vnlem.pipeline.progress import ProgressCallback
from vnlem.pipeline.schedule import Schedule, Spans, Step
from vnlem.pipeline.tiles import Tile
from vnlem.pipeline.workers import Pool

_FIRST = Corner(0, 0, 0, 0)  # the sums of an image begin where its tall arrays do
KnownGroups = dict[tuple[int, int], Members]  # the groups of a pass by the row and the column of their tile


@dataclass(frozen=True)
class PassSettings:
    """How one pass combines its groups."""

    tau: float  # share of the noise that the next working image keeps
    boost: float  # factor on the noise energy in the ridge
    extra_load: float | None  # first pass (no pilot): stabilising load in units of the noise energy
    colour_boost: float = 1.0  # factor on `boost` in all channels but the first
    window: float = 0.0  # how much less the border of a patch counts than its centre: Kaiser's beta

    def rule(self) -> RidgeRule:
        """The same for kernels."""
        first = self.extra_load is not None
        return RidgeRule(first, self.extra_load or 0.0, self.boost, self.colour_boost, self.tau)


@dataclass(frozen=True)
class Pass:
    """One pass over all tiles."""

    grid: TileGrid
    matching: Matching
    settings: PassSettings
    needed: Tile  # the pixels, of the whole image, that must be right afterwards
    known: KnownGroups | None = None  # groups of the original grid's tiles; else they are matched
    kept: KnownGroups | None = None  # where this pass leaves its groups for a later one

    def taps(self) -> NDArray[np.float32]:
        """Weights of the rows of its patches, and of their columns."""
        return patch_window(self.matching.reach.patch_size, self.settings.window)

    def spans(self, more: int) -> Spans:
        """The pixels its tiles read, and some more after the end."""
        spans = self.grid.reads(self.matching.reach_of_copies())
        return Spans(*([(begin, end + more) for begin, end in line] for line in spans))


def run_passes(
    images: Images,
    passes: Sequence[Pass],
    pool: Pool,
    progress: ProgressCallback | None = None,
    order: Callable[[Step], object] | None = None,
) -> list[tuple[int, int]]:
    """Run the passes; the pilot and the working image are changed in place.

    images: those of the region, (channels, H, W).
    passes: in order. Each begins where the one before is done.
    pool, progress: the threads, and how they report progress.
    order: which of the ready tiles come first; the result does not depend on it.

    Returns, for each pass, the members that are turned or reflected, and all members.
    """
    images = packed(images)
    ridges = [packed(Ridge(one.matching.transforms, one.taps(), one.settings.rule())) for one in passes]
    # The weights of the previous pass are cleared: none of its patches may still need them.
    largest = max(one.matching.reach.patch_size for one in passes)
    spans = [one.spans(largest) for one in passes]
    schedule = Schedule(spans, order or _soon_used(passes))
    aggregate = Aggregate(images, passes[0].matching.reach.region.read)
    for one, its_spans in zip(passes, spans, strict=True):
        aggregate.add_pass(its_spans, one.taps(), one.needed)
    turned = [np.zeros((len(its.rows), len(its.columns)), np.int64) for its in spans]
    total = [np.zeros_like(counts) for counts in turned]
    scratch = _Scratch()

    def work(step: Step) -> None:
        number, row, column = step
        one = passes[number]
        groups = one.grid.groups(row, column)
        layout = one.matching.layout(groups)
        tall = scratch.tall(layout, images, one.matching.weights)
        if one.known is None:
            members = one.matching.match(groups.references, layout, tall)
        else:
            members = one.grid.known(one.known, row, column)
        if one.kept is not None:
            one.kept[row, column] = members
        sums = aggregate.blank(layout)
        given = GroupImages(tall.pilot, tall.working, tall.change, tall.variance, plane_rows=0)
        turned[number][row, column] = filter_tile(
            given, ridges[number], members.positions, members.transforms, _FIRST, sums
        )
        total[number][row, column] = members.positions.size
        aggregate.put(step, sums, _place(layout))
        for settled in schedule.settling(step):
            aggregate.settle(settled)

    pool.for_each(work, schedule, progress)
    return [(int(a.sum()), int(b.sum())) for a, b in zip(turned, total, strict=True)]


def _soon_used(passes: Sequence[Pass]) -> Callable[[Step], object]:
    """The order of tiles: the latest of the passes that share groups first, to free groups soon."""
    searches = list(accumulate(one.known is None for one in passes))
    return lambda step: (searches[step.number], -step.number, step.row, step.column)


def _place(layout: Layout) -> TilePlace:
    """Where a tile's sums belong in the arrays of the region."""
    own = layout.sheets[0]
    assert isinstance(own, ImageSheet)
    return TilePlace(*own.home(), own.height, own.width)


class _Scratch(threading.local):
    """The memory of a thread for the tall arrays of one tile after another: new memory is slow to write."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.float32)

    def tall(self, layout: Layout, images: Images, weights: np.ndarray) -> Tall:
        """The tall arrays of a tile, filled."""
        if len(layout.sheets) > 1:
            return layout.tall(images, weights)
        # The image fills its whole part, with nothing next to it.
        numbers = layout.tall_numbers(len(images.noisy))
        if self._memory.size < numbers:
            self._memory = np.empty(numbers, np.float32)
        return layout.tall(images, weights, memory=self._memory[:numbers])
