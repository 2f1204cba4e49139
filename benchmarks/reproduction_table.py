"""The paper's Table 1 on a folder of images: NLEM, VNLEM and VNLEM-DD in the paper's preset.

Every image is cropped to its central square, resized, standardised, and gets white noise of variance 0.3.
Results go to a CSV file line by line; a run that was stopped goes on where it was. The table beside the
paper's is printed at the end, with Mann-Whitney p values of NLEM and of VNLEM against VNLEM-DD.
"""

import argparse
import csv
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.stats import mannwhitneyu
from skimage.transform import resize

import vnlem

VARIANCE = 0.3
METHODS = {"nlem": vnlem.denoise_nlem, "vnlem": vnlem.denoise_vnlem, "vnlem-dd": vnlem.denoise_vnlem_dd}
# Measure -> its name in the CSV file, factor, decimals, and the paper's means for the three methods.
MEASURES = {
    "SNR dB": ("snr", 1, 2, (13.33, 14.04, 14.18)),
    "PSNR dB": ("psnr_paper", 1, 2, (18.78, 19.49, 19.62)),
    "RMS x100": ("rms", 100, 2, (5.77, 5.35, 5.24)),
    "SOB x100": ("sobolev", 100, 2, (5.90, 5.45, 5.35)),
    "OT x100": ("emd", 100, 2, (0.59, 0.32, 0.35)),
    "FSIM x100": ("fsim", 100, 2, (88.33, 89.64, 90.03)),
}


def prepared(path: Path, size: int) -> np.ndarray:
    """The central square on the grey scale 0..1, resized."""
    grey = np.asarray(Image.open(path).convert("RGB"), dtype=float)
    grey = grey @ (0.299, 0.587, 0.114) / 255
    side = min(grey.shape)
    top, left = (grey.shape[0] - side) // 2, (grey.shape[1] - side) // 2
    square = grey[top : top + side, left : left + side]
    return square if side == size else resize(square, (size, size), anti_aliasing=side > size)


def measure(path: Path, number: int, size: int, workers: int | None) -> list[dict[str, object]]:
    """All measures of all methods on one image; the noise is that of the image's number."""
    clean01 = prepared(path, size)
    clean, mean, std = vnlem.noise.standardise(clean01)
    noisy = vnlem.noise.add_gaussian(clean, float(np.sqrt(VARIANCE)), seed=1000 + number)
    noisy01 = vnlem.noise.unstandardise(noisy, mean, std)
    lines = []
    for name, method in METHODS.items():
        begun = time.perf_counter()
        denoised = method(noisy, float(np.sqrt(VARIANCE)), preset="paper", workers=workers)
        spent = time.perf_counter() - begun
        restored = vnlem.noise.unstandardise(denoised, mean, std)
        found = asdict(vnlem.metrics.evaluate(clean01, restored, noisy01, data_range=1))
        lines.append({"image": str(path.name), "size": size, "method": name, "seconds": spent} | found)
    return lines


def print_table(rows: list[dict[str, str]], size: int) -> None:
    """Means and deviations beside the paper's means, with p values."""
    chosen = [row for row in rows if int(row["size"]) == size]
    count = len({row["image"] for row in chosen})
    print(f"{count} images at {size}x{size}; p: Mann-Whitney U, two-sided")
    print("| | NLEM | VNLEM | VNLEM-DD | p NLEM/DD | p VNLEM/DD | paper: NLEM | VNLEM | VNLEM-DD |")
    print("|---|---|---|---|---|---|---|---|---|")
    for title, (key, factor, decimals, paper) in MEASURES.items():
        values = {
            name: factor * np.array([float(row[key]) for row in chosen if row["method"] == name])
            for name in METHODS
        }
        cells = [f"{v.mean():.{decimals}f} +- {v.std():.{decimals}f}" for v in values.values()]
        tests = [mannwhitneyu(values[name], values["vnlem-dd"]).pvalue for name in ("nlem", "vnlem")]
        cells += [f"{p:.2g}" for p in tests] + [f"{mean:.2f}" for mean in paper]
        print(f"| {title} | {' | '.join(cells)} |")
    wins = {
        key: np.mean(
            [
                float(dd[key]) > float(plain[key])
                for dd, plain in zip(
                    [row for row in chosen if row["method"] == "vnlem-dd"],
                    [row for row in chosen if row["method"] == "vnlem"],
                    strict=True,
                )
            ]
        )
        for key in ("snr", "fsim")
    }
    print(f"\nVNLEM-DD beats VNLEM on {wins['snr']:.0%} of the images in SNR, {wins['fsim']:.0%} in FSIM.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("reproduction.csv"))
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--limit", type=int, help="so many images, evenly spaced over the folder")
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    images = sorted(path for path in options.folder.rglob("*.png"))
    if not images:
        print(f"no PNG images below {options.folder}", file=sys.stderr)
        return 2
    numbers = range(len(images))
    if options.limit:
        numbers = sorted(set(np.linspace(0, len(images) - 1, options.limit).astype(int).tolist()))
    rows: list[dict[str, str]] = []
    if options.out.exists():
        with options.out.open(newline="") as file:
            rows = list(csv.DictReader(file))
    done = {(row["image"], int(row["size"])) for row in rows}
    for number in numbers:
        path = images[number]
        if (path.name, options.size) in done:
            continue
        lines = measure(path, number, options.size, options.workers)
        with options.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(lines[0]))
            if file.tell() == 0:
                writer.writeheader()
            writer.writerows(lines)
        rows += [{key: str(value) for key, value in line.items()} for line in lines]
        print(path.name, *(f"{line['method']} {line['snr']:.2f} dB" for line in lines), flush=True)
    print_table(rows, options.size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
