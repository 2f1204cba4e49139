"""Values that a file stores as other numbers: value = slope * stored + intercept."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Beyond this many steps from zero neighbouring steps are the same 32-bit float.
_STEPS_OF_FLOAT32 = 1e5


@dataclass(frozen=True)
class Scaling:
    """How stored numbers become values, and values stored numbers again.

    stored: as in the file, byte order included.
    blank: the stored number that marks a missing value.

    >>> scaling = Scaling(np.dtype(">i2"), 0.5, 10.0)
    >>> values = scaling.to_values(np.array([-4, 7], ">i2"))
    >>> values, scaling.to_stored(values + 0.1)
    (array([ 8. , 13.5], dtype=float32), array([-4,  7], dtype='>i2'))
    """

    stored: np.dtype[Any]
    slope: float = 1.0
    intercept: float = 0.0
    blank: int | None = None

    @property
    def is_offset(self) -> bool:
        """Whether integers are shifted by half of their range, which is how files store the other sign."""
        if self.stored.kind not in "iu" or self.slope != 1 or self.blank is not None:
            return False
        half = 2.0 ** (8 * self.stored.itemsize - 1)
        return self.intercept == (half if self.stored.kind == "i" else -half)

    @property
    def is_plain(self) -> bool:
        """Whether the stored numbers are the values."""
        return self.slope == 1 and self.intercept == 0 and self.blank is None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the values, in the byte order of this machine."""
        if self.is_plain:
            return self.stored.newbyteorder("=")
        if self.is_offset:
            return np.dtype(f"{'u' if self.stored.kind == 'i' else 'i'}{self.stored.itemsize}")
        if self.stored.kind == "f":
            return np.dtype(f"f{max(4, self.stored.itemsize)}")
        near = abs(self.intercept) < _STEPS_OF_FLOAT32 * abs(self.slope)
        return np.dtype(np.float32 if self.stored.itemsize <= 2 and near else np.float64)

    def to_values(self, stored: NDArray[Any]) -> NDArray[Any]:
        """The values that the stored numbers encode."""
        if self.is_plain:
            return stored.astype(self.dtype)
        if self.is_offset:
            return self._other_sign(stored.astype(self.stored.newbyteorder("=")), self.dtype)
        values = stored * np.float64(self.slope) + self.intercept
        if self.blank is not None and self.stored.kind in "iu":
            values[stored == self.blank] = np.nan
        return values.astype(self.dtype)

    def to_stored(self, values: NDArray[Any]) -> NDArray[Any]:
        """The stored numbers nearest to the values."""
        if self.is_plain or values.dtype != self.dtype:
            return values.astype(self.stored)
        if self.is_offset:
            return self._other_sign(values, self.stored.newbyteorder("=")).astype(self.stored)
        numbers = (values.astype(np.float64) - self.intercept) / self.slope
        if self.stored.kind in "iu":
            limits = np.iinfo(self.stored)
            numbers = np.clip(np.rint(numbers), limits.min, limits.max)
        return numbers.astype(self.stored)

    def _other_sign(self, numbers: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Shift by half of the range: flip the highest bit."""
        unsigned = np.dtype(f"u{self.stored.itemsize}")
        highest = unsigned.type(1 << (8 * self.stored.itemsize - 1))
        turned: NDArray[Any] = np.ascontiguousarray(numbers).view(unsigned) ^ highest
        return turned.view(dtype)
