"""Non-local means of one tile."""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.elementary import exp_negative
from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.patch_distance import Scratch, distances_at_offset, make_scratch, pairs_of_tile
from vnlem.kernels.numba.scratch import empty


class Decay(NamedTuple):
    """Weights are exp(-rate * max(squared distance - floor, 0))."""

    rate: np.float32
    floor: np.float32


class Sums(NamedTuple):
    """What a tile collects, and the room it works in."""

    total: np.ndarray  # (rows, columns) sums of weights
    mean: np.ndarray  # (channels, rows, columns) sums of weighted values
    weight: np.ndarray  # weights of the pairs at one offset
    scratch: Scratch


@kernel
def nlm_tile(padded, tile, window, decay, out):
    """Weighted mean over the search window for the pixels of one tile, written to `out` (C, H, W).

    padded : (C, H + 2 radius_y, W + 2 radius_x) float32; tile : top, bottom, left, right. A pair of pixels is
    met once: its weight serves both, where they lie in the tile.
    """
    top, bottom, left, right = tile
    rows, columns = bottom - top, right - left
    most = (rows + window.reach_y, columns + 2 * window.reach_x)
    sums = Sums(
        empty((rows, columns), np.float32),
        empty((padded.shape[0], rows, columns), np.float32),
        empty(most, np.float32),
        make_scratch(most[0], most[1], window),
    )
    sums.total[:] = 1  # the pixel itself has weight one
    _collect(padded, tile, window, decay, sums)
    for c in range(padded.shape[0]):
        for y in range(rows):
            for x in range(columns):
                out[c, top + y, left + x] = sums.mean[c, y, x] / sums.total[y, x]


@nested
def _collect(padded, tile, window, decay, sums):
    top, bottom, left, right = tile
    height = padded.shape[1] - 2 * window.radius_y
    width = padded.shape[2] - 2 * window.radius_x
    for c in range(padded.shape[0]):
        for y in range(bottom - top):
            first = left + window.radius_x
            source = padded[c, top + y + window.radius_y, first : first + right - left]
            line = sums.mean[c, y]
            for x in range(right - left):
                line[x] = source[x]
    for dy in range(window.reach_y + 1):
        for dx in range(-window.reach_x, window.reach_x + 1):
            if dy == 0 and dx <= 0:
                continue
            box = pairs_of_tile(tile, height, width, dy, dx)
            if box.y1 <= box.y0 or box.x1 <= box.x0:
                continue
            distances_at_offset(padded, box, dy, dx, window, sums.scratch, sums.weight)
            for y in range(box.y1 - box.y0):
                line = sums.weight[y, : box.x1 - box.x0]
                for x in range(line.size):
                    line[x] = exp_negative(decay.rate * max(line[x] - decay.floor, np.float32(0.0)))
            for forward in (1, 0):  # one call in a loop: half the code to compile
                target = ((1 - forward) * dy, (1 - forward) * dx)
                source_at = (forward * dy, forward * dx)
                add_pairs(padded, window, box, tile, target, source_at, sums)


@nested
def add_pairs(padded, window, box, tile, target, source, sums):
    """Give pixel p + target, where it lies in the tile, the value at p + source, for p of the box."""
    top, bottom, left, right = tile
    ty, tx = target
    begin_y = max(box.y0, top - ty)
    end_y = min(box.y1, bottom - ty)
    begin_x = max(box.x0, left - tx)
    n = min(box.x1, right - tx) - begin_x
    if n <= 0:
        return
    at = begin_x + tx - left
    for y in range(begin_y, end_y):
        line = sums.weight[y - box.y0, begin_x - box.x0 : begin_x - box.x0 + n]
        total = sums.total[y + ty - top, at : at + n]
        for x in range(n):
            total[x] += line[x]
        for c in range(padded.shape[0]):
            begin = begin_x + source[1] + window.radius_x
            values = padded[c, y + source[0] + window.radius_y, begin : begin + n]
            means = sums.mean[c, y + ty - top, at : at + n]
            for x in range(n):
                means[x] += line[x] * values[x]
