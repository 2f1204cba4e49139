"""Non-local means of one tile of an image, or of a plane with planes around it."""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Float2, Float3, Written, kernel
from vnlem.kernels.cpu.patch_distance import Decay, Window
from vnlem.pipeline.tiles import Tile


@kernel
def nlm_tile(padded: Float3, tile: Tile, window: Window, decay: Decay, out: Written[Float3]) -> None:
    """Weighted mean over the search window for the pixels of one tile, written to `out` (C, H, W).

    padded : (C, H + 2 radius_y, W + 2 radius_x).
    """


class PiledPlanes(NamedTuple):
    """Planes one above another, each with its border: a step to another plane is an offset of rows."""

    pixels: Float3  # (1, n_planes * (height + 2 radius_y), width + 2 radius_x)
    height: int  # of a plane without its border
    n_planes: int
    own: int  # the plane whose pixels are wanted


@kernel
def nlm_planes_tile(
    piled: PiledPlanes, tile: Tile, window: Window, decay: Decay, out: Written[Float2]
) -> None:
    """Weighted mean over the windows of all planes for a tile of the plane `own`, written to `out` (H, W)."""
