"""Non-local patch regression of one tile: nearest patches of the window, then IRLS over whole patches."""

import numpy as np

from vnlem.kernels.numba.elementary import exp_negative
from vnlem.kernels.numba.irls import euclidean_median, irls
from vnlem.kernels.numba.jit import allocating, kernel, nested
from vnlem.kernels.numba.patch_distance import distances_at_offset, make_scratch, pairs_of_tile
from vnlem.kernels.numba.select import smallest

BLOCK = 16  # pixels a side that share one table of patches
REMAINDER = 1.2e-4  # error of the median at a pixel, in units of the image's standard deviation
NEGLIGIBLE = np.float32(1e-8)  # of the patch's own weight, one: lost in a float32 sum


@allocating
def window_distances(padded, top, bottom, left, right, radius, reach, out):
    """out[o, y, x] = squared patch distance of pixel (top+y, left+x) to the o-th pixel of its window.

    Pixels of the window outside the image get infinity. A pair is computed once and written twice.
    """
    radius_y, radius_x = radius
    reach_y, reach_x = reach
    height = padded.shape[1] - 2 * radius_y
    width = padded.shape[2] - 2 * radius_x
    rows = bottom - top
    columns = right - left
    window_x = 2 * reach_x + 1
    middle = reach_y * window_x + reach_x
    scratch = make_scratch(rows + reach_y, columns + 2 * reach_x, radius_y, radius_x)
    distance = np.empty((rows + reach_y, columns + 2 * reach_x), np.float32)
    for o in range(out.shape[0]):
        value = np.float32(0.0) if o == middle else np.float32(np.inf)
        for y in range(rows):
            line = out[o, y]
            for x in range(columns):
                line[x] = value
    for dy in range(reach_y + 1):
        for dx in range(-reach_x, reach_x + 1):
            if dy == 0 and dx <= 0:
                continue
            y0, y1, x0, x1 = pairs_of_tile(top, bottom, left, right, height, width, dy, dx)
            if y1 <= y0 or x1 <= x0:
                continue
            distances_at_offset(
                padded, y0, x0, y1 - y0, x1 - x0, dy, dx, radius_y, radius_x, scratch, distance
            )
            shift = dy * window_x + dx
            _keep(distance, y0, y1, x0, x1, top, bottom, left, right, out[middle + shift])
            _keep(
                distance,
                y0 + dy,
                y1 + dy,
                x0 + dx,
                x1 + dx,
                top,
                bottom,
                left,
                right,
                out[middle - shift],
            )


@nested
def _keep(distance, y0, y1, x0, x1, top, bottom, left, right, out):
    """Copy the part of `distance`, whose pixels are (y0..y1, x0..x1), that lies in the tile."""
    begin = max(x0, left)
    end = min(x1, right)
    if end <= begin:
        return
    for y in range(max(y0, top), min(y1, bottom)):
        source = distance[y - y0, begin - x0 : end - x0]
        target = out[y - top, begin - left : end - left]
        for x in range(target.size):
            # The running sums of a distance may end a rounding below zero.
            target[x] = max(source[x], np.float32(0.0))


@nested
def gather_patch(padded, y, x, size_y, size_x, scale, row):
    """row = scale * the patch whose first pixel is padded[:, y, x], channel after channel."""
    at = 0
    for c in range(padded.shape[0]):
        for i in range(size_y):
            line = padded[c, y + i, x : x + size_x]
            for k in range(size_x):
                row[at + k] = scale * line[k]
            at += size_x


@nested
def patch_table(padded, top, bottom, left, right, size_y, size_x, scale, table):
    """Row (y - top) * (right - left) + x - left of `table` = scale * the patch of pixel (y, x)."""
    at = 0
    for y in range(top, bottom):
        for x in range(left, right):
            gather_patch(padded, y, x, size_y, size_x, scale, table[at])
            at += 1


@kernel
def nlem_tile(padded, top, bottom, left, right, radius, reach, n_neighbors, decay, noise_floor, gamma, out):
    """Central value of the gamma-power regression for the pixels of one tile, written to `out` (C, H, W).

    weights exp(-decay * max(squared distance - noise_floor, 0)) of the `n_neighbors` nearest patches.
    gamma : float32, or None for the Euclidean median (only the solver in use is compiled).
    The tile is worked through in blocks small enough that the patches they share stay in the L2 cache.
    """
    radius_y, radius_x = radius
    reach_y, reach_x = reach
    n_channels = padded.shape[0]
    height = padded.shape[1] - 2 * radius_y
    width = padded.shape[2] - 2 * radius_x
    size_y = 2 * radius_y + 1
    size_x = 2 * radius_x + 1
    area = size_y * size_x
    center = radius_y * size_x + radius_x
    window_x = 2 * reach_x + 1
    window = (2 * reach_y + 1) * window_x
    middle = reach_y * window_x + reach_x
    # Channels share one squared distance, their mean.
    scale = np.float32(1.0 / np.sqrt(n_channels))
    n = (n_channels * area + 15) // 16 * 16
    # One column more than needed: a power of two between offsets would crowd a few cache sets.
    distances = np.empty((window, bottom - top, right - left + 1), np.float32)
    window_distances(padded, top, bottom, left, right, radius, reach, distances[:, :, : right - left])
    near = np.empty((BLOCK, window), np.float32)
    table = np.zeros(((BLOCK + 2 * reach_y) * (BLOCK + 2 * reach_x), n), np.float32)
    shift = np.empty(window, np.int64)
    index = np.empty(n_neighbors, np.int64)
    weights = np.empty(n_neighbors, np.float32)
    squared = np.empty(n_neighbors, np.float32)
    chosen = np.empty(n_neighbors + 1, np.int32)
    residual = np.empty(n_neighbors, np.float32)
    bits = np.empty(n_neighbors, np.int32)
    point = np.zeros(n, np.float32)
    scratch = np.zeros(n, np.float32)
    remainder = np.float32(REMAINDER * np.sqrt(area))  # channels are averaged: they do not add to a length
    guess = np.float32(0)
    for block_top in range(top, bottom, BLOCK):
        for block_left in range(left, right, BLOCK):
            block_right = min(block_left + BLOCK, right)
            y0 = max(0, block_top - reach_y)
            x0 = max(0, block_left - reach_x)
            y1 = min(height, block_top + BLOCK + reach_y)
            x1 = min(width, block_left + BLOCK + reach_x)
            patch_table(padded, y0, y1, x0, x1, size_y, size_x, scale, table)
            for o in range(window):
                shift[o] = (o // window_x - reach_y) * (x1 - x0) + o % window_x - reach_x
            for y in range(block_top, min(block_top + BLOCK, bottom)):
                for o in range(window):
                    line = distances[o, y - top, block_left - left : block_right - left]
                    for k in range(line.size):
                        near[k, o] = line[k]
                for x in range(block_left, block_right):
                    here = near[x - block_left]
                    count, guess = smallest(here, n_neighbors, middle, guess, chosen)
                    own = (y - y0) * (x1 - x0) + x - x0
                    for j in range(count):
                        squared[j] = here[chosen[j]]
                        index[j] = own + shift[chosen[j]]
                    for j in range(count):
                        weights[j] = exp_negative(decay * max(squared[j] - noise_floor, np.float32(0.0)))
                    count = _drop_negligible(index, weights, squared, count)
                    if gamma is None:
                        euclidean_median(
                            table, index, weights, squared, count, remainder, point, scratch, residual
                        )
                    else:
                        irls(table, index, weights, count, gamma, point, scratch, residual, bits)
                    for c in range(n_channels):
                        out[c, y, x] = point[c * area + center] / scale


@nested
def _drop_negligible(index, weights, squared, count):
    """Close the ranks where a weight is lost in a float32 sum anyway; returns the count that is left."""
    kept = 0
    for j in range(count):
        index[kept] = index[j]
        weights[kept] = weights[j]
        squared[kept] = squared[j]
        kept += np.int64(weights[j] > NEGLIGIBLE)
    return kept
