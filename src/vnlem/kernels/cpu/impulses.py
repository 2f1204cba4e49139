"""Pixels that may be impulses."""

from vnlem.kernels.cpu.declare import Double2, Long1, Written, kernel

OTHERS = 2  # of the neighbours may be impulses too; as in impulses.cpp


@kernel
def find_extremes(
    plane: Double2,
    top: int,
    bottom: int,
    deviation: float,
    excess: float,
    noise: float,
    share: float,
    places: Written[Long1],
) -> int:
    """Pixels of some rows that stand out from the 24 around them, mirrored at the edges; returns how many.

    Such a pixel is the largest or the smallest of 3x3, and differs from the mean of 5x5 by more than
    `deviation`. It is outside the range of its neighbours without the OTHERS largest and smallest, by more
    than `excess` and by more than `noise` plus `share` times that range. places: indices in the flattened
    plane, with room for all of these rows.
    """
