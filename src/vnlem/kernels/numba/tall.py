"""Work on blocks of vectors, (pixels, n) with n a multiple of eight: products of blocks, moves of a level.

Every function works on the rows first..last of its blocks, so that pieces can be worked on side by side.
"""

import numpy as np

from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.scratch import empty, multiples
from vnlem.kernels.numba.vectors import (
    COLUMNS,
    HALF,
    ROWS,
    WIDE,
    Left,
    add_half_panel,
    add_panel,
    add_wide_panel,
)

# Rows taken together: those of two blocks of 40 vectors stay in the first-level cache. Also the number of
# terms that are added up in float32.
CHUNK = 64


@nested
def _multiply(left, n_rows, right, right_at, offsets, out, out_at, shape):
    """Add a product of matrices to `out`, panel by panel (see add_panel). shape: columns, step of a row."""
    width, row = shape
    wide = width // WIDE * WIDE
    whole = width // COLUMNS * COLUMNS
    one = np.float32(1)
    for i in range(0, n_rows, ROWS):
        here = Left(left.data, left.at + i * left.step, left.step, left.along)
        to = out_at + i * row
        for j in range(0, wide, WIDE):
            add_wide_panel(out, to + j, row, here, right, right_at + j, offsets, one)
        for j in range(wide, whole, COLUMNS):
            add_panel(out, to + j, row, here, right, right_at + j, offsets, one)
        for j in range(whole, width, HALF):
            add_half_panel(out, to + j, row, here, right, right_at + j, offsets, one)


@kernel
def inner(lefts, rights, first, last, out):
    """out (float64) += inner products of all columns of the blocks `lefts` with all of `rights`."""
    n, m = out.shape
    part = empty((n, m), np.float32)
    for start in range(first, last, CHUNK):
        steps = multiples(min(CHUNK, last - start), 1)
        part[:] = 0
        row = 0
        for a in lefts:
            wide = a.shape[1]
            column = 0
            for b in rights:
                shape = (b.shape[1], m)
                at = row * m + column
                offsets = steps * b.shape[1]
                left = Left(a, start * wide, 1, wide)
                _multiply(left, wide, b, start * b.shape[1], offsets, part, at, shape)
                column += b.shape[1]
            row += wide
        for i in range(n):
            for j in range(m):
                out[i, j] += part[i, j]


@kernel
def turn(x, others, own_turn, other_turns, first, last):
    """x = x @ own_turn + the sum of others @ other_turns.

    Here and below: whole groups of ROWS rows.
    """
    width = x.shape[1]
    moved = empty((CHUNK, width), np.float32)
    steps = multiples(width, width)
    for start in range(first, last, CHUNK):
        n = min(CHUNK, last - start)
        _combine(others, other_turns, start, n, steps, moved)
        own = Left(x, start * width, width, 1)
        _multiply(own, n, own_turn, 0, steps[:width], moved, 0, (width, width))
        for i in range(n):
            for k in range(width):
                x[start + i, k] = moved[i, k]


@kernel
def combine(others, turns, factors, first, last, out):
    """out = the sum of others @ turns, its columns times factors; out may be one of the others."""
    width = out.shape[1]
    moved = empty((CHUNK, width), np.float32)
    steps = multiples(width, width)
    for start in range(first, last, CHUNK):
        n = min(CHUNK, last - start)
        _combine(others, turns, start, n, steps, moved)
        for i in range(n):
            for k in range(width):
                out[start + i, k] = factors[k] * moved[i, k]


@nested
def _combine(others, turns, start, n, steps, moved):
    """moved = the sum of others @ turns, for n rows."""
    width = moved.shape[1]
    moved[:] = 0
    for other, matrix in zip(others, turns):  # noqa: B905 - Numba knows no `strict`
        wide = other.shape[1]
        left = Left(other, start * wide, wide, 1)
        _multiply(left, n, matrix, 0, steps[:wide], moved, 0, (width, width))


@kernel
def subtract_product(block, x, along, first, last, squares):
    """block -= x @ along; squares (float64) += those of the result."""
    width, wide = block.shape[1], x.shape[1]
    steps = multiples(wide, width)
    negative = -along
    for start in range(first, last, CHUNK):
        n = min(CHUNK, last - start)
        left = Left(x, start * wide, wide, 1)
        _multiply(left, n, negative, 0, steps, block, start * width, (width, width))
        for i in range(start, start + n):
            for k in range(width):
                squares[k] += block[i, k] * block[i, k]


@kernel
def residual(x, image, values, first, last, out, squares):
    """out = image - x * values; squares (float64) += those of the result."""
    for i in range(first, last):
        for k in range(x.shape[1]):
            r = image[i, k] - x[i, k] * values[k]
            out[i, k] = r
            squares[k] += r * r


@kernel
def residual_squares(x, image, values, first, last, squares):
    """squares (float64) += those of image - x * values."""
    for i in range(first, last):
        for k in range(x.shape[1]):
            r = image[i, k] - x[i, k] * values[k]
            squares[k] += r * r


@kernel
def scale(block, factors, first, last):
    """Columns of a block times factors."""
    for i in range(first, last):
        for k in range(block.shape[1]):
            block[i, k] *= factors[k]


@kernel
def take(block, columns, first, last, out):
    """out = block[:, columns]."""
    for i in range(first, last):
        for k in range(columns.shape[0]):
            out[i, k] = block[i, columns[k]]


@kernel
def shifted(x, image, shifts, first, last, products):
    """image = shifts * x - image; products (float64) += those of x and the result."""
    for i in range(first, last):
        for k in range(x.shape[1]):
            r = shifts[k] * x[i, k] - image[i, k]
            image[i, k] = r
            products[k] += x[i, k] * r


@kernel
def advance(x, r, p, q, factors, first, last, squares):
    """x += factors * p, r -= factors * q; squares (float64) += those of r."""
    for i in range(first, last):
        for k in range(x.shape[1]):
            x[i, k] += factors[k] * p[i, k]
            rest = r[i, k] - factors[k] * q[i, k]
            r[i, k] = rest
            squares[k] += rest * rest


@kernel
def follow(p, r, factors, first, last):
    """p = r + factors * p."""
    for i in range(first, last):
        for k in range(p.shape[1]):
            p[i, k] = r[i, k] + factors[k] * p[i, k]


@kernel
def restrict(fine, share, fine_at, size, rows, coarse, coarse_at):
    """coarse = P^T fine for P = share on 2x2 pixels of each block; rows: of the coarse image, not padded.

    *_at: number of the first pixel of the image and of a row, padded; size: of the fine image.
    """
    for top in range(rows[0], rows[1]):
        for y in range(2 * top, min(2 * top + 2, size[0])):
            for x in range(size[1]):
                p = fine_at[0] + y * fine_at[1] + x
                own = coarse[coarse_at[0] + top * coarse_at[1] + x // 2]
                vector = fine[p]
                factor = share[p]
                for k in range(own.shape[0]):
                    own[k] += factor * vector[k]


@kernel
def prolong(coarse, coarse_at, rows, share, fine_at, size, fine):
    """fine += P coarse, see `restrict`."""
    for top in range(rows[0], rows[1]):
        for y in range(2 * top, min(2 * top + 2, size[0])):
            for x in range(size[1]):
                p = fine_at[0] + y * fine_at[1] + x
                vector = coarse[coarse_at[0] + top * coarse_at[1] + x // 2]
                own = fine[p]
                factor = share[p]
                for k in range(own.shape[0]):
                    own[k] += factor * vector[k]
