"""Non-local means of an image, or of a plane of a stack, on a device (nlm.cu)."""

from typing import Any, NamedTuple

from vnlem.kernels.cuda.engine import Engine

Array = Any  # of the engine's library

# A warp holds the columns of a patch side by side.
LARGEST_PATCH = 27


class Block(NamedTuple):
    """How a block divides its work."""

    rows: int  # pixels of a thread, one below another
    warps: int  # one below another
    parts: int  # warps that share a window

    @property
    def height(self) -> int:
        """Rows after which running sums restart."""
        return self.rows * self.warps


OF_IMAGE, OF_SIGNAL, OF_STACK = Block(8, 2, 3), Block(1, 1, 1), Block(8, 8, 1)


def nlm(engine: Engine, planes: Array, own: int, window: Any, decay: Any, block: Block) -> Array:
    """Weighted means (channels, H, W) for the plane `own` over the windows of all planes.

    planes : (planes, channels, H, W); window, decay : as in `vnlem.kernels.cpu.nlm.nlm_tile`.
    """
    n_planes, channels, height, width = planes.shape
    radius_y, radius_x, reach_y, reach_x = window
    if 2 * radius_x + 1 > LARGEST_PATCH:
        raise ValueError(
            f"patches of {2 * radius_x + 1} pixels are too large for this device; "
            f"pass patch_size of at most {LARGEST_PATCH} or device='cpu'"
        )
    # The last lanes read past the end of their line; their sums are not used.
    tile = channels * (block.height + 2 * (radius_y + reach_y)) * (32 + 2 * reach_x)
    sums = (block.parts - 1) * block.warps * 32 * (channels + 1) * block.rows
    shared = 4 * max(tile + radius_x, sums)
    if shared > engine.largest_shared:
        raise ValueError(
            f"a window of {2 * reach_x + 1} pixels is too large for this device; "
            "pass a smaller patch_distance or device='cpu'"
        )
    out = engine.xp.empty((channels, height, width), planes.dtype)
    engine.launch(
        "nlm",
        (-(-width // (32 - 2 * radius_x)), -(-height // block.height)),
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
        threads=32 * block.warps * block.parts,
        shared=shared,
        RX=radius_x,
        RY=radius_y,
        CHANNELS=channels,
        ROWS=block.rows,
        WARPS=block.warps,
        PARTS=block.parts,
    )
    return out
