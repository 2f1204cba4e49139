"""A file format: grey images as lines of numbers under the word TEXT."""

from pathlib import Path

import numpy as np

from vnlem.io import Format, Metadata, Picture


def read(path: Path) -> Picture:
    """The image of a file."""
    return Picture(np.loadtxt(path, skiprows=1), metadata=Metadata("text"))


def write(path: Path, picture: Picture) -> None:
    """Write an image to a file."""
    np.savetxt(path, picture.pixels, header="TEXT", comments="")


FORMAT = Format(
    title="text",
    suffixes=(".txt",),
    magic=(b"TEXT",),
    dtypes=("float64",),
    read="vnlem_example.text:read",
    write="vnlem_example.text:write",
    alpha=False,
    colour=False,
)
