"""VNLEM on one tile: neighbours under the rotation-invariant distance, then the gamma-power regression.

A region is the tile with its search windows, clipped to the image; positions are pixel numbers in it.
"""

from typing import NamedTuple

import numpy as np

from vnlem._kernels.diffusion import rank_by_diffusion
from vnlem._kernels.elementary import exp_negative
from vnlem._kernels.irls import irls
from vnlem._kernels.jit import kernel, nested
from vnlem._kernels.neighbours import IDENTITY, best_turns, inner_products, window_distances
from vnlem._kernels.partial import smallest

# Pixels of a row whose windows are searched together (see window_distances).
PIXELS = 4
# Columns worked through from top to bottom before the next: the features their windows hold stay in the
# second-level cache.
BAND = 32


class Region(NamedTuple):
    """Features of every pixel of a region, as the image has them and in the canonical frame."""

    raw: np.ndarray  # (height, width, dim)
    canonical: np.ndarray  # (height, width, dim)
    lengths: np.ndarray  # (height, width) squared lengths
    angle: np.ndarray  # (height, width) orientation in radians
    width: int  # columns past it are padding, only ever read


class Search(NamedTuple):
    """What to look for: the window, how many to keep at each stage, the angles."""

    patch_distance: int
    n_candidates: int  # the paper's N1
    n_neighbors: int  # ceil(N1 / 2)
    with_identity: bool
    cos: np.ndarray  # (angles, lanes), cosine of order * angle, see best_turns
    sin: np.ndarray


class Rule(NamedTuple):
    """How distances become weights. Squared distances here are those of features.

    With a margin a rotated match counts as factor * its squared distance + offset, at both stages: rotation
    must beat the unrotated patch by more than noise can, or in flat regions noise would choose it.
    """

    with_margin: bool
    factor: np.float32
    offset: np.float32
    noise: np.float32  # what noise alone puts between equal patches; subtracted
    inverse_bandwidth: np.float32  # weights are exp(-corrected squared distance * this)
    own_as_best: bool  # the pixel itself weighs as much as its best neighbour, not 1
    gamma: np.float32


class Scratch(NamedTuple):
    """Buffers of one worker."""

    windows: np.ndarray  # (PIXELS, windows of that many pixels together + 4)
    unturned: np.ndarray  # likewise, without rotation
    values: np.ndarray  # (window)
    candidates: np.ndarray  # int64 (window + 1)
    kept: np.ndarray  # int64 (candidates + 1)
    best: np.ndarray  # (candidates)
    plain: np.ndarray  # (candidates)
    which: np.ndarray  # int64 (candidates)


class Found(NamedTuple):
    """Neighbours of one pixel: the first entries of each array."""

    position: np.ndarray  # int64, pixel number in the region
    squared: np.ndarray  # squared distance of features
    which: np.ndarray  # int64, +-number of the angle, or IDENTITY


@nested
def make_scratch(search):
    """Buffers for the searches of one tile."""
    side = 2 * search.patch_distance + 1
    together = side * (side + PIXELS - 1)
    count = search.n_candidates
    return Scratch(
        np.empty((PIXELS, together + 4), dtype=np.float32),
        np.empty((PIXELS, together + 4), dtype=np.float32),
        np.empty(side * side, dtype=np.float32),
        np.empty(side * side + 1, dtype=np.int64),
        np.empty(count + 1, dtype=np.int64),
        np.empty(count, dtype=np.float32),
        np.empty(count, dtype=np.float32),
        np.empty(count, dtype=np.int64),
    )


@nested
def make_found(search):
    """Room for the neighbours of one pixel."""
    count = search.n_neighbors
    return Found(
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.float32),
        np.empty(count, dtype=np.int64),
    )


@nested
def accurate(region, search, rule, own, candidates, n_candidates, best, plain, which):
    """Squared RID of a pixel to candidates, into best, and the angle that attains it, into which."""
    dim = region.raw.shape[2]
    canonical = region.canonical.reshape(-1, dim)
    lengths = region.lengths.ravel()
    two, zero = np.float32(2), np.float32(0)
    best_turns(canonical[own], canonical, candidates, n_candidates, search.cos, search.sin, best, which)
    if search.with_identity:
        raw = region.raw.reshape(-1, dim)
        inner_products(raw[own], raw, candidates, n_candidates, plain)
    for c in range(n_candidates):
        both = lengths[own] + lengths[candidates[c]]
        squared = max(both - two * best[c], zero)
        if rule.with_margin:
            squared = rule.factor * squared + rule.offset
        if search.with_identity:
            # At a tie no rotation is taken: it needs no interpolation.
            unturned = max(both - two * plain[c], zero)
            if unturned <= squared:
                squared = unturned
                which[c] = IDENTITY
        if candidates[c] == own:
            squared = zero
            which[c] = IDENTITY
        best[c] = squared


@nested
def refine(region, search, rule, own, n_candidates, scratch, found):
    """Stage two: the best of scratch.candidates by the accurate distance, into found; returns how many."""
    candidates, best, which = scratch.candidates, scratch.best, scratch.which
    accurate(region, search, rule, own, candidates, n_candidates, best, scratch.plain, which)
    n = smallest(best, n_candidates, search.n_neighbors, scratch.kept)
    for k in range(n):
        c = scratch.kept[k]
        found.position[k] = candidates[c]
        found.squared[k] = best[c]
        found.which[k] = which[c]
    return n


@nested
def search_windows(region, search, rule, y, x, rows, columns, scratch):
    """Stage-one distances of PIXELS pixels to their windows together, into scratch.windows."""
    window_distances(region.canonical, region.lengths, y, x, rows, columns, scratch.windows)
    if rule.with_margin:
        window_distances(region.raw, region.lengths, y, x, rows, columns, scratch.unturned)
        for p in range(PIXELS):
            turned, unturned = scratch.windows[p], scratch.unturned[p]
            for c in range((rows[1] - rows[0]) * (columns[1] - columns[0])):
                turned[c] = min(rule.factor * turned[c] + rule.offset, unturned[c])


@nested
def nearest(region, search, y, x, which, rows, columns, scratch):
    """Stage one: the N1 nearest of the window by the aligned distance, as region positions; returns how many.

    scratch.windows holds the distances to rows x columns, the windows of PIXELS pixels together;
    `which` is the number of this one.
    """
    width = region.raw.shape[1]
    left = max(x - search.patch_distance, columns[0])
    right = min(x + search.patch_distance + 1, columns[1])
    n_columns = right - left
    stride = columns[1] - columns[0]
    values = scratch.values
    for row in range(rows[1] - rows[0]):
        for column in range(n_columns):
            values[row * n_columns + column] = scratch.windows[
                which, row * stride + left - columns[0] + column
            ]
    values[(y - rows[0]) * n_columns + x - left] = 0
    n = smallest(values, (rows[1] - rows[0]) * n_columns, search.n_candidates, scratch.candidates)
    for c in range(n):
        at = scratch.candidates[c]
        scratch.candidates[c] = (rows[0] + at // n_columns) * width + left + at % n_columns
    return n


@nested
def neighbours_of_tile(region, search, rule, top, left, position, squared, which, counts):
    """Neighbours of every pixel of a tile whose corner is (top, left) of the region; arrays (H, W, K)."""
    height, width = counts.shape
    scratch = make_scratch(search)
    found = make_found(search)
    reach = search.patch_distance
    for y in range(top, top + height):
        rows = (max(y - reach, 0), min(y + reach + 1, region.raw.shape[0]))
        for x in range(left, left + width, PIXELS):
            columns = (max(x - reach, 0), min(x + reach + PIXELS, region.width))
            search_windows(region, search, rule, y, x, rows, columns, scratch)
            for p in range(min(PIXELS, left + width - x)):
                n = nearest(region, search, y, x + p, p, rows, columns, scratch)
                n = refine(region, search, rule, y * region.raw.shape[1] + x + p, n, scratch, found)
                counts[y - top, x + p - left] = n
                position[y - top, x + p - left, :n] = found.position[:n]
                squared[y - top, x + p - left, :n] = found.squared[:n]
                which[y - top, x + p - left, :n] = found.which[:n]


@nested
def align(region, search, own_turn, found, n, aligned):
    """The neighbours' features turned onto the pixel's own, in its canonical frame: rows of aligned.

    own_turn (2, lanes): cosine and sine of order * the pixel's orientation, which take a neighbour that is
    not rotated into that frame.
    """
    lanes = region.raw.shape[2] // 2
    raw = region.raw.reshape(-1, 2, lanes)
    canonical = region.canonical.reshape(-1, 2, lanes)
    out = aligned.reshape(-1, 2, lanes)
    for j in range(n):
        which, at = found.which[j], found.position[j]
        if which == IDENTITY:
            _turn(raw, at, own_turn, 0, own_turn, 1, np.float32(-1), out, j)
        else:
            m = abs(which)
            sign = np.float32(1 if which >= 0 else -1)
            _turn(canonical, at, search.cos, m, search.sin, m, sign, out, j)


@nested
def turn_of(angle, lane_order, orders, turn):
    """Cosine and sine of order * angle per lane (2, lanes), by the addition theorem in float64."""
    step_cos, step_sin = np.cos(np.float64(angle)), np.sin(np.float64(angle))
    orders[0, 0] = 1
    orders[1, 0] = 0
    for k in range(1, orders.shape[1]):
        orders[0, k] = orders[0, k - 1] * step_cos - orders[1, k - 1] * step_sin
        orders[1, k] = orders[1, k - 1] * step_cos + orders[0, k - 1] * step_sin
    for f in range(lane_order.shape[0]):
        turn[0, f] = orders[0, lane_order[f]]
        turn[1, f] = orders[1, lane_order[f]]


@nested
def _turn(table, at, cos, cos_row, sin, sin_row, sign, out, row):
    """A patch turned by an angle: order k is multiplied by exp(-i k angle). table, out (n, 2, lanes)."""
    # Two loops: with one, the check that stores and loads do not overlap is too long for the vectoriser.
    for f in range(cos.shape[1]):
        out[row, 0, f] = table[at, 0, f] * cos[cos_row, f] + table[at, 1, f] * (sign * sin[sin_row, f])
    for f in range(cos.shape[1]):
        out[row, 1, f] = table[at, 1, f] * cos[cos_row, f] - table[at, 0, f] * (sign * sin[sin_row, f])


class Estimator(NamedTuple):
    """Buffers of the regression."""

    weights: np.ndarray  # (neighbours)
    aligned: np.ndarray  # (neighbours, dim)
    everyone: np.ndarray  # int64 (neighbours), 0, 1, 2, ...
    point: np.ndarray  # (dim)
    total: np.ndarray  # (dim)
    residual: np.ndarray  # (neighbours)
    bits: np.ndarray  # int32 (neighbours)
    own_turn: np.ndarray  # (2, lanes)
    orders: np.ndarray  # float64 (2, orders + 1)


@nested
def make_estimator(search, dim, lane_order):
    """Buffers for the estimates of one tile."""
    most = search.n_neighbors
    return Estimator(
        np.empty(most, dtype=np.float32),
        np.zeros((most, dim), dtype=np.float32),
        np.arange(most),
        np.empty(dim, dtype=np.float32),
        np.empty(dim, dtype=np.float32),
        np.empty(most, dtype=np.float32),
        np.empty(most, dtype=np.int32),
        np.empty((2, dim // 2), dtype=np.float32),
        np.empty((2, lane_order.max() + 1), dtype=np.float64),
    )


@nested
def estimate(region, search, rule, lane_order, y, x, found, n, buffers):
    """Weights W' and the gamma-power regression over a pixel's aligned neighbours, into buffers.point."""
    weights = buffers.weights
    own = y * region.raw.shape[1] + x
    at = -1
    largest = np.float32(0)
    for j in range(n):
        corrected = max(found.squared[j] - rule.noise, np.float32(0))
        weights[j] = exp_negative(corrected * rule.inverse_bandwidth)
        if found.position[j] == own:
            at = j
        else:
            largest = max(largest, weights[j])
    if rule.own_as_best and at >= 0 and n > 1:
        # Alone among vanishing weights the pixel keeps a weight, and its value.
        weights[at] = max(largest, np.float32(1e-6))
    turn_of(region.angle[y, x], lane_order, buffers.orders, buffers.own_turn)
    align(region, search, buffers.own_turn, found, n, buffers.aligned)
    return irls(
        buffers.aligned,
        buffers.everyone,
        weights,
        n,
        rule.gamma,
        buffers.point,
        buffers.total,
        buffers.residual,
        buffers.bits,
    )


@kernel
def denoise_tile(region, search, rule, diffusion, lane_order, top, left, factor, out):
    """Algorithm 1 for a tile: neighbours (by diffusion, where it has coordinates), weights, regression.

    lane_order: angular order of the lanes of all channels. The central pixel of a channel is `factor` times
    the first of its lanes. out (C, H, W). Returns the number of IRLS iterations.
    """
    channels, height, width = out.shape
    dim = region.raw.shape[2]
    lanes = dim // 2 // channels
    scratch = make_scratch(search)
    found = make_found(search)
    buffers = make_estimator(search, dim, lane_order)
    by_diffusion = diffusion.embedding.shape[2] > 0
    reach = search.patch_distance
    iterations = 0
    for band in range(left, left + width, BAND):
        right = min(band + BAND, left + width)
        for y in range(top, top + height):
            rows = (max(y - reach, 0), min(y + reach + 1, region.raw.shape[0]))
            for x in range(band, right, PIXELS):
                columns = (max(x - reach, 0), min(x + reach + PIXELS, region.width))
                if diffusion.blended or not by_diffusion:
                    search_windows(region, search, rule, y, x, rows, columns, scratch)
                if by_diffusion:
                    n_pixels = min(PIXELS, right - x)
                    rank_by_diffusion(
                        diffusion, reach, y, x, n_pixels, rows, columns, scratch.windows, scratch.values
                    )
                for p in range(min(PIXELS, right - x)):
                    n = nearest(region, search, y, x + p, p, rows, columns, scratch)
                    n = refine(region, search, rule, y * region.raw.shape[1] + x + p, n, scratch, found)
                    iterations += estimate(region, search, rule, lane_order, y, x + p, found, n, buffers)
                    for channel in range(channels):
                        out[channel, y - top, x + p - left] = buffers.point[channel * lanes] * factor
    return iterations


@kernel
def estimate_all(region, search, rule, lane_order, pixels, position, squared, which, factor, out):
    """The estimate of a list of pixels from neighbours found beforehand: out (pixels, C)."""
    dim = region.raw.shape[2]
    stride = region.raw.shape[1]
    channels = out.shape[1]
    lanes = dim // 2 // channels
    found = make_found(search)
    buffers = make_estimator(search, dim, lane_order)
    n = position.shape[1]
    for i in range(pixels.shape[0]):
        found.position[:n] = position[i]
        found.squared[:n] = squared[i]
        found.which[:n] = which[i]
        estimate(region, search, rule, lane_order, pixels[i] // stride, pixels[i] % stride, found, n, buffers)
        for channel in range(channels):
            out[i, channel] = buffers.point[channel * lanes] * factor


@kernel
def estimate_candidates(region, search, rule, lane_order, pixels, candidates, factor, out):
    """The estimate of a list of pixels from the better half of given candidates: out (pixels, C)."""
    dim = region.raw.shape[2]
    stride = region.raw.shape[1]
    channels = out.shape[1]
    lanes = dim // 2 // channels
    scratch = make_scratch(search)
    found = make_found(search)
    buffers = make_estimator(search, dim, lane_order)
    count = candidates.shape[1]
    for i in range(pixels.shape[0]):
        for c in range(count):
            scratch.candidates[c] = candidates[i, c]
        n = refine(region, search, rule, pixels[i], count, scratch, found)
        estimate(region, search, rule, lane_order, pixels[i] // stride, pixels[i] % stride, found, n, buffers)
        for channel in range(channels):
            out[i, channel] = buffers.point[channel * lanes] * factor
