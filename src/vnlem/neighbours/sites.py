"""Where members are searched for beyond a patch's own plane: a strategy for each kind of stack.

Time: windows follow what they show (:class:`vnlem.neighbours.motion.Motion`). Depth: the same place in every
slice. Several images: the most similar place in each of the most similar images.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Sites(Protocol):
    """What a pass needs from a strategy. Planes are counted from the first one in flight."""

    def push(self, frame: NDArray[np.float32]) -> None:
        """Add a plane at the end."""

    def pop(self) -> None:
        """Remove the first plane."""

    def centres(
        self, plane: int, corners: NDArray[np.int64], n_planes: int, patch_size: int
    ) -> NDArray[np.int64]:
        """Plane and centre (r, s, 3) of the windows of patches in one plane, their own first."""


class SamePlace:
    """The same place in every plane in flight: slices of a volume."""

    def push(self, frame: NDArray[np.float32]) -> None:
        """The pixels are not used."""

    def pop(self) -> None:
        """Nothing is kept."""

    def centres(
        self, plane: int, corners: NDArray[np.int64], n_planes: int, patch_size: int
    ) -> NDArray[np.int64]:
        """Plane and centre (r, n_planes, 3) of the windows, the patches' own plane first.

        >>> SamePlace().centres(1, np.array([[4, 5]]), 2, 3)
        array([[[1, 4, 5], [0, 4, 5]]])
        """
        found = np.empty((len(corners), n_planes, 3), np.int64)
        found[:, :, 0] = [plane, *(i for i in range(n_planes) if i != plane)]
        found[:, :, 1:] = corners[:, None]
        return found
