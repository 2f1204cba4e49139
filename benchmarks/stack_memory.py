"""Peak memory of `vnlem denoise` on TIFF movies of different length, as a Markdown table.

The last column is what a pass holds per pixel of a plane: the peak minus that of a small movie.

python benchmarks/stack_memory.py [--frames 40 400] [--side 256] [--profile fast]
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tifffile

from vnlem.methods.vnlr_stack_params import planes_in_flight, resolve_stack

SMALL = 32  # side of the small movie

CODE = "from vnlem.cli import main; main()"


def peak(source: Path, target: Path, profile: str) -> float:
    """Peak memory of the process in MB."""
    options = ["--sigma", "60", "--profile", profile, "--quiet"]
    command = [sys.executable, "-c", CODE, "denoise", str(source), str(target), *options]
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {status}")
    return used.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, nargs="+", default=[40, 400])
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--profile", default="fast")
    arguments = parser.parse_args()
    side, profile = arguments.side, arguments.profile
    print(
        "| frames | pixels of the file | peak memory | bytes for each pixel of a plane |\n|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        base = peak(*movie(Path(folder), 40, SMALL), profile)
        for count in arguments.frames:
            taken = peak(*movie(Path(folder), count, side), profile)
            planes = planes_in_flight(resolve_stack("T", count, profile=profile))
            each = (taken - base) * 2**20 / (planes * (side**2 - SMALL**2))
            print(
                f"| {count} | {2 * count * side**2 / 2**20:.0f} MB | {taken:.0f} MB | {each:.0f} |",
                flush=True,
            )


def movie(folder: Path, count: int, side: int) -> tuple[Path, Path]:
    """A movie in a file, and where its denoised version goes."""
    rng = np.random.default_rng(0)
    scene = 1000 + 300 * np.sin(np.arange(side) / 5)[:, None] * np.sin(np.arange(2 * side) / 7)
    source = folder / f"{count}_{side}.tif"
    with tifffile.TiffWriter(source) as file:
        frames = (
            (scene[:, t % side : t % side + side] + rng.normal(0, 60, (side, side))).astype(np.uint16)
            for t in range(count)
        )
        file.write(frames, shape=(count, side, side), dtype=np.uint16, metadata={"axes": "TYX"})
    return source, folder / f"out_{source.name}"


if __name__ == "__main__":
    main()
