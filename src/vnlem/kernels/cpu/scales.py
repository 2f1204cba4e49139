"""Filters along the rows and the columns of planes, mirrored at their borders."""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Double2, Double3, Int2, Written, kernel


class Taps(NamedTuple):
    """A filter along an axis. With several phases p, pixel p * i + phase of the result belongs to pixel i.

    The filter adds up, in this order, weight times the pixel `step` away from its own. If it halves, the
    result has half the pixels, and a weight is that of the sum of two: 2 i - step and 2 i + 1 + step.
    """

    weights: Double2  # (phases, n)
    steps: Int2  # (phases, n)
    halves: bool
    divisor: float = 1.0  # of the sum


@kernel
def filter_planes(planes: Double3, down: Taps, across: Taps, out: Written[Double3]) -> None:
    """Filter planes (C, H, W) along the axis of the rows, then along the other; every sum is rounded."""
