"""NPY files and arrays that NumPy maps as sources."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vnlem.large.sources import Source, name_of, plain_source


def open_file(path: Path, axes: str | None) -> Source:
    """An NPY file."""
    return plain_source(str(path), partial(np.load, str(path.resolve()), mmap_mode="r"), axes)


def open_array(array: Any, axes: str | None) -> Source | None:
    """The file of an array that NumPy maps, if the array is all of it."""
    if not (isinstance(array, np.memmap) and _is_whole_file(array)):
        return None
    order = "C" if array.flags.c_contiguous else "F"
    opener = partial(np.memmap, str(array.filename), array.dtype.str, "r", array.offset, array.shape, order)
    return plain_source(name_of(array), opener, axes)


def _is_whole_file(array: "np.memmap[Any, Any]") -> bool:
    """Whether a mapped array is all of its file, not a part or a view of it."""
    contiguous = array.flags.c_contiguous or array.flags.f_contiguous
    return contiguous and array.filename is not None and not isinstance(array.base, np.memmap)
