"""What lines of a picture have in common."""

from vnlem.kernels.cpu.declare import Double2, Written, kernel


@kernel
def middle_means(
    plane: Double2, height: int, lag: int, across: bool, dropped: int, means: Written[Double2]
) -> None:
    """Means without the `dropped` smallest and largest values, of blocks of `height` rows, column by column.

    means: (blocks, columns - lag), of each column minus the one `lag` before it; of the columns if the lag is
    zero. The rows of a block that count begin at `i * (rows // blocks)`. across: exchange rows and columns of
    the plane.
    """
