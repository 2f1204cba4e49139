"""Ring features of a region: sample, transform, turn into the given frame."""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import allocating, kernel, nested
from vnlem.kernels.numba.scratch import as_row, empty, zeros
from vnlem.kernels.numba.vectors import (
    LANES,
    item,
    load,
    minus,
    multiply_add,
    plus,
    spread,
    store,
    times,
    transpose,
)

# Pixels of a row worked on together: few enough that a ring's samples stay in the first-level cache.
BLOCK = 64


class Scratch(NamedTuple):
    """Buffers along a block of pixels."""

    samples: np.ndarray  # (samples of a ring, BLOCK)
    mirrored: np.ndarray
    folded: np.ndarray
    table: np.ndarray  # (2 frames, dim, BLOCK)
    cos: np.ndarray  # (orders, BLOCK), of order * angle
    sin: np.ndarray
    steps: np.ndarray  # float64 (4, BLOCK), see _turns


@allocating
def _make_scratch(starts, dim, highest):
    most = 0
    for ring in range(starts.shape[0] - 1):
        most = max(most, starts[ring + 1] - starts[ring])
    cos = empty((highest + 1, BLOCK), np.float32)
    cos[:] = 1
    return Scratch(
        zeros((most, BLOCK), np.float32),
        zeros((2, most // 2 + 1, BLOCK), np.float32),
        zeros((4, most // 4 + 4, BLOCK), np.float32),
        zeros((2, dim, BLOCK), np.float32),
        cos,
        zeros((highest + 1, BLOCK), np.float32),
        zeros((4, BLOCK), np.float64),
    )


@kernel
def ring_features(planes, angles, halo, sampling, raw, canonical):
    """planes (C, k, k, H + 2 halo, W + 2 halo), angles (H, W) -> raw, canonical (H, >= W, dim).

    raw may have no rows: then it is not asked for.
    """
    scratch = _make_scratch(sampling.starts, canonical.shape[2], sampling.real.shape[1] - 1)
    _fill(planes, angles, halo, sampling, scratch, raw, canonical)


@nested
def _fill(planes, angles, halo, sampling, scratch, raw, canonical):
    """Everything runs along a block of pixels of a row, so that each step is a contiguous loop.

    The last step turns the table of coefficients over, to one vector per pixel.
    """
    height, width = angles.shape
    half = canonical.shape[2] // 2
    lanes = half // planes.shape[0]
    table = scratch.table
    for y in range(height):
        for left in range(0, width, BLOCK):
            count = min(BLOCK, width - left)
            span = (count + 15) // 16 * 16  # whole vectors; what lies past the last pixel is not used
            _turns(angles[y, left : left + count], scratch.steps, scratch.cos, scratch.sin)
            for channel in range(planes.shape[0]):
                middle = table[0, channel * lanes + sampling.centre_lane]
                turned = table[1, channel * lanes + sampling.centre_lane]
                row = planes[channel, 0, 0, y + halo, left + halo :]
                for x in range(count):
                    middle[x] = np.float32(sampling.centre) * row[x]
                for x in range(count):
                    turned[x] = middle[x]
                for ring in range(sampling.starts.shape[0] - 1):
                    first = sampling.starts[ring]
                    n = sampling.starts[ring + 1] - first
                    for s in range(n):
                        _sample_row(
                            planes[channel],
                            y + halo,
                            left + halo,
                            sampling.where[first + s],
                            sampling.weights[first + s],
                            scratch.samples[s],
                            span,
                        )
                    _fold(scratch.samples, n, span, scratch.mirrored, scratch.folded)
                    _transform_ring(ring, n, span, channel * lanes, half, sampling, scratch)
            at = (y * canonical.shape[1] + left) * 2 * half
            if raw.shape[0] > 0:
                _turn_over(as_row(table[0]), count, 2 * half, as_row(raw), at)
            _turn_over(as_row(table[1]), count, 2 * half, as_row(canonical), at)


@nested
def _turn_over(table, count, dim, out, at):
    """Vectors of `count` pixels, one after the other from out[at] on, from a table (dim, BLOCK)."""
    whole = count // LANES * LANES
    for f in range(0, dim, LANES):
        for x in range(0, whole, LANES):
            transpose(table, f * BLOCK + x, BLOCK, out, at + x * dim + f, dim)
    for x in range(whole, count):
        for f in range(dim):
            out[at + x * dim + f] = table[f * BLOCK + x]


@nested
def _transform_ring(ring, n, span, first_lane, half, sampling, scratch):
    """Coefficients of all orders of a ring, in both frames, into scratch.table."""
    table, folded = scratch.table, scratch.folded
    for k in range(sampling.lane_of.shape[1]):
        lane = sampling.lane_of[ring, k]
        if lane < 0:
            return
        at = first_lane + lane
        _combine_rows(folded[k % 2], n // 4 + 1, sampling.real[ring, k], span, table[0, at])
        if k == 0:
            _copy(table[0, at], span, table[1, at])
            continue
        _combine_rows(folded[2 + k % 2], n // 4 + 1, sampling.imag[ring, k], span, table[0, half + at])
        _turn_rows(
            table[0, at],
            table[0, half + at],
            scratch.cos[k],
            scratch.sin[k],
            span,
            table[1, at],
            table[1, half + at],
        )


@nested
def _turn_rows(re, im, cos, sin, span, out_re, out_im):
    """Turning patches by minus an angle multiplies by exp(i k angle)."""
    for x in range(0, span, LANES):
        a, b, c, s = load(re, x), load(im, x), load(cos, x), load(sin, x)
        store(out_re, x, minus(times(a, c), times(b, s)))
        store(out_im, x, multiply_add(a, s, times(b, c)))


@nested
def _turns(angles, steps, cos, sin):
    """cos, sin (highest order + 1, BLOCK) of order * angle, by the addition theorem in float64.

    steps (4, BLOCK): cosine and sine of the angle, and of the order's multiple of it.
    """
    step_cos, step_sin, c, s = steps[0], steps[1], steps[2], steps[3]
    for x in range(angles.shape[0]):
        step_cos[x], step_sin[x] = np.cos(np.float64(angles[x])), np.sin(np.float64(angles[x]))
        c[x], s[x] = 1.0, 0.0
    for k in range(1, cos.shape[0]):
        cos_k, sin_k = cos[k], sin[k]
        # The whole block, also past the last pixel: a loop whose length is known has no remainder.
        for x in range(BLOCK):
            before = c[x]
            c[x] = before * step_cos[x] - s[x] * step_sin[x]
            s[x] = s[x] * step_cos[x] + before * step_sin[x]
            cos_k[x] = c[x]
            sin_k[x] = s[x]


@nested
def _sample_row(planes, y, left, where, weights, out, span):
    """Bilinear samples at one offset, for a block of pixels.

    Past the end of a row begins the next: the planes reach farther down than any sample.
    """
    row0 = planes[where[0, 0], where[0, 1], y + where[0, 2], left + where[0, 3] :]
    row1 = planes[where[1, 0], where[1, 1], y + where[1, 2], left + where[1, 3] :]
    row2 = planes[where[2, 0], where[2, 1], y + where[2, 2], left + where[2, 3] :]
    row3 = planes[where[3, 0], where[3, 1], y + where[3, 2], left + where[3, 3] :]
    w0, w1, w2, w3 = weights
    many0, many1, many2, many3 = spread(w0), spread(w1), spread(w2), spread(w3)
    for x in range(0, span, LANES):
        first = multiply_add(many1, load(row1, x), times(many0, load(row0, x)))
        second = multiply_add(many3, load(row3, x), times(many2, load(row2, x)))
        store(out, x, plus(first, second))


@nested
def _fold(samples, count, span, mirrored, folded):
    """Samples of a ring folded onto a quarter of it, for even and odd orders: cosine (0, 1), sine (2, 3).

    cos and sin of order * angle are equal up to sign at angle, -angle, pi - angle and pi + angle, so sums
    over the ring are sums over a quarter of sums and differences of four samples, and a quarter of the work.
    """
    half, quarter = count // 2, count // 4
    for s in range(half + 1):
        if s == 0 or s == half:  # their own mirror images: they must not count twice
            _copy(samples[s], span, mirrored[0, s])
            mirrored[1, s, :span] = 0
        else:
            _add(samples[s], samples[count - s], np.float32(1), span, mirrored[0, s])
            _add(samples[s], samples[count - s], np.float32(-1), span, mirrored[1, s])
    for s in range(quarter):
        across = half - s
        _add(mirrored[0, s], mirrored[0, across], np.float32(1), span, folded[0, s])
        _add(mirrored[0, s], mirrored[0, across], np.float32(-1), span, folded[1, s])
        _add(mirrored[1, s], mirrored[1, across], np.float32(-1), span, folded[2, s])
        _add(mirrored[1, s], mirrored[1, across], np.float32(1), span, folded[3, s])
    for part in range(4):
        _copy(mirrored[part // 2, quarter], span, folded[part, quarter])


@nested
def _copy(source, span, out):
    for x in range(0, span, LANES):
        store(out, x, load(source, x))


@nested
def _add(a, b, factor, span, out):
    many = spread(factor)
    for x in range(0, span, LANES):
        store(out, x, multiply_add(many, load(b, x), load(a, x)))


@nested
def _combine_rows(rows, count, factors, span, out):
    """out = sum over s < count of factors[s] * rows[s].

    Sixteen pixels at a time, whose sums stay in registers; two sums of each, of even and of odd s. Vectors by
    name here and above: for a loop the compiler would first look, at every call, whether rows overlap.
    """
    flat = as_row(rows)
    zero = spread(np.float32(0))
    for x in range(0, span, 2 * LANES):
        even0, even1, odd0, odd1 = zero, zero, zero, zero
        # Factors are zero past the last.
        for s in range(0, count, 2):
            at = s * BLOCK + x
            factor, next_factor = spread(item(factors, s)), spread(item(factors, s + 1))
            even0 = multiply_add(factor, load(flat, at), even0)
            even1 = multiply_add(factor, load(flat, at + LANES), even1)
            odd0 = multiply_add(next_factor, load(flat, at + BLOCK), odd0)
            odd1 = multiply_add(next_factor, load(flat, at + BLOCK + LANES), odd1)
        store(out, x, plus(even0, odd0))
        store(out, x + LANES, plus(even1, odd1))
