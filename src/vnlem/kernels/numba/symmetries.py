"""A patch split by the reflections of the square, for its correlation under all eight symmetries.

Pixels that reflections carry into each other are an orbit: four of them, two on an axis, one in the middle.
On an orbit a patch is a sum of four parts, each of them even or odd from left to right and from top to
bottom. A reflection changes nothing but the signs of the odd parts.
"""

import numpy as np

from vnlem.kernels.numba.jit import nested
from vnlem.kernels.numba.scratch import view_at

SYMMETRIES = 8  # in the order of `neighbours.groups.symmetries`
PARTS = 4  # even and even, even and odd, odd and even, odd and odd: from left to right, from top to bottom


@nested
def orbits_of(n_planes, side):
    """How many orbits a patch has."""
    return n_planes * ((side + 1) // 2) * ((side + 1) // 2)


@nested
def parts_of(taps, first, n_planes, side, parts):
    """The parts of taps[first], a patch (planes, side, side), and of taps[first + 1], the same turned once.

    parts (., 2, 4): for every orbit, by its uppermost pixel on the left, plane by plane and row by row.
    """
    half = (side + 1) // 2
    for turned in range(2):
        for plane in range(n_planes):
            patch = (view_at(taps, first + turned), plane * side * side, side)
            for y in range(half):
                for x in range(half):
                    _split(patch, y, x, view_at(parts, ((plane * half + y) * half + x, turned)))


@nested
def _split(patch, y, x, parts):
    """The parts on one orbit: means over it. A pixel on an axis is its own image and counts twice."""
    pixels, begin, side = patch
    above, below = begin + y * side, begin + (side - 1 - y) * side
    beside = side - 1 - x
    first, second = pixels[above + x], pixels[above + beside]
    third, fourth = pixels[below + x], pixels[below + beside]
    quarter = np.float32(0.25)
    parts[0] = quarter * ((first + second) + (third + fourth))
    parts[1] = quarter * ((first + second) - (third + fourth))
    parts[2] = quarter * ((first - second) + (third - fourth))
    parts[3] = quarter * ((first - second) - (third - fourth))
