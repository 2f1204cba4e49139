"""Units of work and blocks: their list, the place of a block, and its solver.

A unit covers whole files of the target (shards, or chunks if there are no shards), so no two units ever
write the same file. A unit is read once with its halo and solved block by block; blocks bound the memory, and
the result does not depend on them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from math import prod
from typing import Any, Protocol

from numpy.typing import NDArray

from vnlem.large.boxes import Box, grown, pieces, shifted, volume
from vnlem.large.memory import human_bytes
from vnlem.pipeline.regions import Region
from vnlem.pipeline.tiles import Tile

# With a side of at least 11 halos these add less than (1 + 2/11)^2 - 1 = 40 % to the work.
SIDE_PER_HALO = 11
USUAL_SIDE = 2048  # of a unit; smaller ones spend more on halos, larger ones more memory
SMALLEST_BLOCK = 64
# Kernels, thread buffers and anything else that does not depend on the block.
BYTES_ALWAYS = 100 * 2**20


@dataclass(frozen=True)
class Block:
    """Where a block lies; all boxes along the axes that are solved together, in the whole source."""

    read: Box  # what was read, halo included
    write: Box  # the wanted part
    whole: tuple[int, ...]  # shape of the source along these axes
    at: dict[str, int] = field(default_factory=dict)  # position along the other axes

    @property
    def region(self) -> Region:
        """The same along the last two axes, y and x."""
        return Region((self.whole[-2], self.whole[-1]), _tile(self.write), _tile(self.read))


def _tile(box: Box) -> Tile:
    (top, bottom), (left, right) = box[-2:]
    return Tile(top, bottom, left, right)


class BlockSolver(Protocol):
    """Solves blocks, with the same bytes as the whole. It holds plain values: it can be sent to workers."""

    @property
    def axes(self) -> tuple[str, ...]:
        """Axes that are solved together: y and x, with c before them for colours, t or z for stacks."""

    @property
    def halo(self) -> tuple[int, ...]:
        """What is read around a block, along these axes; an axis is not cut if this is zero or its length."""

    @property
    def work_halo(self) -> tuple[int, ...]:
        """Pixels processed around a block, averaged over the passes of a method."""

    @property
    def fills(self) -> bool:
        """Whether pixels may be NaN."""

    @property
    def cure(self) -> str:
        """Advice, as a phrase, if the smallest unit takes too much memory."""

    @property
    def varied(self) -> tuple[int, ...] | None:
        """The channels that are denoised if others are constant; None for all."""

    def solve(self, pixels: NDArray[Any], block: Block, workers: int | None) -> NDArray[Any]:
        """The denoised pixels of `block.write` from those of `block.read`."""

    def memory(self, shape: tuple[int, ...]) -> int:
        """Bytes that the solution of a block of this shape takes, halo included."""

    def describe(self) -> dict[str, Any]:
        """Everything the result depends on, as plain values."""


@dataclass(frozen=True)
class BlockPlan:
    """Units and blocks of one array. All tuples have one entry for each axis."""

    shape: tuple[int, ...]  # of the target
    unit: tuple[int, ...]  # what one unit covers, a multiple of what one file covers
    block: tuple[int, ...]  # what is solved at once
    halo: tuple[int, ...]  # what a block reads beyond itself
    work_halo: tuple[int, ...]  # what is processed beyond a block
    offset: tuple[int, ...]  # where the target begins in the source
    whole: tuple[int, ...]  # shape of the source

    @property
    def counts(self) -> tuple[int, ...]:
        """Units along each axis."""
        return tuple(-(-size // side) for size, side in zip(self.shape, self.unit, strict=True))

    def __len__(self) -> int:
        return prod(self.counts)

    def box(self, number: int) -> Box:
        """The part of the target that a unit writes."""
        spans = []
        for size, side, count in zip(self.shape[::-1], self.unit[::-1], self.counts[::-1], strict=True):
            number, place = divmod(number, count)
            spans.append((place * side, min((place + 1) * side, size)))
        return tuple(spans[::-1])

    def read_box(self, box: Box) -> Box:
        """The part of the source that a box of the target needs."""
        return grown(shifted(box, self.offset), self.halo, self.whole)

    def blocks(self, box: Box) -> Iterator[Box]:
        """The blocks of a unit, in coordinates of the target."""
        cuts = [
            [(start + a, start + b) for a, b in pieces(stop - start, side)]
            for (start, stop), side in zip(box, self.block, strict=True)
        ]
        yield from product(*cuts)

    def overhead(self) -> float:
        """Work that the halo adds, as a share of the work on the pixels written, over the whole plan."""
        solved = 1.0
        for size, unit, block, halo, offset, whole in zip(
            self.shape, self.unit, self.block, self.work_halo, self.offset, self.whole, strict=True
        ):
            read = 0
            for start in range(0, size, unit):
                for a, b in pieces(min(unit, size - start), block):
                    read += min(whole, offset + start + b + halo) - max(0, offset + start + a - halo)
            solved *= read / size
        return solved - 1

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "BlockPlan":
        """The plan that `to_json` wrote.

        >>> plan = BlockPlan((5, 5), (4, 4), (4, 4), (1, 1), (1, 1), (0, 0), (5, 5))
        >>> BlockPlan.from_json(plan.to_json()) == plan, len(plan), plan.box(1)
        (True, 4, ((0, 4), (4, 5)))
        """
        return cls(**{name: tuple(value) for name, value in values.items()})


def plan_blocks(
    files: BlockPlan,
    solved: Sequence[bool],
    memory: int,
    solving: Callable[[tuple[int, ...]], int],
    itemsize: int,
    cure: str = "allow more memory",
) -> BlockPlan:
    """The plan with the largest blocks that `memory` allows.

    files: the plan whose units are single files of the target.
    solved: which axes are solved together; along the others positions are independent.
    memory: bytes that reading, solving and writing one unit may take.
    solving: shape of a block with its halo, along all axes -> bytes its solution takes.
    itemsize: bytes of a pixel.
    cure: what helps if the smallest unit is too large.

    >>> size, file = (9000,) * 2, (512,) * 2
    >>> files = BlockPlan(size, file, file, (131,) * 2, (80,) * 2, (0, 0), size)
    >>> plan = plan_blocks(files, (True, True), 2**30, lambda shape: 100 * prod(shape), 2)
    >>> plan.unit, plan.block, round(plan.overhead(), 2)
    ((2048, 2048), (2048, 2048), 0.15)
    """
    # If the halo is as long as the axis, every part would read all of it.
    cut = [0 < halo < size for halo, size in zip(files.halo, files.whole, strict=True)]
    widest = max((halo for halo, may in zip(files.work_halo, cut, strict=True) if may), default=0)
    side = max(USUAL_SIDE, SIDE_PER_HALO * widest)
    while True:
        unit = _unit(files, solved, cut, side)
        # The largest blocks are whole units; a file larger than that is solved in parts.
        for longest in (max(unit), side):
            block = tuple(
                min(length, longest) if may else length if together else 1
                for length, together, may in zip(unit, solved, cut, strict=True)
            )
            plan = replace(files, unit=unit, block=block)
            taken = need(plan, itemsize, solving)
            if taken <= memory:
                return plan
        if side == SMALLEST_BLOCK:
            raise ValueError(
                f"{human_bytes(memory)} of memory are too little: one unit of work (shape {unit}, whole "
                f"files of the target) takes {human_bytes(taken)}; {cure}"
            )
        side = max(SMALLEST_BLOCK, side * 3 // 4)


def need(plan: BlockPlan, itemsize: int, solving: Callable[[tuple[int, ...]], int]) -> int:
    """Bytes that one unit takes: input, output, its encoded copy, and the solution of one block."""
    largest = tuple((0, min(unit, size)) for unit, size in zip(plan.unit, plan.shape, strict=True))
    with_halo = tuple(
        (0, min(b + 2 * halo, whole))
        for (_, b), halo, whole in zip(largest, plan.halo, plan.whole, strict=True)
    )
    block = tuple(
        min(side + 2 * halo, whole)
        for side, halo, whole in zip(plan.block, plan.halo, plan.whole, strict=True)
    )
    return itemsize * (volume(with_halo) + 2 * volume(largest)) + solving(block)


def _unit(files: BlockPlan, solved: Sequence[bool], cut: Sequence[bool], side: int) -> tuple[int, ...]:
    """Whole files: just enough to reach the side if an axis may be cut, else the whole axis."""
    lengths = []
    for size, file, together, may in zip(files.shape, files.unit, solved, cut, strict=True):
        wanted = side if may else size if together else file
        lengths.append(-(-min(wanted, size) // file) * file)
    return tuple(lengths)
