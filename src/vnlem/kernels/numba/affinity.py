"""Weights of the patch graph: aligned distances of a half window, then a Gaussian of them."""

import numpy as np

from vnlem.kernels.numba.elementary import exp_negative
from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.neighbours import Span, first_column
from vnlem.kernels.numba.scratch import as_row, empty
from vnlem.kernels.numba.select import smallest
from vnlem.kernels.numba.vectors import LANES, transpose_from
from vnlem.kernels.numba.vnlem import PIXELS, make_scratch, search_windows


@kernel
def half_windows(region, search, rule, rows, columns, factor, weights):
    """factor * squared aligned distance of the pixels of a tile to those after them, into their slots.

    rows, columns: first and last of the tile. weights: see `stencil`; slots that leave the image to the left
    or to the right hold anything.
    """
    scratch = make_scratch(search, region.raw.shape[1])
    starts = empty(PIXELS, np.int64)
    reach = search.patch_distance
    for y in range(rows[0], rows[1]):
        lines = (y, min(y + reach + 1, region.raw.shape[0]))
        for x in range(columns[0], columns[1], PIXELS):
            span = Span(x, min(PIXELS, columns[1] - x), reach, region.width)
            search_windows(region, rule, y, span, lines, scratch)
            for p in range(span.pixels):
                window = scratch.windows[p]
                starts[p] = p * scratch.windows.shape[1] + x + p - first_column(span, p)
                for c in range((lines[1] - lines[0]) * scratch.masks.shape[1]):
                    window[c] *= factor
            _store_windows(y, span, lines, scratch, starts, weights)


@nested
def _store_windows(y, span, lines, scratch, starts, weights):
    """Windows of pixels side by side to their slots. starts: where each pixel itself lies in the windows.

    In a window the slots of a pixel lie side by side, in the weights the pixels of a slot: squares of eight
    by eight are turned over.
    """
    _, slots, stride = weights.shape
    reach, length = span.reach, scratch.masks.shape[1]
    windows, every = as_row(scratch.windows), as_row(weights)
    whole = span.pixels // LANES * LANES if reach >= LANES else 0
    for line in range(lines[1] - lines[0]):
        # Slots follow the pixel: of its own line those to its right, of the others all.
        before = -1 if line == 0 else reach + (line - 1) * (2 * reach + 1) + reach
        leftmost = 1 if line == 0 else -reach
        own = ((y + reach) * slots + before) * stride + span.x + reach
        for step in range(leftmost, reach + 1, LANES):
            # The last square begins earlier and writes some slots once more.
            dx = min(step, reach + 1 - LANES)
            for p in range(0, whole, LANES):
                transpose_from(windows, starts, p, line * length + dx, every, own + dx * stride + p, stride)
        for p in range(whole, span.pixels):
            for dx in range(leftmost, reach + 1):
                every[own + dx * stride + p] = windows[starts[p] + line * length + dx]


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
