"""Differences of neighbouring pages of a stack: structure that recurs cancels, noise does not."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.levels import Differences

Float = NDArray[np.float64]

PAIRS = 4  # of neighbours, spread over the stack
LARGEST = 512  # side in pixels of the examined middle of a page
# Blocks are matched on smooth pages: the choice must not depend on the high frequencies that show the noise.
SMOOTHING = 2.0
CELL, LONGEST = 8, 12


def matched(pairs: list[tuple[Any, Any]]) -> Differences:
    """The differences of pairs of pages (H, W), one below another, after matching blocks.

    >>> rng = np.random.default_rng(0)
    >>> scene = np.repeat(np.repeat(rng.normal(0, 50, (24, 24)), 3, axis=0), 3, axis=1)
    >>> pages = [scene[k : k + 64, :64] + rng.normal(0, 2, (64, 64)) for k in (0, 3)]
    >>> found = matched([(pages[0], pages[1])])
    >>> bool(abs(found.noise[16:-16, 16:-16].std() / 2 - 1) < 0.1)
    True
    """
    found = [_matched(_middle(first), _middle(second)) for first, second in pairs]
    width = min(one.noise.shape[1] for one in found)
    return Differences(
        *(np.concatenate([plane[:, :width] for plane in planes]) for planes in zip(*found, strict=True))
    )


def _middle(page: Any) -> Float:
    top, left = (max(0, (size - LARGEST) // 2) for size in page.shape)
    return np.asarray(page[top : top + LARGEST, left : left + LARGEST], np.float64)


def _matched(first: Float, second: Float) -> Differences:
    from scipy.ndimage import gaussian_filter

    from vnlem.kernels.cpu.motion import BlockSearch, block_motion

    height, width = (min(sizes) for sizes in zip(first.shape, second.shape, strict=True))
    first, second = first[:height, :width], second[:height, :width]
    unit = max(float(first.std()), float(second.std())) or 1.0
    smooth = [
        gaussian_filter((page - first.mean()) / unit, SMOOTHING).astype(np.float32)
        for page in (first, second)
    ]
    moves = np.zeros((-(-height // CELL), -(-width // CELL), 2), np.int64)
    block_motion(smooth[0], smooth[1], BlockSearch(CELL, LONGEST, 1e-5), moves)
    rows, columns = np.indices((height, width))
    shift = moves[rows // CELL, columns // CELL]
    there = second[
        np.clip(rows + shift[..., 0], 0, height - 1), np.clip(columns + shift[..., 1], 0, width - 1)
    ]
    clipped = np.zeros(first.shape, np.int8)
    for page, limits in ((first, first), (there, second)):
        clipped[page == limits.min()] = -1
        clipped[page == limits.max()] = 1
    return Differences((first - there) / np.sqrt(2), (first + there) / 2, clipped)
