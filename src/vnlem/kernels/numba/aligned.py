"""The estimate of a pixel from its neighbours: weights W', alignment, gamma-power regression.

The regression is argmin over P of sum_j w_j (|P - P_j|^2 + delta)^(gamma/2) by iteratively reweighted least
squares. Its points never leave the span of the patches, so the result is told as the share of each patch in
it; the estimate adds up the neighbours' central pixels with these shares. Patches are taken as differences
to the pixel's own: then |P - P_j|^2 = |P|^2 - 2 <P, P_j> + |P_j|^2 loses no digits that matter, and needs one
multiply-add per number.

The pixel's own patch is not rotated, so the paper compares its pixels, with all their noise, to interpolated
ones. What the pixels have beyond the features (`sharp`) is one more coordinate, in which the own patch
differs from all others.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.elementary import exp_negative, power_inplace
from vnlem.kernels.numba.irls import DELTA, MAX_ITERATIONS
from vnlem.kernels.numba.jit import allocating, nested
from vnlem.kernels.numba.neighbours import IDENTITY
from vnlem.kernels.numba.scratch import empty, zeros
from vnlem.kernels.numba.vectors import (
    LANES,
    item,
    larger,
    load,
    minus,
    multiply_add,
    plus,
    spread,
    store,
    times,
    total,
    totals,
)

# Patches whose products with the point are formed together.
TOGETHER = 8
# Numbers of one patch each come in multiples of this: loops over them have no remainder.
WHOLE = 64


class Estimator(NamedTuple):
    """Buffers of one worker; rows are a multiple of TOGETHER."""

    shares: np.ndarray  # (whole): the result
    weights: np.ndarray  # (whole), zero past the last patch
    rows: np.ndarray  # (rows, dim) aligned neighbours less the own patch
    squared: np.ndarray  # (rows) their squared lengths
    point: np.ndarray  # (dim)
    bits: np.ndarray  # int32 (whole)
    own_turn: np.ndarray  # (2, lanes)
    orders: np.ndarray  # float64 (2, orders + 1)


@nested
def whole_of(count):
    """The next multiple of WHOLE."""
    return (count + WHOLE - 1) // WHOLE * WHOLE


@allocating
def make_estimator(n_neighbors, dim, lane_order):
    """Buffers for the estimates of one tile."""
    most = (n_neighbors + TOGETHER - 1) // TOGETHER * TOGETHER
    n_orders = 0
    for order in lane_order:
        n_orders = max(n_orders, order + 1)
    whole = whole_of(n_neighbors)
    return Estimator(
        zeros(whole, np.float32),
        zeros(whole, np.float32),
        zeros((most, dim), np.float32),
        zeros(most, np.float32),
        empty(dim, np.float32),
        empty(whole, np.int32),
        empty((2, dim // 2), np.float32),
        empty((2, n_orders), np.float64),
    )


@nested
def shares_of(flat, search, rule, bandwidth, lane_order, own, found, n, buffers):
    """Shares of a pixel's neighbours in its estimate, into buffers.shares; returns the iterations.

    bandwidth: the number of the rule's.
    """
    weights, squared = buffers.weights, found.squared
    whole = whole_of(n)
    sharp, inverse = flat.sharp[own], rule.inverse_bandwidths[bandwidth]
    for j in range(whole):
        weights[j] = exp_negative(max(squared[j] + sharp - rule.noise, np.float32(0)) * inverse)
    for j in range(n, whole):
        weights[j] = 0
    own_at = -1
    largest = np.float32(0)
    for j in range(n):
        if found.position[j] == own:
            own_at = j
            weights[j] = exp_negative(max(squared[j] - rule.noise, np.float32(0)) * inverse)
        else:
            largest = max(largest, weights[j])
    if rule.own_as_best and own_at >= 0 and n > 1:
        # Alone among vanishing weights the pixel keeps a weight, and its value.
        weights[own_at] = max(largest, np.float32(1e-6))
    if rule.gamma == np.float32(2):
        _normalise(weights, whole, buffers.shares)
        return 0
    turn_of(flat.angle[own], lane_order, buffers.orders, buffers.own_turn)
    align(flat, search, own, found, n, buffers)
    _separate(flat, lane_order, own, found, n, buffers)
    return regression(n, rule.gamma, rule.step, buffers)


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
def align(flat, search, own, found, n, buffers):
    """Neighbours turned onto the pixel's own patch, in its canonical frame, less that patch: buffers.rows.

    A patch turned by an angle: order k is multiplied by exp(-i k angle). A neighbour that is not rotated is
    taken from the image's frame into the own one.
    """
    lanes = flat.canonical.shape[1] // 2
    mine = flat.canonical[own]
    for j in range(n):
        which, place = found.which[j], found.position[j]
        row = buffers.rows[j]
        if place == own:
            for f in range(0, 2 * lanes, LANES):
                store(row, f, spread(np.float32(0)))
            buffers.squared[j] = 0
            continue
        if which == IDENTITY:
            patch = flat.raw[place]
            cos, sin = buffers.own_turn[0], buffers.own_turn[1]
            sign = spread(np.float32(-1))
        else:
            patch = flat.canonical[place]
            cos, sin = search.cos[abs(which)], search.sin[abs(which)]
            sign = spread(np.float32(1 if which >= 0 else -1))
        # Two sums: of one each product would wait for the one before.
        squares_re, squares_im = spread(np.float32(0)), spread(np.float32(0))
        for f in range(0, lanes, LANES):
            re, im = load(patch, f), load(patch, lanes + f)
            c, s = load(cos, f), times(sign, load(sin, f))
            turned_re = multiply_add(im, s, minus(times(re, c), load(mine, f)))
            turned_im = minus(minus(times(im, c), load(mine, lanes + f)), times(re, s))
            store(row, f, turned_re)
            store(row, lanes + f, turned_im)
            squares_re = multiply_add(turned_re, turned_re, squares_re)
            squares_im = multiply_add(turned_im, turned_im, squares_im)
        buffers.squared[j] = total(plus(squares_re, squares_im))


@nested
def _separate(flat, lane_order, own, found, n, buffers):
    """The coordinate in which the own patch differs from all others: an imaginary part of order zero."""
    sharp = flat.sharp[own]
    if sharp == np.float32(0):
        return
    spare = 0
    while lane_order[spare] != 0:
        spare += 1
    for j in range(n):
        if found.position[j] != own:
            buffers.rows[j, lane_order.shape[0] + spare] = -np.sqrt(sharp)
            buffers.squared[j] += sharp


@nested
def regression(n, gamma, smallest_step, buffers):
    """IRLS from the weighted mean until a step is shorter than smallest_step; returns the iterations."""
    shares, weights, point = buffers.shares, buffers.weights, buffers.point
    rows, whole = (n + TOGETHER - 1) // TOGETHER * TOGETHER, whole_of(n)
    exponent = np.float32(0.5) * gamma - np.float32(1)
    _normalise(weights, whole, shares)
    for f in range(point.size):
        point[f] = 0
    even = n + n % 2
    _move(buffers.rows, shares, even, point)
    for iteration in range(1, MAX_ITERATIONS + 1):
        _squared_residuals(buffers.rows, buffers.squared, rows, point, shares)
        # Shares past the last row are zero, whose power is a number, and have no weight.
        power_inplace(shares[:whole], exponent, buffers.bits[:whole])
        for j in range(whole):
            shares[j] *= weights[j]
        _normalise(shares, whole, shares)
        # No guess from steps that shrink: below gamma = 1 they also do so, for a while, beside a saddle.
        if _move(buffers.rows, shares, even, point) < smallest_step * smallest_step:
            return iteration
    return MAX_ITERATIONS


@nested
def _normalise(weights, n, shares):
    """Shares in proportion to weights."""
    whole = np.float32(0)
    for j in range(n):
        whole += weights[j]
    factor = np.float32(1) / whole
    for j in range(n):
        shares[j] = weights[j] * factor


@nested
def _move(rows, shares, n, point):
    """point = sum_j shares[j] rows[j]; returns the squared length of the step.

    Two rows and 32 numbers at a time: eight sums, so that none waits for the one before. n is even.
    """
    squares = spread(np.float32(0))
    for f in range(0, point.size, 4 * LANES):
        a0 = spread(np.float32(0))
        a1, a2, a3, b0, b1, b2, b3 = a0, a0, a0, a0, a0, a0, a0
        for j in range(0, n, 2):
            a, b = rows[j], rows[j + 1]
            share_a, share_b = spread(item(shares, j)), spread(item(shares, j + 1))
            a0 = multiply_add(share_a, load(a, f), a0)
            a1 = multiply_add(share_a, load(a, f + LANES), a1)
            a2 = multiply_add(share_a, load(a, f + 2 * LANES), a2)
            a3 = multiply_add(share_a, load(a, f + 3 * LANES), a3)
            b0 = multiply_add(share_b, load(b, f), b0)
            b1 = multiply_add(share_b, load(b, f + LANES), b1)
            b2 = multiply_add(share_b, load(b, f + 2 * LANES), b2)
            b3 = multiply_add(share_b, load(b, f + 3 * LANES), b3)
        a0 = plus(a0, b0)
        a1 = plus(a1, b1)
        a2 = plus(a2, b2)
        a3 = plus(a3, b3)
        step0, step1 = minus(a0, load(point, f)), minus(a1, load(point, f + LANES))
        step2 = minus(a2, load(point, f + 2 * LANES))
        step3 = minus(a3, load(point, f + 3 * LANES))
        first = plus(times(step0, step0), times(step1, step1))
        second = plus(times(step2, step2), times(step3, step3))
        squares = plus(squares, plus(first, second))
        store(point, f, a0)
        store(point, f + LANES, a1)
        store(point, f + 2 * LANES, a2)
        store(point, f + 3 * LANES, a3)
    return total(squares)


@nested
def _squared_residuals(rows, squared, n, point, out):
    """out[j] = |point - rows[j]|^2 + delta; n is a multiple of TOGETHER, point.size of LANES."""
    length = spread(np.float32(0))
    for f in range(0, point.size, LANES):
        length = multiply_add(load(point, f), load(point, f), length)
    own = spread(total(length))
    two, zero, delta = spread(np.float32(2)), spread(np.float32(0)), spread(DELTA)
    for j in range(0, n, TOGETHER):
        r0, r1, r2, r3 = rows[j], rows[j + 1], rows[j + 2], rows[j + 3]
        r4, r5, r6, r7 = rows[j + 4], rows[j + 5], rows[j + 6], rows[j + 7]
        s0, s1, s2, s3, s4, s5, s6, s7 = zero, zero, zero, zero, zero, zero, zero, zero
        for f in range(0, point.size, LANES):
            p = load(point, f)
            s0 = multiply_add(p, load(r0, f), s0)
            s1 = multiply_add(p, load(r1, f), s1)
            s2 = multiply_add(p, load(r2, f), s2)
            s3 = multiply_add(p, load(r3, f), s3)
            s4 = multiply_add(p, load(r4, f), s4)
            s5 = multiply_add(p, load(r5, f), s5)
            s6 = multiply_add(p, load(r6, f), s6)
            s7 = multiply_add(p, load(r7, f), s7)
        inner = totals(s0, s1, s2, s3, s4, s5, s6, s7)
        # Rounding must not make it negative.
        distances = minus(plus(own, load(squared, j)), times(two, inner))
        store(out, j, plus(larger(distances, zero), delta))
