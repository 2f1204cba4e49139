"""The median over planes."""

from vnlem.kernels.cpu.declare import Float1, Float2, Written, kernel

MOST = 17  # as in middle.cpp


@kernel
def middle_of_planes(planes: Float2, out: Written[Float1]) -> None:
    """The median of every pixel over planes (planes, pixels), of two values in the middle their mean.

    At most `MOST` planes.
    """
