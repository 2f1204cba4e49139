"""Neighbours under the rotation-invariant distance, for one row of pixels of a tile.

Stage one: aligned distances to the whole window, a plain distance of canonical feature vectors. Stage two:
for the best of them the distance at every angle of the search set, from one set of sums over rings.
"""

import numpy as np

from vnlem._kernels.jit import inlined, kernel, nested

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
def best_turns(a, features, candidates, n_candidates, cos, sin, best, which):
    """Largest inner product of a with every candidate turned by the angles of the search set.

    The set is {0, +-t_1, ..., +-t_M}: cos, sin (1 + M, lanes) hold the cosine and sine of order * angle,
    with M a multiple of six. `which` gets +-m. The products of coefficients u, v are formed once; +t and -t
    share their sums, one even and one odd in the angle; six angles at a time keep all sums in registers.
    """
    lanes = cos.shape[1]
    n_angles = cos.shape[0]
    zero = np.float32(0)
    a_re, a_im = a[:lanes], a[lanes:]
    for c in range(n_candidates):
        b = features[candidates[c]]
        b_re, b_im = b[:lanes], b[lanes:]
        top = np.float32(-np.inf)
        at = 0
        for first in range(1, n_angles, 6):
            cos1, cos2, cos3 = cos[first], cos[first + 1], cos[first + 2]
            cos4, cos5, cos6 = cos[first + 3], cos[first + 4], cos[first + 5]
            sin1, sin2, sin3 = sin[first], sin[first + 1], sin[first + 2]
            sin4, sin5, sin6 = sin[first + 3], sin[first + 4], sin[first + 5]
            even0 = zero
            even1 = zero
            even2 = zero
            even3 = zero
            even4 = zero
            even5 = zero
            even6 = zero
            odd1 = zero
            odd2 = zero
            odd3 = zero
            odd4 = zero
            odd5 = zero
            odd6 = zero
            for f in range(lanes):
                u = a_re[f] * b_re[f] + a_im[f] * b_im[f]
                v = a_re[f] * b_im[f] - a_im[f] * b_re[f]
                even0 += u
                even1 += cos1[f] * u
                even2 += cos2[f] * u
                even3 += cos3[f] * u
                even4 += cos4[f] * u
                even5 += cos5[f] * u
                even6 += cos6[f] * u
                odd1 += sin1[f] * v
                odd2 += sin2[f] * v
                odd3 += sin3[f] * v
                odd4 += sin4[f] * v
                odd5 += sin5[f] * v
                odd6 += sin6[f] * v
            at = 0 if even0 > top else at
            top = max(top, even0)
            top, at = _better(even1, odd1, first, top, at)
            top, at = _better(even2, odd2, first + 1, top, at)
            top, at = _better(even3, odd3, first + 2, top, at)
            top, at = _better(even4, odd4, first + 3, top, at)
            top, at = _better(even5, odd5, first + 4, top, at)
            top, at = _better(even6, odd6, first + 5, top, at)
        best[c] = top
        which[c] = at


@inlined
def _better(even, odd, m, top, at):
    """The larger of the running best and the inner products at +m and -m, without a branch to mispredict."""
    value = even + abs(odd)
    signed = m if odd >= 0 else -m
    at = signed if value > top else at
    top = value if value > top else top
    return top, at


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
