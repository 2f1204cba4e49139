"""VNLEM on one tile: neighbours under the rotation-invariant distance, then the gamma-power regression.

A region is the tile with its search windows, clipped to the image; positions are pixel numbers in it.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.aligned import make_estimator, shares_of, whole_of
from vnlem.kernels.numba.diffusion import rank_by_diffusion
from vnlem.kernels.numba.jit import allocating, kernel, nested
from vnlem.kernels.numba.neighbours import (
    IDENTITY,
    Span,
    Turns,
    best_turns,
    first_column,
    inner_products,
    make_turns,
    mark_windows,
    window_distances,
)
from vnlem.kernels.numba.scratch import as_row, as_rows, empty, zeros
from vnlem.kernels.numba.select import smallest
from vnlem.kernels.numba.vectors import LANES

# Pixels of a row whose windows are searched together (see window_distances); an even number.
PIXELS = 16
# Columns worked through from top to bottom before the next: the features their windows hold stay in the
# second-level cache.
BAND = 32


class Features(NamedTuple):
    """Features of every pixel of a region, as the image has them and in the canonical frame."""

    raw: np.ndarray  # (height, width, dim); the canonical ones where no unrotated match is looked at
    canonical: np.ndarray  # (height, width, dim)
    lengths: np.ndarray  # (height, width) squared lengths
    sharp: np.ndarray  # (height, width) what the patch's own pixels have beyond its features, squared
    angle: np.ndarray  # (height, width) orientation in radians
    pixels: np.ndarray  # (height, width, channels)
    width: int  # columns past it are padding, only ever read


class Flat(NamedTuple):
    """A region with one index for row and column."""

    raw: np.ndarray
    canonical: np.ndarray
    lengths: np.ndarray
    sharp: np.ndarray
    angle: np.ndarray
    pixels: np.ndarray
    stride: int  # pixels of a row, padding included


@allocating
def flattened(region):
    """Views of a region's arrays."""
    return Flat(
        as_rows(region.raw),
        as_rows(region.canonical),
        as_row(region.lengths),
        as_row(region.sharp),
        as_row(region.angle),
        as_rows(region.pixels),
        region.raw.shape[1],
    )


class Angles(NamedTuple):
    """Tables of best_turns: which rows of lanes have equal orders, and the angles for these orders."""

    starts: np.ndarray  # int64 (column blocks + 1)
    rows: np.ndarray  # int64, first lanes of the rows of each block
    kept: np.ndarray  # int64 (orders), the first column that holds each order
    repeats: np.ndarray  # int64 (the other columns, 2), a column and the one that holds the same order
    cos: np.ndarray  # (whole threes of angles, orders), cosine of order * angle
    sin: np.ndarray


class Search(NamedTuple):
    """What to look for: the window, how many to keep at each stage, the angles."""

    patch_distance: int
    n_candidates: int  # the paper's N1
    n_neighbors: int  # ceil(N1 / 2)
    with_identity: bool
    cos: np.ndarray  # (angles, lanes), cosine of order * angle
    sin: np.ndarray
    angles: Angles


class Rule(NamedTuple):
    """How distances become weights. Squared distances here are those of features.

    With a margin a rotated match counts as factor * its squared distance + offset, at both stages: rotation
    must beat the unrotated patch by more than noise can, or in flat regions noise would choose it.
    """

    with_margin: bool
    factor: np.float32
    offset: np.float32
    noise: np.float32  # what noise alone puts between equal patches; subtracted
    inverse_bandwidths: np.ndarray  # weights are exp(-corrected squared distance * one of these)
    own_as_best: bool  # the pixel itself weighs as much as its best neighbour, not 1
    gamma: np.float32
    step: np.float32  # the regression has arrived when a step is shorter


class Distances(NamedTuple):
    """Of a pixel to candidates, and what they are worked out in."""

    best: np.ndarray  # (candidates), squared
    plain: np.ndarray  # (candidates), inner products without rotation
    which: np.ndarray  # int64 (candidates), +-number of the angle that attains the best, or IDENTITY
    turns: Turns


class Scratch(NamedTuple):
    """Buffers of one worker."""

    windows: np.ndarray  # (PIXELS, rows of a window in eights of columns, in all whole_of their number)
    unturned: np.ndarray  # likewise, without rotation
    masks: np.ndarray  # (PIXELS, columns): see mark_windows
    places: np.ndarray  # int64 (windows): pixel number of each, from the window's first
    candidates: np.ndarray  # int64 (candidates + 1)
    kept: np.ndarray  # int64 (candidates + 1)
    distances: Distances


class Found(NamedTuple):
    """Neighbours of one pixel: the first entries of each array."""

    position: np.ndarray  # int64, pixel number in the region
    squared: np.ndarray  # squared distance of features; room for a whole number of them, see whole_of
    which: np.ndarray  # int64, +-number of the angle, or IDENTITY


class Neighbours(NamedTuple):
    """Neighbours of every pixel of a tile; of the K places of a pixel the first `counts` are taken."""

    position: np.ndarray  # int64 (height, width, K), as in Found
    squared: np.ndarray  # (height, width, K)
    which: np.ndarray  # int64 (height, width, K)
    counts: np.ndarray  # int64 (height, width)


@allocating
def make_scratch(search, stride):
    """Buffers for the searches of one tile. stride: pixels of a row of the region."""
    side = 2 * search.patch_distance + 1
    columns = (side + LANES) // LANES * LANES  # of the windows of two pixels side by side
    room = whole_of(side * columns)
    places = empty(side * columns, np.int64)
    for place in range(side * columns):
        places[place] = place // columns * stride + place % columns
    count = search.n_candidates
    return Scratch(
        empty((PIXELS, room), np.float32),
        empty((PIXELS, room), np.float32),
        empty((PIXELS, columns), np.float32),
        places,
        empty(count + 1, np.int64),
        empty(count + 1, np.int64),
        make_distances(search, count),
    )


@allocating
def make_distances(search, count):
    """Room for the distances to so many candidates."""
    return Distances(
        empty(whole_of(count), np.float32),
        empty(count, np.float32),
        empty(whole_of(count), np.int64),
        make_turns(search.angles),
    )


@allocating
def make_found(search):
    """Room for the neighbours of one pixel."""
    count = search.n_neighbors
    return Found(
        empty(count, np.int64),
        zeros(whole_of(count), np.float32),
        empty(count, np.int64),
    )


@nested
def accurate(flat, search, rule, own, candidates, n_candidates, distances):
    """Squared RID of a pixel to candidates, and the angle that attains it."""
    best, plain, which, turns = distances
    canonical, lengths = flat.canonical, flat.lengths
    two, zero = np.float32(2), np.float32(0)
    best_turns(canonical[own], canonical, candidates, n_candidates, search.angles, turns, best, which)
    if search.with_identity:
        inner_products(flat.raw[own], flat.raw, candidates, n_candidates, plain)
    for c in range(n_candidates):
        both = lengths[own] + lengths[candidates[c]]
        squared = max(both - two * best[c], zero)
        if rule.with_margin:
            squared = rule.factor * squared + rule.offset
        angle = which[c]
        if search.with_identity:
            # At a tie no rotation is taken: it needs no interpolation. Noise decides as often as not, so no
            # branch: it would be mispredicted.
            unturned = max(both - two * plain[c], zero)
            angle = IDENTITY if unturned <= squared else angle
            squared = min(unturned, squared)
        is_own = candidates[c] == own
        which[c] = IDENTITY if is_own else angle
        best[c] = zero if is_own else squared


@nested
def refine(flat, search, rule, own, n_candidates, scratch, found):
    """Stage two: the best of scratch.candidates by the accurate distance, into found; returns how many."""
    candidates, best, which = scratch.candidates, scratch.distances.best, scratch.distances.which
    accurate(flat, search, rule, own, candidates, n_candidates, scratch.distances)
    whole = whole_of(n_candidates)
    for c in range(n_candidates, whole):
        best[c] = np.float32(np.inf)
    n, _ = smallest(best[:whole], search.n_neighbors, -1, np.float32(0), scratch.kept)
    for k in range(n):
        c = scratch.kept[k]
        found.position[k] = candidates[c]
        found.squared[k] = best[c]
        found.which[k] = which[c]
    return n


@nested
def search_windows(region, rule, y, span, rows, scratch):
    """Stage-one distances of the pixels of a span to their windows, into scratch.windows."""
    windows, unturned = scratch.windows, scratch.unturned
    mark_windows(span, scratch.masks)
    window_distances(region.canonical, region.lengths, y, span, rows, scratch.masks, windows)
    if rule.with_margin:
        window_distances(region.raw, region.lengths, y, span, rows, scratch.masks, unturned)
        count = (rows[1] - rows[0]) * scratch.masks.shape[1]
        for p in range(span.pixels):
            turned, plain = windows[p], unturned[p]
            for c in range(count):
                turned[c] = min(rule.factor * turned[c] + rule.offset, plain[c])


@nested
def nearest(y, span, p, rows, stride, limit, guess, scratch):
    """Stage one: the N1 nearest of the window by the aligned distance, as region positions.

    scratch.windows holds the distances. limit: N1; stride: pixels of a row of the region. Returns how many,
    and a guess for the next pixel (see smallest).
    """
    values, candidates = scratch.windows[p], scratch.candidates
    columns = scratch.masks.shape[1]
    n_values = (rows[1] - rows[0]) * columns
    whole = whole_of(n_values)
    for c in range(n_values, whole):
        values[c] = np.float32(np.inf)
    left = first_column(span, p)
    own = (y - rows[0]) * columns + span.x + p - left
    values[own] = 0
    # The pixel itself in any case: without it all weights could vanish.
    n, guess = smallest(values[:whole], limit, own, guess, candidates)
    first = rows[0] * stride + left
    for c in range(n):
        candidates[c] = first + scratch.places[candidates[c]]
    return n, guess


@kernel
def neighbours_of_tile(region, search, rule, top, left, out):
    """Fill in the Neighbours of a tile whose corner is (top, left) of the region."""
    height, width = out.counts.shape
    flat = flattened(region)
    scratch = make_scratch(search, flat.stride)
    found = make_found(search)
    reach = search.patch_distance
    for y in range(top, top + height):
        rows = (max(y - reach, 0), min(y + reach + 1, region.raw.shape[0]))
        for x in range(left, left + width, PIXELS):
            span = Span(x, min(PIXELS, left + width - x), reach, region.width)
            search_windows(region, rule, y, span, rows, scratch)
            for p in range(span.pixels):
                n, _ = nearest(y, span, p, rows, flat.stride, search.n_candidates, np.float32(0), scratch)
                n = refine(flat, search, rule, y * flat.stride + x + p, n, scratch, found)
                out.counts[y - top, x + p - left] = n
                out.position[y - top, x + p - left, :n] = found.position[:n]
                out.squared[y - top, x + p - left, :n] = found.squared[:n]
                out.which[y - top, x + p - left, :n] = found.which[:n]


@nested
def central_pixel(flat, found, n, shares, out):
    """out (C) = the neighbours' central pixels, added up by their shares."""
    for channel in range(out.shape[0]):
        value = np.float32(0)
        for j in range(n):
            value += shares[j] * flat.pixels[found.position[j], channel]
        out[channel] = value


@kernel
def denoise_tile(region, search, rule, diffusion, lane_order, top, left, out):
    """Algorithm 1 for a tile: neighbours (by diffusion, where it has coordinates), weights, regression.

    lane_order: angular order of the lanes of all channels. out (bandwidths, H, W, C). Returns the number of
    IRLS iterations.
    """
    return _denoise(
        region,
        flattened(region),
        search,
        rule,
        diffusion,
        lane_order,
        (top, left),
        (
            make_scratch(search, region.raw.shape[1]),
            make_found(search),
            make_estimator(search.n_neighbors, region.raw.shape[2], lane_order),
        ),
        out,
    )


@nested
def _denoise(region, flat, search, rule, diffusion, lane_order, corner, buffers, out):
    scratch, found, estimator = buffers
    height, width = out.shape[1:3]
    top, left = corner
    by_diffusion = diffusion.embedding.shape[2] > 0
    reach = search.patch_distance
    iterations = 0
    for band in range(left, left + width, BAND):
        right = min(band + BAND, left + width)
        for y in range(top, top + height):
            rows = (max(y - reach, 0), min(y + reach + 1, region.raw.shape[0]))
            for x in range(band, right, PIXELS):
                span = Span(x, min(PIXELS, right - x), reach, region.width)
                if diffusion.blended or not by_diffusion:
                    search_windows(region, rule, y, span, rows, scratch)
                if by_diffusion:
                    rank_by_diffusion(diffusion, y, span, rows, scratch)
                guess = np.float32(0)
                for p in range(span.pixels):
                    own = y * flat.stride + x + p
                    n, guess = nearest(y, span, p, rows, flat.stride, search.n_candidates, guess, scratch)
                    n = refine(flat, search, rule, own, n, scratch, found)
                    for b in range(out.shape[0]):
                        iterations += shares_of(flat, search, rule, b, lane_order, own, found, n, estimator)
                        central_pixel(flat, found, n, estimator.shares, out[b, y - top, x + p - left])
    return iterations


@kernel
def estimate_all(region, search, rule, lane_order, pixels, position, squared, which, out):
    """The estimate of a list of pixels from neighbours found beforehand: out (pixels, C)."""
    flat = flattened(region)
    found = make_found(search)
    buffers = make_estimator(search.n_neighbors, region.raw.shape[2], lane_order)
    n = position.shape[1]
    for i in range(pixels.shape[0]):
        for j in range(n):
            found.position[j] = position[i, j]
            found.squared[j] = squared[i, j]
            found.which[j] = which[i, j]
        shares_of(flat, search, rule, 0, lane_order, pixels[i], found, n, buffers)
        central_pixel(flat, found, n, buffers.shares, out[i])


@kernel
def estimate_candidates(region, search, rule, lane_order, pixels, candidates, out):
    """The estimate of a list of pixels from the better half of given candidates: out (pixels, C)."""
    flat = flattened(region)
    scratch = make_scratch(search, flat.stride)
    found = make_found(search)
    buffers = make_estimator(search.n_neighbors, region.raw.shape[2], lane_order)
    count = candidates.shape[1]
    for i in range(pixels.shape[0]):
        for c in range(count):
            scratch.candidates[c] = candidates[i, c]
        n = refine(flat, search, rule, pixels[i], count, scratch, found)
        shares_of(flat, search, rule, 0, lane_order, pixels[i], found, n, buffers)
        central_pixel(flat, found, n, buffers.shares, out[i])
