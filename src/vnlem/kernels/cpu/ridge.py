"""Groups of patches: each is combined and aggregated, members at their own places and orientations.

The groups of a tile share an image; those of a stack have members in several planes. Both are combined the
same way.
"""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Byte2, Float1, Float3, Float4, Float5, Int2, Long2, Written, kernel
from vnlem.kernels.cpu.sheets import Sums, Tall


class RidgeRule(NamedTuple):
    """How the groups of a pass are combined, see `vnlem.estimate.ridge.PassSettings`."""

    without_pilot: bool  # the first pass: Stein's estimate
    extra_load: float  # its stabilising load in units of the noise energy
    boost: float  # factor on the noise energy in pilot passes
    colour_boost: float  # factor on `boost` in all channels but the first
    tau: float  # share of the noise that the next working image keeps


class Ridge(NamedTuple):
    """The groups of a pass and how they are combined."""

    transforms: Long2  # (g, p * p), as in matching
    taps: Float1  # (p): the weight of a pixel of a patch is that of its row times that of its column
    rule: RidgeRule


@kernel
def filter_tile(tall: Tall, ridge: Ridge, positions: Int2, chosen: Byte2, tile: Sums) -> int:
    """Estimate all groups of a tile and add them up, each member at its own place and orientation.

    positions, chosen (r, k) from matching; tile: (channels, depth, own rows, stride, 2) is added to. Members
    from rows of the tall arrays below these only contribute. The sums are changes of the working image:
    rounding is then in proportion to the noise. Channels share their groups but not the combination. Returns
    how many members are turned or reflected, or not put back.
    """


class PlaneImages(NamedTuple):
    """The images of one pass, (planes, H, stride)."""

    pilot: Float3
    working: Float3
    residual: Float3  # patch sums of (noisy - working)^2, at the patches' corners
    noise: Float3  # patch sums of the noise variance


class PlanePatches(NamedTuple):
    """The pixels of patches over several planes, and their weights."""

    transforms: Long2  # (g, n): permutations of the pixels
    taps: Float1  # (p), as in `Ridge`


class Corner(NamedTuple):
    """Of the accumulators of a tile, in the images."""

    plane: int
    top: int
    left: int


@kernel
def box_of_members(positions: Int2, height: int, stride: int, box: Written[Long2]) -> None:
    """The least and the largest plane, row and column of positions in images (planes, height, stride).

    box (2, 3): written.
    """


@kernel
def filter_planes_tile(
    images: PlaneImages,
    rule: RidgeRule,
    patches: PlanePatches,
    corner: Corner,
    positions: Int2,
    chosen: Byte2,
    sums: Written[Float4],
    weights: Written[Float3],
) -> None:
    """Estimate all groups of a tile and add them up, each member in its own plane, place and orientation.

    positions, chosen (r, k) from matching. Added to: sums (planes, h, w, 2), the weighted changes of the
    working image, whole and without the share that is kept; weights (planes, h, w), at the patches' corners.
    `sums` needs room for sixteen more numbers, to which zeros are added.
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
