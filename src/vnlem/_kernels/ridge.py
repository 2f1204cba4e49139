"""Ridge combination of a group of aligned patches, and its aggregation.

A group's patches are columns, pixels are rows: every loop runs over the members of the group.
"""

import numpy as np

from vnlem._kernels.jit import kernel, nested
from vnlem._kernels.panel import add_panel
from vnlem._kernels.simd import load as load_lanes
from vnlem._kernels.simd import replaced, spread, store

# Matrices are padded to whole panels: rows to fours, columns to sixteens.
LANES = 16
PIVOTS = 8  # the lanes of a vector
# Members from turned copies count as noisier: their noise is partly that of members that were not turned.
TURNED_NOISE = np.float32(4.0)
LEAST_LOAD = np.float32(1e-5)


@nested
def gram(columns, strides, out):
    """out = columns^T columns for columns (n, k), k a multiple of 16; strides: i * k for i < n."""
    k = columns.shape[1]
    out[:] = 0.0
    for i in range(0, k, 4):
        for j in range(i // 16 * 16, k, 16):
            add_panel(out, i * k + j, k, columns, i, 1, k, columns, j, strides, np.float32(1.0))
    for i in range(k):
        for j in range(i // 16 * 16):
            out[i, j] = out[j, i]


@nested
def multiply(left, right, strides, out):
    """out = left right, left (n, k), right (k, k), n a multiple of 4, k of 16; strides: i * k for i < k."""
    n_rows, k = left.shape
    out[:] = 0.0
    for j in range(0, k, 16):
        for u in range(0, n_rows, 4):
            add_panel(out, u * k + j, k, left, u * k, k, 1, right, j, strides, np.float32(1.0))


@nested
def invert(matrix, strides, block, pivot_rows, pivot_columns):
    """Invert a symmetric positive definite matrix (k, k), k a multiple of 16, in place.

    Gauss-Jordan elimination by blocks of eight pivots: long, equal inner loops, and a positive definite
    matrix needs no pivoting. strides: i * k for i < 8; scratch: block (8, 8), pivot_rows (8, k),
    pivot_columns (k, 8).
    """
    k = matrix.shape[0]
    zero = spread(np.float32(0.0))
    for p in range(0, k, PIVOTS):
        for a in range(PIVOTS):
            store(block[a], 0, load_lanes(matrix[p + a], p))
        for a in range(PIVOTS):
            # Column a becomes that of the unit matrix before row a is subtracted.
            reciprocal = np.float32(1.0) / block[a, a]
            pivot = spread(reciprocal) * replaced(load_lanes(block[a], 0), a, np.float32(1.0))
            for c in range(PIVOTS):
                if c != a:
                    f = block[c, a]
                    row = replaced(load_lanes(block[c], 0), a, np.float32(0.0))
                    store(block[c], 0, row - spread(f) * pivot)
            store(block[a], 0, pivot)
        for a in range(PIVOTS):
            for j in range(0, k, PIVOTS):
                store(pivot_rows[a], j, zero)
        for a in range(0, PIVOTS, 4):
            for j in range(0, k, 16):
                add_panel(
                    pivot_rows,
                    a * k + j,
                    k,
                    block,
                    a * PIVOTS,
                    PIVOTS,
                    1,
                    matrix,
                    p * k + j,
                    strides,
                    np.float32(1.0),
                )
        for a in range(PIVOTS):
            store(pivot_rows[a], p, load_lanes(block[a], 0))
        for i in range(k):
            store(pivot_columns[i], 0, load_lanes(matrix[i], p))
            store(matrix[i], p, zero)
        for i in range(0, k, 4):
            if p <= i < p + PIVOTS:
                continue
            for j in range(0, k, 16):
                add_panel(
                    matrix,
                    i * k + j,
                    k,
                    pivot_columns,
                    i * PIVOTS,
                    PIVOTS,
                    1,
                    pivot_rows,
                    j,
                    strides,
                    np.float32(-1.0),
                )
        for a in range(PIVOTS):
            for j in range(0, k, PIVOTS):
                store(matrix[p + a], j, load_lanes(pivot_rows[a], j))


@nested
def combination(gram_matrix, load, shrink, noise, k, strides, block, pivot_rows, pivot_columns, ones, gain):
    """Turn the Gram matrix of a centred group into its combination Theta, in place; write the noise gains.

    load and shrink are raised where the load is below what single precision resolves.
    Theta = I - P diag(shrink), P = (G + diag(load))^-1 made to annihilate constants, so that each column of
    Theta sums to one. Columns k.. are padding: their load is one and they stay out of every sum.
    gain[j] = sum_i Theta_ij^2 noise_i / noise_j.
    """
    size = gram_matrix.shape[0]
    largest = np.float32(0.0)
    for i in range(k):
        largest = max(largest, gram_matrix[i, i])
    # What single precision can still tell from zero beside the largest entry.
    floor = LEAST_LOAD * largest
    for i in range(size):
        if i < k:
            if load[i] < floor:
                shrink[i] += floor - load[i]
                load[i] = floor
            gram_matrix[i, i] += load[i]
        else:
            gram_matrix[i, i] += np.float32(1.0)
    invert(gram_matrix, strides, block, pivot_rows, pivot_columns)
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
        gram_matrix[i, i] += 1.0
        w = noise[i]
        for j in range(size):
            gain[j] += w * gram_matrix[i, j] * gram_matrix[i, j]
    for i in range(k, size):
        for j in range(size):
            gram_matrix[i, j] = 0.0
    for j in range(k):
        gain[j] /= noise[j]


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
    blended,
    weights,
    kept,
):
    """Estimate all groups of a tile and add them up, each member at its own place and orientation.

    pilot, working (H, stride) images; residual (H', stride): patch sums of (noisy - working)^2;
    noise_energy (H', stride): patch sums of the noise variance; positions, chosen (r, k) from matching;
    without_pilot: Stein's estimate, with extra_load times the noise energy as steadying load; boost:
    factor on the noise energy in pilot passes; tau: share of the noise the next working image keeps;
    n_own: positions from here on are in turned copies: they contribute and are not put back; top, left:
    corner of the accumulators in the image. Added to: sums, blended (h, w); weights, kept (h, w), which
    hold each patch's weight at its top left corner.
    """
    stride = pilot.shape[1]
    n_transforms, n_pixels = transforms.shape
    k = positions.shape[1]
    size = (k + LANES - 1) // LANES * LANES
    n_rows = (n_pixels + 3) // 4 * 4
    x = np.zeros((n_rows, size), np.float32)
    z = np.zeros((n_rows, size), np.float32)
    estimate = np.empty((n_rows, size), np.float32)
    theta = np.empty((size, size), np.float32)
    block = np.empty((PIVOTS, PIVOTS), np.float32)
    pivot_rows = np.empty((PIVOTS, size), np.float32)
    pivot_columns = np.empty((size, PIVOTS), np.float32)
    row_strides = np.arange(max(n_rows, size)) * size
    ones = np.empty(size, np.float32)
    gain = np.empty(size, np.float32)
    load = np.ones(size, np.float32)
    shrink = np.zeros(size, np.float32)
    noise = np.ones(size, np.float32)
    acc_stride = sums.shape[1]
    offsets = np.empty((n_transforms, n_pixels), np.int64)
    places = np.empty((n_transforms, n_pixels), np.int64)
    for g in range(n_transforms):
        for u in range(n_pixels):
            v = transforms[g, u]
            offsets[g, u] = v // patch_size * stride + v % patch_size
            places[g, u] = v // patch_size * acc_stride + v % patch_size
    pilot_flat = pilot.reshape(-1)
    working_flat = working.reshape(-1)
    sums_flat = sums.reshape(-1)
    blended_flat = blended.reshape(-1)
    weights_flat = weights.reshape(-1)
    kept_flat = kept.reshape(-1)
    residual_flat = residual.reshape(-1)
    noise_flat = noise_energy.reshape(-1)
    one = np.float32(1.0)
    least_gain = np.float32(1.0 / k)
    least_left = max(np.float32(1.02) * tau, np.float32(0.02))
    for r in range(positions.shape[0]):
        change = np.float32(0.0)
        energy = np.float32(0.0)
        for j in range(k):
            at = positions[r, j]
            noise[j] = noise_flat[at]
            change += residual_flat[at]
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
        gather(pilot_flat, offsets, positions[r], chosen[r], x)
        gather(working_flat, offsets, positions[r], chosen[r], z)
        centre(x, k)
        gram(x, row_strides[:n_rows], theta)
        combination(
            theta,
            load,
            shrink,
            noise,
            k,
            row_strides[:PIVOTS],
            block,
            pivot_rows,
            pivot_columns,
            ones,
            gain,
        )
        multiply(z, theta, row_strides[:size], estimate)
        for j in range(k):
            at = positions[r, j]
            if at >= n_own:
                continue
            shifts = places[chosen[r, j]]
            weight = aggregation_weight(gain[j], least_gain)
            faded = weight * (one - blend)
            corner = (at // stride - top) * acc_stride + at % stride - left
            weights_flat[corner] += weight
            kept_flat[corner] += weight - faded
            for u in range(n_pixels):
                value = estimate[u, j]
                sums_flat[corner + shifts[u]] += weight * value
                blended_flat[corner + shifts[u]] += faded * value
