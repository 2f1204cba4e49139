"""Neighbours under the rotation-invariant distance, for one row of pixels of a tile.

Stage one: aligned distances to the whole window, a plain distance of canonical feature vectors. Stage two:
for the best of them the distance at every angle of the search set, from one set of sums over rings.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import allocating, inlined, kernel, nested
from vnlem.kernels.numba.scratch import as_row, empty
from vnlem.kernels.numba.vectors import (
    LANES,
    item,
    larger,
    load,
    magnitude,
    minus,
    multiply_add,
    plus,
    spread,
    store,
    times,
    totals,
    transpose,
    where_larger,
)

# Marks the angle of no rotation among the multiples of the angle step.
IDENTITY = 1 << 20
# Candidates whose angles are tried together.
TOGETHER = 16


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


class Span(NamedTuple):
    """Pixels side by side whose windows are worked on together: x, x + 1, ..."""

    x: int
    pixels: int  # how many
    reach: int  # of their windows
    width: int  # of the image


@nested
def first_column(span, p):
    """Where the rows of the window of pixel x + p begin; pixels come in pairs that begin at one column."""
    return max(span.x + p - p % 2 - span.reach, 0)


@nested
def mark_windows(span, masks):
    """masks[p] (row of a window): 0 at columns of the window of pixel x + p, infinity at the others."""
    for p in range(span.pixels):
        left = first_column(span, p)
        begin = max(span.x + p - span.reach, 0) - left
        end = min(span.x + p + span.reach + 1, span.width) - left
        mask = masks[p]
        for column in range(masks.shape[1]):
            mask[column] = np.float32(0) if begin <= column < end else np.float32(np.inf)


@nested
def window_distances(features, lengths, y, span, rows, masks, out):
    """Squared distances from the pixels of a span, in row y, to rows[0]..rows[1] of their windows.

    out (pixels, rows * columns of masks) in reading order; infinite where the masks are. All pixels take
    their turn with one row of candidates, which then lies in the first-level cache. Two pixels and eight
    candidates at a time: sixteen running sums share ten loads.
    """
    dim = features.shape[2]
    row_length = masks.shape[1]
    every = as_row(features)  # one index: two would be checked for counting from the end, per candidate
    zero, two = spread(np.float32(0)), spread(np.float32(2))
    for cy in range(rows[0], rows[1]):
        far = lengths[cy]
        at = (cy - rows[0]) * row_length
        for p in range(0, span.pixels, 2):
            x = span.x + p
            left = first_column(span, p)
            # Columns of zeros follow the image: one more pixel, and seven more candidates, can be read.
            columns = min(row_length, (span.width - left + LANES - 1) // LANES * LANES)
            mask_a, mask_b, out_a, out_b = masks[p], masks[p + 1], out[p], out[p + 1]
            for column in range(columns, row_length):
                out_a[at + column] = np.float32(np.inf)
                out_b[at + column] = np.float32(np.inf)
            own = (y * features.shape[1] + x) * dim
            length_a, length_b = spread(lengths[y, x]), spread(lengths[y, x + 1])
            for column in range(0, columns, LANES):
                cx = left + column
                c0 = (cy * features.shape[1] + cx) * dim
                c1, c2, c3, c4 = c0 + dim, c0 + 2 * dim, c0 + 3 * dim, c0 + 4 * dim
                c5, c6, c7 = c0 + 5 * dim, c0 + 6 * dim, c0 + 7 * dim
                a0, a1, a2, a3, a4, a5, a6, a7 = zero, zero, zero, zero, zero, zero, zero, zero
                b0, b1, b2, b3, b4, b5, b6, b7 = zero, zero, zero, zero, zero, zero, zero, zero
                for f in range(0, dim, LANES):
                    a, b = load(every, own + f), load(every, own + dim + f)
                    c = load(every, c0 + f)
                    a0, b0 = multiply_add(a, c, a0), multiply_add(b, c, b0)
                    c = load(every, c1 + f)
                    a1, b1 = multiply_add(a, c, a1), multiply_add(b, c, b1)
                    c = load(every, c2 + f)
                    a2, b2 = multiply_add(a, c, a2), multiply_add(b, c, b2)
                    c = load(every, c3 + f)
                    a3, b3 = multiply_add(a, c, a3), multiply_add(b, c, b3)
                    c = load(every, c4 + f)
                    a4, b4 = multiply_add(a, c, a4), multiply_add(b, c, b4)
                    c = load(every, c5 + f)
                    a5, b5 = multiply_add(a, c, a5), multiply_add(b, c, b5)
                    c = load(every, c6 + f)
                    a6, b6 = multiply_add(a, c, a6), multiply_add(b, c, b6)
                    c = load(every, c7 + f)
                    a7, b7 = multiply_add(a, c, a7), multiply_add(b, c, b7)
                others = load(far, cx)
                inner = totals(a0, a1, a2, a3, a4, a5, a6, a7)
                squared = larger(minus(plus(length_a, others), times(two, inner)), zero)
                store(out_a, at + column, plus(squared, load(mask_a, column)))
                inner = totals(b0, b1, b2, b3, b4, b5, b6, b7)
                squared = larger(minus(plus(length_b, others), times(two, inner)), zero)
                store(out_b, at + column, plus(squared, load(mask_b, column)))


class Turns(NamedTuple):
    """What best_turns works in."""

    folded: np.ndarray  # (TOGETHER * 2 * columns): the products of each candidate, u then v
    across: np.ndarray  # (2 * columns * TOGETHER): the same, candidates side by side
    which: np.ndarray  # (TOGETHER)


@allocating
def make_turns(angles):
    """Room for the products of some candidates."""
    columns = LANES * (angles.starts.shape[0] - 1)
    return Turns(
        empty(TOGETHER * 2 * columns, np.float32),
        empty(TOGETHER * 2 * columns, np.float32),
        empty(TOGETHER, np.float32),
    )


@nested
def best_turns(a, features, candidates, n_candidates, angles, turns, best, which):
    """Largest inner product of a with every candidate turned by the angles {0, +-t_1, ..., +-t_M}.

    `which` gets +-m; best and which have room for whole groups of TOGETHER. Rotation multiplies coefficients
    of one order alike, so the products u, v of the coefficients are first added over the rings. Then
    candidates lie side by side, and the sums over the orders are taken for three angles at a time. +t and -t
    share them, one even and one odd in t.
    """
    folded, across = turns.folded, turns.across
    columns = folded.shape[0] // (2 * TOGETHER)
    every, dim = as_row(features), features.shape[1]
    last = n_candidates - 1
    for c in range(0, n_candidates, TOGETHER):
        for i in range(c, min(c + TOGETHER, n_candidates), 4):
            # Past the end the last candidate is repeated.
            places = (
                candidates[i] * dim,
                candidates[min(i + 1, last)] * dim,
                candidates[min(i + 2, last)] * dim,
                candidates[min(i + 3, last)] * dim,
            )
            _fold(a, every, places, angles, folded, (i - c) * 2 * columns)
        for column in range(0, 2 * columns, LANES):
            for i in range(0, TOGETHER, LANES):
                at = i * 2 * columns + column
                transpose(folded, at, 2 * columns, across, column * TOGETHER + i, TOGETHER)
        for n in range(angles.repeats.shape[0]):
            for half in range(0, 2 * columns, columns):
                extra = TOGETHER * (half + angles.repeats[n, 0])
                kept = TOGETHER * (half + angles.repeats[n, 1])
                for i in range(0, TOGETHER, LANES):
                    store(across, kept + i, plus(load(across, kept + i), load(across, extra + i)))
        _try_angles(across, angles, best, c, turns.which)
        for i in range(TOGETHER):
            which[c + i] = np.int64(turns.which[i])


@nested
def _try_angles(across, angles, best, c, which):
    """The best of all angles for the candidates that lie side by side: best[c]..., which[0]..."""
    n_columns = across.shape[0] // (2 * TOGETHER)
    zero = spread(np.float32(0))
    lowest = spread(np.float32(-np.inf))
    best0, best1, which0, which1 = lowest, lowest, zero, zero
    for m in range(0, angles.cos.shape[0], 3):
        cos_a, cos_b, cos_c = angles.cos[m], angles.cos[m + 1], angles.cos[m + 2]
        sin_a, sin_b, sin_c = angles.sin[m], angles.sin[m + 1], angles.sin[m + 2]
        even_a0, even_a1, even_b0, even_b1, even_c0, even_c1 = zero, zero, zero, zero, zero, zero
        odd_a0, odd_a1, odd_b0, odd_b1, odd_c0, odd_c1 = zero, zero, zero, zero, zero, zero
        for k in range(angles.kept.shape[0]):
            at = TOGETHER * angles.kept[k]
            u0, u1 = load(across, at), load(across, at + LANES)
            factor = spread(item(cos_a, k))
            even_a0, even_a1 = multiply_add(factor, u0, even_a0), multiply_add(factor, u1, even_a1)
            factor = spread(item(cos_b, k))
            even_b0, even_b1 = multiply_add(factor, u0, even_b0), multiply_add(factor, u1, even_b1)
            factor = spread(item(cos_c, k))
            even_c0, even_c1 = multiply_add(factor, u0, even_c0), multiply_add(factor, u1, even_c1)
            at += TOGETHER * n_columns
            v0, v1 = load(across, at), load(across, at + LANES)
            factor = spread(item(sin_a, k))
            odd_a0, odd_a1 = multiply_add(factor, v0, odd_a0), multiply_add(factor, v1, odd_a1)
            factor = spread(item(sin_b, k))
            odd_b0, odd_b1 = multiply_add(factor, v0, odd_b0), multiply_add(factor, v1, odd_b1)
            factor = spread(item(sin_c, k))
            odd_c0, odd_c1 = multiply_add(factor, v0, odd_c0), multiply_add(factor, v1, odd_c1)
        best0, which0 = _better(even_a0, odd_a0, m, best0, which0)
        best1, which1 = _better(even_a1, odd_a1, m, best1, which1)
        best0, which0 = _better(even_b0, odd_b0, m + 1, best0, which0)
        best1, which1 = _better(even_b1, odd_b1, m + 1, best1, which1)
        best0, which0 = _better(even_c0, odd_c0, m + 2, best0, which0)
        best1, which1 = _better(even_c1, odd_c1, m + 2, best1, which1)
    store(best, c, best0)
    store(best, c + LANES, best1)
    store(which, 0, which0)
    store(which, LANES, which1)


@inlined
def _better(even, odd, number, best, which):
    """The inner product at angle +-number where it is larger than the best so far; a tie changes nothing."""
    value = plus(even, magnitude(odd))
    zero = spread(np.float32(0))
    signed = where_larger(zero, odd, spread(np.float32(-number)), spread(np.float32(number)))
    return larger(value, best), where_larger(value, best, signed, which)


@nested
def _fold(a, every, places, angles, folded, at):
    """Products u, v of coefficients (see best_turns) of a with four others, rows of equal orders added up.

    The others begin at `places`. One loop over the rows of all sets of orders: loops of one to five rows, one
    after the other, take twice the time.
    """
    lanes = a.shape[0] // 2
    columns = LANES * (angles.starts.shape[0] - 1)
    p0, p1, p2, p3 = places
    zero = spread(np.float32(0))
    u0, u1, u2, u3, v0, v1, v2, v3 = zero, zero, zero, zero, zero, zero, zero, zero
    block = 0
    for n in range(angles.rows.shape[0]):
        f = angles.rows[n]
        a_re, a_im = load(a, f), load(a, lanes + f)
        negative = minus(zero, a_im)
        re, im = load(every, p0 + f), load(every, p0 + lanes + f)
        u0 = multiply_add(a_im, im, multiply_add(a_re, re, u0))
        v0 = multiply_add(negative, re, multiply_add(a_re, im, v0))
        re, im = load(every, p1 + f), load(every, p1 + lanes + f)
        u1 = multiply_add(a_im, im, multiply_add(a_re, re, u1))
        v1 = multiply_add(negative, re, multiply_add(a_re, im, v1))
        re, im = load(every, p2 + f), load(every, p2 + lanes + f)
        u2 = multiply_add(a_im, im, multiply_add(a_re, re, u2))
        v2 = multiply_add(negative, re, multiply_add(a_re, im, v2))
        re, im = load(every, p3 + f), load(every, p3 + lanes + f)
        u3 = multiply_add(a_im, im, multiply_add(a_re, re, u3))
        v3 = multiply_add(negative, re, multiply_add(a_re, im, v3))
        if n + 1 == angles.starts[block + 1]:
            to = at + block * LANES
            store(folded, to, u0)
            store(folded, to + columns, v0)
            store(folded, to + 2 * columns, u1)
            store(folded, to + 3 * columns, v1)
            store(folded, to + 4 * columns, u2)
            store(folded, to + 5 * columns, v2)
            store(folded, to + 6 * columns, u3)
            store(folded, to + 7 * columns, v3)
            u0, u1, u2, u3, v0, v1, v2, v3 = zero, zero, zero, zero, zero, zero, zero, zero
            block += 1


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
