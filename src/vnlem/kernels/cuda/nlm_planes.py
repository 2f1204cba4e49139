"""Non-local means over the planes of a stack on a device (nlm_planes.cu)."""

from typing import Any

from vnlem.kernels.cuda.engine import Engine
from vnlem.kernels.cuda.nlm import check_patch, check_window

Array = Any  # of the engine's library

# Pixels of a thread and warps of a block, both one below another.
_ROWS, _WARPS = 8, 8
# Running sums restart at multiples of this.
BLOCK_ROWS = _ROWS * _WARPS


def nlm_planes(engine: Engine, planes: Array, own: int, window: Any, decay: Any) -> Array:
    """Weighted means (H, W) for the plane `own` over the windows of all planes (planes, H, W).

    window, decay : as in `vnlem.kernels.cpu.nlm.nlm_planes_tile`.
    """
    n_planes, height, width = planes.shape
    radius_y, radius_x, reach_y, reach_x = window
    check_patch(radius_x)
    # The last lanes read past the end of their line; their sums are not used.
    shared = 4 * ((BLOCK_ROWS + 2 * (radius_y + reach_y)) * (32 + 2 * reach_x) + radius_x)
    check_window(engine, reach_x, shared)
    out = engine.xp.empty((height, width), planes.dtype)
    engine.launch(
        "nlm_planes",
        (-(-width // (32 - 2 * radius_x)), -(-height // BLOCK_ROWS)),
        {
            "planes": planes,
            "out": out,
            "n_planes": n_planes,
            "own": own,
            "height": height,
            "width": width,
            "reach_y": reach_y,
            "reach_x": reach_x,
            "decay": float(decay.rate),
            "floor": float(decay.floor),
        },
        threads=32 * _WARPS,
        shared=shared,
        RX=radius_x,
        RY=radius_y,
        ROWS=_ROWS,
        WARPS=_WARPS,
    )
    return out
