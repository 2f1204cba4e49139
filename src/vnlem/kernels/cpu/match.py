"""Block matching: the nearest patches of a window under the symmetries of the square."""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.cpu.declare import Byte2, Float1, Int2, Long2, Long3, Written, kernel
from vnlem.kernels.cpu.sheets import Tall

ANY_MOVE = np.full((1, 1), 255, np.uint8)


class GroupSearch(NamedTuple):
    """Parameters of the search in a tile."""

    transforms: int  # 1, 4 or 8: how many of `neighbours.groups.symmetries`
    weights: Float1  # (channels): of each channel in comparisons
    # (s, 4): first row of each sheet in the tall arrays, rows and columns of candidates in one window, and
    # whether the sheet has the image's own noise.
    sheets: Long2
    n_full: int  # the first n_full sheets are put back; members of the others only contribute
    n_copied: int  # the most members from sheets that are not put back
    patch_size: int
    radius: int  # of the search window
    factor: float  # a member that is turned or reflected, or not put back, ranks with factor * d^2 + ...
    penalty: float  # ... this times the noise energy of the reference
    flat_energy: float  # with less energy about its mean, in units of its noise, a patch is only shifted
    # (c * c, c * c): bits of the transforms that a member may have, for the place of the reference in a cell
    # of c x c pixels and for its shift from there, both row by row. For the image alone, without copies.
    moves: Byte2 = ANY_MOVE


@kernel
def match_tile(
    tall: Tall,
    search: GroupSearch,
    references: Long2,
    corners: Long3,
    positions: Written[Int2],
    chosen: Written[Byte2],
) -> None:
    """The nearest patches of every reference patch.

    references (r, 2): top left corners in the first sheet; corners (r, s, 2): of the search window in each
    sheet; both in the tall arrays. Written: positions (r, k), row * stride + column in the tall arrays, the
    reference first; chosen (r, k), the index of the transform. There are either enough turned or reflected
    members, or none.
    """
