"""Blocks of an image under the cosine transform: what every estimate of noise is made of.

Noise that is the same everywhere has nearly independent coefficients in a block. So blocks may be chosen by
one half of their coefficients, and the noise read from the other half, without a bias from the choice.
"""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Float = NDArray[np.float64]

MOST_BLOCKS = 2**14  # bounds time and memory for any image
CLIPPED_SHARE = 0.05  # a block with more pixels at the image's limits may be clipped
LEAST_UNCLIPPED = 0.25  # of the blocks must be unclipped for the others to be left out
EQUAL_SHARE = 0.5  # a block with more pairs of equal neighbours was painted, not photographed


def cut(plane: Float, side: int, step: int) -> Float:
    """Overlapping blocks (n, side, side); the step grows where there would be more than MOST_BLOCKS.

    Examples
    --------
    >>> cut(np.zeros((32, 40)), 8, 8).shape
    (20, 8, 8)
    """
    windows = sliding_window_view(plane, (min(plane.shape[0], side), min(plane.shape[1], side)))
    while -(-windows.shape[0] // step) * -(-windows.shape[1] // step) > MOST_BLOCKS:
        step += 1
    return windows[::step, ::step].reshape(-1, *windows.shape[2:])


def cosine(blocks: Float) -> Float:
    """Orthonormal cosine transform of every block (..., rows, columns).

    By matrices: blocks are small, and importing `scipy.fft` takes as long as many images do.

    Examples
    --------
    >>> cosine(np.ones((1, 2, 2))).round(12)
    array([[[2., 0.], [0., 0.]]])
    """
    down, across = (_cosine_matrix(side) for side in blocks.shape[-2:])
    coefficients: Float = np.matmul(np.matmul(down, blocks), across.T)
    return coefficients


def _cosine_matrix(side: int) -> Float:
    """Rows are frequencies, columns places."""
    order = np.arange(side)
    matrix: Float = np.cos(np.pi / side * np.outer(order, order + 0.5)) * np.sqrt(2 / side)
    matrix[0] = np.sqrt(1 / side)
    return matrix


def frequency(side: int) -> Float:
    """Mean over both directions of the frequency of each coefficient: 0 to 1.

    Examples
    --------
    >>> frequency(2)
    array([[0. , 0.5], [0.5, 1. ]])
    """
    axis = np.arange(side) / max(side - 1, 1)
    mean: Float = np.add.outer(axis, axis) / 2
    return mean


def painted(blocks: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether most neighbours in a block are equal: a label, a border, padding; no detector does that.

    Examples
    --------
    >>> painted(np.array([[[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [3.0, 4.0]]]))
    array([ True, False])
    """
    across = np.mean(blocks[:, :, 1:] == blocks[:, :, :-1], axis=(1, 2)) if blocks.shape[2] > 1 else 0.0
    down = np.mean(blocks[:, 1:] == blocks[:, :-1], axis=(1, 2)) if blocks.shape[1] > 1 else 0.0
    return np.asarray(np.maximum(across, down) > EQUAL_SHARE)


def clipped(blocks: Float, low: float, high: float) -> NDArray[np.bool_]:
    """Whether a block has many pixels at the smallest or the largest value of its image.

    Examples
    --------
    >>> clipped(np.array([[[0.0, 0.0], [1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]]]), 0.0, 9.0)
    array([ True, False])
    """
    return np.asarray(np.mean((blocks == low) | (blocks == high), axis=(1, 2)) > CLIPPED_SHARE)


def usable(blocks: Float, low: float, high: float, enough: int) -> NDArray[np.bool_]:
    """Blocks that show the noise as it is; where too few would be left, a weaker demand or none.

    Examples
    --------
    >>> usable(np.zeros((3, 2, 2)), 0.0, 1.0, enough=2)
    array([ True,  True,  True])
    """
    natural = ~painted(blocks)
    if np.count_nonzero(natural) < enough:
        return np.ones(len(blocks), bool)
    unclipped = natural & ~clipped(blocks, low, high)
    # Where most blocks are clipped, those that are not were chosen by their noise; and what is clipped has
    # the noise that is to be removed.
    few = max(enough, LEAST_UNCLIPPED * np.count_nonzero(natural))
    return natural if np.count_nonzero(unclipped) < few else unclipped
