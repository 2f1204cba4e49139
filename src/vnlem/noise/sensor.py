"""Sensors whose pixels differ: offset, gain and read noise of each pixel, as sCMOS cameras are calibrated.

    pixel = offset + gain * Poisson(photons) + Normal(0, read_noise^2), all three different for each pixel

Subtracting the offset and dividing by the gain gives every pixel the gain of a typical one. Pixels with more
read noise than usual are mixed with the mean of their neighbours until they have no more noise than those:
the larger their noise, the less they contribute. Then one camera model describes all pixels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.json_values import packed, unpacked
from vnlem.noise.poisson_gaussian import LARGEST, GainModel
from vnlem.pipeline import checks

Float = NDArray[np.float64]
Map = NDArray[np.float32]

MAPS = ("gain", "offset", "read_noise")
# Rows down, columns right, weight.
NEIGHBOURS = tuple(
    (down, right, 0.5 if down and right else 1.0)
    for down in (-1, 0, 1)
    for right in (-1, 0, 1)
    if down or right
)
HALO = 1  # pixels around a part that its correction uses
MOST_NOISE = 1e6  # times the usual read noise: a pixel above this is a defect


@dataclass(frozen=True, eq=False)
class Sensor:
    """Offset, gain and read noise of each pixel, (H, W), and the value of a saturated one, if known.

    >>> sensor = check_sensor(np.array([[1.0, 2.0]]), 100.0, 3.0)
    >>> sensor.usual
    GainModel(gain=1.5, offset=100.0, read_noise=3.0)
    """

    gain: Map
    offset: Map
    read_noise: Map  # infinite if the pixel is a defect
    usual: GainModel  # the camera of the usual pixel
    saturation: float | None = None

    def correct(self, planes: Float) -> Float:
        """Planes (C, H, W) as the usual pixel would have measured them, with no more noise."""
        usual = self.usual
        even = (planes - self.offset) * (usual.gain / self.gain) + usual.offset
        noise = self.read_noise * (usual.gain / self.gain).astype(np.float64)
        excess = np.minimum(noise, MOST_NOISE * max(usual.read_noise, usual.gain)) ** 2
        typical = usual.read_noise**2
        if not (excess > typical).any():
            return even
        around = _mean_around(even, 1 / (np.maximum(excess, typical) + usual.gain))
        photons = usual.gain * np.maximum(around - usual.offset, 0.0)
        wanted, own = typical + photons, excess + photons
        share = np.sqrt(np.divide(wanted, own, out=np.zeros_like(own), where=own > 0))
        return np.where(excess > typical, around + share * (even - around), even)

    def put_back(self, planes: Float) -> Float:
        """Planes of the usual pixel as these pixels would have measured them."""
        usual = self.usual
        return (planes - usual.offset) * (self.gain / usual.gain) + self.offset

    def keep_saturated(self, planes: Float, given: NDArray[Any], dtype: np.dtype[Any]) -> Float:
        """Denoised planes in which saturated pixels keep their value."""
        limit = self.saturation
        if limit is None:
            limit = float(np.iinfo(dtype).max) if dtype.kind in "iu" else None
        return planes if limit is None else np.where(given >= limit, given, planes)

    def part(self, rows: slice, columns: slice) -> "Sensor":
        """The pixels of a part of the image."""
        gain, offset, read_noise = (getattr(self, name)[rows, columns] for name in MAPS)
        return Sensor(gain, offset, read_noise, self.usual, self.saturation)

    def describe(self) -> str:
        """In words."""
        usual = self.usual
        defects = int(np.count_nonzero(np.isinf(self.read_noise)))
        dead = f", {defects} defect pixels" if defects else ""
        largest = float(self.read_noise[np.isfinite(self.read_noise)].max(initial=0))
        return (
            f"pixels calibrated one by one: offsets differ by {self.offset.std():.2g}, gains by "
            f"{100 * self.gain.std() / usual.gain:.2g} %, read noise up to {largest:.3g}{dead}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The maps as text."""
        return {name: packed(getattr(self, name)) for name in MAPS} | {"saturation": self.saturation}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Sensor":
        """A sensor from the output of :meth:`to_dict`."""
        gain, offset, read_noise = (unpacked(values[name]) for name in MAPS)
        return check_sensor(gain, offset, read_noise, values.get("saturation"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sensor):
            return NotImplemented
        return self.saturation == other.saturation and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in MAPS
        )

    def __hash__(self) -> int:
        return hash((self.offset.shape, self.saturation))


def _mean_around(planes: Float, weights: Float) -> Float:
    """Weighted mean of the eight neighbours of each pixel, fewer at the border; weights (H, W)."""
    above, below = np.zeros(planes.shape), np.zeros(planes.shape[1:])
    height, width = planes.shape[1:]
    for down, right, weight in NEIGHBOURS:
        to = np.s_[max(-down, 0) : height - max(down, 0), max(-right, 0) : width - max(right, 0)]
        of = np.s_[max(down, 0) : height - max(-down, 0), max(right, 0) : width - max(-right, 0)]
        above[(slice(None), *to)] += weight * weights[of] * planes[(slice(None), *of)]
        below[to] += weight * weights[of]
    return above / np.maximum(below, 1e-300)


def check_sensor(gain: Any, offset: Any, read_noise: Any, saturation: Any = None) -> Sensor:
    """Maps of a sensor, some of which may be single numbers, or a clear error.

    >>> check_sensor(np.ones((4, 4)), 0.0, -1.0)
    Traceback (most recent call last):
    ...
    ValueError: read_noise must not be negative, and 16 of its 16 values are; the smallest is -1
    """
    given = dict(zip(MAPS, (gain, offset, read_noise), strict=True))
    maps = {name: checks.numbers(name, value) for name, value in given.items()}
    shapes = {name: one.shape for name, one in maps.items() if one.ndim}
    shape = next(iter(shapes.values()))
    for name, own in shapes.items():
        if len(own) != 2:
            raise ValueError(
                f"{name} must be a number or a map (height, width) of the image, got an array of shape {own}"
            )
        if own != shape:
            got = " and ".join(map(str, shapes.values()))
            raise ValueError(f"gain, offset and read_noise must be maps of one shape, got {got}")
    for name in ("gain", "offset"):
        checks.refuse_infinite(name, maps[name])
    if np.isnan(maps["read_noise"]).any():
        raise ValueError("read_noise holds NaN; set it to numpy.inf for pixels to replace")
    for name, wrong, word in (
        ("gain", ~(maps["gain"] > 1 / LARGEST), "be larger than 0"),
        ("read_noise", maps["read_noise"] < 0, "not be negative"),
    ):
        if wrong.any():
            raise ValueError(
                f"{name} must {word}, and {np.broadcast_to(wrong, shape).sum()} of its "
                f"{shape[0] * shape[1]} values are{'' if name == 'read_noise' else ' not'}; "
                f"the smallest is {maps[name].min():g}"
            )
    if np.isinf(maps["read_noise"]).mean() > 0.5:
        raise ValueError("more than half of the pixels are defects (infinite read_noise); calibrate again")
    gains, offsets, noises = (
        np.ascontiguousarray(np.broadcast_to(maps[name], shape), np.float32) for name in MAPS
    )
    usual = GainModel(*(float(np.median(one)) for one in (gains, offsets, noises)))
    level = None if saturation is None else checks.real("saturation", saturation)
    return Sensor(gains, offsets, noises, usual, level)
