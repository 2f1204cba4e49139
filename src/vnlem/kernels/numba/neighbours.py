"""Neighbours under the rotation-invariant distance, for one row of pixels of a tile.

Stage one: aligned distances to the whole window, a plain distance of canonical feature vectors. Stage two:
for the best of them the distance at every angle of the search set, from one set of sums over rings.
"""

import numpy as np

from vnlem.kernels.numba.jit import inlined, kernel, nested
from vnlem.kernels.numba.vectors import (
    LANES,
    first_equal,
    item,
    lane,
    largest,
    load,
    magnitude,
    minus,
    multiply_add,
    plus,
    spread,
    store,
    times,
)

# Marks the angle of no rotation among the multiples of the angle step.
IDENTITY = 1 << 20


@kernel
def squared_lengths(features, out):
    """Squared length of every feature vector (H, W, D) -> (H, W)."""
    height, width, dim = features.shape
    for y in range(height):
        for x in range(width):
            vector = features[y, x]
            total = np.float32(0)
            for f in range(dim):
                total += vector[f] * vector[f]
            out[y, x] = total


@nested
def window_distances(features, lengths, y, x, rows, columns, out):
    """Squared distances from pixels (y, x)..(y, x + 3) to rows[0]..rows[1] x columns[0]..columns[1].

    out (4, rows * columns) in reading order. Four pixels and three candidates at a time: twelve running
    sums share seven loads, so that arithmetic and not memory sets the pace.
    """
    dim = features.shape[2]
    a0, a1, a2, a3 = features[y, x], features[y, x + 1], features[y, x + 2], features[y, x + 3]
    length0, length1, length2, length3 = (
        lengths[y, x],
        lengths[y, x + 1],
        lengths[y, x + 2],
        lengths[y, x + 3],
    )
    n_columns = columns[1] - columns[0]
    zero = np.float32(0)
    for cy in range(rows[0], rows[1]):
        base = (cy - rows[0]) * n_columns - columns[0]
        for cx in range(columns[0], columns[1], 3):
            b0, b1, b2 = features[cy, cx], features[cy, cx + 1], features[cy, cx + 2]
            s00 = zero
            s01 = zero
            s02 = zero
            s10 = zero
            s11 = zero
            s12 = zero
            s20 = zero
            s21 = zero
            s22 = zero
            s30 = zero
            s31 = zero
            s32 = zero
            for f in range(dim):
                s00 += a0[f] * b0[f]
                s01 += a0[f] * b1[f]
                s02 += a0[f] * b2[f]
                s10 += a1[f] * b0[f]
                s11 += a1[f] * b1[f]
                s12 += a1[f] * b2[f]
                s20 += a2[f] * b0[f]
                s21 += a2[f] * b1[f]
                s22 += a2[f] * b2[f]
                s30 += a3[f] * b0[f]
                s31 += a3[f] * b1[f]
                s32 += a3[f] * b2[f]
            # Entries past the last column belong to the next row, which overwrites them.
            at = base + cx
            far0, far1, far2 = lengths[cy, cx], lengths[cy, cx + 1], lengths[cy, cx + 2]
            out[0, at] = _squared(length0, far0, s00)
            out[0, at + 1] = _squared(length0, far1, s01)
            out[0, at + 2] = _squared(length0, far2, s02)
            out[1, at] = _squared(length1, far0, s10)
            out[1, at + 1] = _squared(length1, far1, s11)
            out[1, at + 2] = _squared(length1, far2, s12)
            out[2, at] = _squared(length2, far0, s20)
            out[2, at + 1] = _squared(length2, far1, s21)
            out[2, at + 2] = _squared(length2, far2, s22)
            out[3, at] = _squared(length3, far0, s30)
            out[3, at + 1] = _squared(length3, far1, s31)
            out[3, at + 2] = _squared(length3, far2, s32)


@inlined
def _squared(length_a, length_b, inner):
    """Squared distance from squared lengths and inner product; rounding must not make it negative."""
    return max(length_a + length_b - np.float32(2) * inner, np.float32(0))


@nested
def best_turns(a, features, candidates, n_candidates, angles, folded, best, which):
    """Largest inner product of a with every candidate turned by the angles {0, +-t_1, ..., +-t_M}.

    `which` gets +-m. Rotation multiplies coefficients of one order alike, so the products u, v of the
    coefficients are first added over the rings (into `folded`, room for two times two numbers per column),
    and the sums over the orders are taken for eight angles at a time. +t and -t share them, one even and one
    odd in t.
    """
    columns = folded.shape[1] // 2
    zero = spread(np.float32(0))
    for c in range(0, n_candidates, 2):
        # Two candidates share the loads of the tables; past the end the last one is repeated.
        other = min(c + 1, n_candidates - 1)
        first, second = folded[0], folded[1]
        _fold(a, features[candidates[c]], features[candidates[other]], angles, first, second)
        top0 = np.float32(-np.inf)
        top1 = top0
        for group in range(angles.cos.shape[0]):
            cos, sin = angles.cos[group], angles.sin[group]
            even0, odd0, even1, odd1 = zero, zero, zero, zero
            # Sums of every other column: or each product would wait for the one before.
            more_even0, more_odd0, more_even1, more_odd1 = zero, zero, zero, zero
            for k in range(0, columns, 2):
                c0, s0 = load(cos, LANES * k), load(sin, LANES * k)
                even0 = multiply_add(spread(item(first, k)), c0, even0)
                odd0 = multiply_add(spread(item(first, columns + k)), s0, odd0)
                even1 = multiply_add(spread(item(second, k)), c0, even1)
                odd1 = multiply_add(spread(item(second, columns + k)), s0, odd1)
                c1, s1 = load(cos, LANES * k + LANES), load(sin, LANES * k + LANES)
                more_even0 = multiply_add(spread(item(first, k + 1)), c1, more_even0)
                more_odd0 = multiply_add(spread(item(first, columns + k + 1)), s1, more_odd0)
                more_even1 = multiply_add(spread(item(second, k + 1)), c1, more_even1)
                more_odd1 = multiply_add(spread(item(second, columns + k + 1)), s1, more_odd1)
            top0 = _keep_best(plus(even0, more_even0), plus(odd0, more_odd0), group, top0, which, c)
            top1 = _keep_best(plus(even1, more_even1), plus(odd1, more_odd1), group, top1, which, other)
        best[c] = top0
        best[other] = top1


@inlined
def _keep_best(even, odd, group, top, which, c):
    """The larger of top and the inner products at eight angles and their negatives; which[c] says whose."""
    values = plus(even, magnitude(odd))
    highest = largest(values)
    if highest > top:
        m = first_equal(values, highest)
        number = LANES * group + m
        which[c] = number if lane(odd, m) >= 0 else -number
    return max(highest, top)


@nested
def _fold(a, b, c, angles, with_b, with_c):
    """Products u, v of coefficients (see best_turns) of a with b and c, rows of equal orders added up."""
    lanes = a.shape[0] // 2
    columns = with_b.shape[0] // 2
    zero = spread(np.float32(0))
    for block in range(columns // LANES):
        b_u, b_v, c_u, c_v = zero, zero, zero, zero
        for n in range(angles.starts[block], angles.starts[block + 1]):
            f = angles.rows[n]
            a_re, a_im = load(a, f), load(a, lanes + f)
            b_re, b_im = load(b, f), load(b, lanes + f)
            b_u = multiply_add(a_re, b_re, b_u)
            b_u = multiply_add(a_im, b_im, b_u)
            b_v = multiply_add(a_re, b_im, b_v)
            b_v = minus(b_v, times(a_im, b_re))
            c_re, c_im = load(c, f), load(c, lanes + f)
            c_u = multiply_add(a_re, c_re, c_u)
            c_u = multiply_add(a_im, c_im, c_u)
            c_v = multiply_add(a_re, c_im, c_v)
            c_v = minus(c_v, times(a_im, c_re))
        store(with_b, block * LANES, b_u)
        store(with_b, columns + block * LANES, b_v)
        store(with_c, block * LANES, c_u)
        store(with_c, columns + block * LANES, c_v)


@nested
def inner_products(a, features, candidates, n_candidates, out):
    """Inner products of a with every candidate, four at a time."""
    dim = a.shape[0]
    zero = np.float32(0)
    for c in range(0, n_candidates, 4):
        # Past the end the last candidate is repeated.
        last = n_candidates - 1
        b0 = features[candidates[c]]
        b1 = features[candidates[min(c + 1, last)]]
        b2 = features[candidates[min(c + 2, last)]]
        b3 = features[candidates[min(c + 3, last)]]
        s0 = zero
        s1 = zero
        s2 = zero
        s3 = zero
        for f in range(dim):
            s0 += a[f] * b0[f]
            s1 += a[f] * b1[f]
            s2 += a[f] * b2[f]
            s3 += a[f] * b3[f]
        out[c] = s0
        out[min(c + 1, last)] = s1
        out[min(c + 2, last)] = s2
        out[min(c + 3, last)] = s3
