"""Pixels that may be impulses."""

from vnlem.kernels.cpu.declare import Double2, Long1, Written, kernel


@kernel
def find_extremes(
    plane: Double2, deviation: float, excess: float, others: int, places: Written[Long1]
) -> int:
    """Pixels that stand out from the 24 around them, mirrored at the edges; returns how many.

    Such a pixel is the largest or the smallest of 3x3, differs from the mean of 5x5 by more than `deviation`
    and from all of its 24 neighbours but `others` by more than `excess`, to one side. places: their indices
    in the flattened plane, with room for all of it.
    """
