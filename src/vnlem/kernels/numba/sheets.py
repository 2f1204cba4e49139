"""The images of a tile as VNLR's kernels see them, and the way back into the image.

What a tile may look at is cut out of the image and laid into one tall array per image: its sheets one below
the other (see `vnlem.neighbours.sheets`). A patch is then one number, row * stride + column of its corner in
the tall arrays, whatever it was cut from. Everything a tile computes depends on its tall arrays alone.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import brief_kernel, nested, quick_kernel
from vnlem.kernels.numba.scratch import empty, larger_of, part, smaller_of, view_at

# Candidates are compared in blocks of sixteen, so tall arrays have spare columns.
PADDING = 24


class Images(NamedTuple):
    """The images of one pass, (channels, H, W); variance also (channels, 1, 1)."""

    noisy: np.ndarray
    working: np.ndarray  # ever less noisy
    pilot: np.ndarray  # the best estimate so far
    variance: np.ndarray  # of the noise in `noisy`


class Tall(NamedTuple):
    """The tall arrays of one tile. A patch has `depth` planes, one for an image, more in a volume."""

    compared: np.ndarray  # (channels * depth, rows, stride): what patches are compared on
    pilot: np.ndarray  # (channels, depth, rows, stride)
    working: np.ndarray
    change: np.ndarray  # (noisy - working)^2
    variance: np.ndarray
    outside: np.ndarray  # (rows, stride) bytes: not zero where a sheet shows nothing of its image


class Sums(NamedTuple):
    """What groups add to an image: weighted changes per pixel, weights at the patches' top left corners."""

    changes: np.ndarray  # (..., rows, columns, 2): of the pilot and of the working image, times the weight
    weights: np.ndarray  # (channels, rows, columns)


@brief_kernel
def cut(images, weights, place, tall):
    """Copy a rectangle of the images into the tall arrays.

    weights (channels): of each channel in comparisons; place: top, left, height, width of the rectangle in
    the images, then the plane and the first row it goes to.
    """
    _cut(images, weights, place, tall)


@nested
def _cut(images, weights, place, tall):
    top, left, height, width, plane, first = place
    depth = tall.pilot.shape[1]
    varies = images.variance.shape[2] > 1
    for c in range(images.noisy.shape[0]):
        for y in range(height):
            noisy = part(view_at(images.noisy, (c, top + y)), left, left + width)
            working = part(view_at(images.working, (c, top + y)), left, left + width)
            pilot = part(view_at(images.pilot, (c, top + y)), left, left + width)
            to_working = view_at(tall.working, (c, plane, first + y))
            to_pilot = view_at(tall.pilot, (c, plane, first + y))
            to_change = view_at(tall.change, (c, plane, first + y))
            to_compared = view_at(tall.compared, (c * depth + plane, first + y))
            to_variance = view_at(tall.variance, (c, plane, first + y))
            for x in range(width):
                to_working[x] = working[x]
                to_pilot[x] = pilot[x]
                to_compared[x] = weights[c] * pilot[x]
                difference = noisy[x] - working[x]
                to_change[x] = difference * difference
            if varies:
                for x in range(width):
                    to_variance[x] = images.variance[c, top + y, left + x]
            else:
                for x in range(width):
                    to_variance[x] = images.variance[c, 0, 0]


class Totals(NamedTuple):
    """Sums of the image, (channels, H, W): as `Sums`, and the weights that the next pass will add up."""

    changes: np.ndarray
    weights: np.ndarray
    next_weights: np.ndarray


@quick_kernel
def settle(tile, place, total, patch_size, done, needed, images):
    """Add a tile's sums to those of the image, and make the changes where no more are to come, in place.

    place: y, x, height, width of the tile in the image, which it may exceed; done: the rectangle where no
    more are to come; needed: the rectangle where changes are made; both top, bottom, left, right. Where no
    more are to come the sums are cleared for the next pass, those of the tile for another tile. Returns how
    many pixels no patch covers.
    """
    top, bottom = larger_of(done[0], needed[0]), smaller_of(done[1], needed[1])
    left, right = larger_of(done[2], needed[2]), smaller_of(done[3], needed[3])
    scratch = empty((2, larger_of(right - left, 0) + patch_size), np.float32)
    _join(tile, place, total)
    missing = 0
    if right > left:
        missing = _finish(total, patch_size, (top, bottom, left, right), images, scratch)
    _clear(total, done)
    return missing


@nested
def _join(tile, place, total):
    y0, x0, height, width = place
    n_channels, n_rows, n_columns = total.weights.shape
    left, right = larger_of(0, -x0), smaller_of(width, n_columns - x0)
    for c in range(n_channels):
        for y in range(height):
            changes = view_at(tile.changes, (c, 0, y))
            weights = view_at(tile.weights, (c, y))
            if 0 <= y0 + y < n_rows:
                to_changes = view_at(total.changes, (c, y0 + y))
                to_weights = view_at(total.weights, (c, y0 + y))
                for x in range(left, right):
                    to_changes[x0 + x, 0] += changes[x, 0]
                    to_changes[x0 + x, 1] += changes[x, 1]
                    to_weights[x0 + x] += weights[x]
            for x in range(weights.size):
                changes[x, 0] = 0.0
                changes[x, 1] = 0.0
                weights[x] = 0.0


@nested
def _clear(total, place):
    """The changes are made; the next pass begins with no weight."""
    top, bottom, left, right = place
    for c in range(total.weights.shape[0]):
        for y in range(top, bottom):
            changes = part(view_at(total.changes, (c, y)), left, right)
            weights = part(view_at(total.next_weights, (c, y)), left, right)
            for x in range(right - left):
                changes[x, 0] = 0.0
                changes[x, 1] = 0.0
                weights[x] = 0.0


@nested
def _finish(total, patch_size, place, images, scratch):
    top, bottom, left, right = place
    column_sums, sums = view_at(scratch, 0), view_at(scratch, 1)
    begin = larger_of(left - patch_size + 1, 0)
    width = right - left
    missing = 0
    for c in range(total.weights.shape[0]):
        for y in range(top, bottom):
            # A pixel's weight is that of all patches that cover it: their corners lie above and to the left.
            for x in range(column_sums.size):
                column_sums[x] = 0.0
            for corner in range(larger_of(y - patch_size + 1, 0), y + 1):
                line = part(view_at(total.weights, (c, corner)), begin, right)
                into = part(column_sums, patch_size - 1 - (left - begin), column_sums.size)
                for x in range(line.size):
                    into[x] += line[x]
            for x in range(width):
                sums[x] = 0.0
            for shift in range(patch_size):
                line = part(column_sums, shift, shift + width)
                for x in range(width):
                    sums[x] += line[x]
            changes = part(view_at(total.changes, (c, y)), left, right)
            pilot = part(view_at(images.pilot, (c, y)), left, right)
            working = part(view_at(images.working, (c, y)), left, right)
            for x in range(width):
                missing += np.int64(not sums[x] > 0)
                old = working[x]
                pilot[x] = old + changes[x, 0] / sums[x]
                working[x] = old + changes[x, 1] / sums[x]
    return missing


@nested
def patch_sums(values, patch_size, scratch, out):
    """Sums of planes (depth, rows, stride) over every patch, at its corner, into out (rows, stride).

    Added up in the precision of scratch, two rows, pixel by pixel in the same order wherever the patch lies.
    Corners without a whole patch get nothing.
    """
    depth, rows, stride = values.shape
    columns, total = view_at(scratch, 0), view_at(scratch, 1)
    for y in range(rows - patch_size + 1):
        for x in range(stride):
            columns[x] = 0.0
        for plane in range(depth):
            for dy in range(patch_size):
                line = view_at(values, (plane, y + dy))
                for x in range(stride):
                    columns[x] += line[x]
        _slide(columns, patch_size, total, view_at(out, y))


@nested
def patch_squares(values, patch_size, scratch, out):
    """As `patch_sums`, of squares."""
    depth, rows, stride = values.shape
    columns, total = view_at(scratch, 0), view_at(scratch, 1)
    for y in range(rows - patch_size + 1):
        for x in range(stride):
            columns[x] = 0.0
        for plane in range(depth):
            for dy in range(patch_size):
                line = view_at(values, (plane, y + dy))
                for x in range(stride):
                    columns[x] += np.float64(line[x]) * np.float64(line[x])
        _slide(columns, patch_size, total, view_at(out, y))


@nested
def _slide(columns, patch_size, total, out):
    """Sums of patch_size numbers side by side."""
    count = columns.size - patch_size + 1
    for x in range(count):
        total[x] = columns[x]
    for shift in range(1, patch_size):
        for x in range(count):
            total[x] += columns[x + shift]
    for x in range(count):
        out[x] = total[x]
