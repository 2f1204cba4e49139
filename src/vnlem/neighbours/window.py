"""Nearest neighbours in the search window: first by the aligned distance, then by the accurate RID."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem._kernels import vnlem as kernels
from vnlem._kernels.neighbours import IDENTITY
from vnlem.features.rings import RingLayout

# The kernel takes the angles beside zero six at a time.
ANGLES_AT_ONCE = 6


class Neighbours(NamedTuple):
    """Neighbours of the pixels of a tile; arrays (height, width, most neighbours), the first `count` valid.

    Attributes
    ----------
    row, column : ndarray of int
        Where in the image a neighbour's centre lies.
    squared_distance : ndarray
        Squared RID, scaled to the square patch (q^2 / E).
    angle : ndarray
        Rotation in radians that takes the neighbour onto the pixel's patch.
    rotated : ndarray of bool
        False where the unrotated patch was the best.
    count : ndarray of int, shape (height, width)
    """

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    squared_distance: NDArray[np.float32]
    angle: NDArray[np.float32]
    rotated: NDArray[np.bool_]
    count: NDArray[np.int64]


def search_angles(angle_range: float, angle_step: float) -> NDArray[np.float64]:
    """The non-negative angles of the search set 0, +-step, ... up to +-range, in radians.

    Examples
    --------
    >>> np.degrees(search_angles(30, 10)).round(6)
    array([ 0., 10., 20., 30.])
    """
    return np.radians(angle_step * np.arange(math.floor(angle_range / angle_step + 1e-9) + 1))


def make_search(
    rings: RingLayout,
    patch_distance: int,
    n_candidates: int,
    n_neighbors: int,
    angle_range: float,
    angle_step: float,
    try_unrotated: bool,
) -> kernels.Search:
    """The search as the kernels take it: angles as tables, padded by repeating the last one."""
    angles = search_angles(angle_range, angle_step)
    spare = max(-(len(angles) - 1) % ANGLES_AT_ONCE, ANGLES_AT_ONCE if len(angles) == 1 else 0)
    cos, sin = rings.turns(np.concatenate([angles, np.repeat(angles[-1], spare)]))
    return kernels.Search(patch_distance, n_candidates, n_neighbors, try_unrotated, cos, sin)
