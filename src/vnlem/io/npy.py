"""NPY: an array and nothing else."""

from pathlib import Path

import numpy as np

from vnlem.io.picture import Metadata, Picture, from_array


def read(path: Path, channels: str) -> Picture:
    """Read an NPY file; its axes have no names, so `channels` says which are colour."""
    with open(path, "rb") as stream:
        array = np.load(stream, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError("it holds several arrays; save the one to denoise with numpy.save")
    return from_array(array.astype(array.dtype.newbyteorder("="), copy=False), channels, Metadata("npy"))


def write(path: Path, picture: Picture) -> None:
    """Write pixels, with alpha as the last channel."""
    with open(path, "wb") as stream:
        np.save(stream, picture.joined(), allow_pickle=False)
