"""The task of a method on stacks, apart from its parameters."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline.progress import ProgressCallback

Plane = NDArray[np.float32]
# Takes standardised planes (H, W) or (channels, H, W) in order, and gives them denoised in the same order.
StackSolver = Callable[[Iterator[Plane]], Iterator[Plane]]


class Part(NamedTuple):
    """The place of planes in a larger stack."""

    first: tuple[int, int, int]  # plane, row and column of the whole that the part begins with
    whole: tuple[int, int, int]


class SeriesParams:
    """What :mod:`vnlem.series` asks the parameters of any method on stacks."""

    scales: int = 1  # sizes that pages are denoised at: their own, half of it, ...
    # Frames after one that help to restore its transients; None where there are none to restore.
    transients_ahead: int | None = None


class StackTask(NamedTuple):
    """The planes of one series, their noise, and how they are processed."""

    kind: str  # "T" time, "Z" depth, "N" several images
    sizes: list[tuple[int, int]]  # heights and widths of the planes; all the same unless the kind is "N"
    sigma: float  # standard deviation of the noise in units of the clean planes' own
    workers: int = 1
    report: ProgressCallback | None = None
    device: str = "cpu"  # or "cuda:N", which is the current device then
    part: Part | None = None  # with it the result has the bytes of the larger stack, beyond the halo
    peak: float = 0.0  # upper bound for the pixels of the whole stack, if known
    channels: int = 1  # that are denoised together, with the same noise
    # The index of a plane -> the standard deviation (H, W) of its noise, if it varies; `sigma` is then its
    # root mean square.
    sigma_map: Callable[[int], NDArray[np.floating]] | None = None
