"""Arguments of the kernels of window methods; patch_distance.h computes the distances of their patches."""

from typing import NamedTuple


class Window(NamedTuple):
    """Half sizes of patches and of the search window, along rows and columns."""

    radius_y: int
    radius_x: int
    reach_y: int
    reach_x: int


class Decay(NamedTuple):
    """Weights are exp(-rate * max(squared distance - floor, 0))."""

    rate: float
    floor: float
