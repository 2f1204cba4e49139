"""VNLEM on one tile: neighbours under the rotation-invariant distance, then the gamma-power regression.

Stage one of the search: aligned distances to the whole window, a plain distance of canonical feature vectors.
Stage two: for the best of them the distance at every angle of the search set. A region is the tile with its
search windows, clipped to the image; positions are pixel numbers in it: row * stride + column.
"""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import (
    Float1,
    Float2,
    Float3,
    Float4,
    Long1,
    Long2,
    Long3,
    Written,
    kernel,
)

# Marks the angle of no rotation among the multiples of the angle step; kIdentity in C++.
IDENTITY = 1 << 20


class Features(NamedTuple):
    """Features of every pixel of a region, as the image has them and in the canonical frame."""

    raw: Float3  # (height, stride, dim); the canonical ones if no unrotated match is examined
    canonical: Float3  # (height, stride, dim)
    lengths: Float2  # (height, stride) squared lengths
    sharp: Float2  # (height, stride) what the patch's own pixels hold beyond its features, squared
    angle: Float2  # (height, stride) orientation in radians
    pixels: Float3  # (height, stride, channels)
    width: int  # at least eight columns of padding follow, which are only read


class Angles(NamedTuple):
    """Which rows of lanes have equal orders, and the angles for these orders."""

    starts: Long1  # (column blocks + 1)
    rows: Long1  # first lanes of the rows of each block
    kept: Long1  # (orders), the first column that holds each order
    repeats: Long2  # (the other columns, 2), a column and the one that holds the same order
    cos: Float2  # (angles, orders), cosine of order * angle
    sin: Float2


class Search(NamedTuple):
    """What to look for: the window, how many to keep at each stage, the angles."""

    patch_distance: int
    n_candidates: int  # the paper's N1
    n_neighbors: int  # ceil(N1 / 2)
    with_identity: bool
    cos: Float2  # (angles, lanes), cosine of order * angle
    sin: Float2
    angles: Angles


class Rule(NamedTuple):
    """How distances become weights. Squared distances here are those of features.

    With a margin a rotated match counts as factor * its squared distance + offset, at both stages: rotation
    must beat the unrotated patch by more than noise can, or in flat regions noise would choose it.
    """

    with_margin: bool
    factor: float
    offset: float
    noise: float  # squared distance of equal patches due to noise; subtracted
    inverse_bandwidths: Float1  # weights are exp(-corrected squared distance * one of these)
    own_as_best: bool  # the pixel itself has the weight of its best neighbour, not 1
    gamma: float
    step: float  # the regression stops when a step is shorter


class Diffusion(NamedTuple):
    """Diffusion coordinates of a region; without coordinates only patches decide."""

    embedding: Float3  # (height, width, coordinates), a multiple of eight of them
    trust: Float2  # (height, width) in [0, 1]: share of the diffusion distance in the ranking
    blended: bool  # whether trust is below one anywhere


class Neighbours(NamedTuple):
    """Neighbours of every pixel of a tile; the first `counts` of a pixel's K places are used."""

    position: Written[Long3]  # (height, width, K), pixel number in the region
    squared: Written[Float3]  # squared distance of features
    which: Written[Long3]  # +-number of the angle, or IDENTITY
    counts: Written[Long2]  # (height, width)


@kernel
def squared_lengths(features: Float3, out: Written[Float2]) -> None:
    """Squared length of every feature vector (H, W, D) -> (H, W); D: a multiple of sixteen."""


@kernel
def neighbours_of_tile(
    region: Features, search: Search, rule: Rule, top: int, left: int, out: Neighbours
) -> None:
    """Fill in the Neighbours of a tile whose corner is (top, left) of the region."""


@kernel
def denoise_tile(
    region: Features,
    search: Search,
    rule: Rule,
    diffusion: Diffusion,
    lane_order: Long1,
    top: int,
    left: int,
    out: Written[Float4],
) -> int:
    """Algorithm 1 for a tile: neighbours (by diffusion, if it has coordinates), weights, regression.

    lane_order: angular order of the lanes of all channels. out (bandwidths, H, W, C). Returns the number of
    IRLS iterations.
    """


@kernel
def estimate_all(
    region: Features,
    search: Search,
    rule: Rule,
    lane_order: Long1,
    pixels: Long1,
    position: Long2,
    squared: Float2,
    which: Long2,
    out: Written[Float2],
) -> None:
    """The estimate of a list of pixels from neighbours found beforehand: out (pixels, C)."""


@kernel
def estimate_candidates(
    region: Features,
    search: Search,
    rule: Rule,
    lane_order: Long1,
    pixels: Long1,
    candidates: Long2,
    out: Written[Float2],
) -> None:
    """The estimate of a list of pixels from the better half of given candidates: out (pixels, C)."""
