"""A symmetric graph on the pixels of an image whose edges stay within a window, as a stencil.

The neighbours of a pixel are the same offsets everywhere, so no indices are stored; of the two equal weights
of a pair only the one at the pixel that comes first in reading order is. `weights` is (pixels, slots): slots
0.. are the forward offsets in reading order, then one for the pixel itself, then at most one that is zero.
Rows and columns of zeros around the image (`reach` of them) stand for what lies outside, so that no loop
asks where it is. Vectors are (pixels, n) with the same padding: n of them at once, memory read once for all.
"""

import numpy as np

from vnlem._kernels.jit import kernel

# Neighbours taken together in `apply`: their loads share one load and store of the running sum.
TOGETHER = 7
# Columns worked through from top to bottom before the next, so that their windows stay in the cache.
BAND = 64


@kernel
def apply(weights, weight_offsets, vectors, vector_offsets, rows, columns, stride, out):
    """out[p] = sum over neighbours c of weight(p, c) * vectors[c], on rows x columns (padded numbers).

    vector_offsets: pixel number of each neighbour less the pixel's own; weight_offsets: where its weight
    lies in the flat array, less the pixel's first slot. Both padded to a multiple of TOGETHER.
    """
    slots = weights.shape[1]
    flat = weights.reshape(-1)
    dim = vectors.shape[1]
    total = np.empty(dim, dtype=np.float32)
    for band in range(columns[0], columns[1], BAND):
        for y in range(rows[0], rows[1]):
            for x in range(band, min(band + BAND, columns[1])):
                p = y * stride + x
                q = p * slots
                for k in range(dim):
                    total[k] = 0
                for c in range(0, vector_offsets.shape[0], TOGETHER):
                    w0 = flat[q + weight_offsets[c]]
                    w1 = flat[q + weight_offsets[c + 1]]
                    w2 = flat[q + weight_offsets[c + 2]]
                    w3 = flat[q + weight_offsets[c + 3]]
                    w4 = flat[q + weight_offsets[c + 4]]
                    w5 = flat[q + weight_offsets[c + 5]]
                    w6 = flat[q + weight_offsets[c + 6]]
                    v0 = vectors[p + vector_offsets[c]]
                    v1 = vectors[p + vector_offsets[c + 1]]
                    v2 = vectors[p + vector_offsets[c + 2]]
                    v3 = vectors[p + vector_offsets[c + 3]]
                    v4 = vectors[p + vector_offsets[c + 4]]
                    v5 = vectors[p + vector_offsets[c + 5]]
                    v6 = vectors[p + vector_offsets[c + 6]]
                    for k in range(dim):
                        total[k] += (
                            w0 * v0[k]
                            + w1 * v1[k]
                            + w2 * v2[k]
                            + w3 * v3[k]
                            + w4 * v4[k]
                            + w5 * v5[k]
                            + w6 * v6[k]
                        )
                for k in range(dim):
                    out[p, k] = total[k]


@kernel
def degrees(weights, weight_offsets, rows, columns, stride, out):
    """Sum of the weights of every pixel, itself included; out (pixels) float64."""
    slots = weights.shape[1]
    flat = weights.reshape(-1)
    for y in range(rows[0], rows[1]):
        for x in range(columns[0], columns[1]):
            p = y * stride + x
            total = 0.0
            for c in range(weight_offsets.shape[0]):
                total += flat[p * slots + weight_offsets[c]]
            out[p] = total


@kernel
def scale(weights, forward, factors, rows, columns, stride):
    """weight(p, c) *= factors[p] * factors[c], in place. forward: pixel offset of each slot."""
    for y in range(rows[0], rows[1]):
        for x in range(columns[0], columns[1]):
            p = y * stride + x
            for slot in range(forward.shape[0]):
                weights[p, slot] *= factors[p] * factors[p + forward[slot]]


@kernel
def coarsen(weights, dy, dx, rows, width, reach, stride, factor, coarse, coarse_reach, coarse_stride):
    """Add up the weights between blocks of factor x factor pixels: the coarse graph's weights.

    rows: rows of the image (not padded), whole blocks. dy, dx: offsets of the forward slots. Of a pair in
    two blocks the first in reading order may lie in the later block, but then both lie in one row of blocks:
    rows of blocks can be worked on side by side.
    """
    n_forward = dy.shape[0]
    coarse_side = 2 * coarse_reach + 1
    itself = coarse_reach + coarse_reach * coarse_side
    for y in range(rows[0], rows[1]):
        top = y // factor
        for x in range(width):
            p = (y + reach) * stride + x + reach
            left = x // factor
            block = (top + coarse_reach) * coarse_stride + left + coarse_reach
            coarse[block, itself] += weights[p, n_forward]
            for slot in range(n_forward):
                w = weights[p, slot]
                if w == 0:
                    continue
                down = (y + dy[slot]) // factor - top
                right = (x + dx[slot]) // factor - left
                if down == 0 and right == 0:
                    coarse[block, itself] += w + w
                elif down == 0 and right > 0:
                    coarse[block, right - 1] += w
                elif down == 0:
                    coarse[block + right, -right - 1] += w
                else:
                    coarse[block, coarse_reach + (down - 1) * coarse_side + right + coarse_reach] += w


@kernel
def components(weights, forward, rows, columns, stride):
    """Number of connected components over edges of positive weight, by union-find."""
    parent = np.arange(weights.shape[0])
    count = (rows[1] - rows[0]) * (columns[1] - columns[0])
    for y in range(rows[0], rows[1]):
        for x in range(columns[0], columns[1]):
            p = y * stride + x
            for slot in range(forward.shape[0]):
                if forward[slot] == 0 or weights[p, slot] <= 0:
                    continue
                a, b = p, p + forward[slot]
                while parent[a] != a:
                    parent[a] = parent[parent[a]]
                    a = parent[a]
                while parent[b] != b:
                    parent[b] = parent[parent[b]]
                    b = parent[b]
                if a != b:
                    parent[max(a, b)] = min(a, b)
                    count -= 1
    return count
