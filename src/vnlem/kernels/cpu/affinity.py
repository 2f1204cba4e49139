"""Weights of the patch graph: aligned distances of a half window, then a Gaussian of them; see `stencil`."""

from vnlem.kernels.cpu.declare import Float1, Float3, Written, kernel
from vnlem.kernels.cpu.stencil import PaddedSize
from vnlem.kernels.cpu.vnlem import Features, Rule


@kernel
def half_windows(
    region: Features,
    rule: Rule,
    top: int,
    bottom: int,
    left: int,
    right: int,
    factor: float,
    size: PaddedSize,
    weights: Written[Float3],
) -> None:
    """Write factor * squared aligned distance of a tile's pixels to those after them into their slots.

    Slots that leave the image to the left or to the right hold garbage.
    """


@kernel
def local_scales(
    squared: Float3, size: PaddedSize, noise: float, count: int, first: int, last: int, out: Written[Float1]
) -> None:
    """Corrected squared distance of every pixel to the count-th nearest of its window.

    out (padded pixels).
    """


@kernel
def gaussian_weights(
    weights: Written[Float3], size: PaddedSize, inverse_scales: Float1, noise: float, first: int, last: int
) -> None:
    """Turn squared distances into weights, in place: exp(-(squared - noise) * inverse[p] * inverse[c]).

    inverse = inverse_scales (padded pixels) is zero outside the image, where weights become zero. A pixel's
    own weight is one.
    """
