"""Exact nearest neighbours under the RID over a whole image, by a cascade of lower bounds.

Rotation does not change the modulus of a coefficient, so distances of moduli bound the RID from below, for
any set of angles. Cheap bounds dismiss most of the image, costlier ones most of the rest, and only the
remaining candidates are searched over the angles. A bound dismisses a candidate if it exceeds the distance of
the k-th best found so far.
"""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Float2, Long1, Long2, Written, kernel
from vnlem.kernels.cpu.vnlem import Features, Rule, Search


class Index(NamedTuple):
    """What the bounds are computed from."""

    order_of_lane: Long1  # (lanes)
    order_moduli: Float2  # (orders, N), see `moduli`
    ring_moduli: Float2  # (N, lanes)


class Found(NamedTuple):
    """Neighbours of a list of pixels, nearest first: (pixels, n_neighbors)."""

    position: Written[Long2]  # pixel number in the region
    squared: Written[Float2]  # squared distance of features
    which: Written[Long2]  # +-number of the angle, or IDENTITY


@kernel
def moduli(
    features: Float2, order_of_lane: Long1, order_moduli: Written[Float2], ring_moduli: Written[Float2]
) -> None:
    """Rotation-invariant moduli: per order over all rings (orders, N), per coefficient (N, lanes).

    features (N, 2 lanes). Entries of order zero keep their sign, in ring_moduli; order_moduli[0] is their
    norm.
    """


@kernel
def neighbours_in_image(
    region: Features,
    search: Search,
    rule: Rule,
    index: Index,
    pixels: Long1,
    prune: bool,
    found: Found,
    left: Written[Long1],
) -> None:
    """The n_neighbors nearest of all pixels of the region to each of a list of pixels.

    left (4) counts all candidates, and those that each bound lets pass. Near pixels are tried first: they are
    often similar, and a small threshold dismisses the rest sooner. With prune False all are searched.
    """
