"""Groups of patches: each is combined and aggregated, members at their own places and orientations.

The groups of a tile share an image; those of a stack have members in several planes. Both are combined the
same way.
"""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Byte2, Float1, Float3, Float4, Float5, Int2, Long2, Written, kernel
from vnlem.kernels.cpu.sheets import Sums


class RidgeRule(NamedTuple):
    """How the groups of a pass are combined, see `vnlem.estimate.ridge.PassSettings`."""

    without_pilot: bool  # the first pass: Stein's estimate
    extra_load: float  # its stabilising load in units of the noise energy
    boost: float  # factor on the noise energy in pilot passes
    colour_boost: float  # factor on `boost` in all channels but the first
    tau: float  # share of the noise that the next working image keeps


class Ridge(NamedTuple):
    """The groups of a pass and how they are combined."""

    transforms: Long2  # (g, pixels of a patch): permutations of its pixels, plane by plane
    taps: Float1  # (p): the weight of a pixel of a patch is that of its row times that of its column
    rule: RidgeRule


class GroupImages(NamedTuple):
    """The images that groups are taken from, (channels, rows, stride): planes lie one below another."""

    pilot: Float3
    working: Float3
    change: Float3  # (noisy - working)^2
    noise: Float3  # the variance of the noise; of one channel if it is the same in all
    # Rows from one plane of a stack to the next; 0 for one image. For a stack `change` and `noise` hold sums
    # over patches, at their corners.
    plane_rows: int


class Corner(NamedTuple):
    """Of the accumulators of a tile, in the images."""

    plane: int
    top: int
    left: int
    plane_rows: int  # from one plane of the accumulators to the next; 0 for one image


@kernel
def filter_tile(
    images: GroupImages, ridge: Ridge, positions: Int2, chosen: Byte2, corner: Corner, tile: Sums
) -> int:
    """Estimate all groups of a tile and add them up, each member in its own plane, place and orientation.

    positions, chosen (r, k) from matching; tile is added to. Those of an image have its stride: members from
    rows below only contribute. Those of a stack need room for sixteen more numbers, to which zeros are added.
    The sums are changes of the working image: rounding is then in proportion to the noise. Channels share
    their groups but not the combination. Returns how many members are turned or reflected, or not put back.
    """


@kernel
def box_of_members(positions: Int2, height: int, stride: int, box: Written[Long2]) -> None:
    """The least and the largest plane, row and column of positions in images (planes, height, stride).

    box (2, 3): written.
    """


@kernel
def join_planes_tile(
    sums: Float5,
    weights: Float4,
    corner: Corner,
    depth: int,
    all_sums: Written[Float5],
    all_weights: Written[Float4],
) -> None:
    """Add the accumulators of a tile, (channels, planes, H, W) and two sums a pixel, to those of all planes.

    A weight at the corner of a patch counts in every plane that the patch spans.
    """
