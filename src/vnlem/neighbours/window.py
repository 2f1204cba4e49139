"""Nearest neighbours in the search window: first by the aligned distance, then by the accurate RID."""

import numpy as np
from numpy.typing import NDArray

from vnlem.features.rings import ROW, RingLayout
from vnlem.kernels.numba import vnlem as kernels
from vnlem.neighbours.rid import search_angles


def make_search(
    rings: RingLayout,
    patch_distance: int,
    n_candidates: int,
    n_neighbors: int,
    angle_range: float,
    angle_step: float,
    try_unrotated: bool,
) -> kernels.Search:
    """The search as the kernels take it: angles as tables, groups of eight filled up with the last one."""
    angles = search_angles(angle_range, angle_step)
    cos, sin = rings.turns(angles)
    return kernels.Search(
        patch_distance, n_candidates, n_neighbors, try_unrotated, cos, sin, _angle_tables(rings, angles)
    )


def _angle_tables(rings: RingLayout, angles: NDArray[np.float64]) -> kernels.Angles:
    """Rows of lanes to add up over rings and channels, and cosine and sine of the orders they hold."""
    channels = rings.lanes * np.arange(rings.channels)
    rows = [np.add.outer(channels, fold).ravel() for fold in rings.folds]
    # Where a row has padding the others of its fold may have an order; padding has order 0.
    orders = np.concatenate(
        [np.max([rings.lane_order[first : first + ROW] for first in fold], axis=0) for fold in rings.folds]
    )
    filled = np.concatenate([angles, np.repeat(angles[-1], -len(angles) % ROW)]).reshape(-1, 1, ROW)
    phase = (orders[:, None] * filled).reshape(len(filled), -1)
    return kernels.Angles(
        np.cumsum([0] + [len(each) for each in rows]),
        np.concatenate(rows),
        np.cos(phase).astype(np.float32),
        np.sin(phase).astype(np.float32),
    )
