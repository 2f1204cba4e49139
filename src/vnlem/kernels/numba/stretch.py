"""A square of an image made smaller or larger: rows, then columns, by a few taps for every target pixel.

The taps are those of a windowed sinc, as wide as the coarser of the two rasters asks for, so that nothing
aliases, and a target pixel depends on some pixels around its source and on nothing else.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.scratch import empty
from vnlem.kernels.numba.turn import mirrored


class Stretch(NamedTuple):
    """A change of size about the centre of a tile, the same along both axes."""

    factor: float  # target pixels per source pixel
    bases: np.ndarray  # (side): first source pixel of every target pixel, from the centre pixel of the tile
    taps: np.ndarray  # (side, taps)
    noise: np.float32  # factor on the variance of white noise


class StretchPlace(NamedTuple):
    """Where the square lies."""

    centre_y: int  # pixel of the whole image that `bases` count from
    centre_x: int
    height: int  # of the whole image
    width: int
    origin_y: int  # of the images that are given, in the whole image
    origin_x: int
    first: int  # row of the tall arrays that the stretched square begins at


@kernel
def stretch_into(images, weights, floor, stretch, place, tall):
    """Write a stretched square of all images into the tall arrays. floor: least variance."""
    side = stretch.bases.size
    low, high = stretch.bases[0], stretch.bases[side - 1] + stretch.taps.shape[1]
    half_way = empty((high - low, side), np.float32)
    square = empty((side, side), np.float32)
    _stretch_into(images, weights, floor, stretch, place, tall, half_way, square)


@nested
def _stretch_into(images, weights, floor, stretch, place, tall, half_way, square):
    side = stretch.bases.size
    first = place.first
    varies = images.variance.shape[2] > 1
    for c in range(images.noisy.shape[0]):
        _stretch(images.pilot[c], images.pilot[c], False, stretch, place, half_way, square)
        for y in range(side):
            line, to, compared = square[y], tall.pilot[c, 0, first + y], tall.compared[c, first + y]
            for x in range(side):
                to[x] = line[x]
                compared[x] = weights[c] * line[x]
        _stretch(images.working[c], images.working[c], False, stretch, place, half_way, square)
        for y in range(side):
            line, to = square[y], tall.working[c, 0, first + y]
            for x in range(side):
                to[x] = line[x]
        _stretch(images.noisy[c], images.working[c], True, stretch, place, half_way, square)
        for y in range(side):
            line, to = square[y], tall.change[c, 0, first + y]
            for x in range(side):
                to[x] = line[x] * line[x]
        if varies:
            _stretch(images.variance[c], images.variance[c], False, stretch, place, half_way, square)
        for y in range(side):
            line, to = square[y], tall.variance[c, 0, first + y]
            for x in range(side):
                to[x] = stretch.noise * (max(line[x], floor) if varies else images.variance[c, 0, 0])
    _mark_outside(stretch, place, tall.outside)


@nested
def _stretch(image, less, difference, stretch, place, half_way, square):
    """A square of an image, or of its difference from another, stretched."""
    side = stretch.bases.size
    n_taps = stretch.taps.shape[1]
    n_rows, n_columns = image.shape
    low = stretch.bases[0]
    for i in range(half_way.shape[0]):
        y = mirrored(place.centre_y + low + i, place.height) - place.origin_y
        y = min(max(y, 0), n_rows - 1)
        line, minus, to = image[y], less[y], half_way[i]
        for j in range(side):
            taps = stretch.taps[j]
            value = np.float32(0.0)
            for m in range(n_taps):
                x = mirrored(place.centre_x + stretch.bases[j] + m, place.width) - place.origin_x
                x = min(max(x, 0), n_columns - 1)
                value += taps[m] * (line[x] - minus[x] if difference else line[x])
            to[j] = value
    for i in range(side):
        to = square[i]
        for j in range(side):
            to[j] = 0.0
        for m in range(n_taps):
            factor, line = stretch.taps[i, m], half_way[stretch.bases[i] - low + m]
            for j in range(side):
                to[j] += factor * line[j]


@nested
def _mark_outside(stretch, place, outside):
    """Mark the pixels of the stretched square that show nothing of the image."""
    side = stretch.bases.size
    for i in range(side):
        line = outside[place.first + i]
        y = (i - (side - 1) / 2) / stretch.factor + (place.centre_y - 0.5)
        for j in range(side):
            x = (j - (side - 1) / 2) / stretch.factor + (place.centre_x - 0.5)
            line[j] = 0 if 0 <= y <= place.height - 1 and 0 <= x <= place.width - 1 else 1
