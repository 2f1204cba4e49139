"""What solves a block: the contract between the plan of the work and the methods."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from vnlem.large.boxes import Box
from vnlem.pipeline.regions import Region
from vnlem.pipeline.tiles import Tile

# Kernels, buffers of the threads and whatever else does not depend on the block.
BYTES_ALWAYS = 100 * 2**20


@dataclass(frozen=True)
class Place:
    """Where a block lies; all boxes along the axes that are solved together, in the whole source."""

    read: Box  # what was read, halo included
    write: Box  # what is wanted
    whole: tuple[int, ...]  # shape of the source along these axes
    at: dict[str, int] = field(default_factory=dict)  # where along the other axes

    @property
    def region(self) -> Region:
        """The same along the last two axes, y and x."""
        return Region((self.whole[-2], self.whole[-1]), _tile(self.write), _tile(self.read))


def _tile(box: Box) -> Tile:
    (top, bottom), (left, right) = box[-2:]
    return Tile(top, bottom, left, right)


class Engine(Protocol):
    """Solves blocks so that they have the bytes of the whole. It holds plain values, so it travels."""

    @property
    def axes(self) -> tuple[str, ...]:
        """Axes that are solved together: y and x, with c before them for colours, t or z for stacks."""

    @property
    def halo(self) -> tuple[int, ...]:
        """What is read around a block, along these axes; an axis is not cut where it is zero or as long."""

    @property
    def work_halo(self) -> tuple[int, ...]:
        """What is worked on around a block, in the mean over the passes of a method."""

    @property
    def cure(self) -> str:
        """What helps where the smallest unit takes too much memory, in words."""

    def solve(self, pixels: NDArray[Any], place: Place, workers: int | None) -> NDArray[Any]:
        """The denoised pixels of `place.write` from those of `place.read`."""

    def memory(self, shape: tuple[int, ...]) -> int:
        """Bytes that the solution of a block of this shape takes, halo included."""

    def describe(self) -> dict[str, Any]:
        """Everything the result depends on, as plain values."""
