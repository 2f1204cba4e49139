"""Texture: preferring the unrotated patch on the textured quarter of a folder, for VNLR and for VNLEM.

The textured quarter: the images whose clean middle has the largest share of its variance within windows of
9 x 9 pixels, in the median over the pixels. Prints, for it and for the rest, differences from the default,
with how many images gain and lose and the p value of a Wilcoxon signed-rank test:

- VNLR: SNR when patches are only shifted (identity) or turned by right
  angles (c4), and SNR, SSIM and FSIM of `aim="perception"`; the default is d4;
- VNLEM auto with one set of parameters (adapt=False): SNR when patches are never turned
  (rotation_margin=100), when the unrotated patch has no advantage (rotation_margin=0), and when it is not
  even tried (try_unrotated=False too, the paper's RID); by default a turned patch must be better by half.

Images: every `--every`-th PNG of the folder, the middle `--crop` pixels; noise default_rng(number of the
image).

    python benchmarks/texture.py DATA/categories --every 2 --crop 256 --device cuda --processes 16
"""

import argparse
import functools
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from quality import read_grey
from scipy import ndimage
from scipy.stats import wilcoxon

import vnlem
from vnlem import metrics
from vnlem.bench.sources import sources_hash

LEVELS = ("15", "25", "50", "0.3")
VNLR: tuple[dict[str, Any], ...] = (
    {"group": "d4"},
    {"group": "identity"},
    {"group": "c4"},
    {"aim": "perception"},
)
VNLEM: tuple[dict[str, Any], ...] = (
    {},
    {"rotation_margin": 100.0},
    {"rotation_margin": 0.0},
    {"rotation_margin": 0.0, "try_unrotated": False},
)
COLUMNS = {
    "VNLR": ("identity, SNR", "c4, SNR", "perception, SNR", "perception, SSIM", "perception, FSIM"),
    "VNLEM": ("never turned, SNR", "no margin, SNR", "unrotated not tried, SNR"),
}


def texture_of(clean: np.ndarray) -> float:
    """Median variance within small windows, relative to the variance of the image."""
    means = ndimage.uniform_filter(clean, 9)
    return float(np.median(ndimage.uniform_filter(clean**2, 9) - means**2) / clean.var())


def measure(options: argparse.Namespace, method: str, level: str, case: tuple[int, Path]) -> list[float]:
    """SNR of the default, and the differences of the `COLUMNS` from it."""
    index, path = case
    clean = read_grey(path, options.crop)
    sigma = 0.3**0.5 * clean.std() if level == "0.3" else float(level)
    noisy = clean + np.random.default_rng(index).normal(0, sigma, clean.shape)
    given = {"workers": 1, "device": options.device}

    def snr(shown: np.ndarray) -> float:
        return float(10 * np.log10(clean.var() / np.mean((clean - shown) ** 2)))

    if method == "VNLEM":
        found = [snr(vnlem.denoise_vnlem(noisy, sigma, adapt=False, **given, **way)) for way in VNLEM]
        return [found[0], *(np.array(found[1:]) - found[0])]
    shown = [vnlem.denoise_vnlr(noisy, sigma, **given, **way).clip(0, 255) for way in VNLR]
    found = [snr(one) for one in shown]
    similar = [
        measured(clean, shown[3], data_range=255) - measured(clean, shown[0], data_range=255)
        for measured in (metrics.ssim, metrics.fsim)
    ]
    return [found[0], *(np.array(found[1:]) - found[0]), *similar]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--crop", type=int, default=256)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    cases = list(enumerate(sorted(options.folder.rglob("*.png"))))[:: options.every]
    textures = np.array([texture_of(read_grey(path, options.crop)) for _, path in cases])
    textured = textures >= np.quantile(textures, 0.75)
    print(
        f"{len(cases)} images, the middle {options.crop} pixels, "
        f"{np.count_nonzero(textured)} of them textured; sources {sources_hash()[:12]}"
    )
    # A process that has used a GPU cannot be forked.
    with ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as pool:
        for method, columns in COLUMNS.items():
            print(
                f"\n| noise | | {method} | "
                + " | ".join(columns)
                + " |\n|---|---|---|"
                + "---|" * len(columns)
            )
            for level in LEVELS:
                work = functools.partial(measure, options, method, level)
                found = np.array(list(pool.map(work, cases)))
                for name, chosen in (("textured", textured), ("the rest", ~textured)):
                    cells = [f"{found[chosen, 0].mean():.2f}"]
                    for column, title in zip(found[chosen, 1:].T, columns, strict=True):
                        better, worse = np.count_nonzero(column > 0), np.count_nonzero(column < 0)
                        chance, digits = wilcoxon(column).pvalue, 3 if title.endswith("SNR") else 4
                        cells.append(f"{column.mean():+.{digits}f} ({better} / {worse}, {chance:.1g})")
                    print(f"| {level} | {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
