"""A symmetric graph on the pixels of an image whose edges stay within a window, as a stencil.

The neighbours of a pixel are the same offsets everywhere, so no indices are stored; of the two equal weights
of a pair only the one at the pixel that comes first in reading order is. `weights` is (rows, slots, columns):
slots 0.. are the forward offsets in reading order, then one for the pixel itself. Columns come last, so that
pixels side by side are worked on together, whether their weights lie with them or with their neighbours.
Rows and columns of zeros around the image (`reach` of them, on the right some more) stand for what
lies outside, so that no loop asks where it is. Vectors are (pixels, n) with the same padding, n a multiple
of eight: n of them at once, memory read once for all.
"""

import numpy as np

from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.scratch import as_row, empty, multiples
from vnlem.kernels.numba.vectors import (
    COLUMNS,
    FEW_ROWS,
    ROWS,
    copy_group,
    copy_small_group,
    half_small_window_panel,
    half_window_panel,
    small_window_panel,
    window_panel,
)

# Pixels whose weights are rearranged at a time: they stay in the second-level cache while they are used.
SEGMENT = 128
# Slots that are rearranged together.
SLOTS = 8


@kernel
def apply(weights, weight_offsets, vectors, rows, columns, reach, out):
    """out[p] = sum over neighbours c of weight(p, c) * vectors[c], on rows x columns (padded numbers).

    weight_offsets: where the weight of each neighbour, in reading order, lies in the flat array, less where
    the pixel's own slot 0 does. What lies left and right of the image becomes zero.
    """
    _, slots, stride = weights.shape
    flat = as_row(weights)
    dim = vectors.shape[1]
    side = 2 * reach + 1
    row_step = stride * dim
    n_neighbours = weight_offsets.shape[0]
    # Pixels side by side whose windows overlap enough to be worked on together.
    together = ROWS if side >= ROWS - 1 else FEW_ROWS
    packed = empty((SEGMENT // together, n_neighbours, together), np.float32)
    whole = dim // COLUMNS * COLUMNS
    for y in range(rows[0], rows[1]):
        for x in range(stride):
            if x < columns[0] or x >= columns[1]:
                for k in range(dim):
                    out[y * stride + x, k] = 0
        for left in range(columns[0], columns[1], SEGMENT):
            n_groups = (min(SEGMENT, columns[1] - left) + together - 1) // together
            _pack(flat, y * slots * stride + left, weight_offsets, n_groups, packed)
            for k in range(0, dim, COLUMNS):
                for group in range(n_groups):
                    own = (y * stride + left + group * together) * dim + k
                    first = own - reach * (row_step + dim)
                    near = packed[group]
                    if together == ROWS:
                        if k < whole:
                            window_panel(out, own, near, vectors, first, dim, row_step, side)
                        else:
                            half_window_panel(out, own, near, vectors, first, dim, row_step, side)
                    elif k < whole:
                        small_window_panel(out, own, near, vectors, first, dim, row_step, side)
                    else:
                        half_small_window_panel(out, own, near, vectors, first, dim, row_step, side)


@nested
def _pack(weights, at, offsets, n_groups, packed):
    """Weights of neighbouring pixels, group after group, as window_panel wants them.

    Of each slot a long piece is read at once: as many short ones would each wait for memory. Some slots are
    taken together, so that whole cache lines are written.
    """
    _, n, together = packed.shape
    for first in range(0, n, SLOTS):
        for group in range(n_groups):
            for c in range(first, min(first + SLOTS, n)):
                source, to = at + offsets[c] + group * together, (group * n + c) * together
                if together == ROWS:
                    copy_group(packed, to, weights, source)
                else:
                    copy_small_group(packed, to, weights, source)


@kernel
def degrees(weights, weight_offsets, rows, columns, out):
    """Sum of the weights of every pixel, itself included; out (rows, columns) float64."""
    _, slots, stride = weights.shape
    flat = as_row(weights)
    width = columns[1] - columns[0]
    for y in range(rows[0], rows[1]):
        total = out[y, columns[0] : columns[1]]
        for c in range(weight_offsets.shape[0]):
            at = y * slots * stride + columns[0] + weight_offsets[c]
            own = flat[at : at + width]
            for x in range(width):
                total[x] += own[x]


@kernel
def scale(weights, forward, factors, rows, columns):
    """weight(p, c) *= factors[p] * factors[c], in place. forward: pixel offset of each slot."""
    stride = weights.shape[2]
    width = columns[1] - columns[0]
    for y in range(rows[0], rows[1]):
        p = y * stride + columns[0]
        here = factors[p : p + width]
        for slot in range(forward.shape[0]):
            there = factors[p + forward[slot] : p + forward[slot] + width]
            row = weights[y, slot, columns[0] : columns[1]]
            for x in range(width):
                row[x] *= here[x] * there[x]


@kernel
def coarsen(weights, dy, dx, rows, width, reach, coarse, coarse_reach):
    """Add up the weights between blocks of 2x2 pixels: the coarse graph's weights.

    rows: rows of the image (not padded), whole blocks. dy, dx: offsets of the forward slots. Of a pair in
    two blocks the first in reading order may lie in the later block, but then both lie in one row of blocks:
    rows of blocks can be worked on side by side.
    """
    n_forward = dy.shape[0]
    coarse_side = 2 * coarse_reach + 1
    itself = coarse_reach + coarse_reach * coarse_side
    for y in range(rows[0], rows[1]):
        blocks = coarse[y // 2 + coarse_reach]
        for slot in range(n_forward + 1):
            own = weights[y + reach, slot, reach : reach + width]
            down, across = (dy[slot], dx[slot]) if slot < n_forward else (0, 0)
            down = (y + down) // 2 - y // 2
            for phase in range(min(2, width)):
                # Of pixels x = phase, phase + 2, ... the neighbour lies so many blocks to the right.
                right = (phase + across) // 2
                share = np.float32(1)
                shift = 0
                if down > 0:
                    target = coarse_reach + (down - 1) * coarse_side + right + coarse_reach
                elif right > 0:
                    target = right - 1
                elif right < 0:
                    target, shift = -right - 1, right
                else:
                    # Both ends in one block: the pair counts twice, a pixel's own weight once.
                    target = itself
                    share = np.float32(2 if slot < n_forward else 1)
                n_blocks = (width - phase + 1) // 2
                first = coarse_reach + shift
                sums = blocks[target, first : first + n_blocks]
                for k in range(n_blocks):
                    sums[k] += share * own[phase + 2 * k]


@kernel
def components(weights, forward, order, rows, columns):
    """Number of connected components over edges of positive weight, by union-find.

    order: of the slots. The first few make most graphs one piece, and then nothing more can change.
    """
    stride = weights.shape[2]
    parent = multiples(weights.shape[0] * stride, 1)
    count = (rows[1] - rows[0]) * (columns[1] - columns[0])
    for slot in order:
        for y in range(rows[0], rows[1]):
            for x in range(columns[0], columns[1]):
                if weights[y, slot, x] <= 0:
                    continue
                a = y * stride + x
                b = a + forward[slot]
                while parent[a] != a:
                    parent[a] = parent[parent[a]]
                    a = parent[a]
                while parent[b] != b:
                    parent[b] = parent[parent[b]]
                    b = parent[b]
                if a != b:
                    parent[max(a, b)] = min(a, b)
                    count -= 1
        if count == 1:
            break
    return count
