"""Data sets of HDF5 files as sources."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vnlem.large.sources import Source, name_of, plain_source


@dataclass(frozen=True)
class OpenHdf5:
    """How to open a data set of an HDF5 file."""

    path: str
    dataset: str

    def __call__(self) -> Any:
        import h5py

        return h5py.File(self.path, "r")[self.dataset]


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
    return plain_source(str(path), OpenHdf5(str(Path(file).resolve()), dataset), axes)


def open_array(array: Any, axes: str | None) -> Source:
    """A data set that h5py has open."""
    return plain_source(name_of(array), OpenHdf5(array.file.filename, array.name), axes)
