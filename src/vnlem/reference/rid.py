"""The rotation-invariant distance over rotations and dilations, every size and every angle one by one.

The oracle of ``vnlem.rid``: float64, no sums shared between angles, no matrices shared between rows.
"""

import math

import numpy as np
from numpy.typing import NDArray

from vnlem.reference.rings import ring_coefficients

_LOBES = 6  # of the windowed sinc on each side of its centre


def scale_taps(factor: float, position: float) -> tuple[int, NDArray[np.float64]]:
    """First pixel and weights of a windowed sinc about a position, as wide as the coarser raster needs.

    Examples
    --------
    >>> first, taps = scale_taps(0.5, 20.0)
    >>> first, len(taps), round(float(taps.sum()), 6)
    (9, 24, 1.0)
    """
    low_pass = min(factor, 1.0)
    half = int(np.ceil(_LOBES / low_pass))
    first = int(np.floor(position)) - half + 1
    at = (first + np.arange(2 * half) - position) * low_pass
    taps = np.sinc(at) * np.i0(2.5 * np.sqrt(np.maximum(1 - (at / _LOBES) ** 2, 0)))
    taps[np.abs(at) > _LOBES] = 0
    return first, taps / taps.sum()


def resized(image, factor):
    """An image (H, W) scaled about its centre, of the same size; beyond its ends it is mirrored.

    Examples
    --------
    >>> bool(np.allclose(resized(np.ones((9, 9)), 0.7), 1))
    True
    """
    return _resized_rows(_resized_rows(image, factor).T, factor).T


def _resized_rows(image, factor):
    """Every row of the result is a weighted sum of rows of the image."""
    count = len(image)
    middle = (count - 1) / 2
    result = np.zeros(image.shape)
    for row in range(count):
        first, taps = scale_taps(factor, middle + (row - middle) / factor)
        for number, tap in enumerate(taps):
            result[row] += tap * image[_mirrored(first + number, count)]
    return result


def _mirrored(position, count):
    """The mirror image of a position beyond the ends of `count` pixels: the end pixels are doubled."""
    while not 0 <= position < count:
        position = -1 - position if position < 0 else 2 * count - 1 - position
    return position


def squared_distance(a, b, angle, patch_size, upsample=2):
    """Squared distance of the discs in the middle of two arrays, the second turned by an angle.

    Counted as if the disc were a square patch.

    Examples
    --------
    >>> round(squared_distance(np.ones((9, 9)), np.zeros((9, 9)), 0.3, 5), 6)
    25.0
    """
    orders = [min(14, int(0.9 * math.pi * radius)) for radius in range(1, patch_size // 2 + 1)]
    samples = [8 * math.ceil((2 * order + 6) / 8) for order in orders]
    middle = len(a) // 2
    (centre_a, rings_a), (centre_b, rings_b) = (
        ring_coefficients(array, middle, middle, samples, orders, upsample) for array in (a, b)
    )
    total = (centre_a - centre_b) ** 2
    for (radius, order), value in rings_a.items():
        total += abs(value - rings_b[radius, order] * np.exp(-1j * order * angle)) ** 2
    return float(total * 4 / math.pi)


def rid(a, b, patch_size, *, scales=(1.0,), starts=None, angle_range=30.0, angle_step=5.0):
    """Distance, angle (radians) and factor of the best rotation and dilation of the second array.

    starts: for each factor the angle, in radians, about which it is searched, strictly inside +-angle_range;
    all around when None. The unrotated patch is tried too.

    Examples
    --------
    >>> y, x = np.mgrid[-10:11, -10:11]
    >>> distance, angle, factor = rid(np.tanh(y / 3.0), np.tanh(x / 2.0), 9, scales=(1.0, 1.5))
    >>> bool(distance < 0.2), round(angle, 2), factor
    (True, 1.57, 1.5)
    """
    best = (math.inf, 0.0, 1.0)
    for number, factor in enumerate(scales):
        moved = b if factor == 1 else resized(b, factor)
        if starts is None:
            tried = [math.radians(angle_step * step) for step in range(math.ceil(360 / angle_step))]
        else:
            count = math.ceil(angle_range / angle_step) - 1
            tried = [starts[number] + math.radians(angle_step * step) for step in range(-count, count + 1)]
        for angle in (0.0, *tried):
            distance = math.sqrt(squared_distance(a, moved, angle, patch_size))
            if distance < best[0]:
                best = distance, math.remainder(angle, 2 * math.pi), factor
    return best
