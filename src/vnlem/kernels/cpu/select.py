"""The smallest of many numbers."""

from vnlem.kernels.cpu.declare import Float1, Int1, Written, brief_kernel


@brief_kernel
def smallest(values: Float1, limit: int, own: int, guess: float, chosen: Written[Int1]) -> int:
    """Indices of the `limit` smallest finite values, in their order; none may be negative. Returns how many.

    Ties go to the lower index. own: the index of a zero that is always taken and comes first, or -1. guess:
    about how large the largest of them is, or 0. chosen: written, one longer than `limit`.
    """
