"""Ring features of a region: sample, transform, turn into the given frame."""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import allocating, kernel, nested
from vnlem.kernels.numba.scratch import as_row, empty, zeros
from vnlem.kernels.numba.vectors import LANES, transpose

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


class Sampling(NamedTuple):
    """Where the rings lie and what their samples make (see vnlem.features.rings)."""

    where: np.ndarray  # int64 (samples, 4, [phase y, phase x, dy, dx])
    weights: np.ndarray  # (samples, 4)
    starts: np.ndarray  # int64 (rings + 1), first sample of each ring
    real: np.ndarray  # (rings, orders, samples of a quarter)
    imag: np.ndarray
    centre: float  # weight of the central pixel
    lane_of: np.ndarray  # int64 (rings, orders), lane of a coefficient
    centre_lane: int


@kernel
def ring_features(planes, angles, halo, sampling, raw, canonical):
    """planes (C, k, k, H + 2 halo, W + 2 halo), angles (H, W) -> raw, canonical (H, >= W, dim)."""
    scratch = _make_scratch(sampling.starts, raw.shape[2], sampling.real.shape[1] - 1)
    _fill(planes, angles, halo, sampling, scratch, raw, canonical)


@nested
def _fill(planes, angles, halo, sampling, scratch, raw, canonical):
    """Everything runs along a block of pixels of a row, so that each step is a contiguous loop.

    The last step turns the table of coefficients over, to one vector per pixel.
    """
    height, width = angles.shape
    half = raw.shape[2] // 2
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
                            count,
                        )
                    _fold(scratch.samples, n, span, scratch.mirrored, scratch.folded)
                    _transform_ring(ring, n, span, channel * lanes, half, sampling, scratch)
            at = (y * raw.shape[1] + left) * 2 * half
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
    for x in range(span):
        out_re[x] = re[x] * cos[x] - im[x] * sin[x]
    for x in range(span):
        out_im[x] = re[x] * sin[x] + im[x] * cos[x]


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
def _sample_row(planes, y, left, where, weights, out, count):
    """Bilinear samples at one offset, for a block of pixels."""
    row0 = planes[where[0, 0], where[0, 1], y + where[0, 2], left + where[0, 3] :]
    row1 = planes[where[1, 0], where[1, 1], y + where[1, 2], left + where[1, 3] :]
    row2 = planes[where[2, 0], where[2, 1], y + where[2, 2], left + where[2, 3] :]
    row3 = planes[where[3, 0], where[3, 1], y + where[3, 2], left + where[3, 3] :]
    w0, w1, w2, w3 = weights
    for x in range(count):
        out[x] = w0 * row0[x] + w1 * row1[x] + w2 * row2[x] + w3 * row3[x]


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
    for x in range(span):
        out[x] = source[x]


@nested
def _add(a, b, factor, span, out):
    for x in range(span):
        out[x] = a[x] + factor * b[x]


@nested
def _combine_rows(rows, count, factors, span, out):
    """out = sum over s < count of factors[s] * rows[s]; factors are zero past the last."""
    f0, f1, f2, f3 = factors[0], factors[1], factors[2], factors[3]
    r0, r1, r2, r3 = rows[0], rows[1], rows[2], rows[3]
    for x in range(span):
        out[x] = f0 * r0[x] + f1 * r1[x] + f2 * r2[x] + f3 * r3[x]
    for s in range(4, count, 4):
        f0, f1, f2, f3 = factors[s], factors[s + 1], factors[s + 2], factors[s + 3]
        r0, r1, r2, r3 = rows[s], rows[s + 1], rows[s + 2], rows[s + 3]
        for x in range(span):
            out[x] += f0 * r0[x] + f1 * r1[x] + f2 * r2[x] + f3 * r3[x]
