"""Windows that follow what they show from frame to frame: no optical flow, only the best match of a block."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from vnlem.kernels.cpu.motion import BlockSearch, block_motion
from vnlem.pipeline.workers import Pool

CELL = 8  # pixels between blocks
HALF_BLOCK = 8
LONGEST = 12  # pixels from one frame to the next
SMOOTHING = 3  # pixels; on a frame without a pilot single pixels are mostly noise


def cost_of_shift(noisy: bool, sigma: float) -> float:
    """Cost of a pixel of shift: a small part of the noise left in a block's difference."""
    share = 0.02 / SMOOTHING**2 if noisy else 1e-5
    return share * (2 * HALF_BLOCK) ** 2 * sigma**2


class Motion:
    """How blocks move between the frames in flight, both ways.

    Parameters
    ----------
    noisy : bool
        Whether the frames still hold their noise.
    sigma : float
        Its standard deviation: shifts that noise alone explains are ignored.
    pool : Pool
        The threads.
    """

    def __init__(self, *, noisy: bool, sigma: float, pool: Pool) -> None:
        self._noisy, self._pool = noisy, pool
        self._search = BlockSearch(CELL, HALF_BLOCK, LONGEST, cost_of_shift(noisy, sigma))
        self._count = 0  # frames in flight
        self._last: NDArray[np.float32] | None = None  # of these
        self._onward: list[NDArray[np.int64]] = []  # from frame i to frame i + 1
        self._back: list[NDArray[np.int64]] = []  # from frame i + 1 to frame i

    def push(self, frame: NDArray[np.float32]) -> None:
        """Add a frame at the end."""
        seen = uniform_filter(frame, SMOOTHING) if self._noisy else np.ascontiguousarray(frame)
        before = self._last
        if before is not None:
            cells = (-(-frame.shape[0] // CELL), -(-frame.shape[1] // CELL), 2)
            onward, back = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
            pairs = [(before, seen, onward), (seen, before, back)]
            self._pool.for_each(lambda pair: block_motion(pair[0], pair[1], self._search, pair[2]), pairs)
            self._onward.append(onward)
            self._back.append(back)
        self._last = seen
        self._count += 1

    def pop(self) -> None:
        """Remove the first frame."""
        del self._onward[:1], self._back[:1]
        self._count -= 1
        if not self._count:
            self._last = None

    def centres(
        self, plane: int, corners: NDArray[np.int64], n_planes: int, patch_size: int
    ) -> NDArray[np.int64]:
        """Plane and window centre (r, n_planes, 3) for patches at `corners` of one frame, their own first."""
        found = np.empty((len(corners), n_planes, 3), np.int64)
        order = [plane, *(i for i in range(n_planes) if i != plane)]
        found[:, :, 0] = order
        places = {plane: corners}
        for here in range(plane, n_planes - 1):
            places[here + 1] = places[here] + _look_up(self._onward[here], places[here], patch_size)
        for here in range(plane, 0, -1):
            places[here - 1] = places[here] + _look_up(self._back[here - 1], places[here], patch_size)
        for i, there in enumerate(order):
            found[:, i, 1:] = places[there]
        return found


def _look_up(moves: NDArray[np.int64], corners: NDArray[np.int64], patch_size: int) -> NDArray[np.int64]:
    """The moves of the blocks that hold the middles of patches."""
    cells = (corners + patch_size // 2) // CELL
    rows = np.clip(cells[:, 0], 0, moves.shape[0] - 1)
    columns = np.clip(cells[:, 1], 0, moves.shape[1] - 1)
    return moves[rows, columns]
