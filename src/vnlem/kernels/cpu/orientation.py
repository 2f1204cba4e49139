"""Gradients of the smoothed image, and the arc of directions that holds most of them."""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Byte2, Float1, Float2, Long2, Written, kernel


@kernel
def gradients(
    padded: Float2,
    gauss: Float1,
    slope: Float1,
    smallest: float,
    magnitude: Written[Float2],
    direction: Written[Float2],
) -> None:
    """Derivative-of-Gaussian gradient as magnitude and direction in [0, 1) of a turn.

    gauss, slope : right halves of the filters. Magnitudes up to `smallest` count as zero.
    """


class Disc(NamedTuple):
    """Where directions are collected, and how."""

    offsets: Long2  # (pixels, [dy, dx])
    weights: Float1
    taper: Float1  # of the arc: weights of bins 0, 1, ... away
    arc_bins: int  # another peak is at least this far away


class Directions(NamedTuple):
    """See `vnlem.features.orientation.Orientation`; written for pixels that have a gradient.

    All but the angle may be empty: then they are not computed.
    """

    angle: Written[Float2]
    confidence: Written[Float2]
    second: Written[Float2]
    has_second: Written[Byte2]


@kernel
def dominant_directions(magnitude: Float2, direction: Float2, disc: Disc, found: Directions) -> None:
    """Histogram of directions over the disc, smoothed by the tapered arc; its peak and the next one."""
