"""Block matching in several planes: the nearest patches in a small window of each, under transforms.

Patches may span consecutive planes.
"""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Byte2, Float1, Float3, Float4, Int2, Long2, Long3, Written, kernel


class Planes(NamedTuple):
    """What to search, and how. Rows have `sheets.PADDING` spare columns."""

    image: Float4  # (planes, channels, H, stride)
    energy: Float3  # (planes, H, stride), squared norms of patches at their corners; infinite for none
    # (2, planes, H, stride): numbers of a patch that no transform changes and whose differences are at most
    # the distance of the patches: its part along a constant patch, and the length of the rest.
    invariants: Float4
    # 1, 4 or 8: how many of `neighbours.groups.symmetries`; 2 or 16: the first or all of them, and the same
    # with planes in reverse order.
    transforms: int
    patch_size: int
    depth: int  # planes that a patch spans
    radius: int  # of the window in every plane
    factor: float  # a member that is turned or reflected ranks with factor * d^2 + a penalty


@kernel
def match_planes_tile(
    planes: Planes,
    sizes: Long2,
    references: Long2,
    centres: Long3,
    penalties: Float1,
    positions: Written[Int2],
    chosen: Written[Byte2],
) -> None:
    """The nearest patches of every reference patch.

    sizes (planes, 2): rows and columns of each plane that hold pixels; references (r, 3): plane and top left
    corner; centres (r, s, 3): plane and centre of each window, moved inwards at the border, the reference's
    own first, a negative plane for none; penalties (r), see `Planes`: a group has either enough turned or
    reflected members, or none. Written: positions (r, k), index into images (planes, H, stride) of one
    channel, the reference first; chosen (r, k), the index of the transform.
    """
