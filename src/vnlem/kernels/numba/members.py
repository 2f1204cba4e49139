"""A group's patches on their way: out of the images, and back into the accumulators.

As columns, pixels are rows and members lie side by side, as their Gram matrix wants them; blocks of 8 x 8 are
transposed in registers on the way. As rows, a patch's pixels lie side by side, as in the image.
"""

import numpy as np

from vnlem.kernels.numba.jit import nested
from vnlem.kernels.numba.scratch import as_row, view_at
from vnlem.kernels.numba.vectors import (
    LANES,
    add_pair,
    add_pairs,
    item,
    lane,
    load,
    minus,
    plus,
    spread,
    store,
    times,
    totals,
    transpose_from,
)


@nested
def side_by_side(shifts):
    """How many of a patch's pixels lie side by side; shifts: of them all, in an image with spare columns."""
    count = 1
    while count < shifts.size and shifts[count] == shifts[count - 1] + 1:
        count += 1
    return count


@nested
def rows_for(n_pixels, wide):
    """Rows of a group's columns: for all pixels of a patch, and for vectors that run over their end."""
    needed = n_pixels - wide + (wide + LANES - 1) // LANES * LANES
    return (needed + LANES - 1) // LANES * LANES


@nested
def gather(image, offsets, places, chosen, out):
    """Columns of `out` (n, size) from the aligned patches of one group; image: flat.

    offsets (g, pixels): of a patch's pixels from its corner; places (size): corners of the members in
    `image`, then of any patch in it. Eight members and eight pixels side by side are moved at a time, then
    those of turned members one by one. Rows of `out` beyond the patch's pixels are left with numbers that
    mean nothing; columns beyond the members are zero.
    """
    size = out.shape[1]
    flat = as_row(out)
    k = chosen.size
    n_pixels = offsets.shape[1]
    wide = side_by_side(view_at(offsets, 0))
    for first in range(0, k, LANES):
        # What runs over the end of a patch's row is written over by the next row.
        for u in range(0, n_pixels, wide):
            for x in range(0, wide, LANES):
                shift = offsets[0, u] + x
                transpose_from(image, places, first, shift, flat, (u + x) * size + first, size)
    for j in range(k):
        if chosen[j] > 0:
            shifts = view_at(offsets, chosen[j])
            for u in range(n_pixels):
                out[u, j] = item(image, places[j] + shifts[u])
    for j in range(k, (k + LANES - 1) // LANES * LANES):
        for u in range(out.shape[0]):
            out[u, j] = 0.0


@nested
def centre(columns, k):
    """Subtract the mean over the first k columns from them; the rows are a multiple of eight, others zero."""
    n_rows, size = columns.shape
    flat = as_row(columns)
    end = (k + LANES - 1) // LANES * LANES
    zero, share = spread(np.float32(0.0)), spread(np.float32(1.0) / np.float32(k))
    for u in range(0, n_rows, LANES):
        at = u * size
        a, b, c, d, e, f, g, h = zero, zero, zero, zero, zero, zero, zero, zero
        for j in range(at, at + end, LANES):
            a = plus(a, load(flat, j))
            b = plus(b, load(flat, j + size))
            c = plus(c, load(flat, j + 2 * size))
            d = plus(d, load(flat, j + 3 * size))
            e = plus(e, load(flat, j + 4 * size))
            f = plus(f, load(flat, j + 5 * size))
            g = plus(g, load(flat, j + 6 * size))
            h = plus(h, load(flat, j + 7 * size))
        means = times(totals(a, b, c, d, e, f, g, h), share)
        for row in range(LANES):
            mean = lane(means, row)
            first = at + row * size
            for j in range(first, first + end, LANES):
                store(flat, j, minus(load(flat, j), mean))
            for j in range(first + k, first + end):
                flat[j] = 0.0


@nested
def row_length(n_pixels, wide):
    """Length of a patch as a row: each `wide` pixels of it begin at a multiple of eight."""
    return n_pixels // wide * ((wide + LANES - 1) // LANES * LANES)


@nested
def gather_rows(image, offsets, places, chosen, mask, out):
    """Rows of `out` (., `row_length`) from the aligned patches of one group, the first patch subtracted.

    As `gather`. mask: ones for the pixels of a patch that lie side by side, zeros up to a multiple of eight;
    numbers of `out` where it is zero become zero, those of turned members are zero before.
    """
    length = out.shape[1]
    flat = as_row(out)
    n_pixels = offsets.shape[1]
    wide = side_by_side(view_at(offsets, 0))
    own = places[0]
    for u in range(0, n_pixels, wide):
        for x in range(0, wide, LANES):
            shift = offsets[0, u] + x
            at = u // wide * mask.size + x
            kept, first = load(mask, x), load(image, own + shift)
            for j in range(chosen.size):
                if chosen[j] == 0:
                    patch = load(image, places[j] + shift)
                    store(flat, j * length + at, times(minus(patch, first), kept))
    for j in range(chosen.size):
        if chosen[j] > 0:
            shifts = view_at(offsets, chosen[j])
            at = j * length
            for u in range(0, n_pixels, wide):
                own_row = own + offsets[0, u]
                for x in range(wide):
                    flat[at + x] = item(image, places[j] + shifts[u + x]) - item(image, own_row + x)
                at += mask.size


@nested
def put_back(rows, places, corners, chosen, factors, wide, sums):
    """Add the rows (., `row_length`) of a group to flat accumulators, two numbers a pixel.

    places (g, pixels): of a patch's pixels from its corner; corners (k): of the members, in pixels, negative
    where one is not put back; factors (2, k): of the members' rows in the two numbers; wide: how many pixels
    of a patch lie side by side.
    """
    for j in range(corners.size):
        if corners[j] < 0:
            continue
        shifts = view_at(places, chosen[j])
        pair = (factors[0, j], factors[1, j])
        if chosen[j] == 0:
            _put_back_shifted(view_at(rows, j), shifts, 2 * corners[j], pair, wide, sums)
        else:
            _put_back_turned(view_at(rows, j), shifts, 2 * corners[j], pair, wide, sums)


@nested
def _put_back_shifted(row, shifts, at, pair, wide, sums):
    """One member, by vectors; what lies beyond a row of the patch in the last one is zero."""
    begin = 0
    for u in range(0, shifts.size, wide):
        for x in range(0, wide, LANES):
            add_pairs(sums, at + shifts[u] + 2 * x, pair[0], pair[1], row, begin)
            begin += LANES


@nested
def _put_back_turned(row, shifts, at, pair, wide, sums):
    """One member, pixel by pixel."""
    begin = 0
    for u in range(0, shifts.size, wide):
        for x in range(wide):
            add_pair(sums, at + shifts[u + x], pair[0], pair[1], item(row, begin + x))
        begin += (wide + LANES - 1) // LANES * LANES
