"""Random files: images of every format with random damage, passed to the command line.

    python tests/any_file.py --cases 5000        a run over many files, in processes that may die
    python tests/any_file.py --only 1234         one of them, in full

A case depends only on its number. The command either writes a file that can be read, or refuses with one
sentence of the package and leaves nothing behind. A zarr target that was started before a damaged chunk was
found may stay, to be resumed. Only the package may warn.
"""

import copy
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import any_run
import h5py
import numpy as np
import tifffile
import zarr
from large_stores import make_image

from vnlem import cli, io

ADDRESS_SPACE = 12 << 30  # bytes; a header may request any number
PARAMETERS = ("--method", "nlm", "--set", "patch_distance=1", "--set", "patch_size=3", "--workers", "1")
VALUES = (None, "", "text", 0, -1, 1.5, 10**5, 10**30, True, [], {}, [0], [1, "a"], {"a": None}, float("nan"))


def _pixels(shape: tuple[int, ...], dtype: str = "uint16") -> np.ndarray:
    values = np.random.default_rng(5).normal(120, 20, shape)
    values[..., 8:20, 8:20] += 60
    return values.clip(0, 255).astype(dtype)


def _tiff(
    shape: tuple[int, ...] = (4, 40, 44), dtype: str = "uint16", **options: Any
) -> Callable[[Path], None]:
    return lambda path: tifffile.imwrite(
        path, _pixels(shape, dtype), **{"photometric": "minisblack"} | options
    )


def _pyramid(path: Path) -> None:
    with tifffile.TiffWriter(path, ome=True) as tif:
        tif.write(_pixels((48, 64)), subifds=1, tile=(16, 16), metadata={"axes": "YX"})
        tif.write(_pixels((24, 32)), subfiletype=1, tile=(16, 16))


def _picture(shape: tuple[int, ...], dtype: str = "uint8") -> Callable[[Path], None]:
    channels = -1 if len(shape) == 3 else None
    return lambda path: io.write(path, io.Picture(_pixels(shape, "uint8").astype(dtype), channels))


def _array(zarr_format: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        array = zarr.create_array(
            path, shape=(40, 44), chunks=(24, 24), dtype="uint16", zarr_format=zarr_format
        )
        array[:] = _pixels((40, 44))

    return make


def _store(version: str) -> Callable[[Path], None]:
    return lambda path: make_image(path, _pixels((2, 40, 44)), version, "tyx", (1, 24, 24)) and None


def _hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("pixels", data=_pixels((40, 44)), chunks=(20, 22), compression="gzip")


# Name -> what makes a valid file of that name.
FILES: dict[str, Callable[[Path], None]] = {
    "plain.tif": _tiff((40, 44)),
    "bytes.tif": _tiff((40, 44), "uint8", compression="lzw"),
    "stack.tif": _tiff(),
    "deflated.tif": _tiff(compression="zlib", rowsperstrip=8),
    "predicted.tif": _tiff((3, 40, 44), "float32", compression="zlib", predictor=True),
    "tiled.tif": _tiff(tile=(16, 16), compression="zlib"),
    "imagej.tif": _tiff(imagej=True, metadata={"axes": "TYX"}),
    "volume.ome.tif": _tiff(metadata={"axes": "ZYX"}),
    "big.tif": _tiff(bigtiff=True),
    "colour.tif": _tiff((40, 44, 3), "uint8", photometric="rgb"),
    "pyramid.ome.tif": _pyramid,
    "grey.png": _picture((40, 44)),
    "deep.png": _picture((40, 44), "uint16"),
    "colour.png": _picture((40, 44, 3)),
    "grey.jpg": _picture((40, 44)),
    "colour.jpg": _picture((40, 44, 3)),
    "grey.npy": lambda path: np.save(path, _pixels((40, 44))),
    "columns.npy": lambda path: np.save(path, np.asfortranarray(_pixels((40, 44), "float32"))),
    "stack.npy": lambda path: np.save(path, _pixels((3, 40, 44))),
    "array2.zarr": _array(2),
    "array3.zarr": _array(3),
    "image4.ome.zarr": _store("0.4"),
    "image5.ome.zarr": _store("0.5"),
    "pixels.h5": _hdf5,
}


@cache
def sound(name: str) -> dict[str, bytes]:
    """The files of a valid image: one, or those of a store, by their relative path."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        FILES[name](path)
        if path.is_file():
            return {"": path.read_bytes()}
        return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


@dataclass
class Case:
    """A damaged image and a command."""

    number: int
    name: str
    files: dict[str, bytes]
    damage: str
    target: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"case {self.number}: {self.name}, {self.damage}, {' '.join((self.target, *self.arguments))}"

    @property
    def in_metadata(self) -> bool:
        """Whether the metadata are damaged, which are read before anything is written."""
        return "json" in self.damage or ".z" in self.damage


def draw(number: int) -> Case:
    """The case of this number."""
    rng = np.random.default_rng([14, number])

    def one(values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    name = one(tuple(FILES))
    files, damage = dict(sound(name)), []
    for _ in range(one((1, 1, 1, 2, 4))):
        if not files:
            break
        documents = [key for key in files if Path(key).suffix == ".json" or Path(key).name.startswith(".z")]
        place = one(documents if documents and rng.random() < 0.7 else tuple(files))
        files[place], said = _damaged(files[place], place in documents, rng, one)
        damage.append(f"{place or 'bytes'}: {said}")
        if said == "is gone":
            del files[place]
    suffix = "".join(Path(name).suffixes)
    targets = {".h5": (".zarr", ".tif"), ".npy": (".npy", ".tif", ".zarr")}.get(
        suffix, (suffix, suffix, ".tif", ".zarr")
    )
    arguments = ("--sigma", "20") if rng.random() < 0.7 else ()
    arguments += one(((), (), (), ("--dry-run",), ("--memory", "200MB"), ("--region", "y=4:30,x=2:40")))
    return Case(number, name, files, "; ".join(damage), "out" + one(targets), arguments)


def _damaged(data: bytes, is_document: bool, rng: np.random.Generator, one: Any) -> tuple[bytes, str]:
    """Other bytes, and what was done to them."""
    if is_document and rng.random() < 0.8:
        try:
            return _damaged_document(json.loads(data), rng, one)
        except ValueError:
            pass
    if not data:
        return b"", "is empty already"
    head = min(len(data), 400) if rng.random() < 0.6 else len(data)  # where headers are
    at = int(rng.integers(head))
    length = int(one((1, 1, 2, 4, 8, 50)))
    part = data[at : at + length]
    kind = one(("flip", "zeros", "ones", "noise", "cut", "lose", "insert", "repeat", "empty", "gone"))
    others = {
        "flip": data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :],
        "zeros": data[:at] + bytes(len(part)) + data[at + length :],
        "ones": data[:at] + b"\xff" * len(part) + data[at + length :],
        "noise": data[:at] + rng.bytes(len(part)) + data[at + length :],
        "cut": data[: int(rng.integers(len(data)))],
        "lose": data[:at] + data[at + length :],
        "insert": data[:at] + rng.bytes(length) + data[at:],
        "repeat": data[:at] + part + data[at:],
        "empty": b"",
        "gone": b"",
    }
    return others[kind], "is gone" if kind == "gone" else f"{kind} at {at} length {length}"


def _damaged_document(document: Any, rng: np.random.Generator, one: Any) -> tuple[bytes, str]:
    """A JSON document with one value lost or replaced."""
    document = copy.deepcopy(document)
    places = list(_places(document))
    if not places:
        return b"{", "cut"
    within, key = one(places)
    if rng.random() < 0.4:
        del within[key]
        said = f"json without {key!r}"
    else:
        within[key] = one(VALUES)
        said = f"json {key!r} is {within[key]!r}"
    return json.dumps(document).encode(), said


def _places(value: Any) -> Any:
    """(container, key) of every value in a document."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def problems(case: Case) -> list[str]:
    """What is wrong with the command; empty if all is well."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in" / case.name, Path(folder) / "out" / case.target
        for path in (source, target):
            path.parent.mkdir()
        for name, content in case.files.items():
            path = source / name if name else source
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        asked = f"{source}:pixels" if case.name.endswith(".h5") else str(source)
        command = ["denoise", asked, str(target), "--quiet", *PARAMETERS, *case.arguments]
        status, found = _run(command)
        left = sorted(path.name for path in target.parent.iterdir())
        if found:
            return found
        if status == 0 and "--dry-run" not in case.arguments:
            return unreadable(target)
        if left and (case.in_metadata or ".zarr" not in case.target):
            return [f"{', '.join(left)} is left behind"]
        return []


def _run(command: list[str]) -> tuple[Any, list[str]]:
    """The exit status, and what is wrong with the messages."""
    out, err = StringIO(), StringIO()
    shown: list[str] = []

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
        # Those of the package point at its caller's line, which is the argument parser's.
        own = any(name in filename for name in ("typer", "click", "contextlib"))
        if not own or any_run.FOREIGN.search(str(message)):
            shown.append(f"{category.__name__}: {message} ({filename}:{lineno})")

    debug = mock.patch.dict(os.environ, {"VNLEM_DEBUG": "1"})  # errors come here and are not printed
    with (
        debug,
        mock.patch("vnlem.cli.errors._show_warning", show),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            cli.main(command)
        except SystemExit as left:
            found = [] if left.code == 0 else [f"exit status {left.code}"]
            return left.code, found + shown + err.getvalue().splitlines()
        except OSError as error:
            named = error.strerror and error.filename  # "No such file or directory: a.png"
            return 2, shown + ([] if named else any_run.unclear(error))
        except Exception as error:
            return 2, shown + any_run.unclear(error)
    raise AssertionError("the command line always ends with an exit status")


def unreadable(target: Path) -> list[str]:
    """What is wrong with a file that was written."""
    try:
        if target.suffix == ".zarr":
            opened = zarr.open(target, mode="r")
            pixels = opened[:] if isinstance(opened, zarr.Array) else opened["0"][:]
        else:
            with warnings.catch_warnings(action="ignore"):  # copies of other sizes are left out
                pixels = io.read(target).pixels
    except Exception as error:
        return [f"what was written cannot be read: {type(error).__name__}: {error}"]
    return [] if np.isfinite(pixels).all() else ["what was written is not finite"]


if __name__ == "__main__":
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    any_run.main(__file__, __doc__, 5_000, draw, problems)
