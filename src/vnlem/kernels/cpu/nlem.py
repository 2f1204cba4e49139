"""Non-local patch regression of one tile: nearest patches of the window, then IRLS over whole patches."""

import math
from typing import NamedTuple

from vnlem.kernels.cpu.declare import Float3, Written, kernel
from vnlem.kernels.cpu.patch_distance import Decay, Window
from vnlem.pipeline.tiles import Tile

REMAINDER = 1.2e-4  # error of the median at a pixel, in units of the image's standard deviation


class Regression(NamedTuple):
    """How the nearest patches are combined."""

    n_neighbors: int
    gamma: float  # power of the norm; 1 is the Euclidean median, with a special solver
    remainder: float  # error of the median, as the length of a patch


def remainder_of(window: Window) -> float:
    """The error of the median over a patch. Channels are averaged: they do not add to a length.

    >>> remainder_of(Window(1, 1, 5, 5)) == 3 * REMAINDER
    True
    """
    return REMAINDER * math.sqrt((2 * window.radius_y + 1) * (2 * window.radius_x + 1))


@kernel
def nlem_tile(
    padded: Float3,
    tile: Tile,
    window: Window,
    decay: Decay,
    regression: Regression,
    out: Written[Float3],
) -> None:
    """Central value of the gamma-power regression for the pixels of one tile, written to `out` (C, H, W).

    padded : (C, H + 2 radius_y, W + 2 radius_x). Patches have the weights of `decay`.
    """
