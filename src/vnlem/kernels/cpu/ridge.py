"""Groups of patches: each is combined and aggregated, members at their own places and orientations.

The groups of a tile share an image; those of a stack have members in several planes. Both are combined the
same way.
"""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Byte2, Float1, Float3, Float4, Int2, Long2, Written, kernel
from vnlem.kernels.cpu.sheets import Sums, Tall


class RidgeRule(NamedTuple):
    """How the groups of a pass are combined, see `vnlem.estimate.ridge.PassSettings`."""

    without_pilot: bool  # the first pass: Stein's estimate
    extra_load: float  # its stabilising load in units of the noise energy
    boost: float  # factor on the noise energy in pilot passes
    tau: float  # share of the noise that the next working image keeps


class Ridge(NamedTuple):
    """The groups of a pass and how they are combined."""

    transforms: Long2  # (g, p * p), as in matching
    taps: Float1  # (p): the weight of a pixel of a patch is that of its row times that of its column
    own_rows: int  # rows of the tall arrays that are put back; members from rows below only contribute
    rule: RidgeRule


@kernel
def filter_tile(tall: Tall, ridge: Ridge, positions: Int2, chosen: Byte2, tile: Sums) -> int:
    """Estimate all groups of a tile and add them up, each member at its own place and orientation.

    positions, chosen (r, k) from matching; tile: (channels, depth, own rows, stride, 2) is added to. The sums
    are changes of the working image: rounding is then in proportion to the noise. Channels share their groups
    but not the combination. Returns how many members are turned or reflected, or not put back.
    """


class PlaneImages(NamedTuple):
    """The images of one pass, (planes, H, stride)."""

    pilot: Float3
    working: Float3
    residual: Float3  # patch sums of (noisy - working)^2, at the patches' corners
    noise: Float3  # patch sums of the noise variance


class Place(NamedTuple):
    """Where the pixels of a patch lie and their weights, and the accumulators' corner."""

    offsets: Long2  # (g, n): in the images, from the patch's corner
    places: Long2  # (g, n): in the accumulators, two numbers per pixel
    taps: Float1  # (p), as in `Ridge`
    plane: int
    top: int
    left: int


@kernel
def filter_planes_tile(
    images: PlaneImages,
    rule: RidgeRule,
    place: Place,
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
