"""Scaled squares of an image on a device (stretch.cu)."""

from typing import Any, NamedTuple

import numpy as np

from vnlem.kernels.cuda.engine import THREADS, Engine
from vnlem.kernels.cuda.turn import position

Array = Any  # of the engine's library


class Scaling(NamedTuple):
    """A change of size of squares, see `vnlem.kernels.cpu.copies.Stretch`."""

    bases: Array  # int32 (side)
    taps: Array  # float32 (side, taps)
    lines: int  # rows of the source that a square is made from
    factor: float
    noise: float  # factor on the variance of white noise

    @classmethod
    def of(cls, engine: Engine, stretch: Any) -> "Scaling":
        """A stretch of the CPU's kernels."""
        lines = int(stretch.bases[-1] - stretch.bases[0]) + stretch.taps.shape[1]
        bases, taps = (engine.xp.asarray(v) for v in (stretch.bases.astype(np.int32), stretch.taps))
        return cls(bases, taps, lines, float(stretch.factor), float(stretch.noise))


class StretchPlace(NamedTuple):
    """What is scaled, and where it lies."""

    squares: Array  # int32 (squares, 4): centre pixel in the whole image, row and column in the tall array
    shape: tuple[int, int]  # of the whole image
    origin: tuple[int, int]  # of the given planes in it


def stretch_into(
    engine: Engine,
    plane: Array,
    scaling: Scaling,
    place: StretchPlace,
    tall: Array,
    *,
    less: Array | None = None,
    squared: bool = False,
    floor: float = -float("inf"),
    gain: float = 1.0,
    outside: Array | None = None,
) -> None:
    """Write scaled squares of a plane (H, W), less another, into a tall array (rows, stride).

    squared, floor, outside: as in `vnlem.kernels.cuda.turn.turn_into`; gain: factor on what comes out.
    """
    count, (side, taps) = len(place.squares), scaling.taps.shape
    half_way = engine.xp.empty((count, scaling.lines, side), np.float32)
    argument = {
        "image": plane,
        "less": less,
        "squares": place.squares,
        "bases": scaling.bases,
        "taps": scaling.taps,
        "half_way": half_way,
        "out": tall,
        "outside": outside,
        **position(plane, place.shape, place.origin),
        "side": side,
        "n_taps": taps,
        "lines": scaling.lines,
        "stride": tall.shape[-1],
        "squared": squared,
        "floor": floor,
        "gain": gain,
        "factor": np.float64(scaling.factor),
    }
    for kernel, rows in (("stretch_rows", scaling.lines), ("stretch_columns", side)):
        engine.launch("stretch", (-(-(rows * side) // THREADS), count), argument, kernel=kernel)
