"""Block matching: the nearest patches in some windows under the symmetries of the square.

Windows lie in the sheets of a tile (`vnlem.neighbours.sheets`), or in the planes of a stack.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.cpu.declare import Byte2, Double1, Float4, Int2, Long1, Long3, Written, kernel

ANY_MOVE = np.full((1, 1), 255, np.uint8)
NOTHING_OUTSIDE = np.zeros((0, 0), np.uint8)


class Field(NamedTuple):
    """What to search, and how. Rows have `sheets.PADDING` spare columns; an image is a single plane.

    A position is the index of a patch's corner in one channel of all planes, (planes, H, stride).
    """

    image: Float4  # (planes, channels, H, stride)
    measures: Float4  # (3, planes, H, stride), see `measure_patches`
    # 1, 4 or 8: how many of `neighbours.groups.symmetries`; 2 or 16: the first or all of them, and the same
    # with planes in reverse order.
    transforms: int
    patch_size: int
    depth: int  # planes that a patch spans
    radius: int  # of the windows
    n_full: int  # the first n_full windows are put back; members of the others only contribute
    n_copied: int  # the most members from windows that are not put back
    factor: float  # a member that is turned or reflected, or not put back, ranks with factor * d^2 + ...
    penalty: float  # ... this times the noise energy of the reference
    flat_energy: float  # with less energy about its mean, in units of its noise, a patch is only shifted
    # (c * c, c * c): bits of the transforms that a member may have, for the place of the reference in a cell
    # of c x c pixels and for its shift from there, both row by row. For an image alone, without copies.
    moves: Byte2 = ANY_MOVE


@kernel
def measure_patches(
    image: Float4, patch_size: int, depth: int, plane: int, outside: Byte2, measures: Written[Float4]
) -> None:
    """Numbers of the patches that begin in a plane, written to measures[:, plane].

    outside (H, stride): not zero where nothing of the image is shown; empty if all of it is. Written: squared
    norms, infinite for none; and numbers that no transform changes and whose differences are at most the
    distance of the patches: the part along a constant patch, and the length of the rest.
    """


@kernel
def match_tile(
    field: Field,
    references: Long1,
    windows: Long3,
    noise: Double1,
    positions: Written[Int2],
    chosen: Written[Byte2],
) -> None:
    """The nearest patches of every reference patch.

    references (r): positions; windows (r, s, 4): position of the first candidate, rows and columns of
    candidates, none for no window, and whether those next to the reference's own place are left out, the
    reference's own window first; noise (r): noise energies. Written: positions (r, k), the reference first;
    chosen (r, k), the index of the transform. There are either enough turned or reflected members, or none.
    """
