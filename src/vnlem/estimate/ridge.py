"""One pass of ridge estimation over all groups: match (or reuse) the groups of each tile, combine, put back.

Channels share their groups; each has its own combination, since each has its own ratio of signal to noise.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from vnlem.estimate.aggregate import Aggregate
from vnlem.kernels.numba.ridge import Ridge, filter_tile
from vnlem.kernels.numba.sheets import Images
from vnlem.neighbours.groups import Matching, Members, TileGroups
from vnlem.neighbours.sheets import ImageSheet
from vnlem.pipeline.progress import ProgressCallback
from vnlem.pipeline.tiles import Tile
from vnlem.pipeline.workers import Pool

# For each thread so many tiles, the last ones of a pass, are worked through by what they take.
TILES_TO_SORT = 4


@dataclass(frozen=True)
class PassSettings:
    """How one pass combines its groups."""

    tau: float  # share of the noise that the next working image keeps
    boost: float  # factor on the noise energy in the ridge
    extra_load: float | None  # first pass (no pilot): steadying load in units of the noise energy


@dataclass
class TileWork:
    """A tile of reference patches, and its groups once they are known."""

    groups: TileGroups
    members: Members | None = None
    seconds: float = 0.0  # what it took in the last pass

    def needing(self, matching: Matching, needed: Tile) -> "TileWork | None":
        """The part of it whose groups may reach a pixel that is needed."""
        reach, references = matching.reach, self.groups.references
        rows, columns = reach.sides()
        top, left = reach.starts(references[:, 0], 0), reach.starts(references[:, 1], 1)
        p = reach.patch_size
        chosen = (
            (top < needed.bottom)
            & (top + rows + p - 1 > needed.top)
            & (left < needed.right)
            & (left + columns + p - 1 > needed.left)
        )
        if chosen.all():
            return self
        if not chosen.any() or self.members is None:
            return None
        # The area stays: members are places in it.
        groups = self.groups._replace(references=references[chosen])
        return TileWork(groups, self.members.of(chosen), self.seconds)


def work_again(works: Sequence[TileWork], groups: Iterable[TileGroups]) -> list[TileWork]:
    """Tiles whose groups are to be matched anew, with what they took before."""
    seconds = {work.groups.tile: work.seconds for work in works}
    return [TileWork(tile, seconds=seconds.get(tile.tile, 0.0)) for tile in groups]


def order_of_work(works: Sequence[TileWork], workers: int) -> list[int]:
    """Tiles in reading order, but the last ones by what they took before, the longest first.

    So no thread begins a long tile when the others have nothing left to do. Only the last ones, since tiles
    join the image in reading order, and those that wait for their turn are held in memory.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> order_of_work([SimpleNamespace(seconds=s) for s in (2, 1, 1, 3)], 16)
    [3, 0, 1, 2]
    """
    first = max(len(works) - TILES_TO_SORT * workers, 0)
    last = sorted(range(first, len(works)), key=lambda index: -works[index].seconds)
    return [*range(first), *last]


def run_pass(
    images: Images,
    works: Sequence[TileWork],
    matching: Matching,
    settings: PassSettings,
    needed: Tile,
    pool: Pool,
    progress: ProgressCallback | None = None,
    *,
    keep: bool = False,
    order: Sequence[int] | None = None,
) -> tuple[int, int]:
    """Work through all tiles; the pilot and the working image are changed in place.

    Parameters
    ----------
    images : Images
        Those of the region, (channels, H, W).
    works : sequence of TileWork
        Without members, which are then matched, or with those of an earlier pass.
    matching, settings
        How groups are found and combined.
    needed : Tile
        The pixels, of the whole image, that must be right afterwards.
    pool, progress
        The threads, and what to tell of them.
    keep : bool
        Keep the members that were matched, for a later pass.
    order : sequence of int, optional
        The order of work; the result does not depend on it.

    Returns
    -------
    turned, total : int
        Members that are turned or reflected, and all members.
    """
    channels, height, width = images.noisy.shape
    reach = matching.reach
    read = reach.region.read
    aggregate = Aggregate(channels, height, width)
    turned = np.zeros(len(works), np.int64)
    total = np.zeros(len(works), np.int64)

    def work(index: int) -> None:
        begun = time.perf_counter()
        groups, members = works[index].groups, works[index].members
        layout = matching.layout(groups)
        tall = layout.tall(images, matching.weights)
        if members is None:
            members = matching.match(groups.references, layout, tall)
            if keep:
                works[index].members = members
        ridge = Ridge(
            matching.transforms,
            reach.patch_size,
            layout.own_rows,
            settings.extra_load is not None,
            np.float32(settings.extra_load or 0.0),
            np.float32(settings.boost),
            np.float32(settings.tau),
        )
        sums = layout.sums(channels)
        turned[index] = filter_tile(tall, ridge, members.positions, members.transforms, sums)
        total[index] = members.positions.size
        own = layout.sheets[0]
        assert isinstance(own, ImageSheet)
        works[index].seconds = time.perf_counter() - begun
        aggregate.add(index, sums, (*own.home(), own.height, own.width))

    pool.for_each(work, order_of_work(works, pool.workers) if order is None else order, progress)
    area = Tile(
        needed.top - read.top, needed.bottom - read.top, needed.left - read.left, needed.right - read.left
    )
    aggregate.finish(images, reach.patch_size, area, pool)
    return int(turned.sum()), int(total.sum())
