"""Plain loops in place of the vector instructions of `panel` and `correlations`, see `loops`."""

import numpy as np

from vnlem.kernels.numba.jit import nested
from vnlem.kernels.numba.lengths import COLUMNS, FEW_ROWS, HALF, LANES
from vnlem.kernels.numba.loops import load, multiply_add, spread
from vnlem.kernels.numba.symmetries import SYMMETRIES

ROWS = FEW_ROWS
WIDE = COLUMNS


@nested
def _add_row(out, at, factor, values, start, columns):
    """out[at + x] += factor * values[start + x] for x < columns."""
    for x in range(columns):
        out[at + x] += factor * values[start + x]


@nested
def _add_panel(out, at, step, left, right, right_at, offsets, sign, columns):
    factors, values = left.data.reshape(-1), right.reshape(-1)
    flat = out.reshape(-1)
    for i in range(offsets.size):
        start = right_at + offsets[i]
        for a in range(ROWS):
            factor = sign * factors[left.at + a * left.step + i * left.along]
            _add_row(flat, at + a * step, factor, values, start, columns)


@nested
def add_panel(out, out_at, out_step, left, right, right_at, offsets, sign):
    _add_panel(out, out_at, out_step, left, right, right_at, offsets, sign, COLUMNS)


@nested
def add_wide_panel(out, out_at, out_step, left, right, right_at, offsets, sign):
    _add_panel(out, out_at, out_step, left, right, right_at, offsets, sign, WIDE)


@nested
def add_half_panel(out, out_at, out_step, left, right, right_at, offsets, sign):
    _add_panel(out, out_at, out_step, left, right, right_at, offsets, sign, HALF)


@nested
def _set_panel(out, at, step, left, right, right_at, offsets, columns):
    flat = out.reshape(-1)
    for a in range(ROWS):
        for x in range(columns):
            flat[at + a * step + x] = np.float32(0)
    _add_panel(out, at, step, left, right, right_at, offsets, np.float32(1), columns)


@nested
def set_panel(out, out_at, out_step, left, right, right_at, offsets):
    _set_panel(out, out_at, out_step, left, right, right_at, offsets, COLUMNS)


@nested
def set_wide_panel(out, out_at, out_step, left, right, right_at, offsets):
    _set_panel(out, out_at, out_step, left, right, right_at, offsets, WIDE)


@nested
def set_half_panel(out, out_at, out_step, left, right, right_at, offsets):
    _set_panel(out, out_at, out_step, left, right, right_at, offsets, HALF)


@nested
def correlation_panel(out, out_at, out_step, taps, image, image_at, image_step, patch):
    planes, side, plane_step = patch
    flat, factors, values = out.reshape(-1), taps.reshape(-1), image.reshape(-1)
    for a in range(ROWS):
        at = out_at + a * out_step
        for x in range(COLUMNS):
            flat[at + x] = np.float32(0)
        for plane in range(planes):
            for v in range(side):
                start = image_at + plane * plane_step + (a + v) * image_step
                for u in range(side):
                    _add_row(flat, at, factors[(plane * side + v) * side + u], values, start + u, COLUMNS)


@nested
def largest_correlation_panel(best, which, at, taps, numbers, image, image_at, offsets):
    values = image.reshape(-1)
    first, least, end = numbers
    for g in range(max(first, least), min(first + ROWS, end)):
        for x in range(0, COLUMNS, LANES):
            sums = spread(np.float32(0))
            for i in range(offsets.size):
                sums = multiply_add(spread(taps[g, i]), load(values, image_at + offsets[i] + x), sums)
            for k in range(LANES):
                if sums[k] > best[at + x + k]:
                    best[at + x + k] = sums[k]
                    which[at + x + k] = g


@nested
def symmetric_correlation_panel(best, which, at, parts, numbers, image, image_at, patch):
    values = image.reshape(-1)
    first, least = numbers
    for g in range(max(least - first, 0), SYMMETRIES):
        # The first of each four is not reflected, the others from left to right, from top to bottom, or both.
        beside = np.float32(-1 if g in (4, 2, 7, 3) else 1)
        below = np.float32(-1 if g in (6, 2, 5, 3) else 1)
        for i in range(COLUMNS):
            fit = _symmetric_fit(parts, g % 2, beside, below, values, image_at + i, patch)
            if fit > best[at + i]:
                best[at + i] = fit
                which[at + i] = first + g


@nested
def _symmetric_fit(parts, turned, beside, below, values, corner, patch):
    """Correlation with a patch, which may be turned and reflected."""
    planes, side, row_step, plane_step = patch
    half = (side + 1) // 2
    fit = np.float32(0)
    for plane in range(planes):
        for y in range(half):
            for x in range(half):
                upper = corner + plane * plane_step + y * row_step
                lower = upper + (side - 1 - 2 * y) * row_step
                other = side - 1 - x
                a, b, c, d = (
                    values[upper + x],
                    values[upper + other],
                    values[lower + x],
                    values[lower + other],
                )
                if other == x:
                    b, d = np.float32(0), np.float32(0)
                if lower == upper:
                    c, d = np.float32(0), np.float32(0)
                n = 8 * ((plane * half + y) * half + x) + 4 * turned
                fit += parts[n] * (a + b + c + d) + below * parts[n + 1] * (a + b - c - d)
                fit += beside * (parts[n + 2] * (a - b + c - d) + below * parts[n + 3] * (a - b - c + d))
    return fit


@nested
def _window_panel(out, at, weights, vectors, first, dim, steps, shape):
    """steps: from row to row of the vectors, side of a window; shape: pixels, columns."""
    row_step, side = steps
    rows, columns = shape
    flat, factors, values = out.reshape(-1), weights.reshape(-1), vectors.reshape(-1)
    for a in range(rows):
        for x in range(columns):
            flat[at + a * dim + x] = np.float32(0)
        for r in range(side):
            for c in range(side):
                start = first + r * row_step + (a + c) * dim
                factor = factors[(r * side + c) * rows + a]
                _add_row(flat, at + a * dim, factor, values, start, columns)


@nested
def window_panel(out, out_at, weights, vectors, first, dim, row_step, side):
    _window_panel(out, out_at, weights, vectors, first, dim, (row_step, side), (ROWS, COLUMNS))


@nested
def half_window_panel(out, out_at, weights, vectors, first, dim, row_step, side):
    _window_panel(out, out_at, weights, vectors, first, dim, (row_step, side), (ROWS, HALF))


@nested
def small_window_panel(out, out_at, weights, vectors, first, dim, row_step, side):
    _window_panel(out, out_at, weights, vectors, first, dim, (row_step, side), (FEW_ROWS, COLUMNS))


@nested
def half_small_window_panel(out, out_at, weights, vectors, first, dim, row_step, side):
    _window_panel(out, out_at, weights, vectors, first, dim, (row_step, side), (FEW_ROWS, HALF))


@nested
def _copy(out, out_at, source, source_at, count):
    flat, values = out.reshape(-1), source.reshape(-1)
    for a in range(count):
        flat[out_at + a] = values[source_at + a]


@nested
def copy_group(out, out_at, source, source_at):
    _copy(out, out_at, source, source_at, ROWS)


@nested
def copy_small_group(out, out_at, source, source_at):
    _copy(out, out_at, source, source_at, FEW_ROWS)
