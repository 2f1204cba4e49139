"""Was this picture a JPEG file? Compression sets small coefficients of blocks of 8x8 pixels to zero.

So on the grid of these blocks many cosine coefficients are zero, and elsewhere few are. Cropping the picture
moves the grid but does not hide it.
"""

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.blocks import cosine_matrix

Float = NDArray[np.float64]

SIDE = 8
LOOKED_AT = 256  # pixels a side, in the middle of the picture
COEFFICIENTS = ((3, 3), (4, 4), (5, 2), (2, 5), (6, 1), (1, 6))  # high ones, and not the highest
CHANCE = 0.1  # logarithm of the ratio that a picture without compression may have
LEVELS = 255  # of the range of values: a coefficient below one level counts as zero


def compression(plane: Float) -> float:
    """Logarithm of the share of zero coefficients on the grid over that elsewhere; at least CHANCE.

    >>> rng = np.random.default_rng(0)
    >>> tiles = np.kron(rng.uniform(0, 200, (16, 16)), np.ones((8, 8)))
    >>> compression(rng.uniform(0, 200, (128, 128))) < 0.5 < compression(tiles)
    True
    """
    top, left = (max(0, (side - LOOKED_AT) // 2) for side in plane.shape)
    seen = plane[top : top + LOOKED_AT, left : left + LOOKED_AT]
    down, across = (side // SIDE - 1 for side in seen.shape)
    zero = float(np.ptp(seen)) / LEVELS
    basis = cosine_matrix(SIDE)
    share = np.zeros((SIDE, SIDE))  # by the place of a block on the grid
    for row, column in COEFFICIENTS:
        found = _along(_along(seen, basis[row]).T, basis[column]).T
        small = np.abs(found[: SIDE * down, : SIDE * across]) < zero
        share += small.reshape(down, SIDE, across, SIDE).mean(axis=(0, 2)) / len(COEFFICIENTS)
    return max(float(np.log((share.max() + 0.01) / (np.median(share) + 0.01))), CHANCE)


def _along(plane: Float, wave: Float) -> Float:
    """Product of a wave with the rows from every row on."""
    last = len(plane) - len(wave) + 1
    found: Float = wave[0] * plane[:last]
    for offset, value in enumerate(wave[1:], 1):
        found += value * plane[offset : offset + last]
    return found
