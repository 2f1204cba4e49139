"""Statistics of many numbers, read once."""

from vnlem.kernels.cpu.declare import Double1, Long1, Written, kernel


@kernel
def take_ends(
    values: Double1,
    low: float,
    high: float,
    below: Written[Double1],
    above: Written[Double1],
    counts: Written[Long1],
) -> None:
    """The values up to `low` and those from `high` on, in their order, and how many: with room for all."""


@kernel
def sum_powers(values: Double1, about: float, sums: Written[Double1]) -> None:
    """sums: of the values minus `about`, and of the squares of that."""
