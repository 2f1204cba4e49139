"""Planes of a stack on a device that arrive and leave one by one."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

Array = Any  # of the engine's library

# Spare planes after those in flight: when they are used up, the planes move to the start of their array.
SPARE = 4


class Rolling:
    """The planes in flight, the oldest first, side by side in one array.

    xp: the library of the array.
    in_flight, total: the most planes that are held, and how many there are.
    shape: of a plane.

    >>> held = Rolling(np, 2, 9, (1,))
    >>> for number in range(9):
    ...     if held.count == 2:
    ...         held.pop()
    ...     held.push()[:] = number
    >>> held.planes.ravel()
    array([7., 8.], dtype=float32)
    """

    def __init__(
        self, xp: Any, in_flight: int, total: int, shape: tuple[int, ...], dtype: DTypeLike = np.float32
    ) -> None:
        self._all = xp.zeros((min(in_flight + SPARE, total), *shape), dtype)
        self._first = 0
        self.count = 0

    @property
    def planes(self) -> Array:
        """Those in flight."""
        return self._all[self._first : self._first + self.count]

    def push(self) -> Array:
        """Add a plane of zeros at the end."""
        if self._first + self.count == len(self._all):
            for number in range(self.count):
                self._all[number] = self._all[self._first + number]
            self._first = 0
        plane = self._all[self._first + self.count]
        plane[...] = 0
        self.count += 1
        return plane

    def pop(self) -> None:
        """Remove the first plane."""
        self._first += 1
        self.count -= 1
