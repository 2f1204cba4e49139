"""Files of any format that is read plane by plane as sources: MRC, NIfTI, FITS, CZI, ND2, LIF."""

from contextlib import ExitStack
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.io.files import open_series
from vnlem.io.series import Series, choose_series, split_series
from vnlem.large.sources import NAMES, Source, check_names, ordered_source

_COLOUR = "FFFFFF"


class SeriesArray:
    """An image of a file with slicing; the file is open until it is closed."""

    def __init__(self, path: str) -> None:
        self._held = ExitStack()
        place, key = split_series(path)
        found = self._held.enter_context(open_series(place))
        try:
            self.series: Series = choose_series(found, key, place)
        except ValueError as error:
            self.close()
            raise ValueError(f"cannot read {place}: {error}") from error
        self.shape, self.dtype = self.series.shape, self.series.dtype

    def close(self) -> None:
        """Close the file."""
        self._held.close()

    def __getitem__(self, index: tuple[slice, ...]) -> NDArray[Any]:
        spans = [range(*part.indices(size)) for part, size in zip(index, self.shape, strict=True)]
        counted = -3 if self.series.is_colour else -2
        rows, columns = (slice(span.start, span.stop) for span in spans[counted:][:2])
        out = np.empty([len(span) for span in spans], self.dtype)
        planes = out.reshape(prod(out.shape[:counted]), *out.shape[counted:])
        numbers = np.arange(self.series.n_planes).reshape(self.shape[:counted])[index[:counted]].reshape(-1)
        samples = index[-1] if self.series.is_colour else None
        for plane, number in zip(planes, numbers, strict=True):
            part = self.series.page(int(number), rows, columns)
            plane[...] = part if samples is None else part[..., samples]
        return out


def open_file(path: Path, axes: str | None) -> Source:
    """An image of a file, by a path such as ``scan.lif:2`` if it holds several."""
    place, key = split_series(path)
    opener = partial(SeriesArray, f"{place.resolve()}:{key}" if key else str(place.resolve()))
    array = opener()
    series = array.series
    names = _names(series, axes, path)
    array.close()
    return ordered_source(
        str(path),
        opener,
        names,
        series.shape,
        series.dtype,
        colour=series.is_colour,
        guessed=axes is None and not set(series.axes.lower()) - {"s"} <= set(NAMES),
        details=_details(series),
    )


def _names(series: Series, axes: str | None, path: Path) -> tuple[str, ...]:
    """Our name for each axis of the file; the images of a set, and axes without a name, are time points."""
    letters = series.axes.lower().replace("s", "c" if "C" not in series.axes else "s")
    found = "".join(letter if letter in NAMES else "t" for letter in letters)
    return check_names(tuple((found if axes is None else axes).lower()), series.axes, series.shape, path)


def _details(series: Series) -> dict[str, Any]:
    calibration = series.metadata.calibration
    details: dict[str, Any] = {}
    if calibration.sizes:
        details["pixel_sizes"] = {axis.lower(): size for axis, size in calibration.sizes.items()}
        details["units"] = {axis.lower(): unit for axis, unit in calibration.units.items()}
    if calibration.channels:
        names = calibration.channels
        details["channels"] = [{"label": name, "color": _COLOUR, "active": True} for name in names]
    return details
