"""Candidates of a search window: how near each is to the reference, by shifts alone and by every transform.

For `match` and `plane_match`. The reference patch is transformed, never the candidates, so that every load
from the image is contiguous and the loops run over neighbouring candidates. Squared distances come as
|c|^2 - 2 <c, r> + |r|^2, one multiply-add per pixel.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import allocating, nested
from vnlem.kernels.numba.scratch import as_row, empty, fill, larger_of, part, smaller_of, view_at, zeros
from vnlem.kernels.numba.select import Few, largest_up_to, threshold_of
from vnlem.kernels.numba.symmetries import PARTS, SYMMETRIES, orbits_of, parts_of
from vnlem.kernels.numba.vectors import (
    BLOCK,
    COLUMNS,
    ROWS,
    bits_near,
    correlation_panel,
    largest_correlation_panel,
    symmetric_correlation_panel,
)

# With fewer turned members than one in so many, a group does without: a few are found by chance anywhere.
ONE_IN = 8
INFINITY = np.float32(np.inf)
# Distances and their bounds may be wrong by this share of themselves and of the patches' squared norm.
ROUNDING = np.float32(1e-5)


class Fits(NamedTuple):
    """The reference under every transform, and which of them fits the candidates of a row best."""

    taps: np.ndarray  # (g, pixels): the reference under every transform
    offsets: np.ndarray  # (pixels): of each pixel of a patch from its corner in the window
    parts: np.ndarray  # (g / 8, orbits, 2, 4), see `parts_of`
    best: np.ndarray  # (lanes): best correlation of a row
    which: np.ndarray  # (lanes): its transform


@allocating
def make_fits(n_transforms, patch_size, window, lanes):
    """Room for the reference of a window (planes, height, width)."""
    planes, height, width = window.shape
    area = patch_size * patch_size
    offsets = empty(planes * area, np.int64)
    for plane in range(planes):
        for u in range(area):
            offsets[plane * area + u] = (plane * height + u // patch_size) * width + u % patch_size
    return Fits(
        # Missing transforms stay zero and are not looked at.
        zeros(((n_transforms + ROWS - 1) // ROWS * ROWS, planes * area), np.float32),
        offsets,
        empty((n_transforms // SYMMETRIES, orbits_of(planes, patch_size), 2, PARTS), np.float32),
        empty(lanes, np.float32),
        empty(lanes, np.int32),
    )


@nested
def split_taps(fits, n_planes, patch_size):
    """Renew the parts of the reference from its taps."""
    for n in range(fits.parts.shape[0]):
        parts_of(fits.taps, n * SYMMETRIES, n_planes, patch_size, view_at(fits.parts, n))


@allocating
def make_few(count):
    """Room for some of so many values."""
    return Few(empty(count + BLOCK, np.float32), empty(count + BLOCK, np.int32))


@nested
def correlate(window, patch_size, taps, n_rows, out):
    """Correlation with one patch, of one plane or several.

    window (planes, ., width); taps (., pixels), of which the first patch is used; out (., columns), columns a
    multiple of 16. Rows are written in whole panels, at least n_rows of them.
    """
    planes, height, width = window.shape
    patch = (planes, patch_size, height * width)
    n_columns = out.shape[1]
    for row in range(0, n_rows, ROWS):
        for x in range(0, n_columns, COLUMNS):
            correlation_panel(
                out, row * n_columns + x, n_columns, taps, window, row * width + x, width, patch
            )


@nested
def rank_shifted(products, norms, n_rows, values):
    """Squared distances of shifted patches; infinite in rows that are not searched."""
    lanes = norms.shape[1]
    for y in range(n_rows):
        line, total = view_at(products, y), view_at(norms, y)
        value = part(values, y * lanes, (y + 1) * lanes)
        for x in range(lanes):
            value[x] = larger_of(total[x] - np.float32(2.0) * line[x], np.float32(0.0))
    for i in range(n_rows * lanes, values.size):
        values[i] = INFINITY


@nested
def correlate_near(window, patch_size, fits, y, competing, own, lines, reach):
    """The best correlation of each candidate in row y with the reference under the competing transforms.

    lines: the invariants of the row's candidates. Blocks of candidates whose invariants differ too much from
    the reference's `own` are left out: none of them can be nearer than `reach`, whatever the transform.
    Returns whether any block was looked at.
    """
    planes, height, width = window.shape
    patch = (planes, patch_size, width, height * width)
    found = False
    # A narrow window near the right border ends before the fits do: rows have room for one more block alone.
    for x in range(0, smaller_of(fits.best.size, lines[0].size - COLUMNS + 1), COLUMNS):
        if bits_near(lines[0], lines[1], x, own[0], own[1], reach) == 0:
            continue
        if not found:
            fill(fits.best, -INFINITY)
            fill(fits.which, 0)
            found = True
        at = y * width + x
        if competing[1] % SYMMETRIES == 0:
            for first in range(0, competing[1], SYMMETRIES):
                parts = as_row(view_at(fits.parts, first // SYMMETRIES))
                numbers = (first, competing[0])
                symmetric_correlation_panel(fits.best, fits.which, x, parts, numbers, window, at, patch)
        else:
            for first in range(0, competing[1], ROWS):
                all_numbers = (first, competing[0], competing[1])
                largest_correlation_panel(
                    fits.best, fits.which, x, fits.taps, all_numbers, window, at, fits.offsets
                )
    return found


@nested
def rank_moved(fits, norms, factor, penalty, values, marks):
    """Give the candidates of a row to the transform that fits them best, where its rank is better.

    All transforms have the same factor and penalty: the largest correlation has the best rank.
    """
    for x in range(values.size):
        rank = factor * larger_of(norms[x] - np.float32(2.0) * fits.best[x], np.float32(0.0)) + penalty
        value, mark, winner = values[x], marks[x], fits.which[x]
        better = rank < value
        values[x] = rank if better else value
        marks[x] = winner if better else mark


@nested
def largest_member(few, n_taken, k, guess):
    """The k-th smallest of the values that were taken, or the largest if there are fewer."""
    values = part(few.values, 0, n_taken)
    return largest_up_to(values, threshold_of(values, k, guess))


@nested
def fill_up(order, count, own):
    """The reference in every place that is left over: too few distances are numbers."""
    for j in range(count, order.size):
        order[j] = own
