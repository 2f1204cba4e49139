"""Peak memory of `vnlem denoise` on TIFF movies of different length, as a Markdown table.

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

CODE = "from vnlem.cli import main; main()"


def peak(source: Path, target: Path, options: list[str]) -> float:
    """MB that the process took at most."""
    command = [sys.executable, "-c", CODE, "denoise", str(source), str(target), "--quiet", *options]
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
    rng = np.random.default_rng(0)
    side = arguments.side
    scene = 1000 + 300 * np.sin(np.arange(side) / 5)[:, None] * np.sin(np.arange(2 * side) / 7)
    print("| frames | pixels of the file | peak memory |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for count in arguments.frames:
            source = Path(folder) / f"{count}.tif"
            with tifffile.TiffWriter(source) as file:
                frames = (
                    (scene[:, t % side : t % side + side] + rng.normal(0, 60, (side, side))).astype(np.uint16)
                    for t in range(count)
                )
                file.write(frames, shape=(count, side, side), dtype=np.uint16, metadata={"axes": "TYX"})
            options = ["--sigma", "60", "--profile", arguments.profile]
            taken = peak(source, Path(folder) / f"out{count}.tif", options)
            print(f"| {count} | {2 * count * side**2 / 2**20:.0f} MB | {taken:.0f} MB |", flush=True)


if __name__ == "__main__":
    main()
