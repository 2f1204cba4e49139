"""The SIFT orientation of every pixel: the direction most of the gradient around it points in.

Angles are in radians, from the column axis (x, to the right) towards the row axis (y, downwards).
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.kernels.cpu import orientation as kernels
from vnlem.pipeline import checks
from vnlem.pipeline.image import to_planes

# Directions are collected in this many bins (a multiple of four keeps quarter turns exact).
BINS = 36
# Gradients below this, in standard deviations of the image per pixel, are rounding and not structure.
SMALLEST_GRADIENT = 1e-5
# The Gaussian and its derivative are cut off at this many scales.
CUTOFF = 4.0
DEFAULT_ARC = 30.0


class Orientation(NamedTuple):
    """Orientation of every pixel with its confidence; angles in radians.

    angle: 0 where there is no gradient at all.
    confidence: margin of the best arc over the best arc elsewhere, as a share of all the gradient: 0 to 1.
    second: the second orientation where `has_second`, else a copy of `angle`.
    has_second: where a second arc holds at least 80 % of the first one's gradient.
    """

    angle: NDArray[np.float32]
    confidence: NDArray[np.float32]
    second: NDArray[np.float32]
    has_second: NDArray[np.bool_]


def orientation(
    image: ArrayLike,
    scale: float = 1.0,
    patch_size: int = 13,
    *,
    arc: float = DEFAULT_ARC,
    channel_axis: int | None = None,
    details: bool = False,
) -> NDArray[np.float32] | Orientation:
    """The SIFT orientation feature of every pixel.

    Parameters
    ----------
    image : array_like
        Two dimensions, or three with `channel_axis` (channels are averaged).
    scale : float
        Standard deviation of the Gaussian the image is smoothed with, in pixels (the paper's l).
    patch_size : int, odd
        Gradients are collected over the disc of this diameter.
    arc : float
        Half-width of the arc of directions, in degrees (the paper's delta).
    channel_axis : int, optional
    details : bool
        Return an :class:`Orientation` with confidence and second orientation instead of the angles alone.

    Returns
    -------
    ndarray of float32 or Orientation
        Radians in (-pi, pi], from the column axis towards the row axis.

    Notes
    -----
    The paper takes the arc N(theta) = {psi: \\|psi - theta\\| < delta} with the largest sum of gradient
    magnitudes. A sharp arc has that sum on a whole interval of theta when all gradients agree, so its
    maximum would be an accident of rounding; the arc here is tapered (a raised cosine of that half-width),
    which makes the maximum unique, and the peak is interpolated by a parabola.

    References
    ----------
    .. [1] D. G. Lowe, "Distinctive image features from scale-invariant keypoints", IJCV 60 (2004),
       https://doi.org/10.1023/B:VISI.0000029664.99615.94

    Examples
    --------
    >>> ramp = np.add.outer(np.arange(20.0), np.zeros(20))
    >>> float(np.degrees(orientation(ramp)[10, 10]).round(2))
    90.0
    >>> orientation(np.ones((20, 20)), details=True).confidence.max()
    np.float32(0.0)
    """
    scale = checks.real("scale", scale, 0.3, 100)
    patch_size = checks.odd("patch_size", patch_size, 3)
    arc = checks.real("arc", arc, 360 / BINS, 90)
    pixels = to_planes(image, channel_axis).data.mean(axis=0)
    spread = float(np.ptp(pixels))
    if spread > 0:
        pixels = (pixels - pixels.min()) / spread
        pixels = (pixels - pixels.mean()) / pixels.std()
    else:
        pixels = np.zeros_like(pixels)
    reach = halo(scale, patch_size)
    padded = np.pad(pixels.astype(np.float32), reach, mode="symmetric")
    found = orientation_of_region(padded, scale, patch_size, arc)
    return found if details else found.angle


def halo(scale: float, patch_size: int) -> int:
    """The support radius of an orientation.

    >>> halo(1.0, 13)
    10
    """
    return patch_size // 2 + math.ceil(CUTOFF * scale)


def orientation_of_region(
    padded: NDArray[np.float32],
    scale: float,
    patch_size: int,
    arc: float = DEFAULT_ARC,
    *,
    details: bool = True,
) -> Orientation:
    """Orientations of a region of a standardised image given with a border of ``halo`` pixels.

    Without details all but the angle is empty.

    >>> padded = np.zeros((24, 25), dtype=np.float32)
    >>> orientation_of_region(padded, 1.0, 13).angle.shape
    (4, 5)
    """
    gauss, slope = gaussian(scale)
    radius = len(gauss) - 1
    offsets, weights = disc(patch_size)
    border = patch_size // 2
    gradient_shape = (padded.shape[0] - 2 * radius, padded.shape[1] - 2 * radius)
    magnitude = np.empty(gradient_shape, dtype=np.float32)
    direction = np.empty(gradient_shape, dtype=np.float32)
    kernels.gradients(np.ascontiguousarray(padded), gauss, slope, SMALLEST_GRADIENT, magnitude, direction)
    shape = (gradient_shape[0] - 2 * border, gradient_shape[1] - 2 * border)
    angle = np.zeros(shape, dtype=np.float32)
    others = shape if details else (0, 0)
    confidence, second = (np.zeros(others, dtype=np.float32) for _ in range(2))
    has_second = np.zeros(others, dtype=np.bool_)
    kernels.dominant_directions(
        magnitude,
        direction,
        kernels.Disc(offsets, weights, taper(arc), math.ceil(arc / 360 * BINS)),
        kernels.Directions(angle, confidence, second, has_second.view(np.uint8)),
    )
    return Orientation(angle, confidence, second, has_second)


@lru_cache(maxsize=32)
def gaussian(scale: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Right halves of the Gaussian (unit sum) and of its derivative (unit answer to a unit slope)."""
    t = np.arange(math.ceil(CUTOFF * scale) + 1)
    gauss: NDArray[np.float64] = np.exp(-0.5 * (t / scale) ** 2)
    gauss /= gauss[0] + 2 * gauss[1:].sum()
    slope = t * gauss
    slope = slope / (2 * (t * slope).sum())
    return gauss.astype(np.float32), slope.astype(np.float32)


@lru_cache(maxsize=32)
def disc(patch_size: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Offsets of the pixels in the disc, and weights that fade over the last pixel of its radius."""
    half = patch_size // 2
    y, x = np.mgrid[-half : half + 1, -half : half + 1]
    weight = np.clip(half + 0.5 - np.hypot(y, x), 0, 1)
    inside = weight > 0
    offsets = np.stack([y[inside], x[inside]], axis=1).astype(np.int64)
    return offsets, weight[inside].astype(np.float32)


@lru_cache(maxsize=32)
def taper(arc: float) -> NDArray[np.float32]:
    """The tapered arc over the bins, as its right half (bin distance 0, 1, ...)."""
    distance = np.arange(math.ceil(arc / 360 * BINS) + 1) * 360 / BINS
    taper = np.where(distance < arc, 0.5 + 0.5 * np.cos(np.pi * distance / arc), 0)
    return taper.astype(np.float32)
