"""Sums over patches, and arrays as the kernels of stacks read them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.sheets import PADDING, sum_patches


def patch_sums(planes: NDArray[np.float32], patch_size: int, *, squared: bool = False) -> NDArray[np.float64]:
    """Sums of planes (C, H, W), or of their squares, over patches: (C, H - p + 1, W - p + 1).

    >>> patch_sums(np.arange(6, dtype=np.float32).reshape(1, 2, 3), 2)
    array([[[ 8., 12.]]])
    """
    count, height, width = planes.shape
    found = np.empty((count, height - patch_size + 1, width - patch_size + 1))
    sum_patches(np.ascontiguousarray(planes), patch_size, squared, found)
    return found


def spread_over_patches(corners: NDArray[np.float32], taps: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sum over all patches that cover a pixel of the value at the patch's top left corner.

    taps: weights of the rows of a patch, and of its columns.

    >>> spread_over_patches(np.array([[1, 0, 2, 0]], np.float32), np.ones(2, np.float32))
    array([[1., 1., 2., 2.]], dtype=float32)
    """
    rows = taps[0] * corners
    for shift in range(1, min(len(taps), corners.shape[0])):
        rows[shift:] += taps[shift] * corners[:-shift]
    result: NDArray[np.float32] = taps[0] * rows
    for shift in range(1, min(len(taps), corners.shape[1])):
        result[:, shift:] += taps[shift] * rows[:, :-shift]
    return result


def drop_first(planes: NDArray[Any]) -> None:
    """Move all planes to the place before; the last one stays there too.

    >>> planes = np.array([[1], [2], [3]])
    >>> drop_first(planes)
    >>> planes.ravel()
    array([2, 3, 3])
    """
    for index in range(len(planes) - 1):  # one assignment of all planes would copy them twice
        planes[index] = planes[index + 1]


def blank_planes(planes: int, height: int, width: int) -> NDArray[np.float32]:
    """Zeros, with the spare columns that kernels read beyond the last one.

    >>> blank_planes(2, 3, 4).shape[2] > 4
    True
    """
    return np.zeros((planes, height, width + PADDING), np.float32)
