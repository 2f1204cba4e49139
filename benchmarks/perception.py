"""What `aim="perception"` gains and costs, and what `aim="fidelity"` would gain from kinds of areas.

Prints, for each noise level, SNR, SSIM and FSIM of VNLR, the mean differences of each row below it, how many
images gain and lose, and the p value of a Wilcoxon signed-rank test:

- perception: `aim="perception"`;
- contrast only: the usual result with its local contrast restored;
- two kinds, last pass: the last pass smoother and sharper, blended by lost structure;
- two kinds, all passes: the same for two whole runs.

Images: every `--every`-th PNG of the folder, the middle `--crop` pixels, or all; noise default_rng(number of
the image).

    python benchmarks/perception.py DATA/categories --every 2 --device cuda --processes 16
    python benchmarks/perception.py DATA/categories --every 14 --crop 256 --processes 2
"""

import argparse
import functools
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from quality import read_grey
from scipy.stats import wilcoxon
from wishes import changed, last_pass

import vnlem
from vnlem import metrics
from vnlem.bench.sources import sources_hash
from vnlem.estimate import contrast
from vnlem.methods import vnlr

LEVELS = ("15", "25", "50", "0.3")
ROWS = ("fidelity", "perception", "contrast only", "two kinds, last pass", "two kinds, all passes")
MEASURES = ("SNR", "SSIM", "FSIM")


def with_boost(device: str, boost: float, *, last: bool) -> AbstractContextManager[None]:
    """VNLR with another factor on the noise energy, in all passes or in the last."""
    if last:
        return last_pass(device, boost)
    resolve = vnlr.resolve
    return changed(
        vnlr, "resolve", lambda *given, **options: replace(resolve(*given, **options), boost=boost)
    )


def estimates(noisy: np.ndarray, sigma: float, profile: str, device: str) -> Iterator[np.ndarray]:
    """The rows of the table."""
    given: dict[str, Any] = {"profile": profile, "device": device, "workers": 1}
    plain = vnlem.denoise_vnlr(noisy, sigma, **given)
    yield plain
    yield vnlem.denoise_vnlr(noisy, sigma, aim="perception", **given)
    wide, variance = noisy[None], np.full((1, 1, 1), sigma**2)
    yield contrast.restore(plain[None], contrast.Contrast.of(plain[None], wide, variance, contrast.smooth))[0]
    for last, boosts in ((True, (2.2, 1.0)), (False, (1.8, 1.0))):
        pair = []
        for boost in boosts:
            with with_boost(device, boost, last=last):
                pair.append(vnlem.denoise_vnlr(noisy, sigma, **given)[None])
        sureness = contrast.Contrast.of(pair[0], wide, variance, contrast.smooth).sureness()
        yield (pair[0] + sureness * (pair[1] - pair[0]))[0]


def measure(options: argparse.Namespace, level: str, case: tuple[int, Path]) -> list[list[float]]:
    """SNR, SSIM and FSIM of every row on one image."""
    index, path = case
    clean = read_grey(path, options.crop)
    sigma = 0.3**0.5 * clean.std() if level == "0.3" else float(level)
    noisy = clean + np.random.default_rng(index).normal(0, sigma, clean.shape)
    rows = []
    for estimate in estimates(noisy, sigma, options.profile, options.device):
        shown = estimate.clip(0, 255)
        snr = 10 * np.log10(clean.var() / np.mean((clean - shown) ** 2))
        ssim = metrics.ssim(clean, shown, data_range=255)
        rows.append([float(snr), float(ssim), float(metrics.fsim(clean, shown, data_range=255))])
    return rows


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--profile", default="balanced")
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("--crop", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    cases = list(enumerate(sorted(options.folder.rglob("*.png"))))[:: options.every]
    size = f"the middle {options.crop} pixels" if options.crop else "whole"
    print(f"{len(cases)} images, {size}, profile {options.profile}; sources {sources_hash()[:12]}")
    print("differences from fidelity (gain / lose, p)\n")
    print("| noise | | SNR in dB | SSIM | FSIM | worst SNR |\n|---|---|---|---|---|---|")
    # A process that has used a GPU cannot be forked.
    with ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as pool:
        for level in LEVELS:
            work = functools.partial(measure, options, level)
            found = np.array(list(pool.map(work, cases)))
            means = found[:, 0].mean(axis=0)
            print(f"| {level} | fidelity | {means[0]:.2f} | {means[1]:.4f} | {means[2]:.4f} | |", flush=True)
            for number, name in enumerate(ROWS[1:], 1):
                gains = found[:, number] - found[:, 0]
                cells = []
                for column, digits in zip(gains.T, (3, 4, 4), strict=True):
                    better, worse = np.count_nonzero(column > 0), np.count_nonzero(column < 0)
                    chance = wilcoxon(column).pvalue
                    cells.append(f"{column.mean():+.{digits}f} ({better} / {worse}, {chance:.1g})")
                print(f"| {level} | {name} | {' | '.join(cells)} | {gains[:, 0].min():+.3f} |", flush=True)


if __name__ == "__main__":
    main()
