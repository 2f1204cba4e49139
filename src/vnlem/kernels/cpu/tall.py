"""Operations on blocks of vectors, (pixels, n) with n a multiple of eight.

Every kernel works on the rows first..last of its blocks, whole groups of eight: pieces can be processed in
parallel. Products are float32, sums over many rows float64.
"""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Double1, Double2, Float1, Float2, Long1, Written, kernel


class Blocks(NamedTuple):
    """Blocks side by side; missing ones have no columns."""

    first: Float2
    second: Float2
    third: Float2


@kernel
def inner_products(lefts: Blocks, rights: Blocks, first: int, last: int, out: Written[Double2]) -> None:
    """out += inner products of all columns of `lefts` (its rows) with all of `rights`."""


@kernel
def combine(
    blocks: Blocks, turn: Float2, factors: Float1, first: int, last: int, out: Written[Float2]
) -> None:
    """out = blocks @ turn, its columns times factors; out may be one of the blocks."""


@kernel
def subtract_product(
    block: Written[Float2], x: Float2, along: Float2, first: int, last: int, squares: Written[Double1]
) -> None:
    """block -= x @ along; squares += those of the result's columns."""


@kernel
def residual(
    x: Float2,
    image: Float2,
    values: Float1,
    first: int,
    last: int,
    out: Written[Float2],
    squares: Written[Double1],
) -> None:
    """out = image - x * values, unless it has no columns; squares += those of the result."""


@kernel
def take_columns(block: Float2, columns: Long1, first: int, last: int, out: Written[Float2]) -> None:
    """out = block[:, columns]."""


@kernel
def shifted(
    x: Float2, image: Written[Float2], shifts: Float1, first: int, last: int, products: Written[Double1]
) -> None:
    """image = shifts * x - image; products += those of x and the result."""


@kernel
def advance(
    x: Written[Float2],
    r: Written[Float2],
    p: Float2,
    q: Float2,
    factors: Float1,
    first: int,
    last: int,
    squares: Written[Double1],
) -> None:
    """x += factors * p, r -= factors * q; squares += those of r."""


@kernel
def follow(p: Written[Float2], r: Float2, factors: Float1, first: int, last: int) -> None:
    """p = r + factors * p."""
