"""Nearest neighbours in the search window: first by the aligned distance, then by the accurate RID."""

import numpy as np
from numpy.typing import NDArray

from vnlem.features.rings import ROW, RingLayout
from vnlem.kernels.cpu import vnlem as kernels
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
    """The search as the kernels take it, with tables of angles."""
    angles = search_angles(angle_range, angle_step)
    cos, sin = rings.turns(angles)
    return kernels.Search(
        patch_distance=patch_distance,
        n_candidates=n_candidates,
        n_neighbors=n_neighbors,
        with_identity=try_unrotated,
        cos=cos,
        sin=sin,
        angles=_angle_tables(rings, angles),
    )


def find_neighbours(
    region: kernels.Features,
    search: kernels.Search,
    rule: kernels.Rule,
    corner: tuple[int, int],
    shape: tuple[int, int],
) -> kernels.Neighbours:
    """The neighbours of every pixel of a tile, for an estimator in NumPy.

    region: features of the tile and of its windows, see ``vnlem.features.canonical``.
    search, rule: what to search for, and how distances count.
    corner, shape: where the tile begins in the region, and its height and width.

    The pixel with the number ``position`` is ``region.pixels.reshape(-1, channels)[position]``.
    Places past the last neighbour of a pixel hold zeros.
    """
    places = (*shape, search.n_neighbors)
    found = kernels.Neighbours(
        position=np.zeros(places, np.int64),
        squared=np.zeros(places, np.float32),
        which=np.zeros(places, np.int64),
        counts=np.zeros(shape, np.int64),
    )
    kernels.neighbours_of_tile(region, search, rule, *corner, found)
    return found


def _angle_tables(rings: RingLayout, angles: NDArray[np.float64]) -> kernels.Angles:
    """Rows of lanes to add up over rings and channels, and cosine and sine of the orders they hold."""
    channels = rings.lanes * np.arange(rings.channels)
    rows = [np.add.outer(channels, fold).ravel() for fold in rings.folds]
    # If a row has padding, other rows of its fold may have an order there; padding has order 0.
    of_column = np.concatenate(
        [np.max([rings.lane_order[first : first + ROW] for first in fold], axis=0) for fold in rings.folds]
    )
    orders, kept, number = np.unique(of_column, return_index=True, return_inverse=True)
    others = np.setdiff1d(np.arange(len(of_column)), kept)
    phase = np.outer(angles, orders)
    return kernels.Angles(
        np.cumsum([0] + [len(each) for each in rows]),
        np.concatenate(rows),
        kept,
        np.stack([others, kept[number[others]]], axis=1),
        np.cos(phase).astype(np.float32),
        np.sin(phase).astype(np.float32),
    )


def column_tables(angles: kernels.Angles) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosine and sine of order * angle for every column of lanes, also those that repeat an order."""
    columns = len(angles.kept) + len(angles.repeats)
    number = np.empty(columns, dtype=np.int64)
    number[angles.kept] = np.arange(len(angles.kept))
    number[angles.repeats[:, 0]] = number[angles.repeats[:, 1]]
    cosine, sine = (np.ascontiguousarray(table[:, number]) for table in (angles.cos, angles.sin))
    return cosine, sine
