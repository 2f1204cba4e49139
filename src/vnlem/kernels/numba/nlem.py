"""Non-local patch regression of one tile: nearest patches of the window, then IRLS over whole patches."""

import numpy as np

from vnlem.kernels.numba.elementary import exp_negative
from vnlem.kernels.numba.irls import euclidean_median, irls
from vnlem.kernels.numba.jit import allocating, kernel, nested
from vnlem.kernels.numba.patch_distance import Box, distances_at_offset, make_scratch, pairs_of_tile
from vnlem.kernels.numba.scratch import empty, zeros
from vnlem.kernels.numba.select import smallest

BLOCK = 16  # pixels a side that share one table of patches
REMAINDER = 1.2e-4  # error of the median at a pixel, in units of the image's standard deviation
NEGLIGIBLE = np.float32(1e-8)  # of the patch's own weight, one: lost in a float32 sum


@allocating
def window_distances(padded, tile, window, out):
    """out[o, y, x] = squared patch distance of pixel (top+y, left+x) to the o-th pixel of its window.

    Pixels of the window outside the image get infinity. A pair is computed once and written twice.
    """
    top, bottom, left, right = tile
    height = padded.shape[1] - 2 * window.radius_y
    width = padded.shape[2] - 2 * window.radius_x
    rows = bottom - top
    columns = right - left
    window_x = 2 * window.reach_x + 1
    middle = window.reach_y * window_x + window.reach_x
    most = (rows + window.reach_y, columns + 2 * window.reach_x)
    scratch = make_scratch(most[0], most[1], window)
    distance = empty(most, np.float32)
    for o in range(out.shape[0]):
        value = np.float32(0.0) if o == middle else np.float32(np.inf)
        for y in range(rows):
            line = out[o, y]
            for x in range(columns):
                line[x] = value
    for dy in range(window.reach_y + 1):
        for dx in range(-window.reach_x, window.reach_x + 1):
            if dy == 0 and dx <= 0:
                continue
            box = pairs_of_tile(tile, height, width, dy, dx)
            if box.y1 <= box.y0 or box.x1 <= box.x0:
                continue
            distances_at_offset(padded, box, dy, dx, window, scratch, distance)
            shift = dy * window_x + dx
            _keep(distance, box, tile, out[middle + shift])
            there = Box(box.y0 + dy, box.y1 + dy, box.x0 + dx, box.x1 + dx)
            _keep(distance, there, tile, out[middle - shift])


@nested
def _keep(distance, box, tile, out):
    """Copy the part of `distance`, whose pixels are those of the box, that lies in the tile."""
    top, bottom, left, right = tile
    begin = max(box.x0, left)
    end = min(box.x1, right)
    if end <= begin:
        return
    for y in range(max(box.y0, top), min(box.y1, bottom)):
        source = distance[y - box.y0, begin - box.x0 : end - box.x0]
        target = out[y - top, begin - left : end - left]
        for x in range(target.size):
            target[x] = source[x]


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
def nlem_tile(padded, tile, window, n_neighbors, decay, gamma, out):
    """Central value of the gamma-power regression for the pixels of one tile, written to `out` (C, H, W).

    weights exp(-rate * max(squared distance - floor, 0)) of the `n_neighbors` nearest patches.
    gamma : float32, or None for the Euclidean median (only the solver in use is compiled).
    The tile is worked through in blocks small enough that the patches they share stay in the L2 cache.
    """
    top, bottom, left, right = tile
    reach_y, reach_x = window.reach_y, window.reach_x
    n_channels = padded.shape[0]
    height = padded.shape[1] - 2 * window.radius_y
    width = padded.shape[2] - 2 * window.radius_x
    size_y = 2 * window.radius_y + 1
    size_x = 2 * window.radius_x + 1
    area = size_y * size_x
    center = window.radius_y * size_x + window.radius_x
    window_x = 2 * reach_x + 1
    window_area = (2 * reach_y + 1) * window_x
    middle = reach_y * window_x + reach_x
    # Channels share one squared distance, their mean.
    scale = np.float32(1.0 / np.sqrt(n_channels))
    n = (n_channels * area + 15) // 16 * 16
    # One column more than needed: a power of two between offsets would crowd a few cache sets.
    distances = empty((window_area, bottom - top, right - left + 1), np.float32)
    window_distances(padded, tile, window, distances[:, :, : right - left])
    near = empty((BLOCK, window_area), np.float32)
    table = zeros(((BLOCK + 2 * reach_y) * (BLOCK + 2 * reach_x), n), np.float32)
    shift = empty(window_area, np.int64)
    index = empty(n_neighbors, np.int64)
    weights = empty(n_neighbors, np.float32)
    squared = empty(n_neighbors, np.float32)
    chosen = empty(n_neighbors + 1, np.int32)
    residual = empty(n_neighbors, np.float32)
    bits = empty(n_neighbors, np.int32)
    point = zeros(n, np.float32)
    scratch = zeros(n, np.float32)
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
            for o in range(window_area):
                shift[o] = (o // window_x - reach_y) * (x1 - x0) + o % window_x - reach_x
            for y in range(block_top, min(block_top + BLOCK, bottom)):
                for o in range(window_area):
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
                        weights[j] = exp_negative(decay.rate * max(squared[j] - decay.floor, np.float32(0.0)))
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
