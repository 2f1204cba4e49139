"""Non-local means on a device (nlm.cu)."""

from typing import Any

from vnlem.kernels.cuda.engine import Engine

Array = Any  # of the engine's library

# Pixels of a thread and warps of a block, both one below another, and warps that share a window.
_ROWS, _WARPS, _PARTS = 8, 2, 3
# Rows after which running sums restart.
BLOCK_ROWS = _ROWS * _WARPS
# A warp holds the columns of a patch side by side.
LARGEST_PATCH = 27


def check_patch(radius: int) -> None:
    """A clear error for patches wider than a warp."""
    if 2 * radius + 1 > LARGEST_PATCH:
        raise ValueError(
            f"patches of {2 * radius + 1} pixels are too large for this device; "
            f"pass patch_size of at most {LARGEST_PATCH} or device='cpu'"
        )


def check_window(engine: Engine, reach: int, shared: int) -> None:
    """A clear error for windows that need more shared memory, in bytes, than a block has."""
    if shared > engine.largest_shared:
        raise ValueError(
            f"a window of {2 * reach + 1} pixels is too large for this device; "
            "pass a smaller patch_distance or device='cpu'"
        )


def nlm(engine: Engine, image: Array, window: Any, decay: Any) -> Array:
    """Weighted means over the search window.

    image : (channels, height, width); window, decay : as in `vnlem.kernels.cpu.nlm.nlm_tile`.
    """
    channels, height, width = image.shape
    radius_y, radius_x, reach_y, reach_x = window
    check_patch(radius_x)
    rows, warps, parts = (1, 1, 1) if height == 1 else (_ROWS, _WARPS, _PARTS)
    # The last lanes read past the end of their line; their sums are not used.
    tile = channels * (warps * rows + 2 * (radius_y + reach_y)) * (32 + 2 * reach_x)
    sums = (parts - 1) * warps * 32 * (channels + 1) * rows
    shared = 4 * max(tile + radius_x, sums)
    check_window(engine, reach_x, shared)
    out = engine.xp.empty_like(image)
    engine.launch(
        "nlm",
        (-(-width // (32 - 2 * radius_x)), -(-height // (warps * rows))),
        {
            "image": image,
            "out": out,
            "height": height,
            "width": width,
            "reach_y": reach_y,
            "reach_x": reach_x,
            "decay": float(decay.rate),
            "floor": float(decay.floor),
        },
        threads=32 * warps * parts,
        shared=shared,
        RX=radius_x,
        RY=radius_y,
        CHANNELS=channels,
        ROWS=rows,
        WARPS=warps,
        PARTS=parts,
    )
    return out
