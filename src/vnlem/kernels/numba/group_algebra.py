"""Matrices of a group of patches: their Gram matrix, its inverse, products with them.

All are products of panels, which stay in registers while the inner dimension runs.
"""

import numpy as np

from vnlem.kernels.numba.jit import nested
from vnlem.kernels.numba.scratch import as_row
from vnlem.kernels.numba.vectors import (
    COLUMNS,
    HALF,
    LANES,
    ROWS,
    WIDE,
    Left,
    add_panel,
    add_wide_panel,
    invert_square,
    load,
    minus,
    set_half_panel,
    set_panel,
    set_wide_panel,
    spread,
    store,
    transpose,
)

# A plain 0 has a type of its own, for which Numba compiles another version of the function it is passed to.
BEGIN = np.int64(0)


@nested
def _set_rows(out, out_at, width, step, factors, right, right_at, strides):
    """ROWS rows of left^T right, `width` columns of them, a multiple of eight; `step` long in `out`.

    factors: left, where its columns begin, the length of its rows. All arrays are flat, so that there is one
    version of it.
    """
    left = Left(factors[0], factors[1], 1, factors[2])
    x = 0
    while x + WIDE <= width:
        set_wide_panel(out, out_at + x, step, left, right, right_at + x, strides)
        x += WIDE
    while x + COLUMNS <= width:
        set_panel(out, out_at + x, step, left, right, right_at + x, strides)
        x += COLUMNS
    if x + HALF <= width:
        set_half_panel(out, out_at + x, step, left, right, right_at + x, strides)


@nested
def _subtract_rows(out, out_at, width, factors, right, right_at, strides):
    """Subtract such rows; width: a multiple of 16. All rows are as long, the second begins at strides[1]."""
    step = strides[1]
    left = Left(factors[0], factors[1], 1, step)
    first = width % WIDE
    if first:
        add_panel(out, out_at, step, left, right, right_at, strides, np.float32(-1.0))
    for x in range(first, width, WIDE):
        add_wide_panel(out, out_at + x, step, left, right, right_at + x, strides, np.float32(-1.0))


@nested
def gram(columns, strides, out):
    """out = columns^T columns for columns (n, k), k a multiple of 16; strides: i * k for i < n.

    Only what `sweep` reads is written: the blocks of 16 x 16 on and above the diagonal.
    """
    k = columns.shape[1]
    flat, flat_out = as_row(columns), as_row(out)
    for i in range(0, k, ROWS):
        j = i // COLUMNS * COLUMNS
        _set_rows(flat_out, i * k + j, k - j, k, (flat, i, k), flat, j, strides)


@nested
def multiply(left, right, strides, out):
    """out = left^T right of the first rows of both, as many as there are strides.

    left (., k), k a multiple of 16; right, out (., width), width a multiple of eight; strides: i * width.
    Rows of `out` are written in whole panels, at least as many.
    """
    width, k = out.shape[1], left.shape[1]
    flat_left, flat_right, flat_out = as_row(left), as_row(right), as_row(out)
    for j in range(0, strides.size, ROWS):
        _set_rows(flat_out, j * width, width, width, (flat_left, j, k), flat_right, BEGIN, strides)


@nested
def sweep(matrix, strides, block, pivot_rows, turned_rows):
    """Turn a symmetric positive definite matrix (k, k), k a multiple of 16, into minus its inverse, in place.

    The sweep operator, sixteen pivots B at a time: B becomes -1/B, the rows beside it P become Q = P/B, and
    P^T Q is subtracted from the rest. That keeps the matrix symmetric, so only blocks of 16 x 16 on and
    above the diagonal are read and worked on. A positive definite matrix needs no pivoting. strides: i * k
    for i < 16; scratch: block (256), pivot_rows and turned_rows (16, k).
    """
    k = matrix.shape[0]
    flat, before, turned = as_row(matrix), as_row(pivot_rows), as_row(turned_rows)
    zero = spread(np.float32(0.0))
    for p in range(0, k, COLUMNS):
        after = p + COLUMNS
        # P lies above the pivots, as a column of blocks, and beside them.
        for j in range(0, p, LANES):
            for half in range(0, COLUMNS, LANES):
                transpose(flat, j * k + p + half, k, before, half * k + j, k)
        invert_square(flat, p * k + p, k, block)
        for a in range(0, COLUMNS, ROWS):
            left = (block, a, strides.size)  # symmetric
            _set_rows(turned, a * k, p, k, left, before, BEGIN, strides)
            _set_rows(turned, a * k + after, k - after, k, left, flat, p * k + after, strides)
        for i in range(0, p, ROWS):
            j = i // COLUMNS * COLUMNS
            side = (before, i)
            _subtract_rows(flat, i * k + j, p - j, side, turned, j, strides)
            _subtract_rows(flat, i * k + after, k - after, side, turned, after, strides)
        for i in range(after, k, ROWS):
            j = i // COLUMNS * COLUMNS
            _subtract_rows(flat, i * k + j, k - j, (flat, p * k + i), turned, j, strides)
        for j in range(0, p, LANES):
            for half in range(0, COLUMNS, LANES):
                transpose(turned, half * k + j, k, flat, j * k + p + half, k)
        for a in range(COLUMNS):
            for j in range(0, COLUMNS, LANES):
                store(flat, (p + a) * k + p + j, minus(zero, load(block, a * COLUMNS + j)))
            for j in range(after, k, LANES):
                store(flat, (p + a) * k + j, load(turned, a * k + j))
    for i in range(0, k, LANES):
        for j in range((i // COLUMNS + 1) * COLUMNS, k, LANES):
            transpose(flat, i * k + j, k, flat, j * k + i, k)
