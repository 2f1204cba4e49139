"""Data sets of HDF5 files as sources."""

from functools import partial
from pathlib import Path
from typing import Any

from vnlem.large.sources import Source, name_of, plain_source


def open_dataset(path: str, dataset: str) -> Any:
    """A data set of an HDF5 file, read only where it is sliced."""
    import h5py

    return h5py.File(path, "r")[dataset]


def open_file(path: Path, axes: str | None) -> Source:
    """A data set, by a path such as ``file.h5:dataset``."""
    if path.exists():
        raise ValueError(f"{path} is an HDF5 file; say which data set of it, as in {path}:dataset")
    import h5py

    file, _, dataset = str(path).rpartition(":")
    with h5py.File(file, "r") as opened:
        names: list[str] = []
        opened.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    if dataset.strip("/") not in names:
        raise ValueError(f"{file} holds no data set {dataset}; it holds {', '.join(names) or 'none'}")
    return plain_source(str(path), partial(open_dataset, str(Path(file).resolve()), dataset), axes)


def open_array(array: Any, axes: str | None) -> Source:
    """A data set that h5py has open."""
    return plain_source(name_of(array), partial(open_dataset, array.file.filename, array.name), axes)
