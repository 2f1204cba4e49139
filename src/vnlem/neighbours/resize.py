"""Images made smaller or larger by a windowed sinc, for distances over dilations (`vnlem.rid(scales=)`).

The sinc of a smaller copy is wider, so nothing aliases. Images are mirrored at their borders.
"""

import numpy as np
from numpy.typing import NDArray

LOBES = 6  # of the sinc on each side of its centre
_KAISER = 2.5


def resized(image: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """An image (H, W) scaled about its centre, of the same size.

    A larger copy is cut; a smaller one is surrounded by its mirror image.

    >>> x = np.arange(-30.0, 31.0)
    >>> hill = np.exp(-np.add.outer(x**2, x**2) / 72)
    >>> bool(np.allclose(resized(hill, 0.5)[16:45, 16:45], hill[16:45, 16:45] ** 4, atol=0.02))
    True
    """
    height, width = image.shape
    return np.asarray(_resizing(height, factor) @ image @ _resizing(width, factor).T)


def stretched(image: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """An image (H, W) scaled as a whole: its size is scaled too, rounded up.

    >>> stretched(np.ones((10, 21)), 1.5).shape, bool(np.allclose(stretched(np.ones((10, 21)), 0.7), 1))
    ((15, 32), True)
    """
    rows, columns = (_resizing(count, factor, int(np.ceil(factor * count))) for count in image.shape)
    return np.asarray(rows @ image @ columns.T)


def _resizing(count: int, factor: float, scaled: int | None = None) -> NDArray[np.float64]:
    """The matrix that scales `count` pixels about their centre to `scaled` pixels, to `count` when None.

    The image is mirrored at its ends.
    """
    size = count if scaled is None else scaled
    matrix = np.zeros((size, count))
    bases, taps = _taps((count - 1) / 2 + (np.arange(size) - (size - 1) / 2) / factor, factor)
    for row, base, weights in zip(matrix, bases, taps, strict=True):
        at = (base + np.arange(weights.size)) % (2 * count)
        np.add.at(row, np.where(at < count, at, 2 * count - 1 - at), weights)
    return matrix


def _taps(at: NDArray[np.floating], factor: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """First source pixels and weights of a windowed sinc about source positions."""
    low_pass = min(factor, 1.0)
    half = int(np.ceil(LOBES / low_pass))
    bases = np.floor(at).astype(np.int64) - half + 1
    offsets = (bases[:, None] + np.arange(2 * half) - at[:, None]) * low_pass
    window = np.i0(_KAISER * np.sqrt(np.maximum(1 - (offsets / LOBES) ** 2, 0))) / np.i0(_KAISER)
    taps = np.where(np.abs(offsets) <= LOBES, np.sinc(offsets) * window, 0)
    return bases, taps / taps.sum(axis=1, keepdims=True)
