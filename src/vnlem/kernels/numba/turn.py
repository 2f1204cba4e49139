"""A square of an image turned by any angle: three shears, each a shift of rows by a few taps.

The taps are those of a windowed sinc, so that white noise stays nearly white, and a turned pixel depends on
some pixels around its source and on nothing else.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.scratch import empty


class Turn(NamedTuple):
    """A turn as its shears. The first and the last are the same; the second moves columns."""

    quarter: bool  # turned by 90 degrees first
    bases: np.ndarray  # (2, side): whole pixels that each row is shifted by, of the first and second shear
    taps: np.ndarray  # (2, side, taps): the rest of the shift
    cosine: float
    sine: float


class TurnPlace(NamedTuple):
    """Where the square lies."""

    top: int  # of the square in the whole image; may lie outside
    left: int
    height: int  # of the whole image
    width: int
    origin_y: int  # of the images that are given, in the whole image
    origin_x: int
    first: int  # row of the tall arrays that the turned square begins at


@kernel
def turn_into(images, weights, floor, turn, place, tall):
    """Write a turned square of all images into the tall arrays. floor: least variance."""
    side = turn.bases.shape[1]
    squares = empty((3, side, side), np.float32)
    _turn_into(images, weights, floor, turn, place, tall, squares)


@nested
def _turn_into(images, weights, floor, turn, place, tall, squares):
    side = turn.bases.shape[1]
    first = place.first
    varies = images.variance.shape[2] > 1
    for c in range(images.noisy.shape[0]):
        _turn(images.pilot[c], images.pilot[c], False, turn, place, squares)
        for y in range(side):
            line, to, compared = squares[0, y], tall.pilot[c, 0, first + y], tall.compared[c, first + y]
            for x in range(side):
                to[x] = line[x]
                compared[x] = weights[c] * line[x]
        _turn(images.working[c], images.working[c], False, turn, place, squares)
        for y in range(side):
            line, to = squares[0, y], tall.working[c, 0, first + y]
            for x in range(side):
                to[x] = line[x]
        _turn(images.noisy[c], images.working[c], True, turn, place, squares)
        for y in range(side):
            line, to = squares[0, y], tall.change[c, 0, first + y]
            for x in range(side):
                to[x] = line[x] * line[x]
        if varies:
            _turn(images.variance[c], images.variance[c], False, turn, place, squares)
        for y in range(side):
            line, to = squares[0, y], tall.variance[c, 0, first + y]
            for x in range(side):
                to[x] = max(line[x], floor) if varies else images.variance[c, 0, 0]
    _mark_outside(turn, place, tall.outside)


@nested
def _turn(image, less, difference, turn, place, squares):
    """A square of an image, or of its difference from another, turned, into squares[0]."""
    side = turn.bases.shape[1]
    n_rows, n_columns = image.shape
    source = squares[0]
    for i in range(side):
        y = min(max(mirrored(place.top + i, place.height) - place.origin_y, 0), n_rows - 1)
        for j in range(side):
            x = min(max(mirrored(place.left + j, place.width) - place.origin_x, 0), n_columns - 1)
            value = image[y, x]
            if difference:
                value -= less[y, x]
            if turn.quarter:
                source[side - 1 - j, i] = value
            else:
                source[i, j] = value
    _shear(source, turn.bases[0], turn.taps[0], squares[1])
    _transpose(squares[1], squares[2])
    _shear(squares[2], turn.bases[1], turn.taps[1], squares[1])
    _transpose(squares[1], squares[2])
    _shear(squares[2], turn.bases[0], turn.taps[0], squares[0])


@nested
def mirrored(position, count):
    """A position inside an image that is mirrored at its borders."""
    position %= 2 * count
    return position if position < count else 2 * count - 1 - position


@nested
def _shear(source, bases, taps, out):
    """out[y, x] = source[y] at x - shift of the row; nothing lies outside."""
    side = source.shape[0]
    n_taps = taps.shape[1]
    for y in range(side):
        line, to = source[y], out[y]
        for x in range(side):
            to[x] = 0.0
        for m in range(n_taps):
            offset = m - n_taps // 2 - bases[y]
            begin, end = max(0, -offset), min(side, side - offset)
            factor = taps[y, m]
            if end > begin:
                shifted, into = line[begin + offset : end + offset], to[begin:end]
                for x in range(end - begin):
                    into[x] += factor * shifted[x]


@nested
def _transpose(source, out):
    for y in range(source.shape[0]):
        for x in range(source.shape[1]):
            out[x, y] = source[y, x]


@nested
def _mark_outside(turn, place, outside):
    """Mark the pixels of the turned square that show nothing of the image."""
    side = turn.bases.shape[1]
    centre = (side - 1) / 2
    for i in range(side):
        line = outside[place.first + i]
        for j in range(side):
            v = turn.cosine * (i - centre) + turn.sine * (j - centre) + centre + place.top
            h = -turn.sine * (i - centre) + turn.cosine * (j - centre) + centre + place.left
            shown = 0 <= v <= place.height - 1 and 0 <= h <= place.width - 1
            line[j] = 0 if shown else 1
