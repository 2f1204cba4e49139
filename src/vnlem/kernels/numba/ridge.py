"""Ridge combination of a group of aligned patches, and its aggregation.

A group's patches are columns, pixels are rows: every loop runs over the members of the group.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.panel import COLUMNS, ROWS, WIDE, Left, add_panel, add_wide_panel
from vnlem.kernels.numba.sheets import patch_sums
from vnlem.kernels.numba.simd import add_pair, invert_square, spread, store, transpose
from vnlem.kernels.numba.simd import load as load_lanes

PIVOTS = 8  # the lanes of a vector
# Members that are not put back count as noisier: their noise is partly that of members that are.
COPIED_NOISE = np.float32(4.0)
# With a smaller load beside the trace of its Gram matrix a group is solved in double precision. Blocks of
# pivots lose more digits than single pivots: at 3e-5 estimates were off by a tenth of the noise.
LEAST_LOAD = np.float32(1e-4)
# What double precision resolves beside the trace.
LEAST_DOUBLE_LOAD = 1e-12


@nested
def _add_rows(out, out_at, width, left, right, right_at, strides, sign):
    """`add_panel` for ROWS rows and `width` columns, a multiple of 16; a row of `out` is strides[1] long."""
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
    out[:] = 0.0
    for i in range(0, k, ROWS):
        j = i // COLUMNS * COLUMNS
        _add_rows(out, i * k + j, k - j, Left(columns, i, 1, k), columns, j, strides, np.float32(1.0))


@nested
def multiply(left, right, strides, out):
    """out = left right, left (n, k), right (k, k), n a multiple of ROWS, k of 16; strides: i * k, i < k."""
    n_rows, k = left.shape
    out[:] = 0.0
    for u in range(0, n_rows, ROWS):
        _add_rows(out, u * k, k, Left(left, u * k, k, 1), right, 0, strides, np.float32(1.0))


@nested
def invert(matrix, strides, block, pivot_rows, turned_rows):
    """Invert a symmetric positive definite matrix (k, k), k a multiple of 16, in place.

    The sweep operator, eight pivots B at a time: B becomes -1/B, the rows beside it P become Q = P/B, and
    P^T Q is subtracted from the rest. That keeps the matrix symmetric, so only blocks of 16 x 16 on and
    above the diagonal are read and worked on; sweeping all pivots leaves minus the inverse. A positive
    definite matrix needs no pivoting. strides: i * k for i < 8; scratch: block (64), pivot_rows and
    turned_rows (8, k).
    """
    k = matrix.shape[0]
    flat = matrix.reshape(-1)
    rows = pivot_rows.reshape(-1)
    zero = spread(np.float32(0.0))
    for p in range(0, k, PIVOTS):
        stored = p // COLUMNS * COLUMNS
        for j in range(0, stored, PIVOTS):
            transpose(flat, j * k + p, k, rows, j, k)
        for a in range(PIVOTS):
            for j in range(stored, k, PIVOTS):
                store(pivot_rows[a], j, load_lanes(matrix[p + a], j))
            store(block, a * PIVOTS, load_lanes(matrix[p + a], p))
        invert_square(block)
        for a in range(PIVOTS):
            for j in range(0, k, PIVOTS):
                store(turned_rows[a], j, zero)
        for a in range(0, PIVOTS, ROWS):
            left = Left(block, a * PIVOTS, PIVOTS, 1)
            _add_rows(turned_rows, a * k, k, left, pivot_rows, 0, strides, np.float32(1.0))
        # With these the general rule below also gives the columns of the pivots.
        for a in range(PIVOTS):
            store(turned_rows[a], p, zero - load_lanes(block, a * PIVOTS))
        for i in range(stored + COLUMNS):
            store(matrix[i], p, zero)
        for i in range(0, k, ROWS):
            if p <= i < p + PIVOTS:
                continue
            j = i // COLUMNS * COLUMNS
            side = Left(pivot_rows, i, 1, k)
            _add_rows(matrix, i * k + j, k - j, side, turned_rows, j, strides, np.float32(-1.0))
        for a in range(PIVOTS):
            for j in range(stored, k, PIVOTS):
                store(matrix[p + a], j, load_lanes(turned_rows[a], j))
    for i in range(k):
        for j in range(i // COLUMNS * COLUMNS, k, PIVOTS):
            store(matrix[i], j, zero - load_lanes(matrix[i], j))
    for i in range(0, k, PIVOTS):
        for j in range((i // COLUMNS + 1) * COLUMNS, k, PIVOTS):
            transpose(flat, i * k + j, k, flat, j * k + i, k)


@nested
def combination(gram_matrix, numbers, k, strides, block, pivots):
    """Turn the Gram matrix of a centred group into its change Theta - I, in place; write the noise gains.

    Theta - I = -P diag(shrink), P = (G + diag(load))^-1 made to annihilate constants, so that each column of
    Theta sums to one. Columns k.. are padding: their load is one and they stay out of every sum.
    gain[j] = sum_i Theta_ij^2 noise_i / noise_j. numbers: load, shrink, noise, scratch, gain, each (size).
    """
    load, shrink, noise, ones, gain = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    size = gram_matrix.shape[0]
    trace = np.float32(0.0)
    for i in range(k):
        trace += gram_matrix[i, i]
    # A constant added to all entries does not change the result, since P annihilates constants. It keeps the
    # inverse small in their direction, where the Gram matrix of a centred group is zero.
    shift = trace / np.float32(k * k)
    for i in range(size):
        if i < k:
            for j in range(k):
                gram_matrix[i, j] += shift
            gram_matrix[i, i] += load[i]
        else:
            gram_matrix[i, i] += np.float32(1.0)
    invert(gram_matrix, strides, block, pivots[0], pivots[1])
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
        least = min(least, load[i])
    return least < LEAST_LOAD * trace


@nested
def delicate_combination(columns, load, shrink, noise, k, scratch, theta, gain):
    """`combination` of centred columns (n, size) in double precision; scratch (k + 1, k).

    Here less noise than the loads resolve still means less change: the load is raised, shrink is not.
    """
    inverse, sums = scratch[:k], scratch[k]
    inverse[:] = 0.0
    for u in range(columns.shape[0]):
        line = columns[u]
        for i in range(k):
            factor = np.float64(line[i])
            row = inverse[i]
            for j in range(k):
                row[j] += factor * line[j]
    trace = 0.0
    for i in range(k):
        trace += inverse[i, i]
    for i in range(k):
        for j in range(k):
            inverse[i, j] += trace / (k * k)
        inverse[i, i] += max(np.float64(load[i]), LEAST_DOUBLE_LOAD * trace)
    for p in range(k):
        pivot = 1.0 / inverse[p, p]
        inverse[p, p] = 1.0
        for j in range(k):
            inverse[p, j] *= pivot
        for i in range(k):
            if i != p:
                factor = inverse[i, p]
                inverse[i, p] = 0.0
                row, own = inverse[i], inverse[p]
                for j in range(k):
                    row[j] -= factor * own[j]
    total = 0.0
    theta[:] = 0.0
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
def gather(image, offsets, positions, chosen, out):
    """Columns of `out` (n, size) from the aligned patches of one group; image: flat."""
    for j in range(positions.size):
        at = positions[j]
        shifts = offsets[chosen[j]]
        for u in range(shifts.size):
            out[u, j] = image[at + shifts[u]]


@nested
def centre(columns, k):
    """Subtract the mean over the first k columns from them."""
    for u in range(columns.shape[0]):
        line = columns[u, :k]
        mean = np.float32(0.0)
        for j in range(k):
            mean += line[j]
        mean /= np.float32(k)
        for j in range(k):
            line[j] -= mean


@nested
def aggregation_weight(gain, least_gain):
    """Weight of a column from its noise gain."""
    bounded = max(gain, least_gain)
    return np.float32(1.0) / (bounded * np.sqrt(bounded))


class Ridge(NamedTuple):
    """How the groups of a pass are combined."""

    transforms: np.ndarray  # (g, p * p), as in matching
    patch_size: int
    own_rows: int  # rows of the tall arrays that are put back; members from rows below only contribute
    without_pilot: bool  # the first pass: Stein's estimate
    extra_load: np.float32  # its steadying load in units of the noise energy
    boost: np.float32  # factor on the noise energy in pilot passes
    tau: np.float32  # share of the noise that the next working image keeps


class Workspace(NamedTuple):
    """What a group is worked out in."""

    residual: np.ndarray  # (rows, stride): patch sums of the changes so far
    noise_energy: np.ndarray  # (rows, stride): patch sums of the noise variance
    sums: np.ndarray  # (2, stride), double
    offsets: np.ndarray  # (g, pixels): of a member's pixels from its corner in a tall array
    places: np.ndarray  # (g, pixels): the same in the accumulators
    columns: np.ndarray  # (2, pixels, size): the group's pilot and working patches
    estimate: np.ndarray  # (pixels, size): the change of every member
    theta: np.ndarray  # (size, size)
    double: np.ndarray  # (k + 1, k)
    block: np.ndarray
    pivots: np.ndarray
    strides: np.ndarray
    numbers: np.ndarray  # (5, size): load, shrink, noise, sums, gain


@kernel
def filter_tile(tall, ridge, positions, chosen, tile):
    """Estimate all groups of a tile and add them up, each member at its own place and orientation.

    tall: the tile's arrays; positions, chosen (r, k) from matching; tile: `Sums` (channels, depth, own rows,
    stride, 2) that is added to. What is added up is the change of the working image: rounding is then in
    proportion to the noise. Channels share their groups; each has its own combination.
    """
    _, depth, rows, stride = tall.pilot.shape
    p = ridge.patch_size
    n_transforms, area = ridge.transforms.shape
    n_pixels = depth * area
    k = positions.shape[1]
    size = (k + COLUMNS - 1) // COLUMNS * COLUMNS
    n_rows = (n_pixels + ROWS - 1) // ROWS * ROWS
    offsets = np.empty((n_transforms, n_pixels), np.int64)
    places = np.empty((n_transforms, n_pixels), np.int64)
    for g in range(n_transforms):
        for plane in range(depth):
            for u in range(area):
                v = ridge.transforms[g, u]
                at = v // p * stride + v % p
                offsets[g, plane * area + u] = plane * rows * stride + at
                places[g, plane * area + u] = 2 * (plane * ridge.own_rows * stride + at)
    work = Workspace(
        np.zeros((rows, stride), np.float32),
        np.zeros((rows, stride), np.float32),
        np.empty((2, stride)),
        offsets,
        places,
        np.zeros((2, n_rows, size), np.float32),
        np.empty((n_rows, size), np.float32),
        np.empty((size, size), np.float32),
        np.empty((k + 1, k)),
        np.empty(PIVOTS * PIVOTS, np.float32),
        np.empty((2, PIVOTS, size), np.float32),
        np.arange(max(n_rows, size)) * size,
        np.ones((5, size), np.float32),
    )
    for c in range(tall.pilot.shape[0]):
        _filter_groups(
            (tall.pilot[c], tall.working[c], tall.change[c], tall.variance[c]),
            ridge,
            positions,
            chosen,
            work,
            tile.changes[c].reshape(-1),
            tile.weights[c].reshape(-1),
        )


@nested
def _filter_groups(images, ridge, positions, chosen, work, sums, weights):
    """`filter_tile` for one channel; sums, weights: flat accumulators."""
    pilot, working, change_map, variance = images
    stride = pilot.shape[2]
    n_own = ridge.own_rows * stride
    k = positions.shape[1]
    n_rows, size = work.estimate.shape
    n_pixels = work.offsets.shape[1]
    x, z, estimate, theta = work.columns[0], work.columns[1], work.estimate, work.theta
    numbers, strides = work.numbers, work.strides
    load, shrink, noise, gain = numbers[0], numbers[1], numbers[2], numbers[4]
    one = np.float32(1.0)
    least_gain = np.float32(1.0 / k)
    least_left = max(np.float32(1.02) * ridge.tau, np.float32(0.02))
    patch_sums(change_map, ridge.patch_size, work.sums, work.residual)
    patch_sums(variance, ridge.patch_size, work.sums, work.noise_energy)
    residual, noise_energy = work.residual.reshape(-1), work.noise_energy.reshape(-1)
    flat_pilot, flat_working = pilot.reshape(-1), working.reshape(-1)
    for r in range(positions.shape[0]):
        change = np.float32(0.0)
        energy = np.float32(0.0)
        for j in range(k):
            at = positions[r, j]
            noise[j] = noise_energy[at]
            change += residual[at]
            energy += noise[j]
            if at >= n_own:
                noise[j] *= COPIED_NOISE
        # The share of the noise that is left in this group's working patches.
        left_over = max(one - np.sqrt(change / energy), least_left)
        blend = min(ridge.tau / left_over, one)
        scale = ridge.boost * left_over * left_over
        for j in range(k):
            if ridge.without_pilot:
                load[j] = ridge.extra_load * noise[j]
                shrink[j] = noise[j] + load[j]
            else:
                load[j] = scale * noise[j]
                shrink[j] = load[j]
        gather(flat_pilot, work.offsets, positions[r], chosen[r], x)
        gather(flat_working, work.offsets, positions[r], chosen[r], z)
        centre(x, k)
        centre(z, k)
        gram(x, strides[:n_rows], theta)
        if is_delicate(theta, load, k):
            delicate_combination(x, load, shrink, noise, k, work.double, theta, gain)
        else:
            combination(theta, numbers, k, strides[:PIVOTS], work.block, work.pivots)
        multiply(z, theta, strides[:size], estimate)
        for j in range(k):
            at = positions[r, j]
            if at >= n_own:
                continue
            weight = aggregation_weight(gain[j], least_gain)
            faded = weight * (one - blend)
            weights[at] += weight
            shifts = work.places[chosen[r, j]]
            for u in range(n_pixels):
                add_pair(sums, 2 * at + shifts[u], weight, faded, estimate[u, j])
