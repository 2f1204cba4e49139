"""Run the commands that docs/command-line.md shows and write what they print: `make docs-output`.

An indented line that begins with "$ vnlem" is a command, the lines after it are its output. Output with
"..." for omitted lines is compared but not changed. The files the commands name are made here, from images
that ship with scikit-image. `--check` only lists stale outputs: times are not compared, other numbers to 1 %.
"""

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tifffile
from skimage import data

from vnlem import io
from vnlem.noise import add_gaussian

PAGE = Path(__file__).parents[1] / "docs" / "command-line.md"
INDENT = "    "
OMITTED = f"{INDENT}..."
# These take long; the test skips them.
SLOW = ("vnlem demo", "vnlem neighbors", "vnlem theory --check")
OF_THE_MACHINE = "vnlem info"
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_TIME = re.compile(r"\d+(?:\.\d+)? s\b")


class Shown(NamedTuple):
    """A command, and which lines of the page hold its output."""

    command: str
    first: int
    last: int


def shown_commands(lines: list[str]) -> Iterator[Shown]:
    """Every command of a page whose output does not depend on the machine."""
    for place, line in enumerate(lines):
        if not line.startswith(f"{INDENT}$ vnlem"):
            continue
        last = place + 1
        while (
            last < len(lines) and lines[last].startswith(INDENT) and not lines[last].startswith(f"{INDENT}$")
        ):
            last += 1
        command = line[len(INDENT) + 2 :]
        if command != OF_THE_MACHINE:
            yield Shown(command, place + 1, last)


def prepare(folder: Path) -> None:
    """The files that the commands name."""
    clean = data.camera()[::2, ::2]
    noisy = np.clip(np.rint(add_gaussian(clean.astype(float), 25, seed=0)), 0, 255).astype(np.uint8)
    io.write(folder / "clean.png", clean)
    io.write(folder / "noisy.png", noisy)
    io.write(folder / "coins.png", data.coins())
    pages = np.stack([data.coins()[k : k + 100, :120].astype(float) * 200 for k in (0, 80, 160)])
    pages += np.random.default_rng(0).normal(0, 1, pages.shape) * np.array([1500, 1700, 1900]).reshape(
        3, 1, 1
    )
    stack = np.clip(pages, 0, 65535).astype(np.uint16)
    tifffile.imwrite(folder / "stack.tif", stack, imagej=True, metadata={"axes": "ZYX", "unit": "um"})
    (folder / "scans").mkdir()
    whole = (folder / "stack.tif").read_bytes()
    for name, content in (("a.tif", whole), ("b.tif", whole[:30000]), ("c.tif", whole)):
        (folder / "scans" / name).write_bytes(content)


def output_of(command: str, folder: Path) -> list[str]:
    """What a command prints, stdout and stderr together."""
    words = [sys.executable, "-m", "vnlem.cli", *shlex.split(command)[1:]]
    found = subprocess.run(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return [f"{INDENT}{line}".rstrip() for line in found.stdout.splitlines()]


def agree(shown: list[str], printed: list[str]) -> bool:
    """Whether a command printed what is shown, which may omit lines."""
    if OMITTED not in shown:
        return _same(shown, printed)
    rest = shown
    while rest:
        count = rest.index(OMITTED) if OMITTED in rest else len(rest)
        part, rest = rest[:count], rest[count + 1 :]
        places = range(len(printed) - count + 1)
        place = next((k for k in places if _same(part, printed[k : k + count])), None)
        if place is None:
            return False
        printed = printed[place + count :]
    return True


def _same(one: list[str], other: list[str]) -> bool:
    """The same words, and numbers within 1 %, except times."""
    if any(line.endswith("seconds") for line in one):  # the last column of a table
        one, other = ([line.rpartition(" ")[0] for line in lines] for lines in (one, other))
    a, b = (_TIME.sub("? s", "\n".join(lines)) for lines in (one, other))
    if _NUMBER.sub("#", a).split() != _NUMBER.sub("#", b).split():
        return False
    numbers = [np.array([float(text) for text in _NUMBER.findall(text)]) for text in (a, b)]
    return bool(np.allclose(*numbers, rtol=0.01, atol=0.002))


def stale(lines: list[str], *, slow: bool) -> list[tuple[Shown, list[str]]]:
    """The commands whose output on the page is stale, with what they print."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for shown in shown_commands(lines):
            if not slow and shown.command.startswith(SLOW):
                continue
            printed = output_of(shown.command, folder)
            if not agree(lines[shown.first : shown.last], printed):
                found.append((shown, printed))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="list what is stale and write nothing")
    parser.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    options = parser.parse_args()
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    found = stale(lines, slow=not options.quick)
    for shown, _ in found:
        print(f"stale: {shown.command}")
    if options.check:
        return 1 if found else 0
    for shown, printed in reversed(found):
        if OMITTED not in lines[shown.first : shown.last]:
            lines[shown.first : shown.last] = printed
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
