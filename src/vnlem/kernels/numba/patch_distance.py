"""Squared distances between all patches of a region and their copies at one offset, by box sums.

A sum over a patch adds blocks of 1, 2, 4, ... rows, then of 1, 2, 4, ... columns, always in the same order.
So a distance depends on its two patches alone and not on the region it was computed with: any tiling of an
image gives the same bits. A running sum would be a little cheaper, and would not have this property.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import allocating, nested
from vnlem.kernels.numba.scratch import empty


class Window(NamedTuple):
    """Half sizes of patches and of the search window, along rows and columns."""

    radius_y: int
    radius_x: int
    reach_y: int
    reach_x: int


class Box(NamedTuple):
    """Rows y0..y1 and columns x0..x1 (exclusive) of the image."""

    y0: int
    y1: int
    x0: int
    x1: int


class Scratch(NamedTuple):
    """Buffers of distances_at_offset."""

    blocks: np.ndarray  # sums of 1, 2, 4, ... rows of squared differences, the last few of each
    column_sum: np.ndarray  # sums over the rows of a patch
    partial: np.ndarray  # (2, wide) partial sums along the row


@allocating
def make_scratch(rows, columns, window):
    """Scratch of :func:`distances_at_offset` for regions up to rows x columns."""
    wide = columns + 2 * window.radius_x
    size = 2 * window.radius_y + 1
    held = 0
    span = 1
    while span <= size:
        held += span + 1
        span *= 2
    return Scratch(empty((held, wide), np.float32), empty(wide, np.float32), empty((2, wide), np.float32))


@nested
def pairs_of_tile(tile, height, width, dy, dx):
    """The pixels p for which p or p + (dy, dx) lies in the tile, dy >= 0. Both lie in the image."""
    top, bottom, left, right = tile
    return Box(
        max(0, top - dy),
        min(bottom, height - dy),
        max(0, left - dx) if dx > 0 else max(left, -dx),
        min(right, width - dx) if dx > 0 else min(right - dx, width),
    )


@nested
def distances_at_offset(padded, box, dy, dx, window, scratch, out):
    """out[y, x] = mean over channels of |patch(y0+y, x0+x) - patch(y0+y+dy, x0+x+dx)|^2, for a box's pixels.

    padded : (channels, height + 2 radius_y, width + 2 radius_x) float32; both patches lie inside it.
    """
    n_channels = padded.shape[0]
    size_y = 2 * window.radius_y + 1
    size_x = 2 * window.radius_x + 1
    top, left = box.y0, box.x0
    columns = box.x1 - left
    wide = columns + size_x - 1
    share = np.float32(1.0 / n_channels)
    sums = scratch.column_sum[:wide]
    for t in range(box.y1 - top + size_y - 1):
        squares = scratch.blocks[t % 2, :wide]
        for c in range(n_channels):
            here = padded[c, top + t, left : left + wide]
            there = padded[c, top + t + dy, left + dx : left + dx + wide]
            if c == 0:
                for x in range(wide):
                    d = here[x] - there[x]
                    squares[x] = d * d * share
            else:
                for x in range(wide):
                    d = here[x] - there[x]
                    squares[x] += d * d * share
        largest = _extend_blocks(scratch.blocks, t, size_y, wide)
        if t >= size_y - 1:
            _sum_of_blocks(scratch.blocks, t - size_y + 1, size_y, largest, sums)
            _sum_along_row(sums, size_x, columns, scratch.partial, out[t - size_y + 1])


@nested
def _extend_blocks(blocks, t, size, wide):
    """Sums of 2, 4, ... rows, up to `size`, that end with row t; returns the number of doublings.

    The sum of rows u .. u + span - 1 is held at u modulo span + 1.
    """
    span = 1
    level = 0
    first = 0
    while 2 * span <= size:
        following = first + span + 1
        begin = t - 2 * span + 1
        if begin >= 0:
            older = blocks[first + begin % (span + 1), :wide]
            newer = blocks[first + (begin + span) % (span + 1), :wide]
            both = blocks[following + begin % (2 * span + 1), :wide]
            for x in range(wide):
                both[x] = older[x] + newer[x]
        first = following
        span *= 2
        level += 1
    return level


@nested
def _sum_of_blocks(blocks, begin, size, level, out):
    """out = sum of rows begin .. begin + size - 1: the largest block first, so that few need to be held."""
    span = 1 << level
    wide = out.size
    fresh = True
    while span > 0:
        if size & span:
            block = blocks[span - 1 + level + begin % (span + 1), :wide]
            if fresh:
                for x in range(wide):
                    out[x] = block[x]
            else:
                for x in range(wide):
                    out[x] += block[x]
            fresh = False
            begin += span
        span >>= 1
        level -= 1


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
