"""Non-local means of one tile of a plane, with windows in the planes around it too."""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.elementary import exp_negative
from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.nlm import Sums, add_pairs
from vnlem.kernels.numba.patch_distance import Box, distances_at_offset, make_scratch
from vnlem.kernels.numba.scratch import empty, zeros


class PiledPlanes(NamedTuple):
    """Planes one above the other, each with its border: a step to another plane is an offset of rows."""

    pixels: np.ndarray  # (1, n_planes * (height + 2 radius_y), width + 2 radius_x)
    height: int  # of a plane without its border
    n_planes: int
    own: int  # the plane whose pixels are wanted


@kernel
def nlm_planes_tile(tall, tile, window, decay, out):
    """Weighted mean over the windows of all planes for a tile of the plane `own`, written to `out` (H, W)."""
    top, bottom, left, right = tile
    rows, columns = bottom - top, right - left
    sums = Sums(
        zeros((rows, columns), np.float32),
        zeros((1, rows, columns), np.float32),
        empty((rows, columns), np.float32),
        make_scratch(rows, columns, window),
    )
    _collect(tall, tile, window, decay, sums)
    for y in range(rows):
        for x in range(columns):
            out[top + y, left + x] = sums.mean[0, y, x] / sums.total[y, x]


@nested
def _collect(tall, tile, window, decay, sums):
    top, bottom, left, right = tile
    width = tall.pixels.shape[2] - 2 * window.radius_x
    rows_of_plane = tall.height + 2 * window.radius_y
    base = tall.own * rows_of_plane
    for plane in range(tall.n_planes):
        for dy in range(-window.reach_y, window.reach_y + 1):
            for dx in range(-window.reach_x, window.reach_x + 1):
                box = Box(
                    base + max(top, -dy),
                    base + min(bottom, tall.height - dy),
                    max(left, -dx),
                    min(right, width - dx),
                )
                if box.y1 <= box.y0 or box.x1 <= box.x0:
                    continue
                jump = (plane - tall.own) * rows_of_plane + dy
                distances_at_offset(tall.pixels, box, jump, dx, window, sums.scratch, sums.weight)
                for y in range(box.y1 - box.y0):
                    line = sums.weight[y, : box.x1 - box.x0]
                    for x in range(line.size):
                        line[x] = exp_negative(decay.rate * max(line[x] - decay.floor, np.float32(0.0)))
                place = (base + top, base + bottom, left, right)
                add_pairs(tall.pixels, window, box, place, (0, 0), (jump, dx), sums)
