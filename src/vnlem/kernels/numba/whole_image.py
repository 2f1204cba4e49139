"""Exact nearest neighbours under the RID over a whole image, by a cascade of lower bounds.

No rotation changes the modulus of a coefficient, so distances of moduli bound the RID from below, whatever
the set of angles. Cheap bounds dismiss most of the image, dearer ones most of the rest, and only what is
left is searched over the angles. A bound dismisses a candidate when it lies above the distance of the k-th
best found so far.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.scratch import empty
from vnlem.kernels.numba.vnlem import Distances, Found, accurate, flattened, make_distances, make_found

BATCH = 64
# Bounds and distances are rounded differently; a candidate is dismissed only beyond this share of the
# squared lengths involved.
SLACK = np.float32(2e-6)


class Index(NamedTuple):
    """What the bounds are worked out from."""

    order_of_lane: np.ndarray  # int64 (lanes)
    order_moduli: np.ndarray  # (orders, N), see `moduli`
    ring_moduli: np.ndarray  # (N, lanes)


class Scratch(NamedTuple):
    """What a search writes to on its way."""

    batch: np.ndarray  # int64 (BATCH): candidates that no bound has dismissed
    distances: Distances  # of the batch
    products: np.ndarray  # (2, lanes)
    sums: np.ndarray  # (2, orders)
    bounds: np.ndarray  # (width): the first bound for a row of pixels
    found: Found


@kernel
def moduli(features, order_of_lane, order_moduli, ring_moduli):
    """Moduli that rotation leaves alone: per order over all rings (orders, N), per coefficient (N, lanes).

    Entries of order zero keep their sign, in ring_moduli; order_moduli[0] is their norm.
    """
    n_pixels, dim = features.shape
    lanes = dim // 2
    order_moduli[:] = 0
    for n in range(n_pixels):
        for f in range(lanes):
            re, im = features[n, f], features[n, lanes + f]
            energy = re * re + im * im
            order_moduli[order_of_lane[f], n] += energy
            ring_moduli[n, f] = re if order_of_lane[f] == 0 else np.sqrt(energy)
    for k in range(order_moduli.shape[0]):
        for n in range(n_pixels):
            order_moduli[k, n] = np.sqrt(order_moduli[k, n])


@nested
def _row_bounds(order_moduli, own, start, out):
    """The first bound for a row of pixels from number `start` on: along the row, so that it vectorises."""
    width = out.shape[0]
    for x in range(width):
        out[x] = 0
    for k in range(order_moduli.shape[0]):
        mine = order_moduli[k, own]
        row = order_moduli[k, start : start + width]
        for x in range(width):
            out[x] += (row[x] - mine) * (row[x] - mine)


@nested
def _squared_distance(a, b):
    total = np.float32(0)
    for f in range(a.shape[0]):
        total += (a[f] - b[f]) * (a[f] - b[f])
    return total


@nested
def _phase_free_bound(a, b, order_of_lane, products, sums):
    """Largest inner product that any angle of each order could give: sum over orders of |c_k|."""
    lanes = order_of_lane.shape[0]
    a_re, a_im, b_re, b_im = a[:lanes], a[lanes:], b[:lanes], b[lanes:]
    real, imag = products[0], products[1]
    for f in range(lanes):
        real[f] = a_re[f] * b_re[f] + a_im[f] * b_im[f]
    for f in range(lanes):
        imag[f] = a_re[f] * b_im[f] - a_im[f] * b_re[f]
    sums[:] = 0
    for f in range(lanes):
        k = order_of_lane[f]
        sums[0, k] += real[f]
        sums[1, k] += imag[f]
    total = sums[0, 0]
    for k in range(1, sums.shape[1]):
        total += np.sqrt(sums[0, k] * sums[0, k] + sums[1, k] * sums[1, k])
    return total


@nested
def _insert(found, n, most, position, squared, which):
    """Put a candidate among the best `most`, by distance, then position; returns how many there are."""
    if n == most:
        last_squared, last_position = found.squared[n - 1], found.position[n - 1]
        if squared > last_squared or (squared == last_squared and position > last_position):
            return n
        n -= 1
    at = n
    while at > 0 and (
        found.squared[at - 1] > squared
        or (found.squared[at - 1] == squared and found.position[at - 1] > position)
    ):
        found.squared[at] = found.squared[at - 1]
        found.position[at] = found.position[at - 1]
        found.which[at] = found.which[at - 1]
        at -= 1
    found.squared[at] = squared
    found.position[at] = position
    found.which[at] = which
    return n + 1


@nested
def nearest_in_image(region, flat, search, rule, index, own, prune, scratch, left):
    """The n_neighbors nearest of all pixels to pixel `own`, nearest first, in scratch.found; how many.

    left (4) counts all candidates, and those that each bound lets pass. Near pixels are tried first: they are
    often similar, and a small threshold dismisses the rest sooner. With prune False all are searched.
    """
    batch, distances, products, sums, bounds, found = scratch
    best, which = distances.best, distances.which
    height, stride = region.lengths.shape
    canonical, lengths = flat.canonical, flat.lengths
    most = search.n_neighbors
    own_y, own_x = own // stride, own % stride
    reach = search.patch_distance
    n = 0
    waiting = 0
    factor = rule.factor if rule.with_margin else np.float32(1)
    # With a margin a rotated match is never counted nearer than it is.
    factor = min(factor, np.float32(1))
    own_moduli, own_canonical = index.ring_moduli[own], canonical[own]
    for near in (True, False):
        top, bottom = (max(own_y - reach, 0), min(own_y + reach + 1, height)) if near else (0, height)
        for y in range(top, bottom):
            if prune:
                _row_bounds(index.order_moduli, own, y * stride, bounds)
            for x in range(region.width):
                inside = abs(y - own_y) <= reach and abs(x - own_x) <= reach
                if inside != near:
                    continue
                candidate = y * stride + x
                left[0] += 1
                if prune and n == most:
                    limit = found.squared[n - 1] / factor + SLACK * (lengths[own] + lengths[candidate])
                    if bounds[x] > limit:
                        continue
                    left[1] += 1
                    if _squared_distance(own_moduli, index.ring_moduli[candidate]) > limit:
                        continue
                    left[2] += 1
                    bound = _phase_free_bound(
                        own_canonical, canonical[candidate], index.order_of_lane, products, sums
                    )
                    if lengths[own] + lengths[candidate] - np.float32(2) * bound > limit:
                        continue
                    left[3] += 1
                batch[waiting] = candidate
                waiting += 1
                if waiting == BATCH:
                    accurate(flat, search, rule, own, batch, waiting, distances)
                    for c in range(waiting):
                        n = _insert(found, n, most, batch[c], best[c], which[c])
                    waiting = 0
        if waiting > 0:
            accurate(flat, search, rule, own, batch, waiting, distances)
            for c in range(waiting):
                n = _insert(found, n, most, batch[c], best[c], which[c])
            waiting = 0
    return n


@kernel
def neighbours_in_image(region, search, rule, index, pixels, prune, found, left):
    """nearest_in_image for a list of pixels; found: position, squared, which (pixels, n_neighbors)."""
    flat = flattened(region)
    scratch = Scratch(
        empty(BATCH, np.int64),
        make_distances(search, BATCH),
        empty((2, index.order_of_lane.shape[0]), np.float32),
        empty((2, index.order_moduli.shape[0]), np.float32),
        empty(region.width, np.float32),
        make_found(search),
    )
    _search_pixels(region, flat, search, rule, index, pixels, (prune, left), scratch, found)


@nested
def _search_pixels(region, flat, search, rule, index, pixels, pruning, scratch, found):
    prune, left = pruning
    for i in range(pixels.shape[0]):
        n = nearest_in_image(region, flat, search, rule, index, pixels[i], prune, scratch, left)
        for j in range(n):
            found.position[i, j] = scratch.found.position[j]
            found.squared[i, j] = scratch.found.squared[j]
            found.which[i, j] = scratch.found.which[j]
