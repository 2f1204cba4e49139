"""Few photons: `vnlem.denoise` against VST + BM3D on counts with a known gain of one.

    python benchmarks/few_photons.py --data FOLDER

Folders under --data: `fmd`, whose references serve as clean images, and `set12`. The middle 256x256 pixels of
each image are scaled to the peak, and counts are drawn by numpy.random.default_rng(1000 + i) for the i-th
image. Prints PSNR in dB relative to the peak.
"""

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from microscopy import bm3d_between

import vnlem
from vnlem.bench.sources import sources_hash
from vnlem.noise import GainModel

IMAGES = (
    "fmd/Confocal_FISH_ref.png",
    "fmd/Confocal_BPAE_G_ref.png",
    "set12/01.png",
    "set12/02.png",
    "set12/04.png",
)
PEAKS = (1.0, 2.0, 3.0, 4.0, 5.0)
SIDE = 256


class Case(NamedTuple):
    """An image and how many photons its brightest pixel has."""

    path: Path
    index: int
    peak: float
    profile: str
    workers: int | None


def main() -> None:
    """Parse the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with fmd and set12")
    parser.add_argument("--profile", default="balanced", choices=("best", "quality", "balanced", "fast"))
    parser.add_argument("--processes", type=int, default=1, help="images side by side")
    options = parser.parse_args()
    workers = 1 if options.processes > 1 else None
    cases = [
        Case(options.data / name, index, peak, options.profile, workers)
        for index, name in enumerate(IMAGES)
        for peak in PEAKS
    ]
    print(f"sources {sources_hash()[:12]}, profile {options.profile}")
    print(f"{'image':22s} {'photons':>7s} {'noisy':>7s} {'VST+BM3D':>9s} {'vnlem':>7s} {'':>6s}")
    gains = []
    with ProcessPoolExecutor(options.processes) as pool:
        for case, scores in zip(
            cases, (pool.map if options.processes > 1 else map)(compared, cases), strict=True
        ):
            gains.append(scores[2] - scores[1])
            print(
                f"{case.path.stem:22s} {case.peak:7g} {scores[0]:7.2f} {scores[1]:9.2f} {scores[2]:7.2f} "
                f"{gains[-1]:+6.2f}",
                flush=True,
            )
    ahead = sum(gain > 0 for gain in gains)
    print(f"vnlem ahead in {ahead} of {len(gains)}, mean {np.mean(gains):+.2f}, least {min(gains):+.2f}")


def compared(case: Case) -> tuple[float, float, float]:
    """PSNR of the counts, of VST + BM3D and of the default with the gain given."""
    pixels = vnlem.io.read(case.path).pixels.astype(float)
    top, left = ((side - SIDE) // 2 for side in pixels.shape)
    clean = pixels[top : top + SIDE, left : left + SIDE]
    clean = clean / clean.max() * case.peak
    noisy = np.random.default_rng(1000 + case.index).poisson(clean).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = vnlem.denoise(noisy, gain=1.0, profile=case.profile, workers=case.workers)
    peer = bm3d_between(noisy, GainModel(1.0))
    return psnr(clean, noisy), psnr(clean, peer), psnr(clean, np.asarray(found))


def psnr(clean: np.ndarray, estimate: np.ndarray) -> float:
    """PSNR relative to the peak."""
    return float(10 * np.log10(clean.max() ** 2 / np.mean((estimate - clean) ** 2)))


if __name__ == "__main__":
    main()
