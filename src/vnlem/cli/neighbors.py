"""``vnlem neighbors IMAGE --at Y,X``: the nearest patches by Euclidean distance and by RID, as a figure."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES: tuple[str, ...] = ("vnlem neighbors noisy.png --at 120,85 --out neighbors.png",)


def command(
    source: Annotated[Path, typer.Argument(metavar="IMAGE", help="PNG, JPEG, TIFF or NPY file.")],
    at: Annotated[str, typer.Option(metavar="Y,X", help="Row and column of the patch's centre.")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Figure to write; its suffix decides the format.")
    ] = Path("neighbors.png"),
    patch_size: Annotated[int, typer.Option(help="Size of the patches, odd.")] = 13,
    count: Annotated[int, typer.Option(help="How many patches, the patch itself included.")] = 49,
    scales: Annotated[
        str,
        typer.Option(
            metavar="F,F,...", help="Sizes of a third panel: factors by which patches may be dilated."
        ),
    ] = "1",
) -> None:
    """Draw the patches nearest to one of an image's patches, with and without rotation, and with dilation.

    Colours are averaged; in a file with several pages the first is used. Needs matplotlib (the extra bench).
    """
    row, column = parse_position(at)
    factors = parse_factors(scales)
    from vnlem import io
    from vnlem.figures import neighbors

    picture = io.read(source)
    page = next(iter(picture.pages())).astype(float)
    if picture.channel_axis is not None:
        page = page.mean(axis=picture.channel_axis)
    try:
        neighbors(page, (row, column), out, patch_size=patch_size, count=count, scales=factors)
    except ModuleNotFoundError as missing:
        raise ValueError(f"{missing.name} is not installed; pip install 'vnlem[bench]'") from None
    print(f"{count} nearest patches of {source.name} at {row},{column}: {out}")


def parse_position(text: str) -> tuple[int, int]:
    """Row and column from ``Y,X``.

    >>> parse_position("12,34")
    (12, 34)
    """
    try:
        row, column = (int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--at must be two whole numbers Y,X like 120,85; got {text!r}") from None
    return row, column


def parse_factors(text: str) -> tuple[float, ...]:
    """Factors from ``F,F,...``.

    >>> parse_factors("0.7,1")
    (0.7, 1.0)
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--scales must be factors like 0.7,1,1.4; got {text!r}") from None
