"""A group's patches on their way: out of the image into columns, and back into the accumulators.

In columns, pixels are rows and members lie side by side, as the algebra of `ridge` wants them. In images the
pixels of a patch's row lie side by side. Blocks of 8 x 8 are transposed in registers on the way.
"""

import numpy as np

from vnlem.kernels.numba.jit import nested
from vnlem.kernels.numba.scratch import as_row, part, smaller_of, view_at
from vnlem.kernels.numba.vectors import LANES, add_pair, add_pairs, transpose, transpose_from


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
                out[u, j] = image[places[j] + shifts[u]]
    for j in range(k, (k + LANES - 1) // LANES * LANES):
        for u in range(out.shape[0]):
            out[u, j] = 0.0


@nested
def centre(columns, k):
    """Subtract the mean over the first k columns from them."""
    for u in range(columns.shape[0]):
        line = part(view_at(columns, u), 0, k)
        mean = np.float32(0.0)
        for j in range(k):
            mean += line[j]
        mean /= np.float32(k)
        for j in range(k):
            line[j] -= mean


@nested
def put_back(estimate, places, corners, chosen, factors, scratch, sums):
    """Add the estimates (n, size) of a group to flat accumulators, two numbers a pixel.

    places (g, pixels): of a patch's pixels from its corner; corners (k): of the members, in pixels, negative
    where one is not put back; factors (2, k): of the members' changes in the two numbers. scratch: rows
    (8, length); a mask, ones for the pixels of a patch that lie side by side, zeros up to a multiple of
    eight; how many lie side by side.
    """
    rows, mask, wide = scratch
    size = estimate.shape[1]
    length = rows.shape[1]
    flat_estimate, flat_rows = as_row(estimate), as_row(rows)
    n_pixels = places.shape[1]
    for first in range(0, corners.size, LANES):
        # The pixels of eight members, every row of a patch from a multiple of eight on.
        to = 0
        for u in range(0, n_pixels, wide):
            for x in range(0, wide, LANES):
                transpose(flat_estimate, (u + x) * size + first, size, flat_rows, to, length)
                to += LANES
        for j in range(first, smaller_of(first + LANES, corners.size)):
            if corners[j] < 0:
                continue
            shifts = view_at(places, chosen[j])
            pair = (factors[0, j], factors[1, j])
            if chosen[j] == 0:
                _put_back_shifted(view_at(rows, j - first), shifts, 2 * corners[j], pair, wide, mask, sums)
            else:
                _put_back_turned(view_at(rows, j - first), shifts, 2 * corners[j], pair, wide, sums)


@nested
def _put_back_shifted(row, shifts, at, pair, wide, mask, sums):
    """One member, by vectors; what lies beyond a row of the patch in the last one counts as zero."""
    begin = 0
    for u in range(0, shifts.size, wide):
        for x in range(0, wide, LANES):
            add_pairs(sums, at + shifts[u] + 2 * x, pair[0], pair[1], row, begin, part(mask, x, mask.size))
            begin += LANES


@nested
def _put_back_turned(row, shifts, at, pair, wide, sums):
    """One member, pixel by pixel."""
    begin = 0
    for u in range(0, shifts.size, wide):
        for x in range(wide):
            add_pair(sums, at + shifts[u + x], pair[0], pair[1], row[begin + x])
        begin += (wide + LANES - 1) // LANES * LANES
