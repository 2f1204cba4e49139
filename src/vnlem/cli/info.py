"""``vnlem info FILE``: what a file contains, and what denoise would do with it. Without FILE: the
installation."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from vnlem.cli.images import FileImage, images_of

_HELP = {"Z": "slices (Z)", "T": "frames (T)", "N": "images of the set (N)"}
_ALONE = {"T": "time point", "Z": "slice", "C": "channel", "N": "image"}
_MOST_CHANNELS = 8  # whose noise is estimated


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
    with images_of(file) as found:
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


def _row(image: FileImage, noise: bool) -> dict[str, Any]:
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
        "n_channels": image.n_channels,
        "denoise": image.denoise or _plan(image),
    }
    if noise and image.pages is not None:
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
    elif row["n_channels"] > 1:
        yield "channels", f"{row['n_channels']}, without names"
    yield "denoise", row["denoise"]
    for name, text in row.get("noise", {}).items():
        yield "noise", f"{name}: {text}" if name else text


def _step(axis: str, size: float, units: dict[str, str]) -> str:
    """A step along an axis in words: ``X 0.2 µm``."""
    from vnlem.io.units import OME_UNITS

    unit = units.get(axis, "")
    return f"{axis} {size:.5g} {OME_UNITS.get(unit, unit)}".rstrip()


def _plan(image: FileImage) -> str:
    """Which pages would help each other in denoise."""
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


def _noise(image: FileImage) -> Iterator[tuple[str, str]]:
    """The noise of the middle page, for each channel."""
    from vnlem.noise.auto import estimate_noise

    if image.mosaic is not None:
        yield from _noise_of_mosaic(image)
        return
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


def _noise_of_mosaic(image: FileImage) -> Iterator[tuple[str, str]]:
    """The noise of each colour: what the file says, else an estimate."""
    from vnlem.cli.raw import noise_in_file
    from vnlem.raw import noise_of_mosaic

    mosaic = image.mosaic
    gain, read_noise = noise_in_file(mosaic) if mosaic.noise else (None, None)
    pixels = np.asarray(image.pages, np.float64)
    _, found = noise_of_mosaic(pixels, mosaic.pattern, mosaic.black, gain, read_noise, mosaic.white, 1)
    for colour, model in found.items():
        yield colour, model.describe() + (" (from the file)" if mosaic.noise else "")
