"""Denoisers of other packages that take whole stacks, called the way their users call them, for comparison.

Each takes a stack (pages, H, W) in 0..255, its noise level, the number of threads it may use, and its axes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.bench.peers import check_installed

StackPeer = Callable[[NDArray[np.float64], float, int, str], NDArray[Any]]
FRAMES = 2  # that OpenCV uses before and after


def find_stack_peer(name: str) -> StackPeer:
    """A peer by its name, or an error if its package is missing."""
    peer, needs = _PEERS[name]
    check_installed(name, needs)
    return peer


def _bm4d(noisy: NDArray[np.float64], sigma: float, threads: int, axes: str) -> NDArray[Any]:
    from bm4d import bm4d

    return 255 * np.asarray(bm4d(noisy / 255, sigma / 255))


def _opencv_multi(noisy: NDArray[np.float64], sigma: float, threads: int, axes: str) -> NDArray[Any]:
    import cv2

    cv2.setNumThreads(threads)
    # It takes bytes, and as many frames before as after: fewer towards both ends.
    frames = list(np.clip(np.rint(noisy), 0, 255).astype(np.uint8))
    found = []
    for number in range(len(frames)):
        half = min(FRAMES, number, len(frames) - 1 - number)
        found.append(cv2.fastNlMeansDenoisingMulti(frames, number, 2 * half + 1, None, 0.9 * sigma, 5, 21))
    return np.stack(found).astype(np.float64)


# Name -> function, and the modules it needs.
_PEERS: dict[str, tuple[StackPeer, tuple[str, ...]]] = {
    "bm4d": (_bm4d, ("bm4d",)),
    "opencv-multi": (_opencv_multi, ("cv2",)),
}
STACK_PEERS = tuple(_PEERS)
