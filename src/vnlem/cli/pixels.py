"""The options of ``vnlem denoise`` for single pixels: missing, broken, or protected."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

_PANEL = "Single pixels"

Mask = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Missing pixels: an image that is not zero there. NaN always counts as missing.",
        rich_help_panel=_PANEL,
    ),
]
Fill = Annotated[
    bool,
    typer.Option("--fill/--no-fill", help="Fill missing pixels, or leave them.", rich_help_panel=_PANEL),
]
Defects = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Defective pixels of the detector: an image that is not zero there.",
        rich_help_panel=_PANEL,
    ),
]
Protect = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Where OUT keeps IN: integers that are not zero, or weights from 0 to 1.",
        rich_help_panel=_PANEL,
    ),
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


def options(
    mask: Path | None,
    fill: bool,
    defects: Path | None,
    protect: Path | None,
    strength: float,
    impulses: bool | None,
) -> dict[str, Any]:
    """The arguments of `vnlem.denoise`, with the files read."""
    return {
        "mask": None if mask is None else _values(mask) != 0,
        "fill": fill,
        "defects": None if defects is None else _values(defects) != 0,
        "protect": None if protect is None else _weights(_values(protect)),
        "strength": strength,
        "impulses": "auto" if impulses is None else impulses,
    }


def need_memory(pixels: dict[str, Any]) -> bool:
    """Whether a stack must be in memory for these."""
    return (
        any(pixels[name] is not None for name in ("mask", "defects", "protect"))
        or pixels["strength"] != 1
        or pixels["impulses"] is True
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
