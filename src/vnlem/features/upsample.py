"""Upsampling by Keys cubic convolution (a = -1/2): four taps per axis, so its reach is finite."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.pipeline.device import namespace

# How far a tap can lie from the sampled position, in pixels, rounded up.
REACH = 2


def keys_weights(fraction: float) -> NDArray[np.float64]:
    """Weights of the pixels at -1, 0, 1, 2 for a position `fraction` of a pixel after pixel 0.

    >>> keys_weights(0.5)
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """
    t = float(fraction)
    return np.array(
        [
            ((-0.5 * t + 1.0) * t - 0.5) * t,
            (1.5 * t - 2.5) * t * t + 1.0,
            ((-1.5 * t + 2.0) * t + 0.5) * t,
            (0.5 * t - 0.5) * t * t,
        ]
    )


def phases(image: NDArray[np.floating], factor: int) -> NDArray[np.floating]:
    """The upsampled image as its phase planes: ``[i, j, y, x]`` is its value at (y + i/factor, x + j/factor).

    Phase planes keep equal fractions of a pixel side by side, so a kernel that samples the same offset at
    every pixel reads contiguous memory. The outermost rows and columns (one before, two after) have no
    taps and are copied from the pixel they belong to.

    image: (height, width).

    Returns (factor, factor, height, width), of the image's dtype.

    >>> planes = phases(np.arange(36.0).reshape(6, 6), 2)
    >>> planes.shape, float(planes[1, 0, 2, 2])
    ((2, 2, 6, 6), 17.0)
    """
    planes: NDArray[np.floating] = namespace(image).empty((factor, factor, *image.shape), dtype=image.dtype)
    for i in range(factor):
        rows = _shift(image, i / factor, axis=0)
        for j in range(factor):
            planes[i, j] = _shift(rows, j / factor, axis=1)
    return planes


def averaged(image: NDArray[np.floating], factor: int) -> NDArray[np.floating]:
    """The upsampled image averaged down again with a triangle one pixel wide at half height.

    That is how a patch rotated in its upsampled form returns to the original resolution. Averaging and
    rotation commute, so it is done once, on the image. The two outermost rows and columns lack taps and are
    copied.

    image: (height, width).

    Returns an image of the same shape and dtype.

    >>> impulse = np.zeros((9, 9))
    >>> impulse[4, 4] = 1
    >>> averaged(impulse, 2)[4, 2:7] / averaged(impulse, 2)[4].sum()
    array([-0.015625,  0.125   ,  0.78125 ,  0.125   , -0.015625])
    >>> bool((averaged(impulse, 1) == impulse).all())
    True
    """
    xp = namespace(image)
    taps = _averaging_taps(factor)
    for axis in (0, 1):
        source = xp.moveaxis(image, axis, -1)
        smooth = source.copy()
        if (width := source.shape[-1]) > 2 * REACH:
            smooth[..., REACH:-REACH] = sum(
                image.dtype.type(tap) * source[..., k : width - 2 * REACH + k] for k, tap in enumerate(taps)
            )
        image = xp.moveaxis(smooth, -1, axis)
    result: NDArray[np.floating] = xp.ascontiguousarray(image)
    return result


def phase_filters(factor: int, average_down: bool) -> tuple[NDArray[np.float32], int]:
    """The filters that make the phases of an image along an axis, or of the image averaged down.

    Returns (filters, before), the taps of each phase, (factor, taps), and how many of them lie before the
    pixel.

    >>> phase_filters(2, average_down=False)
    (array([[ 0.    ,  1.    ,  0.    ,  0.    ],
           [-0.0625,  0.5625,  0.5625, -0.0625]], dtype=float32), 1)
    """
    filters = [keys_weights(phase / factor) + 0.0 for phase in range(factor)]
    if not average_down:
        return np.array(filters, dtype=np.float32), 1
    averaging = _averaging_taps(factor)
    return np.array([np.convolve(one, averaging) for one in filters], dtype=np.float32), 1 + REACH


def upsample(image: ArrayLike, factor: int = 2) -> NDArray[np.float64]:
    """An image upsampled by cubic convolution on its symmetric extension; its own pixels stay as they are.

    image: (height, width).
    factor: the paper's k.

    Returns (factor * height, factor * width).

    >>> fine = upsample([[0.0, 1.0], [2.0, 3.0]], 2)
    >>> fine.shape, bool((fine[::2, ::2] == [[0, 1], [2, 3]]).all())
    ((4, 4), True)
    """
    pixels = np.asarray(image, dtype=np.float64)
    height, width = pixels.shape
    planes = phases(np.pad(pixels, REACH, mode="symmetric"), factor)
    inner = planes[:, :, REACH : REACH + height, REACH : REACH + width]
    fine = inner.transpose(2, 0, 3, 1).reshape(factor * height, factor * width)
    return fine.astype(np.float64, copy=False)


def _averaging_taps(factor: int) -> NDArray[np.float64]:
    """The taps of `averaged` along an axis, the pixel's own in the middle."""
    taps = np.zeros(2 * REACH + 1)
    for step in range(1 - factor, factor):
        pixel, phase = divmod(step, factor)
        taps[pixel + 1 : pixel + 5] += (1 - abs(step) / factor) / factor * keys_weights(phase / factor)
    return taps


def _shift(image: NDArray[np.floating], fraction: float, axis: int) -> NDArray[np.floating]:
    """The image read `fraction` of a pixel further along an axis."""
    if fraction == 0:
        return image
    before, here, after, beyond = (image.dtype.type(w) for w in keys_weights(fraction))
    xp = namespace(image)
    source = xp.moveaxis(image, axis, -1)
    shifted = source.copy()
    if source.shape[-1] >= 4:
        shifted[..., 1:-2] = (
            before * source[..., :-3]
            + here * source[..., 1:-2]
            + after * source[..., 2:-1]
            + beyond * source[..., 3:]
        )
    moved: NDArray[np.floating] = xp.moveaxis(shifted, -1, axis)
    return moved
