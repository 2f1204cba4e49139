"""The images of a file of any format, as ``vnlem info`` describes them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vnlem.cli.large import is_store


@dataclass(frozen=True)
class FileImage:
    """One image of a file."""

    format: str
    axes: str  # empty if they have no names
    shape: tuple[int, ...]
    dtype: str
    pages: Any  # gives whole pages by their index
    letters: str  # of a stack whose pages may help each other, otherwise empty
    channel_axis: int | None = None
    key: str = ""
    name: str = ""
    sizes: dict[str, float] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    channels: tuple[str, ...] = ()
    preferred: bool = False
    denoise: str = ""  # what denoise would do, if pages and axes do not say it
    mosaic: Any = None  # of a camera raw file

    @property
    def n_channels(self) -> int:
        """The number of channels or colours."""
        if self.channel_axis is not None:
            return self.shape[self.channel_axis]
        return self.shape[self.axes.index("C")] if "C" in self.axes else 1


@contextmanager
def images_of(file: Path) -> Iterator[list[FileImage]]:
    """The images of a file; their pages can be read until the block ends."""
    from vnlem import io
    from vnlem.io.formats import find_format, sniff

    place, key = io.split_series(file)
    stored = is_store(place)
    if stored or place.suffix.lower() in (".h5", ".hdf5"):
        names = [] if stored else _data_sets(file)
        if names:
            yield [replace(_of_source(Path(f"{file}:{name}"), "HDF5"), key=name) for name in names]
        else:
            yield [_of_source(file, "zarr" if stored else "HDF5")]
        return
    name = sniff(place)
    title = find_format(name).title
    if find_format(name).open:
        from vnlem.io.series import choose_series

        with io.open_series(place) as series:
            wanted = [choose_series(series, key, place)] if key or len(series) == 1 else series
            yield [_of_series(one, title) for one in wanted]
        return
    several = _several_images(place) if name == "tiff" else []
    if several:
        yield several
        return
    with io.open_pages(file) as opened:
        picture = io.read(file) if opened is None else opened.picture
        pages = picture.pixels if opened is None else opened.pages
        yield [_of_picture(picture, pages, title, file if name == "tiff" else None)]


def _of_series(series: Any, title: str) -> FileImage:
    from vnlem.cli.denoise import stack_axes
    from vnlem.io.series import SeriesPages

    about, picture = series.metadata.calibration, series.blank()
    sizes, units = about.sizes, about.units
    if series.metadata.format == "fits" and not sizes:
        from vnlem.io.fits import sky_steps

        sizes = sky_steps(series.metadata.native.header)
        units = dict.fromkeys(sizes, "arcsec")
    return FileImage(
        title,
        series.axes,
        series.shape,
        str(series.dtype),
        SeriesPages(series),
        stack_axes(None, picture),
        picture.channel_axis,
        series.key,
        series.name,
        sizes,
        units,
        about.channels,
        series.preferred,
    )


def _of_picture(picture: Any, pages: Any, title: str, tiff: Path | None) -> FileImage:
    from vnlem.cli.denoise import stack_axes

    details = _tiff_details(tiff) if tiff is not None else {}
    single = "YX" if picture.channel_axis is None else {-1: "YXC", -3: "CYX"}.get(picture.channel_axis, "")
    mosaic = picture.metadata.native if picture.metadata.format in ("dng", "raw") else None
    return FileImage(
        title,
        picture.metadata.axes or ("" if picture.page_axes else single),
        picture.pixels.shape,
        str(picture.pixels.dtype),
        pages,
        stack_axes(None, picture),
        picture.channel_axis,
        denoise="" if mosaic is None else _plan_of_mosaic(mosaic),
        mosaic=mosaic,
        **_described(details),
    )


def _plan_of_mosaic(mosaic: Any) -> str:
    black = sorted({level for row in mosaic.black for level in row})
    levels = f"black level {', '.join(f'{level:g}' for level in black)}, white level {mosaic.white:g}"
    return f"the mosaic {'/'.join(mosaic.pattern)}, whose groups keep their colours; {levels}"


def _several_images(path: Path) -> list[FileImage]:
    """The images of a TIFF file with several, which denoise does not take."""
    from tifffile import TiffFile

    from vnlem.io.files import one_sentence

    with one_sentence(path), TiffFile(path) as tif:
        if len(tif.series) < 2:
            return []
        return [
            FileImage(
                "TIFF",
                series.axes,
                series.shape,
                str(series.dtype),
                None,
                "",
                key=str(number),
                name=series.name,
                denoise="nothing, because the file holds several images; save this one in a separate file",
            )
            for number, series in enumerate(tif.series, 1)
        ]


def _data_sets(path: Path) -> list[str]:
    """The images of an HDF5 file; empty if the path names one of them."""
    if not path.is_file():
        return []
    import h5py

    from vnlem.io.files import one_sentence

    names: list[str] = []

    def look(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.ndim > 1 and item.dtype.kind in "iuf":
            names.append(name)

    with one_sentence(path), h5py.File(path, "r") as opened:
        opened.visititems(look)
    return names


def _of_source(file: Path, title: str) -> FileImage:
    from vnlem.large.sources import open_source
    from vnlem.large.stack_repair import ReadInPages

    source = open_source(file)
    axes = "".join(source.axes).upper()
    letters = axes if len(axes) > 2 and not source.guessed else ""
    details = source.details or _ngff_details(source.image)
    return FileImage(
        title,
        "" if source.guessed else axes,
        source.shape,
        str(source.dtype),
        ReadInPages(source),
        letters,
        **_described(details),
    )


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
