"""Ridge combination of a group of aligned patches.

A group's patches are columns, pixels are rows: every loop runs over the members of the group.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.group_algebra import gram, multiply, sweep
from vnlem.kernels.numba.jit import allocating, nested
from vnlem.kernels.numba.members import centre, gather, gather_rows, row_length, rows_for
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
    item,
    load,
    multiply_add,
    plus,
    spread,
    store,
    times,
)

# With a smaller load beside the trace of its Gram matrix a group is solved in double precision. Blocks of
# pivots lose more digits than single pivots: at 3e-5 estimates were off by a tenth of the noise.
LEAST_LOAD = np.float32(1e-4)
# What double precision resolves beside the trace.
LEAST_DOUBLE_LOAD = 1e-12


@nested
def combination(gram_matrix, numbers, k, strides, block, pivots):
    """Turn the Gram matrix of a centred group into its change Theta - I, in place; write the noise gains.

    Theta - I = -P diag(shrink), P = (G + diag(load))^-1 made to annihilate constants, so that each column of
    Theta sums to one. Columns k.. are padding: their load is one and they stay out of every sum; rows k..
    are left with numbers that mean nothing. gain[j] = sum_i Theta_ij^2 noise_i / noise_j. numbers: load,
    shrink, noise, sums, gain, each (size); load and sums are written over.
    """
    loads, shrink, noise = view_at(numbers, 0), view_at(numbers, 1), view_at(numbers, 2)
    sums, gain = view_at(numbers, 3), view_at(numbers, 4)
    size = gram_matrix.shape[0]
    flat = as_row(gram_matrix)
    trace = np.float32(0.0)
    for i in range(k):
        trace += gram_matrix[i, i]
    # A constant added to all entries does not change the result, since P annihilates constants. It keeps the
    # inverse small in their direction, where the Gram matrix of a centred group is zero.
    _add_constant(flat, size, k, trace / np.float32(k * k))
    for i in range(size):
        gram_matrix[i, i] += loads[i] if i < k else np.float32(1.0)
    sweep(gram_matrix, strides, block, view_at(pivots, 0), view_at(pivots, 1))
    # The matrix is -A now, A the inverse, and -P = A 1 1^T A / (1^T A 1) - A.
    total = np.float32(0.0)
    for j in range(0, size, LANES):
        column = spread(np.float32(0.0))
        for i in range(k):
            column = plus(column, load(flat, i * size + j))
        store(sums, j, column)
    for j in range(k):
        total += sums[j]
    share = loads
    for i in range(k):
        share[i] = -sums[i] / total
    for j in range(0, size, LANES):
        of_column, factor = load(sums, j), load(shrink, j)
        squares = spread(np.float32(0.0))
        for i in range(k):
            at = i * size + j
            changed = times(multiply_add(spread(item(share, i)), of_column, load(flat, at)), factor)
            store(flat, at, changed)
            squares = multiply_add(times(spread(item(noise, i)), changed), changed, squares)
        store(gain, j, squares)
    for j in range(k):
        gain[j] = gain[j] / noise[j] + np.float32(2.0) * gram_matrix[j, j] + np.float32(1.0)


@nested
def _add_constant(flat, size, k, constant):
    """Add a number to the first k rows and columns of a matrix, from the block of the diagonal on."""
    constants = spread(constant)
    whole = k // LANES * LANES
    for i in range(k):
        for j in range(i // COLUMNS * COLUMNS, whole, LANES):
            store(flat, i * size + j, plus(load(flat, i * size + j), constants))
        for j in range(whole, k):
            flat[i * size + j] += constant


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

    columns: np.ndarray  # (pixels, size): its pilot patches
    rows: np.ndarray  # (members, length): its working patches, see `gather_rows`
    estimate: np.ndarray  # (members, length): the change of every member
    theta: np.ndarray  # (size, size)
    double: np.ndarray  # (k + 1, k)
    block: np.ndarray
    pivots: np.ndarray
    strides: np.ndarray  # multiples of the size
    row_strides: np.ndarray  # multiples of the length
    numbers: np.ndarray  # (5, size): load, shrink, noise, sums, gain
    mask: np.ndarray  # see `gather_rows`
    members: np.ndarray  # (size): of the members' corners in the images
    corners: np.ndarray  # (k): the same in the accumulators, negative where a member is not put back
    factors: np.ndarray  # (2, k): weights of their changes


@allocating
def make_group(k, n_pixels, wide):
    """Room for groups of k patches; wide: how many of their pixels lie side by side."""
    size = (k + COLUMNS - 1) // COLUMNS * COLUMNS
    length = row_length(n_pixels, wide)
    group = Group(
        zeros((rows_for(n_pixels, wide), size), np.float32),
        zeros((size, length), np.float32),
        empty((size, length), np.float32),
        empty((size, size), np.float32),
        empty((k + 1, k), np.float64),
        empty(COLUMNS * COLUMNS, np.float32),
        empty((2, COLUMNS, size), np.float32),
        multiples(larger_of(n_pixels, COLUMNS), size),
        multiples(k, length),
        empty((5, size), np.float32),
        zeros((wide + LANES - 1) // LANES * LANES, np.float32),
        zeros(size, np.int64),
        empty(k, np.int64),
        empty((2, k), np.float32),
    )
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
    n_pixels = offsets.shape[1]
    columns, theta = group.columns, group.theta
    loads, shrink = view_at(group.numbers, 0), view_at(group.numbers, 1)
    noise, gain = view_at(group.numbers, 2), view_at(group.numbers, 4)
    one = np.float32(1.0)
    # The share of the noise that is left in this group's working patches.
    least_left = larger_of(np.float32(1.02) * rule.tau, np.float32(0.02))
    left_over = larger_of(one - np.sqrt(changed), least_left)
    blend = smaller_of(rule.tau / left_over, one)
    scale = rule.boost * left_over * left_over
    for j in range(k):
        if rule.without_pilot:
            loads[j] = rule.extra_load * noise[j]
            shrink[j] = noise[j] + loads[j]
        else:
            loads[j] = scale * noise[j]
            shrink[j] = loads[j]
    gather(pilot, offsets, group.members, chosen, columns)
    centre(columns, k)
    gram(columns, part(group.strides, 0, n_pixels), theta)
    if is_delicate(theta, loads, k):
        delicate_combination(part(columns, 0, n_pixels), loads, shrink, noise, k, group.double, theta, gain)
    else:
        combination(theta, group.numbers, k, part(group.strides, 0, COLUMNS), group.block, group.pivots)
    gather_rows(working, offsets, group.members, chosen, group.mask, group.rows)
    multiply(theta, group.rows, group.row_strides, group.estimate)
    least_gain = np.float32(1.0 / k)
    for j in range(k):
        weight = aggregation_weight(gain[j], least_gain)
        group.factors[0, j] = weight
        group.factors[1, j] = weight * (one - blend)
