"""Units of lengths and times as OME-Zarr spells them: what OME calls them, and how long they are."""

from vnlem.io.picture import Calibration

METERS = {
    "angstrom": 1e-10,
    "nanometer": 1e-9,
    "micrometer": 1e-6,
    "millimeter": 1e-3,
    "centimeter": 1e-2,
    "meter": 1.0,
}
SECONDS = {"microsecond": 1e-6, "millisecond": 1e-3, "second": 1.0}
OME_UNITS = {
    "angstrom": "Å",
    "nanometer": "nm",
    "micrometer": "µm",
    "millimeter": "mm",
    "centimeter": "cm",
    "meter": "m",
    "microsecond": "µs",
    "millisecond": "ms",
    "second": "s",
}


def size_in(calibration: Calibration, axis: str, unit: str) -> float | None:
    """A step along an axis in another unit; None if it is not known.

    >>> round(size_in(Calibration({"X": 2.0}, {"X": "nanometer"}), "X", "angstrom"), 9)
    20.0
    """
    known = SECONDS if unit in SECONDS else METERS
    size, given = calibration.sizes.get(axis), calibration.units.get(axis, "")
    return None if size is None or given not in known else size * known[given] / known[unit]
