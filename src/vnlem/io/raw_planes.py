"""Planes that follow each other in a file, as plain numbers."""

import math
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class RawPlanes:
    """Planes of one size, read row by row when they are requested.

    If another program shortens the file meanwhile, that is an error here; with a memory map it would end the
    process.

    dtype: as in the file, byte order included.
    offset: where the first plane begins.
    shape: planes, rows, columns.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "planes.raw"
    >>> _ = path.write_bytes(np.arange(24, dtype=">i2").tobytes())
    >>> with RawPlanes(path, np.dtype(">i2"), 0, (2, 3, 4)) as planes:
    ...     planes.read(1, slice(1, 3), slice(2, 4)).tolist()
    [[18, 19], [22, 23]]
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], offset: int, shape: tuple[int, int, int]) -> None:
        self._stream = open(path, "rb")  # noqa: SIM115
        self._dtype, self._offset, self._shape = dtype, offset, shape

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, number: int, rows: slice, columns: slice) -> NDArray[Any]:
        """A part of a plane, as stored."""
        _, height, width = self._shape
        top, bottom, _ = rows.indices(height)
        count = max(0, bottom - top)
        self._stream.seek(self._offset + ((number * height) + top) * width * self._dtype.itemsize)
        content = self._stream.read(count * width * self._dtype.itemsize)
        if len(content) < math.prod((count, width, self._dtype.itemsize)):
            raise ValueError("it is truncated: it has become shorter since it was opened")
        return np.frombuffer(content, self._dtype).reshape(count, width)[:, columns]
