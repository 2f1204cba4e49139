"""Random command lines: every command with sensible and senseless options, on small files.

    python tests/any_command.py --cases 2000     a run over many command lines, in processes that may die
    python tests/any_command.py --only 1234      one of them, in full

A case depends only on its number. A command ends with status 0 and a file that can be read, or with status 2,
one line of the package on stderr, and no file.
"""

import os
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import any_run
import numpy as np
import tifffile
import zarr
from any_file import unreadable

from vnlem import cli, io
from vnlem.noise.model import NoiseModel

SOURCES = ("grey.tif", "movie.tif", "photo.png", "volume.npy", "store.zarr", "counts.tif")
ODD_SOURCES = ("missing.tif", ".", "", "notes.txt", "movie.tif:7", "nowhere/a.tif")
TARGETS = ("out.tif", "out.png", "out.npy", "out.zarr")
ODD_TARGETS = ("out.xyz", "grey.tif", "nowhere/out.tif", "", ".", "out")
# For every option of `vnlem denoise`: sensible values, and senseless ones; flags have none.
OPTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "--method": (("nlm", "vnlr", "nlem", "vnlem"), ("bm3d", "")),
    "--preset": (("auto", "paper"), ("papers",)),
    "--profile": (("fast",), ("fastest", "")),
    "--set": (
        ("patch_size=3", "patch_distance=2", "scales=1", "plane_distance=1", "passes=1"),
        ("patch_size", "=3", "patch_size=x", "nothing=1", "patch_size=-1", "sigma=3"),
    ),
    "--sigma": (("10", "0", "1e-3"), ("-1", "nan", "inf", "x", "1e300", "")),
    "--noise-model": (("gaussian", "auto", "poisson-gaussian", "rician", "speckle", "field"), ("white", "")),
    "--gain": (("2", "0.5"), ("0", "-1", "nan", "1e300")),
    "--offset": (("0", "10"), ("nan", "1e300", "-1e300")),
    "--read-noise": (("1",), ("-1", "nan", "1e200")),
    "--caution": (("safe", "strong"), ("brave",)),
    "--coils": (("1", "4"), ("0", "-2", "1.5")),
    "--looks": (("1", "4"), ("0", "-1", "nan")),
    "--domain": (("intensity", "log"), ("sound",)),
    "--channels": (("auto", "last", "first", "none"), ("middle",)),
    "--axes": (("yx", "tyx", "zyx", "yxc", "tcyx", "cyx", "nyx"), ("tyc", "abc", "yxx", "", "x", "tyxzcn")),
    "--memory": (("200MB", "1e9", "4GB"), ("0", "-1", "much", "1XB")),
    "--region": (("y=0:20,x=0:30", "y=4:24"), ("y=9:3", "q=0:5", "y=0", "x=0:9,x=0:5", "y=0:9999", "")),
    "--part": (("1/2", "2/2"), ("0/2", "3/2", "1/0", "x", "1")),
    "--dtype": (("float32", "uint16"), ("float9", "text", "complex64")),
    "--workers": (("1", "2"), ("0", "-1", "many")),
    "--device": (("cpu", "auto"), ("gpu", "cuda:7", "tpu")),
    "--strength": (("0.5", "0", "1"), ("-1", "2", "nan")),
    "--mask": (("mask.png",), ("missing.png", "photo.png", "notes.txt")),
    "--protect": (("mask.png",), ("volume.npy",)),
    "--only": (("mask.png",), ("movie.tif",)),
    "--pattern": (("*.tif",), ("*.nothing", "")),
    "--noise": (("camera.json",), ("missing.json", "notes.txt", "mask.png")),
}
FLAGS = ("--page-by-page", "--quiet", "--overwrite", "--lines", "--no-lines", "--impulses", "--no-impulses")
FLAGS += ("--dry-run", "--resume", "--no-fill", "--one-noise-model")
QUICK = ("--method", "nlm", "--set", "patch_distance=1", "--set", "patch_size=3")


@dataclass
class Case:
    """One command line."""

    number: int
    arguments: list[str]

    def __str__(self) -> str:
        return f"case {self.number}: vnlem {' '.join(map(repr, self.arguments))}"


def draw(number: int) -> Case:
    """The case of this number."""
    rng = np.random.default_rng([17, number])

    def one(values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    odd = float(rng.choice([0.0, 0.1, 0.3]))
    source = one(ODD_SOURCES if rng.random() < odd / 2 else SOURCES)
    command = one(("denoise",) * 8 + ("noise", "info", "compare"))
    if command == "info":
        return Case(number, ["info", source, *(("--noise",) if rng.random() < 0.5 else ())])
    options: list[str] = []
    for name in rng.permutation(list(OPTIONS))[: int(rng.integers(0, 4))]:
        good, bad = OPTIONS[name]
        options += [str(name), one(bad if rng.random() < odd else good)]
    options += [str(flag) for flag in rng.permutation(FLAGS)[: int(rng.integers(0, 2))]]
    if command == "noise":
        return Case(number, ["noise", source, *options[:2]])
    if command == "compare":
        return Case(number, ["compare", source, one(SOURCES)])
    target = one(ODD_TARGETS if rng.random() < odd / 2 else TARGETS)
    quick = () if "--method" in options or "--set" in options or rng.random() < 0.2 else QUICK
    return Case(number, ["denoise", source, target, *quick, *options])


def _make_files() -> None:
    """The files that commands name, in the current folder."""
    rng = np.random.default_rng(5)
    pixels = rng.normal(120, 15, (4, 40, 44)) + 60 * (np.arange(44) > 20)
    movie = pixels.clip(0, 255).astype(np.uint8)
    tifffile.imwrite("grey.tif", movie[0])
    tifffile.imwrite("movie.tif", movie, metadata={"axes": "TYX"}, photometric="minisblack", ome=True)
    tifffile.imwrite("counts.tif", rng.poisson(3, (40, 44)).astype(np.uint16))
    io.write("photo.png", io.Picture(np.moveaxis(movie[:3], 0, -1), -1))
    io.write("mask.png", io.Picture((movie[0] > 200).astype(np.uint8), None))
    np.save("volume.npy", pixels.astype(np.float32))
    zarr.create_array("store.zarr", shape=(40, 44), chunks=(24, 24), dtype="uint8")[:] = movie[0]
    Path("notes.txt").write_text("these are no pixels\n")
    NoiseModel.white(15.0).save("camera.json")


def problems(case: Case) -> list[str]:
    """What is wrong with the command; empty if all is well."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        _make_files()
        before = set(os.listdir())
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                cli.main(case.arguments)
            except SystemExit as left:
                status: Any = left.code
            except Exception as error:
                return [f"traceback, {type(error).__name__}: {error}"]
        said = err.getvalue().splitlines()
        new = set(os.listdir()) - before
        if status == 0:
            found = [f"foreign words: {line}" for line in said if any_run.FOREIGN.search(line)]
            written = [name for name in new if Path(name).suffix in (".tif", ".png", ".npy")]
            return found + [problem for name in written for problem in unreadable(Path(name))]
        errors = [line for line in said if line.startswith("vnlem: error: ")]
        if status != 2 or len(errors) != 1:
            return [f"status {status}, {len(errors)} lines of error: {said[-3:]}"]
        foreign = [f"foreign words: {line}" for line in said if any_run.FOREIGN.search(line)]
        left_over = [name for name in new if Path(name).is_file()]  # stores and folders may be resumed
        return foreign + ([f"{', '.join(left_over)} is left behind"] if left_over else [])


if __name__ == "__main__":
    any_run.main(__file__, __doc__, 2_000, draw, problems)
