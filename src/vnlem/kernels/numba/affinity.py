"""Weights of the patch graph: aligned distances of a half window, then a Gaussian of them."""

import numpy as np

from vnlem.kernels.numba.elementary import exp_negative
from vnlem.kernels.numba.jit import kernel
from vnlem.kernels.numba.neighbours import Span, first_column
from vnlem.kernels.numba.scratch import as_row, empty
from vnlem.kernels.numba.select import smallest
from vnlem.kernels.numba.vnlem import PIXELS, make_scratch, search_windows


@kernel
def half_windows(region, search, rule, top, left, factor, out):
    """factor * squared aligned distance of every pixel of a tile to those after it; out (H, slots, W)."""
    height, _, width = out.shape
    scratch = make_scratch(search, region.raw.shape[1])
    reach = search.patch_distance
    side = 2 * reach + 1
    columns = scratch.masks.shape[1]
    for y in range(top, top + height):
        rows = (y, min(y + reach + 1, region.raw.shape[0]))
        for x in range(left, left + width, PIXELS):
            span = Span(x, min(PIXELS, left + width - x), reach, region.width)
            search_windows(region, rule, y, span, rows, scratch)
            for p in range(span.pixels):
                own = out[y - top, :, x + p - left]
                first_of_window = x + p - first_column(span, p)
                for row in range(rows[1] - rows[0]):
                    # Slot of offset (row, dx) is first + dx; the row of the pixel itself begins after it.
                    first = -1 if row == 0 else reach + (row - 1) * side + reach
                    lowest = 1 if row == 0 else max(-reach, -x - p)
                    for dx in range(lowest, min(reach + 1, region.width - x - p)):
                        at = row * columns + first_of_window + dx
                        own[first + dx] = factor * scratch.windows[p, at]


@kernel
def local_scales(squared, weight_offsets, pixel_offsets, rows, columns, noise, count, out):
    """Corrected squared distance of every pixel to the count-th nearest of its window; out (pixels).

    out is NaN outside the image beforehand, which tells the neighbours to leave out.
    """
    _, slots, stride = squared.shape
    flat = as_row(squared)
    n_offsets = pixel_offsets.shape[0]
    values = empty(n_offsets, np.float32)
    kept = empty(n_offsets + 1, np.int64)
    for y in range(rows[0], rows[1]):
        for x in range(columns[0], columns[1]):
            p = y * stride + x
            n = 0
            for c in range(n_offsets):
                other = p + pixel_offsets[c]
                if other != p and not np.isnan(out[other]):
                    values[n] = max(flat[y * slots * stride + x + weight_offsets[c]] - noise, np.float32(0))
                    n += 1
            n_kept, _ = smallest(values[:n], count, -1, np.float32(0), kept)
            farthest = np.float32(0)
            for k in range(n_kept):
                farthest = max(farthest, values[kept[k]])
            out[p] = farthest


@kernel
def gaussian(weights, forward, inverse_scales, noise, rows, columns):
    """Squared distances to weights, in place: exp(-(squared - noise) * inverse[p] * inverse[c]).

    inverse = inverse_scales (pixels) is zero outside the image, where weights become zero. forward: pixel
    offset of each slot; 0 marks the pixel itself, of weight one.
    """
    stride = weights.shape[2]
    width = columns[1] - columns[0]
    for y in range(rows[0], rows[1]):
        p = y * stride + columns[0]
        here = inverse_scales[p : p + width]
        for slot in range(forward.shape[0]):
            there = inverse_scales[p + forward[slot] : p + forward[slot] + width]
            row = weights[y, slot, columns[0] : columns[1]]
            if forward[slot] == 0:
                for x in range(width):
                    row[x] = 1
                continue
            for x in range(width):
                inverse = here[x] * there[x]
                corrected = max(row[x] - noise, np.float32(0))
                w = exp_negative(corrected * inverse)
                row[x] = w if inverse > 0 else np.float32(0)
