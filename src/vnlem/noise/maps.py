"""Maps of an image's noise: what differs from pixel to pixel, corrected before denoising.

    rows, columns    offsets and gains of lines: removed; the result is without them
    sensor           offset, gain and read noise of each pixel (sCMOS): evened out; the result is without them
    sigma            how strong the noise is at each place: divided by before, multiplied by after

What is left has the same noise everywhere; the rest of a :class:`NoiseModel` describes it.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.json_values import packed, unpacked
from vnlem.noise.sensor import Sensor

Float = NDArray[np.float64]
Map = NDArray[np.float32]
ARRAYS = ("rows", "columns", "row_gains", "column_gains", "sigma")  # the fields that are arrays


class Lines(NamedTuple):
    """What is known of the rows or of the columns of an image."""

    name: str
    offsets: Map | None
    gains: Map | None


@dataclass(frozen=True, eq=False)
class PixelMaps:
    """What differs from pixel to pixel; None if nothing does.

    rows: offset of each row, (C or 1, H, 1).
    columns: offset of each column, (C or 1, 1, W).
    row_gains, column_gains: their gains, one in the mean, in the same shapes.
    sigma: standard deviation of the noise relative to its root mean square, (H, W).

    >>> maps = PixelMaps(columns=np.float32([[[1.0, -1.0]]]))
    >>> maps.enter(np.full((1, 2, 2), 5.0))[0, 0].tolist()
    [4.0, 6.0]
    """

    rows: Map | None = None
    columns: Map | None = None
    sensor: Sensor | None = None
    sigma: Map | None = None
    row_gains: Map | None = None
    column_gains: Map | None = None

    @property
    def lines(self) -> tuple[Lines, Lines]:
        """Rows and columns, in the order in which they are corrected."""
        return Lines("rows", self.rows, self.row_gains), Lines("columns", self.columns, self.column_gains)

    @property
    def shape(self) -> tuple[int | None, int | None]:
        """Height and width of their image; None if they fit any."""
        whole = self.sigma if self.sigma is not None else None if self.sensor is None else self.sensor.offset
        if whole is not None:
            return whole.shape[0], whole.shape[1]
        height, width = (
            next((values.shape[axis] for values in known if values is not None), None)
            for axis, (_, *known) in enumerate(self.lines, 1)
        )
        return height, width

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
        for _, offsets, gains in self.lines:
            planes = planes if offsets is None else planes - offsets
            planes = planes if gains is None else planes / gains
        if self.sensor is not None:
            planes = self.sensor.correct(planes)
        return planes if self.sigma is None else planes / self.sigma

    @property
    def without_sigma(self) -> "PixelMaps":
        """What is subtracted and corrected, in the units of the pixels."""
        return replace(self, sigma=None)

    @property
    def without_sensor(self) -> "PixelMaps | None":
        """The maps without those of a sensor; None if there are no others."""
        left = replace(self, sensor=None)
        return None if left == PixelMaps() else left

    def leave(self, planes: Float) -> Float:
        """Denoised planes in the units of the pixels."""
        return planes if self.sigma is None else planes * self.sigma

    def kept(self, planes: Float, given: NDArray[Any], dtype: np.dtype[Any]) -> Float:
        """Denoised planes in which saturated pixels, as given in a dtype, keep their value.

        If no lines or sensor were removed, they stay within the range of the given ones.
        """
        if self.without_sigma == PixelMaps():
            return planes.clip(given.min(), given.max())
        return planes if self.sensor is None else self.sensor.keep_saturated(planes, given, dtype)

    def put_back(self, planes: Float) -> Float:
        """Undo :meth:`enter`: the lines, the sensor and the scale of the noise as they were."""
        if self.sigma is not None:
            planes = planes * self.sigma
        if self.sensor is not None:
            planes = self.sensor.put_back(planes)
        for _, offsets, gains in reversed(self.lines):
            planes = planes if gains is None else planes * gains
            planes = planes if offsets is None else planes + offsets
        return planes

    def part(self, rows: slice, columns: slice) -> "PixelMaps":
        """The maps of a part of the image."""
        return PixelMaps(
            None if self.rows is None else self.rows[:, rows],
            None if self.columns is None else self.columns[:, :, columns],
            None if self.sensor is None else self.sensor.part(rows, columns),
            None if self.sigma is None else self.sigma[rows, columns],
            None if self.row_gains is None else self.row_gains[:, rows],
            None if self.column_gains is None else self.column_gains[:, :, columns],
        )

    def describe(self) -> list[str]:
        """Which lines and pixels differ, in words."""
        words = []
        for name, offsets, gains in self.lines:
            if offsets is not None:
                words.append(f"{name} differ by {offsets.std():.2g} (standard deviation of their offsets)")
            if gains is not None:
                words.append(
                    f"{name} differ by {100 * gains.std():.2g} % (standard deviation of their gains)"
                )
        return words if self.sensor is None else [*words, self.sensor.describe()]

    def to_dict(self) -> dict[str, Any]:
        """The maps as text."""
        found: dict[str, Any] = {
            name: packed(getattr(self, name)) for name in ARRAYS if getattr(self, name) is not None
        }
        return found if self.sensor is None else found | {"sensor": self.sensor.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "PixelMaps":
        """Maps from the output of :meth:`to_dict`."""
        maps = {name: unpacked(values[name]) for name in ARRAYS if name in values}
        sensor = Sensor.from_dict(values["sensor"]) if "sensor" in values else None
        for name, values_of in maps.items():
            if values_of.ndim != (2 if name == "sigma" else 3):
                raise ValueError(f"the map {name!r} of the noise model is damaged; make it again")
        return cls(sensor=sensor, **maps)

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
    """The root mean square of a map of the noise, and the map divided by it.

    >>> relative(np.array([[3.0, 3.0]]))[0]
    3.0
    """
    level = float(np.sqrt(np.mean(np.square(sigma))))
    return level, (sigma / level).astype(np.float32)
