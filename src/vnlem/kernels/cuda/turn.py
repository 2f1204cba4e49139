"""Turned squares of an image on a device (turn.cu)."""

from typing import Any, NamedTuple

import numpy as np

from vnlem.kernels.cuda.engine import THREADS, Engine

Array = Any  # of the engine's library


class Turns(NamedTuple):
    """The turns of squares of one size, see `vnlem.kernels.cpu.turn.Turn`."""

    quarter: Array  # uint8 (turns)
    bases: Array  # int32 (turns, 2, side)
    taps: Array  # float32 (turns, 2, side, taps)
    waves: Array  # float64 (turns, 2): cosine and sine

    @classmethod
    def of(cls, engine: Engine, turns: list[Any]) -> "Turns":
        """Some turns of the CPU's kernels."""
        xp = engine.xp
        return cls(
            xp.asarray(np.array([turn.quarter for turn in turns], np.uint8)),
            xp.asarray(np.stack([turn.bases for turn in turns]).astype(np.int32)),
            xp.asarray(np.stack([turn.taps for turn in turns])),
            xp.asarray(np.array([(turn.cosine, turn.sine) for turn in turns])),
        )


class TurnPlace(NamedTuple):
    """What to turn, and where it lies."""

    squares: Array  # int32 (squares, 4): top and left in the whole image, row and column in the tall array
    turns: Turns  # of every tile's squares, one after another
    shape: tuple[int, int]  # of the whole image
    origin: tuple[int, int]  # of the given planes in it


def turn_into(
    engine: Engine,
    plane: Array,
    place: TurnPlace,
    tall: Array,
    *,
    less: Array | None = None,
    squared: bool = False,
    floor: float = -float("inf"),
    outside: Array | None = None,
) -> None:
    """Write turned squares of a plane (H, W), minus another, into a tall array (rows, stride).

    squared: square the result; floor: least value; outside: uint8 like `tall`, marks pixels that show nothing
    of the image.
    """
    turns = place.turns
    count, (n_turns, _, side, taps) = len(place.squares), turns.taps.shape
    before, after = (engine.xp.empty((count, side, side), np.float32) for _ in range(2))
    for shear in range(3):
        engine.launch(
            "turn",
            (-(-(side**2) // THREADS), count),
            {
                "image": plane,
                "less": less,
                "squares": place.squares,
                "quarter": turns.quarter,
                "bases": turns.bases,
                "taps": turns.taps,
                "waves": turns.waves,
                "before": before,
                "after": after,
                "out": tall,
                "outside": outside,
                "rows": plane.shape[0],
                "columns": plane.shape[1],
                "height": place.shape[0],
                "width": place.shape[1],
                "origin_y": place.origin[0],
                "origin_x": place.origin[1],
                "side": side,
                "n_turns": n_turns,
                "shear": shear,
                "stride": tall.shape[-1],
                "squared": squared,
                "floor": floor,
            },
            kernel="shear",
            TAPS=taps,
        )
        before, after = after, before
