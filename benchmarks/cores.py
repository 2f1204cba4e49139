"""How VNLR's time falls with workers, and what memory it takes.

    python benchmarks/cores.py [--sizes 512 2048] [--workers 1 2 4 8 16] [--profiles fast balanced quality]

Each figure is the median of five runs on scikit-image's camera, repeated to the size, with noise of sigma 25.
The runs with different workers alternate: a busy moment of the machine affects them all. Memory is the peak
in addition to input and output, in bytes per pixel, measured in a separate process.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from skimage import data

import vnlem
from vnlem.bench.memory import PeakMemory
from vnlem.bench.sources import sources_hash

SIGMA = 25.0


def noisy_camera(size: int) -> np.ndarray:
    """A noisy square of the camera image, tiled."""
    camera = data.camera().astype(float)
    rows = np.pad(camera, ((0, max(size - 512, 0)), (0, max(size - 512, 0))), mode="symmetric")
    return vnlem.noise.add_gaussian(rows[:size, :size], SIGMA, seed=0)


def seconds(noisy: np.ndarray, profile: str, workers: list[int]) -> list[float]:
    """The median for each number of workers."""
    spent: list[list[float]] = [[] for _ in workers]
    for _ in range(5):
        for times, count in zip(spent, workers, strict=True):
            begun = time.perf_counter()
            vnlem.denoise_vnlr(noisy, SIGMA, profile=profile, workers=count)
            times.append(time.perf_counter() - begun)
    return [statistics.median(times) for times in spent]


def bytes_per_pixel(size: int, profile: str, workers: int) -> float:
    """Peak memory in addition to input and output, minus that of a run on a small image."""
    program = f"import cores; print(cores.peak({size}, {profile!r}, {workers}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    return float(done.stdout.split()[-1])


def peak(size: int, profile: str, workers: int) -> float:
    """Peak memory of this process, in addition to what was held before and to the result."""
    noisy = noisy_camera(size)
    vnlem.denoise_vnlr(noisy[:256, :256].copy(), SIGMA, profile=profile, workers=workers)
    before = PeakMemory().mebibytes()
    mark = PeakMemory()
    result = vnlem.denoise_vnlr(noisy, SIGMA, profile=profile, workers=workers)
    after = mark.mebibytes()
    if before is None or after is None:
        return float("nan")
    return ((after - before) * 2**20 - result.nbytes) / noisy.size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 2048])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--profiles", nargs="+", default=["fast", "balanced", "quality"])
    chosen = parser.parse_args()
    print(f"sources {sources_hash()}\n")
    print("| size | profile | " + " | ".join(f"{n} workers" for n in chosen.workers) + " | bytes per pixel |")
    print("|---|---|" + "---:|" * (len(chosen.workers) + 1))
    for size in chosen.sizes:
        noisy = noisy_camera(size)
        for profile in chosen.profiles:
            vnlem.denoise_vnlr(noisy[:128, :128], SIGMA, profile=profile)
            times = " | ".join(f"{one:.2f} s" for one in seconds(noisy, profile, chosen.workers))
            memory = bytes_per_pixel(size, profile, max(chosen.workers))
            print(f"| {size} | {profile} | {times} | {memory:.1f} |", flush=True)


if __name__ == "__main__":
    main()
