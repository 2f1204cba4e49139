"""Ridge combination of a group of aligned patches, and its aggregation.

A group's patches are columns, pixels are rows: every loop runs over the members of the group.
"""

import numpy as np

from vnlem._kernels.jit import kernel

LANES = 8


@kernel
def gram(columns, out):
    """out = columns^T columns, for columns (n, k)."""
    n_pixels, k = columns.shape
    fours = n_pixels // 4 * 4
    for i in range(k):
        # From the diagonal's block of eight on; the rest by symmetry.
        first = i // 8 * 8
        length = k - first
        line = out[i, first:]
        for j in range(length):
            line[j] = 0.0
        for u in range(0, fours, 4):
            a0, a1, a2, a3 = columns[u, i], columns[u + 1, i], columns[u + 2, i], columns[u + 3, i]
            r0, r1 = columns[u, first:], columns[u + 1, first:]
            r2, r3 = columns[u + 2, first:], columns[u + 3, first:]
            for j in range(length):
                line[j] += a0 * r0[j] + a1 * r1[j] + a2 * r2[j] + a3 * r3[j]
        for u in range(fours, n_pixels):
            a0 = columns[u, i]
            r0 = columns[u, first:]
            for j in range(length):
                line[j] += a0 * r0[j]
    for i in range(k):
        for j in range(i // 8 * 8):
            out[i, j] = out[j, i]


@kernel
def invert(matrix, pivot_rows):
    """Invert a symmetric positive definite matrix (k, k), k a multiple of 4, in place.

    Gauss-Jordan elimination by blocks of four pivots: long, equal inner loops, and no pivoting is needed for
    a positive definite matrix. pivot_rows: scratch (4, k).
    """
    k = matrix.shape[0]
    block = np.empty((4, 4), np.float32)
    for p in range(0, k, 4):
        for a in range(4):
            for b in range(4):
                block[a, b] = matrix[p + a, p + b]
        # 4 x 4 inverse by scalar Gauss-Jordan.
        for a in range(4):
            reciprocal = np.float32(1.0) / block[a, a]
            block[a, a] = 1.0
            for b in range(4):
                block[a, b] *= reciprocal
            for c in range(4):
                if c != a:
                    f = block[c, a]
                    block[c, a] = 0.0
                    for b in range(4):
                        block[c, b] -= f * block[a, b]
        m0, m1, m2, m3 = matrix[p], matrix[p + 1], matrix[p + 2], matrix[p + 3]
        for a in range(4):
            b0, b1, b2, b3 = block[a, 0], block[a, 1], block[a, 2], block[a, 3]
            line = pivot_rows[a]
            for j in range(k):
                line[j] = b0 * m0[j] + b1 * m1[j] + b2 * m2[j] + b3 * m3[j]
        for a in range(4):
            for b in range(4):
                pivot_rows[a, p + b] = block[a, b]
        r0, r1, r2, r3 = pivot_rows[0], pivot_rows[1], pivot_rows[2], pivot_rows[3]
        for i in range(k):
            if p <= i < p + 4:
                continue
            f0 = matrix[i, p]
            f1 = matrix[i, p + 1]
            f2 = matrix[i, p + 2]
            f3 = matrix[i, p + 3]
            for b in range(4):
                matrix[i, p + b] = 0.0
            line = matrix[i]
            for j in range(k):
                line[j] -= f0 * r0[j] + f1 * r1[j] + f2 * r2[j] + f3 * r3[j]
        for a in range(4):
            for j in range(k):
                matrix[p + a, j] = pivot_rows[a, j]


@kernel
def multiply(left, right, out):
    """out = left right for left (n, k), right (k, k), k a multiple of 4."""
    n_rows, k = left.shape
    for u in range(n_rows):
        line = out[u]
        for j in range(k):
            line[j] = 0.0
        for i in range(0, k, 4):
            a0, a1, a2, a3 = left[u, i], left[u, i + 1], left[u, i + 2], left[u, i + 3]
            r0, r1, r2, r3 = right[i], right[i + 1], right[i + 2], right[i + 3]
            for j in range(k):
                line[j] += a0 * r0[j] + a1 * r1[j] + a2 * r2[j] + a3 * r3[j]


@kernel
def combination(gram_matrix, load, shrink, noise, k, pivot_rows, ones, gain):
    """Turn the Gram matrix of a centred group into its combination Theta, in place; write the noise gains.

    Theta = I - P diag(shrink), P = (G + diag(load))^-1 made to annihilate constants, so that each column of
    Theta sums to one. Columns k.. are padding: their load is one and they stay out of every sum.
    gain[j] = sum_i Theta_ij^2 noise_i / noise_j.
    """
    size = gram_matrix.shape[0]
    for i in range(size):
        gram_matrix[i, i] += load[i] if i < k else np.float32(1.0)
    invert(gram_matrix, pivot_rows)
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


@kernel
def gather(image, offsets, positions, chosen, out):
    """Columns of `out` (channels * n, size) from the aligned patches of one group."""
    n_channels = image.shape[0]
    n_pixels = offsets.shape[1]
    for channel in range(n_channels):
        plane = image[channel].reshape(-1)
        for j in range(positions.size):
            at = positions[j]
            shifts = offsets[chosen[j]]
            for u in range(n_pixels):
                out[channel * n_pixels + u, j] = plane[at + shifts[u]]


@kernel
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


@kernel
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

    pilot, working (channels, H, stride) images; residual (H', stride): patch sums of (noisy - working)^2 over
    channels; noise_energy (H', stride): patch sums of the noise variance over channels; positions, chosen (r, k) from
    matching; without_pilot: Stein's estimate, with extra_load times the noise energy as steadying load;
    boost: factor on the noise energy in pilot passes; tau: share of the noise the next working image keeps;
    n_own: positions from here on are in turned copies: they contribute and are not put back; top, left: corner of the
    accumulators in the image. Added to: sums, blended (channels, h, w); weights, kept (h, w), which hold each
    patch's weight at its top left corner.
    """
    n_channels, height, stride = pilot.shape
    n_transforms, n_pixels = transforms.shape
    k = positions.shape[1]
    size = (k + LANES - 1) // LANES * LANES
    n_rows = n_channels * n_pixels
    x = np.zeros((n_rows, size), np.float32)
    z = np.zeros((n_rows, size), np.float32)
    estimate = np.empty((n_rows, size), np.float32)
    theta = np.empty((size, size), np.float32)
    pivot_rows = np.empty((4, size), np.float32)
    ones = np.empty(size, np.float32)
    gain = np.empty(size, np.float32)
    load = np.ones(size, np.float32)
    shrink = np.zeros(size, np.float32)
    noise = np.ones(size, np.float32)
    acc_stride = sums.shape[2]
    offsets = np.empty((n_transforms, n_pixels), np.int64)
    places = np.empty((n_transforms, n_pixels), np.int64)
    for g in range(n_transforms):
        for u in range(n_pixels):
            v = transforms[g, u]
            offsets[g, u] = v // patch_size * stride + v % patch_size
            places[g, u] = v // patch_size * acc_stride + v % patch_size
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
        gram(x, theta)
        combination(theta, load, shrink, noise, k, pivot_rows, ones, gain)
        multiply(z, theta, estimate)
        for j in range(k):
            at = positions[r, j]
            if at >= n_own:
                continue
            shifts = places[chosen[r, j]]
            weight = aggregation_weight(gain[j], least_gain)
            faded = weight * (one - blend)
            corner = (at // stride - top) * acc_stride + at % stride - left
            weights.reshape(-1)[corner] += weight
            kept.reshape(-1)[corner] += weight - faded
            for channel in range(n_channels):
                total = sums[channel].reshape(-1)
                mixed = blended[channel].reshape(-1)
                for u in range(n_pixels):
                    value = estimate[channel * n_pixels + u, j]
                    total[corner + shifts[u]] += weight * value
                    mixed[corner + shifts[u]] += faded * value
