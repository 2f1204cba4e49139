"""Ring features of a region: sample, transform, turn into the given frame."""

import numpy as np

from vnlem._kernels.jit import kernel, nested

# Pixels of a row worked on together: few enough that a ring's samples stay in the first-level cache.
BLOCK = 64


@kernel
def ring_features(planes, angles, halo, where, weights, starts, real, imag, centre, lane_of, centre_lane, raw, canonical):
    """planes (C, k, k, H + 2 halo, W + 2 halo), angles (H, W) -> raw, canonical (H, >= W, dim).

    lane_of (rings, orders) is the lane of a coefficient, centre_lane that of the centre. Everything runs along a block of pixels of a row,
    so that each step is a contiguous loop; the last step turns the table of coefficients over, to one vector
    per pixel.
    """
    channels = planes.shape[0]
    height, width = angles.shape
    half = raw.shape[2] // 2
    lanes = half // channels
    n_rings = starts.shape[0] - 1
    highest = real.shape[1] - 1
    most = 0
    for ring in range(n_rings):
        most = max(most, starts[ring + 1] - starts[ring])
    samples = np.zeros((most, BLOCK), dtype=np.float32)
    mirrored = np.zeros((2, most // 2 + 1, BLOCK), dtype=np.float32)
    folded = np.zeros((4, most // 4 + 4, BLOCK), dtype=np.float32)
    table = np.zeros((2, 2 * half, BLOCK), dtype=np.float32)
    cos = np.ones((highest + 1, BLOCK), dtype=np.float32)
    sin = np.zeros((highest + 1, BLOCK), dtype=np.float32)
    for y in range(height):
        for left in range(0, width, BLOCK):
            count = min(BLOCK, width - left)
            span = (count + 15) // 16 * 16  # whole vectors; what lies past the last pixel is not used
            _turns(angles[y, left : left + count], cos, sin)
            for channel in range(channels):
                middle = table[0, channel * lanes + centre_lane]
                turned = table[1, channel * lanes + centre_lane]
                for x in range(count):
                    middle[x] = np.float32(centre) * planes[channel, 0, 0, y + halo, left + x + halo]
                    turned[x] = middle[x]
                for ring in range(n_rings):
                    n = starts[ring + 1] - starts[ring]
                    for s in range(n):
                        at = starts[ring] + s
                        _sample_row(
                            planes[channel], y + halo, left + halo, where[at], weights[at], samples[s], count
                        )
                    _fold(samples, n, span, mirrored, folded)
                    for k in range(highest + 1):
                        lane = lane_of[ring, k]
                        if lane < 0:
                            break
                        at = channel * lanes + lane
                        _combine_rows(folded[k % 2], n // 4 + 1, real[ring, k], span, table[0, at])
                        if k == 0:
                            for x in range(span):
                                table[1, at, x] = table[0, at, x]
                            continue
                        _combine_rows(folded[2 + k % 2], n // 4 + 1, imag[ring, k], span, table[0, half + at])
                        _turn_rows(
                            table[0, at],
                            table[0, half + at],
                            cos[k],
                            sin[k],
                            span,
                            table[1, at],
                            table[1, half + at],
                        )
            for x in range(count):
                for f in range(2 * half):
                    raw[y, left + x, f] = table[0, f, x]
                for f in range(2 * half):
                    canonical[y, left + x, f] = table[1, f, x]


@nested
def _turn_rows(re, im, cos, sin, span, out_re, out_im):
    """Turning patches by minus an angle multiplies by exp(i k angle)."""
    for x in range(span):
        out_re[x] = re[x] * cos[x] - im[x] * sin[x]
    for x in range(span):
        out_im[x] = re[x] * sin[x] + im[x] * cos[x]


@nested
def _turns(angles, cos, sin):
    """cos, sin (highest order + 1, BLOCK) of order * angle, by the addition theorem in float64."""
    for x in range(angles.shape[0]):
        step_cos, step_sin = np.cos(np.float64(angles[x])), np.sin(np.float64(angles[x]))
        c, s = 1.0, 0.0
        for k in range(1, cos.shape[0]):
            c, s = c * step_cos - s * step_sin, s * step_cos + c * step_sin
            cos[k, x] = c
            sin[k, x] = s


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
