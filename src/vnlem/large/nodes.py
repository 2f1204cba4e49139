"""The metadata documents of a zarr store in a folder, read and written unchanged.

A copy of a document keeps everything a store says about itself: codecs, shards, names of the dimensions,
attributes that this package does not know.
"""

import json
import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vnlem.pipeline import checks

PARTIAL = ".partial"  # also what zarr calls a file that it is writing
DOCUMENTS = {2: (".zgroup", ".zarray", ".zattrs"), 3: ("zarr.json",)}


@dataclass(frozen=True)
class Node:
    """A group or an array."""

    path: Path
    zarr_format: int
    documents: dict[str, dict[str, Any]]  # by file name

    @property
    def is_array(self) -> bool:
        """Whether this is an array, not a group."""
        if self.zarr_format == 2:
            return ".zarray" in self.documents
        return self.documents["zarr.json"].get("node_type") == "array"

    @property
    def attributes(self) -> dict[str, Any]:
        """What the owner of the data wrote."""
        if self.zarr_format == 2:
            return self.documents.get(".zattrs", {})
        found: dict[str, Any] = self.documents["zarr.json"].get("attributes", {})
        if not isinstance(found, dict):
            raise damaged(self.path, "'attributes' must be an object with names and values")
        return found

    @property
    def metadata(self) -> dict[str, Any]:
        """The array's own document."""
        return self.documents[".zarray" if self.zarr_format == 2 else "zarr.json"]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an array."""
        return tuple(self.metadata["shape"])

    @property
    def file_shape(self) -> tuple[int, ...]:
        """What one file of an array covers: a shard if there are shards, else a chunk."""
        if self.zarr_format == 2:
            return tuple(self.metadata["chunks"])
        grid = self.metadata["chunk_grid"]
        if grid["name"] != "regular":
            raise ValueError(
                f"{self.path} has a chunk grid of the kind {grid['name']!r}; only 'regular' can do"
            )
        return tuple(grid["configuration"]["chunk_shape"])

    def _with(self, **changes: Any) -> "Node":
        """The same array with changes in its own document."""
        name = ".zarray" if self.zarr_format == 2 else "zarr.json"
        return replace(self, documents={**self.documents, name: {**self.documents[name], **changes}})

    def with_shape(self, shape: tuple[int, ...]) -> "Node":
        """The same array with another shape."""
        return self._with(shape=list(shape))

    def with_dtype(self, dtype: np.dtype[Any] | None) -> "Node":
        """The same array with another dtype, without the old filters and fill value; None: unchanged."""
        if dtype is None:
            return self
        if self.zarr_format == 2:
            return self._with(dtype=dtype.str, fill_value=0, filters=None)
        codecs = _codecs_for(self.metadata["codecs"], dtype)
        return self._with(data_type=dtype.name, fill_value=0, codecs=codecs)

    def with_attributes(self, attributes: dict[str, Any]) -> "Node":
        """The same node with other attributes."""
        if self.zarr_format == 2:
            return replace(self, documents={**self.documents, ".zattrs": attributes})
        return self._with(attributes=attributes)

    def without_consolidated(self) -> "Node":
        """A group that no longer repeats what its members say."""
        if self.zarr_format == 2:
            return self
        document = {k: v for k, v in self.documents["zarr.json"].items() if k != "consolidated_metadata"}
        return replace(self, documents={"zarr.json": document})


# Codecs that do not depend on the dtype; the others hold further codecs or the size of a number.
_ANY_DTYPE = ("transpose", "gzip", "zstd", "crc32c")


def _codecs_for(codecs: list[dict[str, Any]], dtype: np.dtype[Any]) -> list[dict[str, Any]]:
    """The codecs of an array of zarr 3 for another dtype: shards and compression stay, filters go.

    >>> _codecs_for([{"name": "numcodecs.delta"}, {"name": "bytes"}, {"name": "zstd"}], np.dtype("float32"))
    [{'name': 'bytes', 'configuration': {'endian': 'little'}}, {'name': 'zstd'}]
    """
    plain = {"name": "bytes", "configuration": {"endian": "little"}}
    found = []
    for codec in codecs:
        name, settings = codec["name"], codec.get("configuration", {})
        if name == "bytes":
            found.append(plain)
        elif name == "sharding_indexed":
            inner = _codecs_for(settings["codecs"], dtype)
            found.append({**codec, "configuration": {**settings, "codecs": inner}})
        elif name == "blosc":
            found.append({**codec, "configuration": {**settings, "typesize": dtype.itemsize}})
        elif name in _ANY_DTYPE:
            found.append(codec)
    if not any(codec["name"] in ("bytes", "sharding_indexed") for codec in found):
        found.insert(sum(codec["name"] == "transpose" for codec in found), plain)
    return found


# What an array must say about itself.
_NEEDED = {
    2: ("shape", "chunks", "dtype", "fill_value", "order"),
    3: ("shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"),
}


def check_array(node: Node) -> None:
    """Read all metadata of an array; one sentence if they cannot be used."""
    import zarr

    missing = [name for name in _NEEDED[node.zarr_format] if name not in node.metadata]
    if missing:
        raise damaged(node.path, f"{missing[0]!r} is missing")
    sizes = {"shape": node.metadata["shape"], "chunks": node.metadata.get("chunks", [])}
    for name, value in sizes.items():
        if not (isinstance(value, list) and all(isinstance(size, int) and size >= 0 for size in value)):
            raise damaged(node.path, f"{name!r} must be a list of whole numbers, got {checks.shown(value)}")
    try:
        shape = zarr.open_array(str(node.path), mode="r").shape
        chunks = node.file_shape
    except Exception as error:  # zarr raises any kind of error on damaged documents
        reason = " ".join(str(error).split()).rstrip(".")
        # Messages for programmers do not help users.
        if not reason or isinstance(error, KeyError | TypeError) or "<class" in reason or "__" in reason:
            reason = "zarr cannot make sense of them"
        raise damaged(node.path, reason) from error
    if node.shape != shape or len(chunks) != len(shape) or min(chunks, default=1) < 1:
        raise damaged(node.path, f"its shape {list(node.shape)} does not fit its chunks {list(chunks)}")


def damaged(path: Path, reason: str) -> ValueError:
    """The error for metadata that cannot be used.

    >>> damaged(Path("a.zarr"), "'shape' is missing")
    ValueError("cannot read a.zarr: its metadata are damaged ('shape' is missing); restore them from a copy")
    """
    return ValueError(f"cannot read {path}: its metadata are damaged ({reason}); restore them from a copy")


def read_node(path: Path) -> Node | None:
    """The group or array in a folder; None if there is none.

    >>> import tempfile
    >>> read_node(Path(tempfile.mkdtemp())) is None
    True
    """
    for zarr_format, names in ((3, DOCUMENTS[3]), (2, DOCUMENTS[2])):
        documents = {name: _read_json(path / name) for name in names if (path / name).is_file()}
        for name in documents.keys() - {".zattrs"}:
            told = documents[name].get("zarr_format")
            if told != zarr_format:
                reason = f"zarr_format must be {zarr_format}, got {told!r}"
                raise ValueError(f"cannot read {path / name}: it is damaged ({reason})")
        if documents.get("zarr.json", {}).get("node_type", "group") not in ("group", "array"):
            raise ValueError(
                f"cannot read {path / 'zarr.json'}: it is damaged (node_type is neither group nor array)"
            )
        if documents.keys() - {".zattrs"}:
            return Node(path, zarr_format, documents)
    return None


def write_json(path: Path, document: Any) -> None:
    """Write a document whole or not at all; a killed writer leaves a file that ends in ``.partial``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{secrets.token_hex(6)}{PARTIAL}")
    try:
        with open(partial, "w") as stream:
            json.dump(document, stream, indent=4, default=_plain_value)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _plain_value(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} has no place in JSON")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"cannot read {path}: it is damaged ({error})") from error
    if not isinstance(found, dict):
        raise ValueError(f"cannot read {path}: it is damaged (a JSON object was expected)")
    return found
