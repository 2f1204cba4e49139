"""What solves a block: the contract between the plan of the work and the methods."""

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from vnlem.large.boxes import Box


@dataclass(frozen=True)
class Place:
    """Where a block lies; all boxes along the axes that are solved together, in the whole source."""

    read: Box  # what was read, halo included
    write: Box  # what is wanted
    whole: tuple[int, ...]  # shape of the source along these axes


class Engine(Protocol):
    """Solves blocks so that they have the bytes of the whole. It holds plain values, so it travels."""

    @property
    def axes(self) -> tuple[str, ...]:
        """Axes that are solved together: y and x, with c before them for colours."""

    @property
    def halo(self) -> tuple[int, ...]:
        """What is read around a block, along these axes."""

    @property
    def work_halo(self) -> tuple[int, ...]:
        """What is worked on around a block, in the mean over the passes of a method."""

    def solve(self, pixels: NDArray[Any], place: Place, workers: int | None) -> NDArray[Any]:
        """The denoised pixels of `place.write` from those of `place.read`."""

    def memory(self, pixels: int) -> int:
        """Bytes that the solution of a block of so many pixels takes, halo included."""

    def describe(self) -> dict[str, Any]:
        """Everything the result depends on, as plain values."""
