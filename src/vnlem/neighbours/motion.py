"""Windows that follow what they show from frame to frame: no optical flow, only the best match of a block."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from vnlem.kernels.cpu.motion import BlockSearch, Moves, block_motion, follow_motion
from vnlem.pipeline.workers import Pool

CELL = 8  # pixels between blocks
HALF_BLOCK = CELL
ROWS_AT_ONCE = 8  # of blocks, which one thread searches for
LONGEST = 12  # pixels from one frame to the next
SMOOTHING = 3  # pixels; on a frame without a pilot single pixels are mostly noise


def cost_of_shift(noisy: bool, sigma: float) -> float:
    """Cost of a pixel of shift: a small part of the noise left in a block's difference."""
    share = 0.02 / SMOOTHING**2 if noisy else 1e-5
    return share * (2 * HALF_BLOCK) ** 2 * sigma**2


class Motion:
    """How blocks move between the frames in flight, both ways.

    noisy: whether the frames still hold their noise.
    sigma: its standard deviation: shifts that noise alone explains are ignored.
    pool: the threads.
    """

    def __init__(self, *, noisy: bool, sigma: float, pool: Pool) -> None:
        self._noisy, self._pool = noisy, pool
        self._search = BlockSearch(CELL, LONGEST, cost_of_shift(noisy, sigma))
        self._count = 0  # frames in flight
        self._last: NDArray[np.float32] | None = None  # of these
        self._onward = np.empty((0, 0, 0, 2), np.int64)  # from frame i to frame i + 1
        self._back = self._onward  # from frame i + 1 to frame i

    def push(self, frame: NDArray[np.float32]) -> None:
        """Add a frame at the end."""
        seen = uniform_filter(frame, SMOOTHING) if self._noisy else np.ascontiguousarray(frame)
        before = self._last
        if before is not None:
            cells = (-(-frame.shape[0] // CELL), -(-frame.shape[1] // CELL), 2)
            onward, back = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
            rows = range(0, cells[0], ROWS_AT_ONCE)
            work = [(*pair, row) for pair in ((before, seen, onward), (seen, before, back)) for row in rows]
            self._pool.for_each(lambda item: self._search_rows(*item), work)
            self._onward, self._back = _added(self._onward, onward), _added(self._back, back)
        self._last = seen
        self._count += 1

    def _search_rows(
        self, here: NDArray[np.float32], there: NDArray[np.float32], moves: NDArray[np.int64], row: int
    ) -> None:
        block_motion(here, there, self._search._replace(first=row), moves[row : row + ROWS_AT_ONCE])

    def pop(self) -> None:
        """Remove the first frame."""
        self._onward, self._back = self._onward[1:], self._back[1:]
        self._count -= 1
        if not self._count:
            self._last = None

    def centres(
        self, plane: int, corners: NDArray[np.int64], n_planes: int, patch_size: int
    ) -> NDArray[np.int64]:
        """Plane and window centre (r, n_planes, 3) for patches at `corners` of one frame, their own first."""
        found = np.empty((len(corners), n_planes, 3), np.int64)
        moves = Moves(self._onward, self._back, CELL)
        follow_motion(moves, np.ascontiguousarray(corners), plane, patch_size // 2, found)
        return found


def _added(moves: NDArray[np.int64], more: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([moves, more[None]]) if len(moves) else more[None]
