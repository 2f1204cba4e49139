"""Files inside gzip or bzip2: decompressed to a temporary file for reading, compressed when complete.

This way the reader of a format works on plain files, in which it can seek.
"""

import bz2
import gzip
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Suffix -> how a compressed file begins, and what opens it.
_OPENERS: dict[str, tuple[bytes, Callable[..., Any]]] = {
    ".gz": (b"\x1f\x8b", gzip.open),
    ".bz2": (b"BZh", bz2.open),
}
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, OSError)
_BLOCK = 2**20


def head(path: Path, count: int = 560) -> tuple[bytes, bool]:
    """How a file begins, decompressed, and whether it was compressed.

    >>> file = Path(tempfile.mkdtemp()) / "a.gz"
    >>> _ = file.write_bytes(gzip.compress(b"hello"))
    >>> head(file)
    (b'hello', True)
    """
    with open(path, "rb") as stream:
        start = stream.read(count)
    opener = _opener_of(start)
    if opener is None:
        return start, False
    try:
        with opener(path, "rb") as stream:
            return stream.read(count), True
    except _DAMAGED as error:
        raise ValueError(f"cannot read {path}: it is damaged ({_reason(error)})") from error


def _opener_of(start: bytes) -> Callable[..., Any] | None:
    return next((opener for magic, opener in _OPENERS.values() if start.startswith(magic)), None)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


@contextmanager
def decompressed(path: Path) -> Iterator[Path]:
    """The plain file: itself, or a temporary one if it is compressed."""
    with open(path, "rb") as stream:
        opener = _opener_of(stream.read(8))
    if opener is None:
        yield path
        return
    handle, name = tempfile.mkstemp(prefix="vnlem-")
    try:
        with os.fdopen(handle, "wb") as plain:
            try:
                with opener(path, "rb") as stream:
                    _copy(stream, plain, path)
            except _DAMAGED as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise
                raise ValueError(f"it is damaged ({_reason(error)})") from error
        yield Path(name)
    finally:
        os.unlink(name)


def _copy(stream: Any, plain: Any, path: Path) -> None:
    while block := stream.read(_BLOCK):
        try:
            plain.write(block)
        except OSError as error:
            folder = tempfile.gettempdir()
            raise OSError(
                error.errno,
                f"cannot decompress {path} to {folder} ({error.strerror}); make room there, or set TMPDIR",
            ) from error


@contextmanager
def compressing(path: Path) -> Iterator[Path]:
    """A plain file to write to; at the end it is compressed into `path` if the suffix says so.

    >>> file = Path(tempfile.mkdtemp()) / "a.gz"
    >>> with compressing(file) as plain:
    ...     _ = plain.write_bytes(b"hello")
    >>> gzip.decompress(file.read_bytes()), len(list(file.parent.iterdir()))
    (b'hello', 1)
    """
    suffix = path.suffix.lower()
    if suffix not in _OPENERS:
        yield path
        return
    handle, name = tempfile.mkstemp(prefix=".vnlem-", suffix=Path(path.stem).suffix, dir=path.parent)
    os.close(handle)
    try:
        yield Path(name)
        with open(name, "rb") as plain, open(path, "wb") as stream, _compressor(suffix, stream) as compressed:
            shutil.copyfileobj(plain, compressed, _BLOCK)
    finally:
        Path(name).unlink(missing_ok=True)


def _compressor(suffix: str, stream: Any) -> Any:
    if suffix == ".bz2":
        return bz2.BZ2File(stream, "wb")
    # The header has neither name nor date of the plain file: the same pixels give the same bytes.
    # Higher levels take many times as long and hardly compress noise any better.
    return gzip.GzipFile("", "wb", 1, stream, mtime=0)
