"""A symmetric graph on the pixels of an image whose edges stay within a window, as a stencil.

The neighbours of a pixel are the same offsets everywhere, so no indices are stored. The two weights of a pair
are equal: only the one at the first pixel in reading order is stored. Weights are (rows, slots, columns):
slots 0.. are the forward offsets in reading order, then one for the pixel itself. Columns come last, to
process pixels side by side together, whether their weights lie with them or with their neighbours. The image
is padded with rows and columns of zeros, so no loop tests for the border. Vectors are (pixels, n) with the
same padding, n a multiple of eight: all n are processed at once, reading memory once. Kernels work on some
rows of the image, counted without the padding.
"""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Double2, Float1, Float2, Float3, Written, kernel

# Pixels that may be processed together: rows are padded to whole groups of them.
TOGETHER = 8


class PaddedSize(NamedTuple):
    """Size of an image padded by `reach` rows and columns of zeros, on the right by some more."""

    height: int
    width: int
    reach: int
    stride: int  # length of a padded row, a multiple of TOGETHER


@kernel
def apply_stencil(
    weights: Float3, size: PaddedSize, vectors: Float2, first: int, last: int, out: Written[Float2]
) -> None:
    """out[p] = sum over neighbours c of weight(p, c) * vectors[c].

    The padding left and right of the image becomes zero.
    """


@kernel
def stencil_degrees(weights: Float3, size: PaddedSize, first: int, last: int, out: Written[Double2]) -> None:
    """Sum of the weights of every pixel, itself included; out (padded rows, stride)."""


@kernel
def scale_stencil(weights: Written[Float3], size: PaddedSize, factors: Float1, first: int, last: int) -> None:
    """weight(p, c) *= factors[p] * factors[c], in place; factors (padded pixels)."""


@kernel
def coarsen_stencil(
    weights: Float3, size: PaddedSize, first: int, last: int, coarse: Written[Float3], coarse_size: PaddedSize
) -> None:
    """Add up the weights between blocks of 2x2 pixels: the coarse graph's weights; whole rows of blocks.

    The first pixel of a pair may lie in the later of two blocks, but then both lie in one row of blocks. So
    rows of blocks can be processed in parallel.
    """


@kernel
def count_components(weights: Float3, size: PaddedSize) -> int:
    """Number of connected components over edges of positive weight, by union-find."""


@kernel
def restrict(
    fine: Float2,
    share: Float1,
    size: PaddedSize,
    first: int,
    last: int,
    coarse: Written[Float2],
    coarse_size: PaddedSize,
) -> None:
    """coarse += P^T fine for P = share on the 2x2 pixels of each block; first, last: rows of blocks."""


@kernel
def prolong(
    coarse: Float2,
    coarse_size: PaddedSize,
    share: Float1,
    size: PaddedSize,
    first: int,
    last: int,
    fine: Written[Float2],
) -> None:
    """fine += P coarse, see `restrict`."""
