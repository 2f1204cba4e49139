"""Squared distances between all patches of a region and their copies at one offset, by box sums."""

import numpy as np

from vnlem.kernels.numba.jit import allocating, nested


@allocating
def make_scratch(rows, columns, radius_y, radius_x):
    """Scratch of :func:`distances_at_offset` for regions up to rows x columns."""
    wide = columns + 2 * radius_x
    return (
        np.empty((2 * radius_y + 1, wide), np.float32),  # squared differences of the last rows
        np.empty(wide, np.float32),  # their sum over the rows of a patch
        np.empty((2, wide), np.float32),  # partial sums along the row
    )


@nested
def pairs_of_tile(top, bottom, left, right, height, width, dy, dx):
    """Rows y0..y1 and columns x0..x1 of the pixels p for which p or p + (dy, dx) lies in the tile, dy >= 0.

    Both lie in the image.
    """
    y0 = max(0, top - dy)
    y1 = min(bottom, height - dy)
    x0 = max(0, left - dx) if dx > 0 else max(left, -dx)
    x1 = min(right, width - dx) if dx > 0 else min(right - dx, width)
    return y0, y1, x0, x1


@nested
def distances_at_offset(padded, top, left, rows, columns, dy, dx, radius_y, radius_x, scratch, out):
    """out[y, x] = mean over channels of |patch(top+y, left+x) - patch(top+y+dy, left+x+dx)|^2.

    padded : (channels, height + 2 radius_y, width + 2 radius_x) float32; both patches lie inside it.
    The sum over a patch's rows is a running one, restarted with each call, so it depends on the region
    alone; the sum along a row adds blocks of 1, 2, 4, ... columns, a few vector additions for any size.
    """
    squares, column_sum, partial = scratch
    n_channels = padded.shape[0]
    size_y = 2 * radius_y + 1
    size_x = 2 * radius_x + 1
    wide = columns + size_x - 1
    share = np.float32(1.0 / n_channels)
    sums = column_sum[:wide]
    for x in range(wide):
        sums[x] = np.float32(0.0)
    for t in range(rows + size_y - 1):
        ring = squares[t % size_y, :wide]
        if t >= size_y:
            for x in range(wide):
                sums[x] -= ring[x]
        for c in range(n_channels):
            here = padded[c, top + t, left : left + wide]
            there = padded[c, top + t + dy, left + dx : left + dx + wide]
            if c == 0:
                for x in range(wide):
                    d = here[x] - there[x]
                    ring[x] = d * d * share
            else:
                for x in range(wide):
                    d = here[x] - there[x]
                    ring[x] += d * d * share
        for x in range(wide):
            sums[x] += ring[x]
        if t >= size_y - 1:
            _sum_along_row(sums, size_x, columns, partial, out[t - size_y + 1])


@nested
def _sum_along_row(values, size, columns, partial, out):
    """out[x] = sum of values[x : x + size] for x < columns."""
    block = 1  # `current[x]` is the sum of `block` values from x on
    begin = 0
    current = values
    slot = 0
    first = True
    while True:
        if size & block:
            # A slice, not current[x + begin]: an index that might be negative keeps a loop from vectorising.
            shifted = current[begin : begin + columns]
            if first:
                for x in range(columns):
                    out[x] = shifted[x]
                first = False
            else:
                for x in range(columns):
                    out[x] += shifted[x]
            begin += block
        if 2 * block > size:
            break
        following = partial[slot]
        shifted = current[block : values.size - block + 1]
        for x in range(shifted.size):
            following[x] = current[x] + shifted[x]
        current = following
        slot = 1 - slot
        block *= 2
