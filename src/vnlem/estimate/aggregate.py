"""Putting groups of patches back: accumulators per tile, added in tile order, then the weighted mean.

Floating point sums depend on their order, so every tile has accumulators of its own and they join the
image's in the fixed order of the tiles. The result is then the same for any number of workers, and for any
part of the image that is solved apart. Only tiles that wait for a slower predecessor are held.
"""

import threading

import numpy as np

from vnlem.kernels.numba.sheets import Images, Sums, finish, join
from vnlem.pipeline.tiles import Tile, grid
from vnlem.pipeline.workers import Pool

STRIP = 32  # rows that are finished together


class Aggregate:
    """The image's accumulators. `add` may be called from any thread, in any order."""

    def __init__(self, channels: int, height: int, width: int) -> None:
        self._total = Sums(
            np.zeros((channels, height, width, 2), np.float32),
            np.zeros((channels, height, width), np.float32),
        )
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[Sums, tuple[int, int, int, int]]] = {}
        self._next = 0
        self._joining = False

    def add(self, index: int, tile: Sums, place: tuple[int, int, int, int]) -> None:
        """Add tile number `index` at place: y, x, height, width; those that come early wait."""
        with self._lock:
            self._waiting[index] = (tile, place)
            if self._joining:
                return
            self._joining = True
        # One thread joins what has its turn; the others leave theirs and go on.
        while True:
            with self._lock:
                if self._next not in self._waiting:
                    self._joining = False
                    return
                tile, place = self._waiting.pop(self._next)
                self._next += 1
            join(tile, 0, 0, place, self._total)

    def finish(self, images: Images, patch_size: int, area: Tile, pool: Pool) -> None:
        """Make the changes in an area of the pilot and the working image, both (channels, H, W), in place."""
        strips = grid(area.bottom - area.top, area.right - area.left, STRIP, area.right - area.left)
        missing = np.zeros(len(strips), np.int64)

        def work(index: int) -> None:
            top, bottom = area.top + strips[index].top, area.top + strips[index].bottom
            place = (top, bottom, area.left, area.right)
            missing[index] = finish(self._total, patch_size, place, images)

        pool.for_each(work, range(len(strips)))
        if missing.any():
            raise RuntimeError(f"no patch covers {missing.sum()} pixels; please report this fault of vnlem")
