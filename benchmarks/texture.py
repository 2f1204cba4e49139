"""Texture: what rotation is worth on the textured quarter of a folder, and what `aim="perception"` is.

The textured quarter: the images whose clean middle has the largest share of its variance within windows of
9 x 9 pixels, in the median over the pixels. Printed, for it and for the rest: SNR of VNLR when patches are
only shifted (identity: the unrotated patch has all rights) or turned by right angles (c4), and SNR, SSIM and
FSIM of `aim="perception"`, as differences from d4; how many images gain and lose; the p value of a Wilcoxon
signed-rank test. Noise: default_rng(number of the image).

    python benchmarks/texture.py DATA/categories --every 2 --crop 128 --processes 16
"""

import argparse
import functools
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from quality import read_grey
from scipy import ndimage
from scipy.stats import wilcoxon

import vnlem
from vnlem import metrics

LEVELS = ("15", "25", "50", "0.3")
WAYS = (
    {"group": "d4"},
    {"group": "identity"},
    {"group": "c4"},
    {"aim": "perception"},
)
COLUMNS = ("identity, SNR", "c4, SNR", "perception, SNR", "perception, SSIM", "perception, FSIM")


def texture_of(clean: np.ndarray) -> float:
    """Variance within small windows, in the median, beside that of the image."""
    means = ndimage.uniform_filter(clean, 9)
    return float(np.median(ndimage.uniform_filter(clean**2, 9) - means**2) / clean.var())


def measure(crop: int, level: str, case: tuple[int, Path]) -> list[float]:
    """What `COLUMNS` says, less that of d4, and the SNR of d4."""
    index, path = case
    clean = read_grey(path, crop)
    sigma = 0.3**0.5 * clean.std() if level == "0.3" else float(level)
    noisy = clean + np.random.default_rng(index).normal(0, sigma, clean.shape)
    rows = []
    for given in WAYS:
        shown = vnlem.denoise_vnlr(noisy, sigma, workers=1, **given).clip(0, 255)
        snr = 10 * np.log10(clean.var() / np.mean((clean - shown) ** 2))
        fsim = metrics.fsim(clean, shown, data_range=255)
        rows.append([snr, metrics.ssim(clean, shown, data_range=255), fsim])
    found = np.array(rows, float)
    return [*(found[1:, 0] - found[0, 0]), *(found[3, 1:] - found[0, 1:]), found[0, 0]]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--crop", type=int, default=128)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    cases = list(enumerate(sorted(options.folder.rglob("*.png"))))[:: options.every]
    textures = np.array([texture_of(read_grey(path, options.crop)) for _, path in cases])
    textured = textures >= np.quantile(textures, 0.75)
    print(f"{len(cases)} images, {np.count_nonzero(textured)} of them textured; differences from d4\n")
    print("| noise | | d4, SNR | " + " | ".join(COLUMNS) + " |\n|---|---|---|" + "---|" * len(COLUMNS))
    with ProcessPoolExecutor(options.processes) as pool:
        for level in LEVELS:
            found = np.array(list(pool.map(functools.partial(measure, options.crop, level), cases)))
            for name, chosen in (("textured", textured), ("the rest", ~textured)):
                cells = [f"{found[chosen, -1].mean():.2f}"]
                for column, digits in zip(found[chosen, :-1].T, (3, 3, 3, 4, 4), strict=True):
                    better, worse = np.count_nonzero(column > 0), np.count_nonzero(column < 0)
                    chance = wilcoxon(column).pvalue
                    cells.append(f"{column.mean():+.{digits}f} ({better} / {worse}, {chance:.1g})")
                print(f"| {level} | {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
