"""The options of ``vnlem denoise`` for single pixels: missing, broken, or protected."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from vnlem.pipeline.stack_input import for_all_channels
from vnlem.pipeline.warn import warn
from vnlem.repair import MAPS, fitting

if TYPE_CHECKING:
    from vnlem.io import Picture

_PANEL = "Single pixels"
# A mask of at least this share of a scan, more than twice as bright as the rest, marks the object.
_MUCH, _BRIGHTER = 0.05, 2.0


def _file(meaning: str) -> Any:
    """An option that names an image file."""
    return typer.Option(metavar="FILE", help=meaning, rich_help_panel=_PANEL)


Mask = Annotated[
    Path | None, _file("Missing pixels: an image that is not zero there. NaN always counts as missing.")
]
Fill = Annotated[
    bool,
    typer.Option("--fill/--no-fill", help="Fill missing pixels, or leave them.", rich_help_panel=_PANEL),
]
Defects = Annotated[Path | None, _file("Defective pixels of the detector: an image that is not zero there.")]
Protect = Annotated[
    Path | None, _file("Where OUT keeps IN: integers that are not zero, or weights from 0 to 1.")
]
Only = Annotated[
    Path | None,
    _file("Denoise only where this image, such as a brain mask, is not zero; elsewhere OUT keeps IN."),
]
Strength = Annotated[
    float, typer.Option(help="From 0 (IN) to 1: the share of the noise to remove.", rich_help_panel=_PANEL)
]
Impulses = Annotated[
    bool | None,
    typer.Option(
        "--impulses/--no-impulses",
        help="Replace hot, dead and stuck pixels, salt and pepper; by default if they are obvious.",
        rich_help_panel=_PANEL,
    ),
]


def options(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `vnlem.denoise` for single pixels, from those of the command; files are read."""
    files = {
        name: None if arguments[name] is None else _values(arguments[name])
        for name in ("protect", "only", "mask", "defects")
    }
    keeps = None if files["protect"] is None else _weights(files["protect"])
    if files["only"] is not None:
        outside = files["only"] == 0
        keeps = outside if keeps is None else np.maximum(keeps, outside)
    impulses = arguments["impulses"]
    return {
        "mask": None if files["mask"] is None else files["mask"] != 0,
        "fill": arguments["fill"],
        "defects": None if files["defects"] is None else files["defects"] != 0,
        "protect": keeps,
        "strength": arguments["strength"],
        "impulses": "auto" if impulses is None else impulses,
    }


def need_memory(pixels: dict[str, Any]) -> bool:
    """Whether a stack must be in memory for these."""
    return (
        any(pixels[name] is not None for name in MAPS)
        or pixels["strength"] != 1
        or pixels["impulses"] is True
    )


def of_page(options: dict[str, Any], picture: "Picture", number: int) -> dict[str, Any]:
    """The options for one page of a picture: its part of maps that differ between pages."""
    own = dict(options)
    per_page = 2 if picture.channel_axis is None else 3
    for name in MAPS:
        values = options.get(name)
        if values is not None and picture.channel_axis is not None:
            values = for_all_channels(values, picture.pixels.shape, picture.channel_axis)
        if values is not None and values.ndim > per_page:
            every = fitting(name, values, picture.pixels.shape, None)
            own[name] = every[np.unravel_index(number, every.shape[:-per_page])]
    return own


def warn_of_inverted(pixels: dict[str, Any], picture: "Picture") -> None:
    """Warn if --mask seems to mark the object of a scan, like a brain mask, instead of missing pixels."""
    mask, values = pixels["mask"], picture.pixels
    if mask is None or picture.metadata.format != "nifti" or mask.shape != values.shape[-mask.ndim :]:
        return
    marked = np.broadcast_to(mask, values.shape)
    if marked.all() or np.mean(mask) < _MUCH:
        return
    if np.nanmean(values[marked]) > _BRIGHTER * max(float(np.nanmean(values[~marked])), 0.0):
        warn(
            f"--mask marks {np.mean(mask):.0%} of the voxels as missing, which are brighter than the rest; "
            "a mask of what to denoise, such as a brain mask, goes to --only"
        )


def _values(path: Path) -> Any:
    from vnlem import io

    if path.suffix.lower() == ".npy":
        return np.load(path, allow_pickle=False)
    picture = io.read(path)
    values = picture.pixels
    if picture.channel_axis is not None:  # a mask that was painted in colour
        values = values.max(axis=picture.channel_axis)
    return values


def _weights(values: Any) -> Any:
    return values if values.dtype.kind == "f" else values != 0
