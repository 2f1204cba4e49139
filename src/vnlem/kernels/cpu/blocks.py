"""What the blocks of a plane show: their frequencies, and pixels that are not noise."""

from vnlem.kernels.cpu.declare import Double2, Written, kernel


@kernel
def measure_blocks(
    plane: Double2,
    step: int,
    first: int,
    transform: Double2,
    weights: Double2,
    low: float,
    high: float,
    found: Written[Double2],
) -> None:
    """Measure blocks of 8x8 pixels whose corners lie every `step` pixels, row by row from number `first` on.

    transform: (8, 8), the matrix of the cosine transform: rows are frequencies.
    weights: (64, 8), of the energies of a block's coefficients in eight sums.
    found: (blocks, 13): the weighted sums; the mean; the shares of neighbours that are equal, along rows and
        along columns; the shares of pixels that are `low` and `high`.
    """
