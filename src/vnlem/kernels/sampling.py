"""How rings are sampled: the one value that the kernels of both backends take."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Sampling(NamedTuple):
    """Where the rings lie and what their samples make (see vnlem.features.rings)."""

    where: NDArray[np.int64]  # (samples, 4, [phase y, phase x, dy, dx])
    weights: NDArray[np.float32]  # (samples, 4)
    starts: NDArray[np.int64]  # (rings + 1), first sample of each ring
    real: NDArray[np.float32]  # (rings, orders, samples of a ring, or of a quarter of it)
    imag: NDArray[np.float32]
    centre: float  # weight of the central pixel
    lane_of: NDArray[np.int64]  # (rings, orders), lane of a coefficient
    centre_lane: int
