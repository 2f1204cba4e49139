"""Ridge combination of a group of aligned patches, and its aggregation.

A group's patches are columns, pixels are rows: every loop runs over the members of the group.
"""

import numpy as np

from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.panel import COLUMNS, ROWS, WIDE, add_panel, add_wide_panel
from vnlem.kernels.numba.simd import add_pair, invert_square, spread, store, transpose
from vnlem.kernels.numba.simd import load as load_lanes

PIVOTS = 8  # the lanes of a vector
# Members from turned copies count as noisier: their noise is partly that of members that were not turned.
TURNED_NOISE = np.float32(4.0)
# With a smaller load beside the trace of its Gram matrix a group is solved in double precision.
LEAST_LOAD = np.float32(3e-5)
# What double precision resolves beside the trace.
LEAST_DOUBLE_LOAD = 1e-12


@nested
def _add_rows(out, out_at, width, left, left_at, left_step, left_along, right, right_at, strides, sign):
    """`add_panel` for ROWS rows and `width` columns, a multiple of 16; a row of `out` is strides[1] long."""
    step = strides[1]
    first = width % WIDE
    if first:
        add_panel(out, out_at, step, left, left_at, left_step, left_along, right, right_at, strides, sign)
    for x in range(first, width, WIDE):
        add_wide_panel(
            out, out_at + x, step, left, left_at, left_step, left_along, right, right_at + x, strides, sign
        )


@nested
def gram(columns, strides, out):
    """out = columns^T columns for columns (n, k), k a multiple of 16; strides: i * k for i < n.

    Only what `invert` reads is written: the blocks of 16 x 16 on and above the diagonal.
    """
    k = columns.shape[1]
    out[:] = 0.0
    for i in range(0, k, ROWS):
        j = i // COLUMNS * COLUMNS
        _add_rows(out, i * k + j, k - j, columns, i, 1, k, columns, j, strides, np.float32(1.0))


@nested
def multiply(left, right, strides, out):
    """out = left right, left (n, k), right (k, k), n a multiple of ROWS, k of 16; strides: i * k, i < k."""
    n_rows, k = left.shape
    out[:] = 0.0
    for u in range(0, n_rows, ROWS):
        _add_rows(out, u * k, k, left, u * k, k, 1, right, 0, strides, np.float32(1.0))


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
            _add_rows(
                turned_rows, a * k, k, block, a * PIVOTS, PIVOTS, 1, pivot_rows, 0, strides, np.float32(1.0)
            )
        # With these the general rule below also gives the columns of the pivots.
        for a in range(PIVOTS):
            store(turned_rows[a], p, zero - load_lanes(block, a * PIVOTS))
        for i in range(stored + COLUMNS):
            store(matrix[i], p, zero)
        for i in range(0, k, ROWS):
            if p <= i < p + PIVOTS:
                continue
            j = i // COLUMNS * COLUMNS
            _add_rows(
                matrix, i * k + j, k - j, pivot_rows, i, 1, k, turned_rows, j, strides, np.float32(-1.0)
            )
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
def combination(gram_matrix, load, shrink, noise, k, strides, block, pivot_rows, turned_rows, ones, gain):
    """Turn the Gram matrix of a centred group into its change Theta - I, in place; write the noise gains.

    Theta - I = -P diag(shrink), P = (G + diag(load))^-1 made to annihilate constants, so that each column of
    Theta sums to one. Columns k.. are padding: their load is one and they stay out of every sum.
    gain[j] = sum_i Theta_ij^2 noise_i / noise_j.
    """
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
    invert(gram_matrix, strides, block, pivot_rows, turned_rows)
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


@kernel
def filter_tile(
    pilot,
    working,
    residual,
    noise_energy,
    transforms,
    patch_size,
    positions,
    chosen,
    without_pilot,
    extra_load,
    boost,
    tau,
    n_own,
    top,
    left,
    sums,
    weights,
):
    """Estimate all groups of a tile and add them up, each member at its own place and orientation.

    pilot, working (H, stride) images; residual (H', stride): patch sums of (noisy - working)^2;
    noise_energy (H', stride): patch sums of the noise variance; positions, chosen (r, k) from matching;
    without_pilot: Stein's estimate, with extra_load times the noise energy as steadying load; boost:
    factor on the noise energy in pilot passes; tau: share of the noise the next working image keeps;
    n_own: positions from here on are in turned copies: they contribute and are not put back; top, left:
    corner of the accumulators in the image. Added to: sums, weights, see `vnlem.estimate.aggregate.TileSums`.
    What is added up is the change of the working image: rounding is then in proportion to the noise.
    """
    stride = pilot.shape[1]
    n_transforms, n_pixels = transforms.shape
    k = positions.shape[1]
    size = (k + COLUMNS - 1) // COLUMNS * COLUMNS
    n_rows = (n_pixels + ROWS - 1) // ROWS * ROWS
    acc_stride = sums.shape[1]
    offsets = np.empty((n_transforms, n_pixels), np.int64)
    places = np.empty((n_transforms, n_pixels), np.int64)
    for g in range(n_transforms):
        for u in range(n_pixels):
            v = transforms[g, u]
            offsets[g, u] = v // patch_size * stride + v % patch_size
            places[g, u] = 2 * (v // patch_size * acc_stride + v % patch_size)
    _filter_groups(
        pilot.reshape(-1),
        working.reshape(-1),
        residual.reshape(-1),
        noise_energy.reshape(-1),
        offsets,
        places,
        positions,
        chosen,
        without_pilot,
        extra_load,
        boost,
        tau,
        n_own,
        (stride, top, left, acc_stride),
        np.zeros((2, n_rows, size), np.float32),
        np.empty((n_rows, size), np.float32),
        np.empty((size, size), np.float32),
        np.empty((k + 1, k)),
        np.empty(PIVOTS * PIVOTS, np.float32),
        np.empty((2, PIVOTS, size), np.float32),
        np.arange(max(n_rows, size)) * size,
        np.ones((5, size), np.float32),
        sums.reshape(-1),
        weights.reshape(-1),
    )


@nested
def _filter_groups(
    pilot,
    working,
    residual,
    noise_energy,
    offsets,
    places,
    positions,
    chosen,
    without_pilot,
    extra_load,
    boost,
    tau,
    n_own,
    frame,
    columns,
    estimate,
    theta,
    double,
    block,
    pivots,
    strides,
    numbers,
    sums,
    weights,
):
    """`filter_tile` on flat arrays, with its scratch."""
    stride, top, left, acc_stride = frame
    k = positions.shape[1]
    n_rows, size = estimate.shape
    n_pixels = offsets.shape[1]
    x, z = columns[0], columns[1]
    load, shrink, noise, ones, gain = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    one = np.float32(1.0)
    least_gain = np.float32(1.0 / k)
    least_left = max(np.float32(1.02) * tau, np.float32(0.02))
    for r in range(positions.shape[0]):
        change = np.float32(0.0)
        energy = np.float32(0.0)
        for j in range(k):
            at = positions[r, j]
            noise[j] = noise_energy[at]
            change += residual[at]
            energy += noise[j]
            if at >= n_own:
                noise[j] *= TURNED_NOISE
        # The share of the noise that is left in this group's working patches.
        left_over = max(one - np.sqrt(change / energy), least_left)
        blend = min(tau / left_over, one)
        scale = boost * left_over * left_over
        for j in range(k):
            if without_pilot:
                load[j] = extra_load * noise[j]
                shrink[j] = noise[j] + load[j]
            else:
                load[j] = scale * noise[j]
                shrink[j] = load[j]
        gather(pilot, offsets, positions[r], chosen[r], x)
        gather(working, offsets, positions[r], chosen[r], z)
        centre(x, k)
        centre(z, k)
        gram(x, strides[:n_rows], theta)
        if is_delicate(theta, load, k):
            delicate_combination(x, load, shrink, noise, k, double, theta, gain)
        else:
            combination(
                theta, load, shrink, noise, k, strides[:PIVOTS], block, pivots[0], pivots[1], ones, gain
            )
        multiply(z, theta, strides[:size], estimate)
        for j in range(k):
            at = positions[r, j]
            if at >= n_own:
                continue
            weight = aggregation_weight(gain[j], least_gain)
            faded = weight * (one - blend)
            corner = 2 * ((at // stride - top) * acc_stride + at % stride - left)
            weights[corner // 2] += weight
            shifts = places[chosen[r, j]]
            for u in range(n_pixels):
                add_pair(sums, corner + shifts[u], weight, faded, estimate[u, j])
