"""Maps of an image's noise: what differs from pixel to pixel, taken out before and put back after.

    rows, columns    offsets of lines: subtracted; the result is without them
    sensor           offset, gain and read noise of each pixel (sCMOS): evened out; the result is without them
    sigma            how strong the noise is at each place: divided by, and multiplied with again

What is left has the same noise everywhere, of which the rest of a :class:`NoiseModel` says what it is.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.saved import packed, unpacked
from vnlem.noise.sensor import Sensor

Float = NDArray[np.float64]
Map = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PixelMaps:
    """What differs from pixel to pixel; None where nothing does.

    Parameters
    ----------
    rows : ndarray, optional
        Offset of each row, (C or 1, H, 1).
    columns : ndarray, optional
        Offset of each column, (C or 1, 1, W).
    sensor : Sensor, optional
    sigma : ndarray, optional
        Standard deviation of the noise beside its root mean square, (H, W).

    Examples
    --------
    >>> maps = PixelMaps(columns=np.float32([[[1.0, -1.0]]]))
    >>> maps.enter(np.full((1, 2, 2), 5.0))[0, 0].tolist()
    [4.0, 6.0]
    """

    rows: Map | None = None
    columns: Map | None = None
    sensor: Sensor | None = None
    sigma: Map | None = None

    @property
    def shape(self) -> tuple[int | None, int | None]:
        """Height and width of the image they are for; None where any will do."""
        whole = self.sigma if self.sigma is not None else None if self.sensor is None else self.sensor.offset
        if whole is not None:
            return whole.shape[0], whole.shape[1]
        return (
            None if self.rows is None else self.rows.shape[1],
            None if self.columns is None else self.columns.shape[2],
        )

    def check(self, height: int, width: int) -> None:
        """Refuse an image of another shape."""
        for own, size in zip(self.shape, (height, width), strict=True):
            if own not in (None, size):
                shown = "x".join("any" if side is None else str(side) for side in self.shape)
                raise ValueError(
                    f"the maps of the noise model are for an image of {shown} pixels, and the image has "
                    f"{height}x{width}; cut both alike, or calibrate at this size"
                )

    def enter(self, planes: Float) -> Float:
        """Planes (C, H, W) whose noise is the same everywhere."""
        self.check(*planes.shape[1:])
        for lines in (self.rows, self.columns):
            if lines is not None:
                planes = planes - lines
        if self.sensor is not None:
            planes = self.sensor.correct(planes)
        return planes if self.sigma is None else planes / self.sigma

    @property
    def without_sigma(self) -> "PixelMaps":
        """What is subtracted and corrected, in the units of the pixels."""
        return replace(self, sigma=None)

    @property
    def without_sensor(self) -> "PixelMaps | None":
        """What there is beside the maps of a sensor; None for nothing."""
        left = replace(self, sensor=None)
        return None if left == PixelMaps() else left

    def leave(self, planes: Float) -> Float:
        """Denoised planes in the units of the pixels."""
        return planes if self.sigma is None else planes * self.sigma

    def kept(self, planes: Float, given: NDArray[Any], dtype: np.dtype[Any]) -> Float:
        """Denoised planes in which pixels that were saturated, as given in a dtype, have their value."""
        return planes if self.sensor is None else self.sensor.keep_saturated(planes, given, dtype)

    def put_back(self, planes: Float) -> Float:
        """Undo :meth:`enter`: the lines, the sensor and the scale of the noise as they were."""
        if self.sigma is not None:
            planes = planes * self.sigma
        if self.sensor is not None:
            planes = self.sensor.put_back(planes)
        for lines in (self.rows, self.columns):
            if lines is not None:
                planes = planes + lines
        return planes

    def part(self, rows: slice, columns: slice) -> "PixelMaps":
        """The maps of a part of the image."""
        return PixelMaps(
            None if self.rows is None else self.rows[:, rows],
            None if self.columns is None else self.columns[:, :, columns],
            None if self.sensor is None else self.sensor.part(rows, columns),
            None if self.sigma is None else self.sigma[rows, columns],
        )

    def describe(self) -> list[str]:
        """Which lines and pixels differ, in words."""
        words = []
        for name, lines in (("rows", self.rows), ("columns", self.columns)):
            if lines is not None:
                words.append(f"{name} differ by {lines.std():.2g} (standard deviation of their offsets)")
        return words if self.sensor is None else [*words, self.sensor.describe()]

    def to_dict(self) -> dict[str, Any]:
        """The maps as text."""
        found: dict[str, Any] = {
            name: packed(getattr(self, name))
            for name in ("rows", "columns", "sigma")
            if getattr(self, name) is not None
        }
        return found if self.sensor is None else found | {"sensor": self.sensor.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "PixelMaps":
        """Maps from what :meth:`to_dict` gave."""
        maps = {name: unpacked(values[name]) for name in ("rows", "columns", "sigma") if name in values}
        sensor = Sensor.from_dict(values["sensor"]) if "sensor" in values else None
        for name, ndim in (("rows", 3), ("columns", 3), ("sigma", 2)):
            if name in maps and maps[name].ndim != ndim:
                raise ValueError(f"the map {name!r} of the noise model is damaged; make it again")
        return cls(maps.get("rows"), maps.get("columns"), sensor, maps.get("sigma"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PixelMaps):
            return NotImplemented
        pairs = ((getattr(self, one.name), getattr(other, one.name)) for one in fields(self))
        return all(a == b if isinstance(a, Sensor) else same(a, b) for a, b in pairs)

    def __hash__(self) -> int:
        return hash(self.shape)


def same(first: Any, second: Any) -> bool:
    """Whether two maps are equal, or both missing."""
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second)


def relative(sigma: Float) -> tuple[float, Map]:
    """The root mean square of a map of the noise, and the map beside it.

    Examples
    --------
    >>> relative(np.array([[3.0, 3.0]]))[0]
    3.0
    """
    level = float(np.sqrt(np.mean(np.square(sigma))))
    return level, (sigma / level).astype(np.float32)
