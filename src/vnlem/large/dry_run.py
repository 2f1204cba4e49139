"""What a run would do: units, halo, memory, traffic, and the time, extrapolated from a small piece."""

import time
from dataclasses import dataclass, field
from math import prod
from typing import Any

from numpy.typing import NDArray

from vnlem.large.blocks import Block, BlockPlan, BlockSolver, need
from vnlem.large.boxes import Box, Span, extent, grown, volume
from vnlem.large.memory import human_bytes
from vnlem.large.sources import Source
from vnlem.large.target import memory_of_block

PIECE = 256  # side of the piece that is solved to measure the speed of this machine
PLANES = 12  # of a movie or a volume


@dataclass(frozen=True)
class Forecast:
    """What a run would do.

    units: units of work of the finest level.
    unit, block, halo: what a unit covers, what is solved at once, and the halo around that, for each axis.
    halo_overhead: work that the halo adds, as a share of the rest.
    memory: bytes a unit takes, in addition to the program itself.
    bytes_read, bytes_written: before compression; including the coarser levels.
    seconds: time all units would take here, one after another.
    """

    axes: tuple[str, ...]
    shape: tuple[int, ...]
    units: int
    unit: tuple[int, ...]
    block: tuple[int, ...]
    halo: tuple[int, ...]
    halo_overhead: float
    memory: int
    bytes_read: int
    bytes_written: int
    seconds: float
    settings: dict[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        def sizes(values: tuple[int, ...]) -> str:
            return ", ".join(f"{axis} {value}" for axis, value in zip(self.axes, values, strict=True))

        lines = [
            f"image       {sizes(self.shape)}",
            f"units       {self.units} of {sizes(self.unit)}",
            f"blocks      {sizes(self.block)}, halo {self._halo()}: {self.halo_overhead:.0%} more work",
            f"memory      {human_bytes(self.memory)} for a unit",
            f"traffic     {human_bytes(self.bytes_read)} read, {human_bytes(self.bytes_written)} written",
            f"time        about {human_time(self.seconds)} on this machine{self._device()}",
        ]
        return "\n".join(lines)

    def _device(self) -> str:
        return ", on its GPU" if self.settings.get("device") == "cuda" else ""

    def _halo(self) -> int:
        """The widest halo of an axis that is cut."""
        return max((by for by, size in zip(self.halo, self.shape, strict=True) if by < size), default=0)


def forecast(
    source: Source,
    solver: BlockSolver,
    box: Box,
    plan: BlockPlan,
    levels: list[tuple[int, ...]],
    workers: int | None,
) -> Forecast:
    """Look ahead: the plan, and the time that one small piece takes."""
    itemsize = source.result_dtype.itemsize
    pixels = prod(plan.shape)
    written = sum(prod(shape) for shape in levels)
    return Forecast(
        axes=source.axes,
        shape=plan.shape,
        units=len(plan),
        unit=plan.unit,
        block=plan.block,
        halo=plan.halo,
        halo_overhead=plan.overhead(),
        memory=need(plan, itemsize, memory_of_block(source, solver)),
        bytes_read=round(itemsize * (_read(plan) + written - pixels * (len(levels) == 1))),
        bytes_written=itemsize * written,
        seconds=_rate(source, solver, box, workers) * pixels * (1 + plan.overhead()),
        settings=solver.describe(),
    )


def _read(plan: BlockPlan) -> float:
    """Pixels that the units read, halos included."""
    reading = BlockPlan(**{**plan.__dict__, "block": plan.unit, "work_halo": plan.halo})
    return prod(plan.shape) * (1 + reading.overhead())


def _rate(source: Source, solver: BlockSolver, box: Box, workers: int | None) -> float:
    """Seconds per processed pixel, including the halo; the second of two runs counts."""
    middle: list[Span] = []
    at: dict[str, int] = {}
    for axis, (start, stop) in zip(source.axes, box, strict=True):
        if axis not in solver.axes:
            # A constant channel takes no time.
            first = solver.varied[0] if axis == "c" and solver.varied is not None else start
            at[axis] = first
            middle.append((first, first + 1))
        elif axis != "c":
            side = PIECE if axis in "yx" else PLANES
            first = max(start, (start + stop - side) // 2)
            middle.append((first, min(first + side, stop)))
        else:
            middle.append((start, stop))
    solved = [source.axes.index(axis) for axis in solver.axes]
    whole = tuple(source.shape[axis] for axis in solved)
    write = tuple(middle[axis] for axis in solved)
    if solver.axes[0] in "tz":
        # With its halo a piece of a stack would be most of the stack: it is treated as the whole.
        pixels = source.read(tuple(middle)).reshape(extent(write))
        alone = tuple((0, size) for size in pixels.shape)
        return _seconds(solver, pixels, Block(alone, alone, pixels.shape, at), workers) / pixels.size
    read = grown(write, solver.halo, whole)
    full: list[Span] = list(middle)
    for number, span in zip(solved, read, strict=True):
        full[number] = span
    pixels = source.read(tuple(full)).reshape(extent(read))
    taken = _seconds(solver, pixels, Block(read, write, whole, at), workers)
    return taken / volume(grown(write, solver.work_halo, whole))


def _seconds(solver: BlockSolver, pixels: NDArray[Any], block: Block, workers: int | None) -> float:
    """Time of the second of two runs: the first may have to load kernels."""
    for _ in range(2):
        begun = time.perf_counter()
        solver.solve(pixels, block, workers)
        taken = time.perf_counter() - begun
    return taken


def human_time(seconds: float) -> str:
    """A duration in usual words.

    >>> human_time(45), human_time(400), human_time(9000), human_time(400000)
    ('45 s', '6.7 min', '2.5 h', '4.6 days')
    """
    for name, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {name}"
    return f"{seconds:.2g} s"
