"""Nearest neighbours in the search window: first by the aligned distance, then by the accurate RID."""

import math

import numpy as np
from numpy.typing import NDArray

from vnlem._kernels import vnlem as kernels
from vnlem.features.rings import RingLayout

# The kernel takes the angles beside zero six at a time.
ANGLES_AT_ONCE = 6


def search_angles(angle_range: float, angle_step: float) -> NDArray[np.float64]:
    """The non-negative angles of the search set 0, +-step, ... up to +-range, in radians.

    Examples
    --------
    >>> np.degrees(search_angles(30, 10)).round(6)
    array([ 0., 10., 20., 30.])
    """
    count = math.floor(angle_range / angle_step + 1e-9)
    angles: NDArray[np.float64] = np.radians(angle_step * np.arange(count + 1))
    return angles


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
