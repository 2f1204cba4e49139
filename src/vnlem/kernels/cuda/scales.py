"""Planes at half and twice their size, means over windows, and the join of two scales (scales.cu)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cuda.engine import THREADS, Engine

Array = Any  # of the engine's library, float64 and contiguous, (count, height, width)
Float = NDArray[np.float64]


def halve(engine: Engine, planes: Array, taps: Float) -> Array:
    """Planes at half the size, sizes rounded up; taps: half of the low-pass filter, from its centre on."""
    for across in (0, 1):
        planes = _rows(engine, "halve_rows", planes, -(-planes.shape[1 + across] // 2), across, taps)
    return planes


def double(
    engine: Engine, planes: Array, size: tuple[int, ...], weights: tuple[Float, NDArray[np.int32]]
) -> Array:
    """Planes at twice the size, cut to `size`; weights, steps: of even rows and of odd ones."""
    for across in (0, 1):
        planes = _rows(engine, "double_rows", planes, size[across], across, *weights)
    return planes


def mean(engine: Engine, planes: Array, window: int) -> Array:
    """Means over squares of `window` pixels across, cut to the size of the planes."""
    for across in (0, 1):
        size = planes.shape[1 + across]
        planes = _rows(engine, "mean_of_rows", planes, size, across, n_taps=min(window, size))
    return planes


def _rows(
    engine: Engine,
    kernel: str,
    planes: Array,
    size: int,
    across: int,
    taps: Float | None = None,
    steps: NDArray[np.int32] | None = None,
    n_taps: int = 0,
) -> Array:
    """Work along the rows of planes, or across them; `size`: how many rows, or columns, the result has."""
    count, rows, columns = planes.shape
    shape = (count, rows, size) if across else (count, size, columns)
    out = engine.xp.empty(shape, np.float64)
    argument = {
        "planes": planes,
        "taps": None if taps is None else engine.constant(taps),
        "steps": None if steps is None else engine.constant(steps),
        "out": out,
        "rows": rows,
        "columns": columns,
        "out_rows": shape[1],
        "out_columns": shape[2],
        "n_taps": n_taps if taps is None else taps.shape[-1],
        "across": across,
    }
    engine.launch("scales", (shape[1], -(-shape[2] // THREADS), count), argument, kernel=kernel)
    return out


def join_energy(engine: Engine, fine: Array, low: Array, change: Array, detail: float) -> Array:
    """Energy of the change, and `detail` times the energy of `fine` - `low`."""
    energy = engine.xp.empty_like(fine)
    given = {"fine": fine, "low": low, "change": change, "energy": energy}
    _pixels(engine, "join_energy", fine, given | {"detail": np.float64(detail)})
    return energy


def join_pixels(
    engine: Engine, fine: Array, change: Array, means: Array, noise: Array | float, left_over: float
) -> Array:
    """The fine result with as much of the change as is trusted; noise: one number, or one for each pixel."""
    out = engine.xp.empty_like(fine)
    given = {"fine": fine, "change": change, "means": means, "out": out}
    given |= {"level": np.float64(noise)} if isinstance(noise, float) else {"noise": noise}
    _pixels(engine, "join_pixels", fine, given | {"left_over": np.float64(left_over)})
    return out


def _pixels(engine: Engine, kernel: str, fine: Array, given: dict[str, Any]) -> None:
    argument: dict[str, Any] = dict.fromkeys(("fine", "low", "change", "energy", "means", "noise", "out"))
    argument |= dict.fromkeys(("level", "detail", "left_over"), np.float64(0))
    argument["count"] = np.int64(fine.size)
    engine.launch("scales", (-(-fine.size // THREADS),), argument | given, kernel=kernel)
