"""``vnlem info FILE``: what a file contains, and what denoise would do with it. Without FILE: the
installation."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from vnlem.cli.large import ZARR_DOCUMENTS

_HELP = {"Z": "slices (Z)", "T": "frames (T)", "N": "images of the set (N)"}
_ALONE = {"T": "time point", "Z": "slice", "C": "channel", "N": "image"}
_MOST_CHANNELS = 8  # whose noise is estimated


@dataclass(frozen=True)
class Found:
    """One image of a file."""

    format: str
    axes: str  # empty if they have no names
    shape: tuple[int, ...]
    dtype: str
    pages: Any  # gives whole pages by their index
    letters: str  # of a stack whose pages may help each other, empty elsewhere
    channel_axis: int | None = None
    key: str = ""
    name: str = ""
    sizes: dict[str, float] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    channels: tuple[str, ...] = ()
    preferred: bool = False


EXAMPLES: tuple[str, ...] = (
    "vnlem info cells.czi",
    "vnlem info cells.czi --noise",
    "vnlem info",
)


def command(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Image file of any format, or a zarr store.")
    ] = None,
    noise: Annotated[bool, typer.Option("--noise", help="Also estimate the noise; it reads pixels.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Say what a file contains: format, images, shape, axes, dtype, pixel size, channels.

    Also what denoise would do with it: which pages help each other, and with --noise which noise it finds.
    Without FILE: version, compiled library, instruction set, cores and GPU, for problem reports.
    """
    if file is None:
        if noise:
            raise ValueError("--noise needs a FILE: vnlem info FILE --noise")
        _show_installation(as_json)
        return
    with _images(file) as found:
        rows = [_row(image, noise) for image in found]
    if as_json:
        print(json.dumps({"file": str(file), "images": rows}, indent=1, ensure_ascii=False))
        return
    several = f", {len(rows)} images" if len(rows) > 1 else ""
    print(f"{file}: {rows[0]['format']}{several}")
    for row in rows:
        if several:
            named = f" ({row['name']})" if row["name"] else ""
            print(f"image {row['key']}{named}" + (" (default)" if row["preferred"] else ""))
        for name, text in _lines(row):
            print(f"  {name:<9} {text}")


def _show_installation(as_json: bool) -> None:
    from vnlem.cli.installation import installation

    rows = installation()
    if as_json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    for name, text in rows.items():
        print(f"{name:<12} {text}")


def _row(image: Found, noise: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "format": image.format,
        "key": image.key,
        "name": image.name,
        "preferred": image.preferred,
        "shape": list(image.shape),
        "axes": image.axes,
        "dtype": image.dtype,
        "pixel_sizes": image.sizes,
        "units": image.units,
        "channels": list(image.channels),
        "denoise": _plan(image),
    }
    if noise:
        row["noise"] = dict(_noise(image))
    return row


def _lines(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "shape", "x".join(map(str, row["shape"])) + (f" ({row['axes']})" if row["axes"] else "")
    yield "dtype", row["dtype"]
    if row["pixel_sizes"]:
        steps = [_step(axis, size, row["units"]) for axis, size in row["pixel_sizes"].items()]
        yield "pixel", ", ".join(steps)
    if row["channels"]:
        yield "channels", ", ".join(row["channels"])
    yield "denoise", row["denoise"]
    for name, text in row.get("noise", {}).items():
        yield "noise", f"{name}: {text}" if name else text


def _step(axis: str, size: float, units: dict[str, str]) -> str:
    """A step along an axis in words: ``X 0.2 µm``."""
    from vnlem.io.units import OME_UNITS

    unit = units.get(axis, "")
    return f"{axis} {size:.5g} {OME_UNITS.get(unit, unit)}".rstrip()


def _plan(image: Found) -> str:
    """Which pages denoise would let help each other."""
    from vnlem.pipeline.axes import helpful_axis

    n_pages = int(np.prod(image.shape[: len(image.shape) - (2 if image.channel_axis is None else 3)]))
    if not image.letters:
        one = "the image" if image.channel_axis is None else "the colours of the image together"
        if n_pages == 1:
            return one
        each = "page" if image.channel_axis is None else "page with its colours"
        return f"each {each} of {n_pages} by itself; pass --axes, e.g. TYX or ZYX, if they belong together"
    kind = helpful_axis(image.pages, image.letters)
    together = image.channel_axis is not None and "C" in image.letters
    alone = [
        f"{size} {_ALONE[letter]}s"
        for letter, size in zip(image.letters, image.shape, strict=True)
        if letter not in ("Y", "X", kind) and size > 1 and not (letter == "C" and together)
    ]
    others = f", for each of {' and '.join(alone)}" if alone else ""
    others = f", with their colours{others}" if together else others
    if not kind:
        return f"each of {' and '.join(alone)} by itself" if alone else "the image"
    return f"{dict(zip(image.letters, image.shape, strict=True))[kind]} {_HELP[kind]} help each other{others}"


def _noise(image: Found) -> Iterator[tuple[str, str]]:
    """The noise of the middle page, for each channel."""
    from vnlem.noise.auto import estimate_noise

    counted = image.shape[: len(image.shape) - (2 if image.channel_axis is None else 3)]
    middle: list[Any] = [size // 2 for size in counted]
    channel = image.axes.find("C") if len(image.axes) == len(image.shape) else -1
    inside = [slice(None)] * (len(image.shape) - len(counted))
    if not 0 <= channel < len(counted):
        yield "", estimate_noise(image.pages[(*middle, *inside)], image.channel_axis).describe()
        return
    for number in range(min(counted[channel], _MOST_CHANNELS)):
        middle[channel] = number
        name = image.channels[number] if image.channels else f"channel {number + 1}"
        yield name, estimate_noise(image.pages[(*middle, *inside)], image.channel_axis).describe()


@contextmanager
def _images(file: Path) -> Iterator[list[Found]]:
    """The images of a file; their pages can be read until the block ends."""
    from vnlem import io
    from vnlem.io.formats import find_format, sniff

    place, key = io.split_series(file)
    is_store = any((place / name).exists() for name in ZARR_DOCUMENTS)
    if is_store or place.suffix.lower() in (".h5", ".hdf5"):
        yield [_of_source(file, "zarr" if is_store else "HDF5")]
        return
    name = sniff(place)
    title = find_format(name).title
    if find_format(name).open:
        from vnlem.io.series import choose_series

        with io.open_series(place) as series:
            wanted = [choose_series(series, key, place)] if key or len(series) == 1 else series
            yield [_of_series(one, title) for one in wanted]
        return
    with io.open_pages(file) as opened:
        picture = io.read(file) if opened is None else opened.picture
        pages = picture.pixels if opened is None else opened.pages
        yield [_of_picture(picture, pages, title, file if name == "tiff" else None)]


def _of_series(series: Any, title: str) -> Found:
    from vnlem.cli.denoise import stack_axes

    about, picture = series.metadata.calibration, series.blank()
    return Found(
        title,
        series.axes,
        series.shape,
        str(series.dtype),
        _SeriesPages(series),
        stack_axes(None, picture),
        picture.channel_axis,
        series.key,
        series.name,
        about.sizes,
        about.units,
        about.channels,
        series.preferred,
    )


def _of_picture(picture: Any, pages: Any, title: str, tiff: Path | None) -> Found:
    from vnlem.cli.denoise import stack_axes

    details = _tiff_details(tiff) if tiff is not None else {}
    return Found(
        title,
        picture.metadata.axes,
        picture.pixels.shape,
        str(picture.pixels.dtype),
        pages,
        stack_axes(None, picture),
        picture.channel_axis,
        **_described(details),
    )


def _of_source(file: Path, title: str) -> Found:
    from vnlem.large.sources import open_source

    source = open_source(file)
    axes = "".join(source.axes).upper()
    letters = axes if len(axes) > 2 and not source.guessed else ""
    details = source.details or _ngff_details(source.image)
    pages = _SourcePages(source)
    return Found(
        title,
        "" if source.guessed else axes,
        source.shape,
        str(source.dtype),
        pages,
        letters,
        **_described(details),
    )


class _SeriesPages:
    """Whole pages of an image of a file, grey or colour."""

    def __init__(self, series: Any) -> None:
        self._series, self.shape = series, series.shape

    def __getitem__(self, index: tuple[Any, ...]) -> NDArray[Any]:
        counted = len(self.shape) - (3 if self._series.is_colour else 2)
        number = int(np.ravel_multi_index(index[:counted], self.shape[:counted])) if counted else 0
        page: NDArray[Any] = self._series.page(number)
        return page


class _SourcePages:
    """Whole pages of a source."""

    def __init__(self, source: Any) -> None:
        self._source, self.shape = source, source.shape

    def __getitem__(self, index: tuple[Any, ...]) -> NDArray[Any]:
        spans = [(k, k + 1) if isinstance(k, int) else (0, n) for k, n in zip(index, self.shape, strict=True)]
        page: NDArray[Any] = self._source.read(tuple(spans)).reshape(self.shape[-2:])
        return page


def _described(details: dict[str, Any]) -> dict[str, Any]:
    return {
        "sizes": {axis.upper(): size for axis, size in details.get("pixel_sizes", {}).items()},
        "units": {axis.upper(): unit for axis, unit in details.get("units", {}).items()},
        "channels": tuple(channel["label"] for channel in details.get("channels") or ()),
    }


def _tiff_details(path: Path) -> dict[str, Any]:
    """Sizes of pixels and names of channels; nothing for files that are only read whole."""
    from vnlem.large.tiff_source import open_tiff

    try:
        return open_tiff(path, None).details
    except ValueError:
        return {}


def _ngff_details(image: Any) -> dict[str, Any]:
    """The same of an OME-Zarr image."""
    from vnlem.large.ngff import Image

    if not isinstance(image, Image):
        return {}
    content = image.group.attributes.get("ome", image.group.attributes)
    about = content["multiscales"][0]
    scales = [
        t["scale"] for t in about["datasets"][0].get("coordinateTransformations", []) if t["type"] == "scale"
    ]
    units = {axis["name"]: axis["unit"] for axis in about["axes"] if axis.get("unit")}
    steps = dict(zip(image.axes, scales[0], strict=True)) if scales else {}
    channels = content.get("omero", {}).get("channels", [])
    named = [channel for channel in channels if channel.get("label")]
    return {
        "pixel_sizes": {axis: size for axis, size in steps.items() if axis in units},
        "units": units,
        "channels": named if len(named) == len(channels) else [],
    }
