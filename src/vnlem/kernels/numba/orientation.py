"""Gradients of the smoothed image, and the arc of directions that holds most of them."""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.scratch import as_row, empty, zeros
from vnlem.kernels.numba.vectors import add_pair

# A second arc counts as an orientation from this share of the first one's mass on (as in SIFT).
SECOND_SHARE = 0.8
# Histograms filled in turn, so that equal bins of neighbouring pixels do not wait for each other.
HISTOGRAMS = 4


@kernel
def gradients(padded, gauss, slope, smallest, magnitude, direction):
    """Derivative-of-Gaussian gradient as magnitude and direction in [0, 1) of a turn.

    Differences come before sums, so that a constant image has a gradient of exactly zero.
    """
    radius = gauss.shape[0] - 1
    height, width = magnitude.shape
    full = padded.shape[1]
    smooth = empty(full, np.float32)  # smoothed along y
    sloped = empty(full, np.float32)  # differentiated along y
    gx = empty(width, np.float32)
    gy = empty(width, np.float32)
    turn = np.float32(1 / (2 * np.pi))
    for y in range(height):
        row = padded[y + radius]
        for x in range(full):
            smooth[x] = gauss[0] * row[x]
            sloped[x] = 0
        for t in range(1, radius + 1):
            above, below = padded[y + radius - t], padded[y + radius + t]
            g, d = gauss[t], slope[t]
            for x in range(full):
                smooth[x] += g * (above[x] + below[x])
                sloped[x] += d * (below[x] - above[x])
        for x in range(width):
            gx[x] = 0
            gy[x] = gauss[0] * sloped[x + radius]
        for t in range(1, radius + 1):
            g, d = gauss[t], slope[t]
            for x in range(width):
                gx[x] += d * (smooth[x + radius + t] - smooth[x + radius - t])
                gy[x] += g * (sloped[x + radius + t] + sloped[x + radius - t])
        for x in range(width):
            size = np.sqrt(gx[x] * gx[x] + gy[x] * gy[x])
            if size > smallest:
                share = np.arctan2(gy[x], gx[x]) * turn
                if share < 0:
                    share += np.float32(1)
                magnitude[y, x] = size
                direction[y, x] = share
            else:
                magnitude[y, x] = 0
                direction[y, x] = 0


class Directions(NamedTuple):
    """Of every pixel, see `vnlem.features.orientation.Orientation`; written where there is any gradient.

    All but the angle may be empty: then they are not asked for.
    """

    angle: np.ndarray
    confidence: np.ndarray
    second: np.ndarray
    has_second: np.ndarray


@kernel
def dominant_directions(magnitude, direction, offsets, weights, taper, arc_bins, found):
    """Histogram of directions over the disc, smoothed by the tapered arc; its peak and the next one."""
    bins = 36
    angle, confidence, second, has_second = found
    height, width = angle.shape
    with_details = second.size > 0
    border = (magnitude.shape[0] - height) // 2
    full = magnitude.shape[1]
    # Per pixel: the lower bin and how its magnitude is shared with the upper one.
    lower = empty(magnitude.size, np.int32)
    low_part = empty(magnitude.size, np.float32)
    high_part = empty(magnitude.size, np.float32)
    flat_magnitude, flat_direction = as_row(magnitude), as_row(direction)
    for n in range(magnitude.size):
        at = flat_direction[n] * np.float32(bins)
        bin_ = np.int32(at)
        fraction = at - np.float32(bin_)
        if bin_ >= bins:
            bin_ -= np.int32(bins)
        lower[n] = bin_
        low_part[n] = flat_magnitude[n] * (np.float32(1) - fraction)
        high_part[n] = flat_magnitude[n] * fraction
    # Whole groups of offsets; those past the last have no weight.
    n_offsets = (offsets.shape[0] + HISTOGRAMS - 1) // HISTOGRAMS * HISTOGRAMS
    shift = zeros(n_offsets, np.int64)
    share = zeros(n_offsets, np.float32)
    for o in range(offsets.shape[0]):
        shift[o] = offsets[o, 0] * full + offsets[o, 1]
        share[o] = weights[o]
    reach = taper.shape[0] - 1
    histograms = empty((HISTOGRAMS, bins + 2), np.float32)
    wrapped = empty(bins + 2 * reach, np.float32)
    # One turn, and the same once more: what follows a bin is read without counting round.
    arc = empty(2 * bins, np.float32)
    step = np.float32(2 * np.pi / bins)
    for y in range(height):
        for x in range(width):
            middle = (y + border) * full + x + border
            _collect(lower, low_part, high_part, middle, shift, share, histograms)
            total = np.float32(0)
            for b in range(bins):
                wrapped[reach + b] = (histograms[0, b] + histograms[1, b]) + (
                    histograms[2, b] + histograms[3, b]
                )
                total += wrapped[reach + b]
            if total == 0:
                continue
            for b in range(reach):
                wrapped[b] = wrapped[b + bins]
                wrapped[reach + bins + b] = wrapped[reach + b]
            for b in range(bins):
                arc[b] = taper[0] * wrapped[reach + b]
            for t in range(1, reach + 1):
                for b in range(bins):
                    arc[b] += taper[t] * (wrapped[reach + b - t] + wrapped[reach + b + t])
            best = 0
            for b in range(1, bins):
                if arc[b] > arc[best]:
                    best = b
            angle[y, x] = _peak(arc, best, bins) * step
            if not with_details:
                continue
            for b in range(bins):
                arc[bins + b] = arc[b]
            # The best arc that is a peak of its own (not the slope of the first one) and lies elsewhere.
            other = -1
            elsewhere = np.float32(0)
            for away in range(arc_bins, bins - arc_bins + 1):
                b = best + away
                elsewhere = max(elsewhere, arc[b])
                is_peak = arc[b] >= arc[b + 1] and arc[b] >= arc[b - 1]
                if is_peak and (other < 0 or arc[b] > arc[other]):
                    other = b
            other = other - bins if other >= bins else other
            confidence[y, x] = (arc[best] - elsewhere) / total
            if other >= 0 and arc[other] >= np.float32(SECOND_SHARE) * arc[best]:
                second[y, x] = _peak(arc, other, bins) * step
                has_second[y, x] = True
            else:
                second[y, x] = angle[y, x]


@nested
def _collect(lower, low_part, high_part, middle, shift, share, histograms):
    """Histograms of the directions around pixel `middle`; what wraps around is added to the first bin."""
    h0, h1, h2, h3 = histograms[0], histograms[1], histograms[2], histograms[3]
    for b in range(h0.shape[0]):
        h0[b] = 0
        h1[b] = 0
        h2[b] = 0
        h3[b] = 0
    for o in range(0, shift.shape[0], HISTOGRAMS):
        n = middle + shift[o]
        add_pair(h0, lower[n], low_part[n], high_part[n], share[o])
        n = middle + shift[o + 1]
        add_pair(h1, lower[n], low_part[n], high_part[n], share[o + 1])
        n = middle + shift[o + 2]
        add_pair(h2, lower[n], low_part[n], high_part[n], share[o + 2])
        n = middle + shift[o + 3]
        add_pair(h3, lower[n], low_part[n], high_part[n], share[o + 3])
    last = h0.shape[0] - 2
    h0[0] += (h0[last] + h1[last]) + (h2[last] + h3[last])


@nested
def _peak(arc, best, bins):
    """Position of the peak in bins, by a parabola through three arcs, in (-bins/2, bins/2]."""
    before, here, after = arc[(best - 1) % bins], arc[best], arc[(best + 1) % bins]
    curvature = before - np.float32(2) * here + after
    at = np.float32(best)
    if curvature < 0:
        at += np.float32(0.5) * (before - after) / curvature
    if at > bins // 2:
        at -= np.float32(bins)
    return at
