"""Non-local means of one tile."""

import numpy as np

from vnlem.kernels.numba.elementary import exp_negative
from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.patch_distance import distances_at_offset, make_scratch, pairs_of_tile


@kernel
def nlm_tile(padded, top, bottom, left, right, radius, reach, decay, noise_floor, out):
    """Weighted mean over the search window for the pixels of one tile, written to `out`.

    padded : (C, H + 2 ry, W + 2 rx) float32, `radius` = (ry, rx); `reach` = (sy, sx) of the window;
    weights exp(-decay * max(squared distance - noise_floor, 0)); out : (C, H, W) float32.
    A pair of pixels is met once: its weight serves both, where they lie in the tile.
    """
    radius_y, radius_x = radius
    reach_y, reach_x = reach
    n_channels = padded.shape[0]
    height = padded.shape[1] - 2 * radius_y
    width = padded.shape[2] - 2 * radius_x
    rows = bottom - top
    columns = right - left
    scratch = make_scratch(rows + reach_y, columns + 2 * reach_x, radius_y, radius_x)
    weight = np.empty((rows + reach_y, columns + 2 * reach_x), np.float32)
    total = np.ones((rows, columns), np.float32)  # the pixel itself has weight one
    mean = np.empty((n_channels, rows, columns), np.float32)
    for c in range(n_channels):
        for y in range(rows):
            source = padded[c, top + y + radius_y, left + radius_x : right + radius_x]
            line = mean[c, y]
            for x in range(columns):
                line[x] = source[x]
    for dy in range(reach_y + 1):
        for dx in range(-reach_x, reach_x + 1):
            if dy == 0 and dx <= 0:
                continue
            y0, y1, x0, x1 = pairs_of_tile(top, bottom, left, right, height, width, dy, dx)
            if y1 <= y0 or x1 <= x0:
                continue
            distances_at_offset(padded, y0, x0, y1 - y0, x1 - x0, dy, dx, radius_y, radius_x, scratch, weight)
            for y in range(y1 - y0):
                line = weight[y, : x1 - x0]
                for x in range(x1 - x0):
                    line[x] = exp_negative(decay * max(line[x] - noise_floor, np.float32(0.0)))
            for forward in (1, 0):  # one call in a loop: half the code to compile
                ty, tx = (1 - forward) * dy, (1 - forward) * dx
                sy, sx = forward * dy, forward * dx
                _add(
                    padded,
                    radius,
                    weight,
                    y0,
                    y1,
                    x0,
                    x1,
                    top,
                    bottom,
                    left,
                    right,
                    ty,
                    tx,
                    sy,
                    sx,
                    total,
                    mean,
                )
    for c in range(n_channels):
        for y in range(rows):
            for x in range(columns):
                out[c, top + y, left + x] = mean[c, y, x] / total[y, x]


@nested
def _add(padded, radius, weight, y0, y1, x0, x1, top, bottom, left, right, ty, tx, sy, sx, total, mean):
    """Give pixel p + (ty, tx), where it lies in the tile, the value at p + (sy, sx), for p of the region."""
    begin_y = max(y0, top - ty)
    end_y = min(y1, bottom - ty)
    begin_x = max(x0, left - tx)
    end_x = min(x1, right - tx)
    n = end_x - begin_x
    if n <= 0:
        return
    for y in range(begin_y, end_y):
        line = weight[y - y0, begin_x - x0 : end_x - x0]
        at = begin_x + tx - left
        sums = total[y + ty - top, at : at + n]
        for x in range(n):
            sums[x] += line[x]
        for c in range(padded.shape[0]):
            begin = begin_x + sx + radius[1]
            values = padded[c, y + sy + radius[0], begin : begin + n]
            means = mean[c, y + ty - top, at : at + n]
            for x in range(n):
                means[x] += line[x] * values[x]
