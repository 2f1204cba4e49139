"""VNLEM's guided pass on one tile: neighbours on a pilot image, weights that know its noise, weighted mean.

A rotation must beat the unrotated patch by a margin, or in flat regions noise would choose it.
"""

import numpy as np

from vnlem._kernels.elementary import exp_negative
from vnlem._kernels.jit import kernel
from vnlem._kernels.neighbours import best_turns, inner_products, window_distances
from vnlem._kernels.vnlem import BAND, PIXELS, make_scratch, nearest


@kernel
def guided_tile(region, search, values, top, left, margin, noise, inverse_bandwidth, own_floor, out):
    """Weighted means of the noisy pixels whose patches in the pilot agree, for a tile.

    region, search : features of the pilot. values (C, H, W) : noisy pixels of the region. margin = (factor,
    offset): a rotated match counts as factor * its squared distance + offset. noise : squared distance
    that noise alone puts between equal patches, subtracted. inverse_bandwidth : weights are
    exp(-corrected * inverse_bandwidth). own_floor : weight of the pixel itself, as a share of the best other.
    out (C, H, W).
    """
    factor, offset = margin
    channels, height, width = out.shape
    dim = region.raw.shape[2]
    stride = region.raw.shape[1]
    canonical = region.canonical.reshape(-1, dim)
    raw = region.raw.reshape(-1, dim)
    lengths = region.lengths.ravel()
    scratch = make_scratch(search)
    unturned = np.empty_like(scratch.windows)
    candidates, best = scratch.candidates, scratch.best
    reach = search.patch_distance
    total = np.empty(channels, dtype=np.float32)
    two = np.float32(2)
    for band in range(left, left + width, BAND):
        right = min(band + BAND, left + width)
        for y in range(top, top + height):
            rows = (max(y - reach, 0), min(y + reach + 1, region.raw.shape[0]))
            for x in range(band, right, PIXELS):
                columns = (max(x - reach, 0), min(x + reach + PIXELS, region.width))
                used = (rows[1] - rows[0]) * (columns[1] - columns[0])
                window_distances(region.canonical, region.lengths, y, x, rows, columns, scratch.windows)
                window_distances(region.raw, region.lengths, y, x, rows, columns, unturned)
                for p in range(PIXELS):
                    for c in range(used):
                        turned = factor * scratch.windows[p, c] + offset
                        scratch.windows[p, c] = min(turned, unturned[p, c])
                for p in range(min(PIXELS, right - x)):
                    n = nearest(region, search, y, x + p, p, rows, columns, scratch)
                    own = y * stride + x + p
                    best_turns(
                        canonical[own], canonical, candidates, n, search.cos, search.sin, best, scratch.which
                    )
                    inner_products(raw[own], raw, candidates, n, scratch.plain)
                    total[:] = 0
                    weights = np.float32(0)
                    largest = np.float32(1e-6)
                    for c in range(n):
                        if candidates[c] == own:
                            continue
                        both = lengths[own] + lengths[candidates[c]]
                        turned = factor * (both - two * best[c]) + offset
                        squared = min(both - two * scratch.plain[c], turned)
                        weight = exp_negative(max(squared - noise, np.float32(0)) * inverse_bandwidth)
                        row, column = candidates[c] // stride, candidates[c] % stride
                        for channel in range(channels):
                            total[channel] += weight * values[channel, row, column]
                        weights += weight
                        largest = max(largest, weight)
                    own_weight = own_floor * largest
                    for channel in range(channels):
                        mean = total[channel] + own_weight * values[channel, y, x + p]
                        out[channel, y - top, x + p - left] = mean / (weights + own_weight)
