"""Ridge combination of a group of aligned patches.

A group's patches are columns, pixels are rows: every loop runs over the members of the group.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import allocating, nested
from vnlem.kernels.numba.members import centre, gather, rows_for
from vnlem.kernels.numba.scratch import (
    as_row,
    empty,
    fill,
    larger_of,
    multiples,
    part,
    smaller_of,
    view_at,
    zeros,
)
from vnlem.kernels.numba.vectors import (
    COLUMNS,
    LANES,
    ROWS,
    WIDE,
    Left,
    add_panel,
    add_wide_panel,
    invert_square,
    minus,
    spread,
    store,
    transpose,
)
from vnlem.kernels.numba.vectors import load as load_lanes

# With a smaller load beside the trace of its Gram matrix a group is solved in double precision. Blocks of
# pivots lose more digits than single pivots: at 3e-5 estimates were off by a tenth of the noise.
LEAST_LOAD = np.float32(1e-4)
# What double precision resolves beside the trace.
LEAST_DOUBLE_LOAD = 1e-12


@nested
def _add_rows(out, out_at, width, left, right, right_at, strides, sign):
    """`add_panel` for ROWS rows and `width` columns, a multiple of 16; a row of `out` is strides[1] long.

    All arrays are flat, so that there is one version of it.
    """
    step = strides[1]
    first = width % WIDE
    if first:
        add_panel(out, out_at, step, left, right, right_at, strides, sign)
    for x in range(first, width, WIDE):
        add_wide_panel(out, out_at + x, step, left, right, right_at + x, strides, sign)


@nested
def gram(columns, strides, out):
    """out = columns^T columns for columns (n, k), k a multiple of 16; strides: i * k for i < n.

    Only what `invert` reads is written: the blocks of 16 x 16 on and above the diagonal.
    """
    k = columns.shape[1]
    flat, flat_out = as_row(columns), as_row(out)
    fill(flat_out, 0.0)
    for i in range(0, k, ROWS):
        j = i // COLUMNS * COLUMNS
        _add_rows(flat_out, i * k + j, k - j, Left(flat, i, 1, k), flat, j, strides, np.float32(1.0))


@nested
def multiply(left, right, strides, out):
    """out = left right, left (n, k), right (k, k), n a multiple of ROWS, k of 16; strides: i * k, i < k."""
    n_rows, k = left.shape
    flat_left, flat_right, flat_out = as_row(left), as_row(right), as_row(out)
    fill(flat_out, 0.0)
    for u in range(0, n_rows, ROWS):
        _add_rows(flat_out, u * k, k, Left(flat_left, u * k, k, 1), flat_right, 0, strides, np.float32(1.0))


@nested
def invert(matrix, strides, block, pivot_rows, turned_rows):
    """Invert a symmetric positive definite matrix (k, k), k a multiple of 16, in place.

    The sweep operator, sixteen pivots B at a time: B becomes -1/B, the rows beside it P become Q = P/B, and
    P^T Q is subtracted from the rest. That keeps the matrix symmetric, so only blocks of 16 x 16 on and
    above the diagonal are read and worked on; sweeping all pivots leaves minus the inverse. A positive
    definite matrix needs no pivoting. strides: i * k for i < 16; scratch: block (256), pivot_rows and
    turned_rows (16, k).
    """
    k = matrix.shape[0]
    flat, rows, turned = as_row(matrix), as_row(pivot_rows), as_row(turned_rows)
    one = np.float32(1.0)
    zero = spread(np.float32(0.0))
    for p in range(0, k, COLUMNS):
        after = p + COLUMNS
        for j in range(0, p, LANES):
            for half in range(0, COLUMNS, LANES):
                transpose(flat, j * k + p + half, k, rows, half * k + j, k)
        for a in range(COLUMNS):
            for j in range(after, k, LANES):
                store(rows, a * k + j, load_lanes(flat, (p + a) * k + j))
        invert_square(flat, p * k + p, k, block)
        fill(turned, 0.0)
        for a in range(0, COLUMNS, ROWS):
            left = Left(block, a * COLUMNS, COLUMNS, 1)
            _add_rows(turned, a * k, p, left, rows, 0, strides, one)
            _add_rows(turned, a * k + after, k - after, left, rows, after, strides, one)
        for i in range(0, k, ROWS):
            if p <= i < after:
                continue
            side = Left(rows, i, 1, k)
            j = i // COLUMNS * COLUMNS
            if j < p:
                _add_rows(flat, i * k + j, p - j, side, turned, j, strides, -one)
                j = after
            _add_rows(flat, i * k + j, k - j, side, turned, j, strides, -one)
        for j in range(0, p, LANES):
            for half in range(0, COLUMNS, LANES):
                transpose(turned, half * k + j, k, flat, j * k + p + half, k)
        for a in range(COLUMNS):
            for j in range(after, k, LANES):
                store(flat, (p + a) * k + j, load_lanes(turned, a * k + j))
            for j in range(0, COLUMNS, LANES):
                store(flat, (p + a) * k + p + j, minus(zero, load_lanes(block, a * COLUMNS + j)))
    for i in range(k):
        for j in range(i // COLUMNS * COLUMNS, k, LANES):
            store(flat, i * k + j, minus(zero, load_lanes(flat, i * k + j)))
    for i in range(0, k, LANES):
        for j in range((i // COLUMNS + 1) * COLUMNS, k, LANES):
            transpose(flat, i * k + j, k, flat, j * k + i, k)


@nested
def combination(gram_matrix, numbers, k, strides, block, pivots):
    """Turn the Gram matrix of a centred group into its change Theta - I, in place; write the noise gains.

    Theta - I = -P diag(shrink), P = (G + diag(load))^-1 made to annihilate constants, so that each column of
    Theta sums to one. Columns k.. are padding: their load is one and they stay out of every sum.
    gain[j] = sum_i Theta_ij^2 noise_i / noise_j. numbers: load, shrink, noise, scratch, gain, each (size).
    """
    load, shrink, noise = view_at(numbers, 0), view_at(numbers, 1), view_at(numbers, 2)
    ones, gain = view_at(numbers, 3), view_at(numbers, 4)
    size = gram_matrix.shape[0]
    trace = np.float32(0.0)
    for i in range(k):
        trace += gram_matrix[i, i]
    # A constant added to all entries does not change the result, since P annihilates constants. It keeps the
    # inverse small in their direction, where the Gram matrix of a centred group is zero.
    shift = trace / np.float32(k * k)
    for i in range(size):
        if i < k:
            row = part(view_at(gram_matrix, i), i // COLUMNS * COLUMNS, k)
            for j in range(row.size):
                row[j] += shift
            gram_matrix[i, i] += load[i]
        else:
            gram_matrix[i, i] += np.float32(1.0)
    invert(gram_matrix, strides, block, view_at(pivots, 0), view_at(pivots, 1))
    total = np.float32(0.0)
    for j in range(size):
        ones[j] = 0.0
    for i in range(k):
        for j in range(size):
            ones[j] += gram_matrix[i, j]
    for j in range(k):
        total += ones[j]
    for j in range(k, size):
        ones[j] = 0.0
    for j in range(size):
        gain[j] = 0.0
    for i in range(k):
        f = ones[i] / total
        for j in range(size):
            gram_matrix[i, j] = (f * ones[j] - gram_matrix[i, j]) * shrink[j]
        w = noise[i]
        for j in range(size):
            gain[j] += w * gram_matrix[i, j] * gram_matrix[i, j]
    for i in range(k, size):
        for j in range(size):
            gram_matrix[i, j] = 0.0
    for j in range(k):
        gain[j] = gain[j] / noise[j] + np.float32(2.0) * gram_matrix[j, j] + np.float32(1.0)


@nested
def is_delicate(gram_matrix, load, k):
    """Whether single precision cannot resolve the loads beside the Gram matrix."""
    trace = np.float32(0.0)
    least = np.float32(np.inf)
    for i in range(k):
        trace += gram_matrix[i, i]
        least = smaller_of(least, load[i])
    return least < LEAST_LOAD * trace


@nested
def delicate_combination(columns, load, shrink, noise, k, scratch, theta, gain):
    """`combination` of centred columns (n, size) in double precision; scratch (k + 1, k).

    Here less noise than the loads resolve still means less change: the load is raised, shrink is not.
    """
    inverse, sums = part(scratch, 0, k), view_at(scratch, k)
    fill(inverse, 0.0)
    for u in range(columns.shape[0]):
        line = view_at(columns, u)
        for i in range(k):
            factor = np.float64(line[i])
            row = view_at(inverse, i)
            for j in range(k):
                row[j] += factor * line[j]
    trace = 0.0
    for i in range(k):
        trace += inverse[i, i]
    for i in range(k):
        for j in range(k):
            inverse[i, j] += trace / (k * k)
        inverse[i, i] += larger_of(np.float64(load[i]), LEAST_DOUBLE_LOAD * trace)
    for p in range(k):
        pivot = 1.0 / inverse[p, p]
        inverse[p, p] = 1.0
        for j in range(k):
            inverse[p, j] *= pivot
        for i in range(k):
            if i != p:
                factor = inverse[i, p]
                inverse[i, p] = 0.0
                row, own = view_at(inverse, i), view_at(inverse, p)
                for j in range(k):
                    row[j] -= factor * own[j]
    total = 0.0
    fill(theta, 0.0)
    for i in range(k):
        sums[i] = 0.0
        for j in range(k):
            sums[i] += inverse[i, j]
        total += sums[i]
    for i in range(k):
        for j in range(k):
            theta[i, j] = (sums[i] / total * sums[j] - inverse[i, j]) * shrink[j]
    for j in range(k):
        sum_of_squares = 0.0
        for i in range(k):
            sum_of_squares += noise[i] * np.float64(theta[i, j]) * theta[i, j]
        gain[j] = sum_of_squares / noise[j] + 2.0 * theta[j, j] + 1.0


@nested
def aggregation_weight(gain, least_gain):
    """Weight of a column from its noise gain."""
    bounded = larger_of(gain, least_gain)
    return np.float32(1.0) / (bounded * np.sqrt(bounded))


class Rule(NamedTuple):
    """How the groups of a pass are combined, see `vnlem.estimate.ridge.PassSettings`."""

    without_pilot: bool  # the first pass: Stein's estimate
    extra_load: np.float32  # its steadying load in units of the noise energy
    boost: np.float32  # factor on the noise energy in pilot passes
    tau: np.float32  # share of the noise that the next working image keeps


class Group(NamedTuple):
    """What a group is worked out in."""

    columns: np.ndarray  # (2, pixels, size): its pilot and working patches
    estimate: np.ndarray  # (pixels, size): the change of every member
    theta: np.ndarray  # (size, size)
    double: np.ndarray  # (k + 1, k)
    block: np.ndarray
    pivots: np.ndarray
    strides: np.ndarray
    numbers: np.ndarray  # (5, size): load, shrink, noise, sums, gain
    rows: np.ndarray  # (8, length): pixels of eight members
    mask: np.ndarray  # see `put_back`
    members: np.ndarray  # (size): of the members' corners in the images
    corners: np.ndarray  # (k): the same in the accumulators, negative where a member is not put back
    factors: np.ndarray  # (2, k): weights of their changes


@allocating
def make_group(k, n_pixels, wide):
    """Room for groups of k patches; wide: how many of their pixels lie side by side."""
    size = (k + COLUMNS - 1) // COLUMNS * COLUMNS
    n_rows = rows_for(n_pixels, wide)
    length = n_pixels // wide * ((wide + LANES - 1) // LANES * LANES)
    group = Group(
        empty((2, n_rows, size), np.float32),
        empty((n_rows, size), np.float32),
        empty((size, size), np.float32),
        empty((k + 1, k), np.float64),
        empty(COLUMNS * COLUMNS, np.float32),
        empty((2, COLUMNS, size), np.float32),
        multiples(larger_of(n_pixels, size), size),
        empty((5, size), np.float32),
        empty((LANES, length), np.float32),
        zeros((wide + LANES - 1) // LANES * LANES, np.float32),
        zeros(size, np.int64),
        empty(k, np.int64),
        empty((2, k), np.float32),
    )
    fill(group.columns, 0.0)
    fill(group.numbers, 1.0)
    fill(part(group.mask, 0, wide), 1.0)
    return group


@nested
def combine(pilot, working, offsets, chosen, changed, rule, group):
    """Estimate every member of a group: its change, the noise gains, the weights in `factors`.

    pilot, working: flat images; offsets (g, n) of a member's pixels from its corner, which `members` holds;
    chosen (k): how each is turned. The noise energies are in group.numbers. changed: how much of the noise
    energy the working patches have lost.
    """
    k = chosen.shape[0]
    n_pixels, size = offsets.shape[1], group.theta.shape[0]
    x, z, theta = view_at(group.columns, 0), view_at(group.columns, 1), group.theta
    load, shrink = view_at(group.numbers, 0), view_at(group.numbers, 1)
    noise, gain = view_at(group.numbers, 2), view_at(group.numbers, 4)
    one = np.float32(1.0)
    # The share of the noise that is left in this group's working patches.
    least_left = larger_of(np.float32(1.02) * rule.tau, np.float32(0.02))
    left_over = larger_of(one - np.sqrt(changed), least_left)
    blend = smaller_of(rule.tau / left_over, one)
    scale = rule.boost * left_over * left_over
    for j in range(k):
        if rule.without_pilot:
            load[j] = rule.extra_load * noise[j]
            shrink[j] = noise[j] + load[j]
        else:
            load[j] = scale * noise[j]
            shrink[j] = load[j]
    gather(pilot, offsets, group.members, chosen, x)
    gather(working, offsets, group.members, chosen, z)
    centre(part(x, 0, n_pixels), k)
    centre(part(z, 0, n_pixels), k)
    gram(x, part(group.strides, 0, n_pixels), theta)
    if is_delicate(theta, load, k):
        delicate_combination(part(x, 0, n_pixels), load, shrink, noise, k, group.double, theta, gain)
    else:
        combination(theta, group.numbers, k, part(group.strides, 0, COLUMNS), group.block, group.pivots)
    multiply(z, theta, part(group.strides, 0, size), group.estimate)
    least_gain = np.float32(1.0 / k)
    for j in range(k):
        weight = aggregation_weight(gain[j], least_gain)
        group.factors[0, j] = weight
        group.factors[1, j] = weight * (one - blend)
