"""Real noise: every noise model on all pairs of a noisy image and its reference, against VST + BM3D.

Folders under --data: `microscopy` (PAIRS.csv says how references were stretched: a frame is compared with
a * reference + b), `fmd`, `photo_pairs` and `polyu` (files *_noisy and *_ref, PNG or JPEG). Only the image is
known. Prints PSNR on 0..255 per pair, the means per folder, and pass or FAIL for the limits.
"""

import argparse
import csv
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

import vnlem
from vnlem.bench.sources import sources_hash
from vnlem.noise import GainModel, estimate_gain
from vnlem.noise.poisson_gaussian import stabilise, unstabilise

MODELS = ("auto", "gaussian", "poisson-gaussian", "correlated")
FOLDERS = ("microscopy", "fmd", "photo_pairs", "polyu")


def main() -> None:
    """Parse the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with microscopy, fmd, photo_pairs and polyu"
    )
    parser.add_argument("--profile", default="balanced", choices=("best", "quality", "balanced", "fast"))
    parser.add_argument("--models", default=",".join(MODELS), help="noise models, by commas")
    parser.add_argument("--folders", default=",".join(FOLDERS), help="folders, by commas")
    parser.add_argument("--no-peer", action="store_true", help="leave VST + BM3D out")
    parser.add_argument("--processes", type=int, default=1, help="number of images to denoise in parallel")
    options = parser.parse_args()
    models = options.models.split(",")
    titles = ["noisy", *models, *([] if options.no_peer else ["VST+BM3D"])]
    failed = False
    pool = ProcessPoolExecutor(options.processes) if options.processes > 1 else None
    print(f"sources {sources_hash()[:12]}, profile {options.profile}")
    for folder in options.folders.split(","):
        print(f"{folder:24s}" + "".join(f"{title:>18s}" for title in titles))
        rows = []
        names, images, references = zip(*pairs(options.data / folder), strict=True)
        tasks = [
            Task(image, title, options.profile, options.processes) for image in images for title in titles
        ]
        scores = iter(pool.map(denoised, tasks) if pool else map(denoised, tasks))
        for name, clean in zip(names, references, strict=True):
            rows.append([psnr(clean, next(scores)) for _ in titles])
            print(f"{name:24s}" + "".join(f"{value:18.2f}" for value in rows[-1]), flush=True)
        means = np.mean(rows, axis=0)
        print(f"{'mean':24s}" + "".join(f"{value:18.2f}" for value in means))
        if "auto" in models:
            failed |= not judged(folder, dict(zip(titles, np.transpose(rows), strict=True)))
    sys.exit(1 if failed else 0)


class Task(NamedTuple):
    """A noisy image and the column it is denoised for."""

    noisy: np.ndarray
    title: str
    profile: str
    processes: int


def denoised(task: Task) -> np.ndarray:
    """The image in a column of the table."""
    axis = -1 if task.noisy.ndim == 3 else None
    if task.title == "noisy":
        return task.noisy
    if task.title == "VST+BM3D":
        return stabilised_bm3d(task.noisy) if axis is None else np.full(task.noisy.shape, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = vnlem.denoise(
            task.noisy,
            noise_model=task.title,
            channel_axis=axis,
            profile=task.profile,
            workers=1 if task.processes > 1 else None,
        )
    return np.asarray(result)


def judged(folder: str, scores: dict[str, np.ndarray]) -> bool:
    """Print the limits of a folder and whether the default meets them."""
    found = scores["auto"]
    checks = []
    if folder == "fmd":
        checks.append((found.mean() >= 35.0, "mean at least 35.0"))
        if "VST+BM3D" in scores:
            checks.append(((found >= scores["VST+BM3D"] - 0.05).all(), "no kind below VST + BM3D - 0.05"))
    elif folder == "photo_pairs":
        checks.append((found.mean() >= 37.3, "mean at least 37.3"))
    elif folder == "polyu":
        if "correlated" in scores:
            better = np.maximum(found, scores["correlated"]).mean() - 0.3
            checks.append((found.mean() >= better, f"mean at least {better:.2f}, the better model less 0.3"))
    elif "VST+BM3D" in scores:
        checks.append((found.mean() >= 36.0, "mean at least 36.0"))
        checks.append((found.mean() >= scores["VST+BM3D"].mean() + 0.3, "mean at least VST + BM3D + 0.3"))
    for good, words in checks:
        print(f"{'pass' if good else 'FAIL'}  {folder}, noise_model='auto': {words}")
    return all(good for good, _ in checks)


def pairs(folder: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, noisy image as bytes, and its reference."""
    table = folder / "PAIRS.csv"
    if table.exists():
        with table.open() as file:
            for row in csv.DictReader(file):
                noisy = vnlem.io.read(folder / f"{row['stem']}_noisy.png").pixels
                reference = vnlem.io.read(folder / f"{row['stem']}_ref.png").pixels.astype(float)
                yield row["stem"], noisy, float(row["a"]) * reference + float(row["b"])
        return
    for path in sorted(folder.glob("*_noisy.*")):
        reference = path.with_name(path.name.replace("_noisy", "_ref"))
        stem = path.stem.removesuffix("_noisy")
        yield stem, vnlem.io.read(path).pixels, vnlem.io.read(reference).pixels.astype(float)


def stabilised_bm3d(noisy: np.ndarray) -> np.ndarray:
    """VST + BM3D with the photon noise that this project finds."""
    return bm3d_between(noisy, estimate_gain(noisy))


def bm3d_between(noisy: np.ndarray, model: GainModel) -> np.ndarray:
    """BM3D (the extra `peers`) between the generalised Anscombe transform and its unbiased inverse."""
    import bm3d

    stable = stabilise(noisy, model)
    low, span = stable.min(), np.ptp(stable)
    return unstabilise(bm3d.bm3d((stable - low) / span, 1 / span) * span + low, model)


def psnr(clean: np.ndarray, estimate: np.ndarray) -> float:
    """PSNR on 0..255."""
    return float(10 * np.log10(255**2 / np.mean((estimate.astype(float) - clean) ** 2)))


if __name__ == "__main__":
    main()
