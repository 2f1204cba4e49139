"""What dilation is worth: VNLR with the groups identity, d4, so2 and similarity, beside windows of one size.

Prints two tables. Phantoms: SNR in dB at noise variance 0.3, mean over seeds. Photographs (`--folder`, every
`--every`-th PNG in it, the middle `--crop` pixels): SNR above group "d4", how many images gain and lose, the
p value of a Wilcoxon signed-rank test, and the largest loss. Noise: default_rng(seed), or default_rng(number
of the image). `--ways` prints some columns only.

    python benchmarks/similarity.py
    python benchmarks/similarity.py --seeds 0 --folder DATA/categories --every 4 --crop 256 --processes 16
"""

import argparse
import functools
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from quality import read_grey
from scipy.stats import wilcoxon

import vnlem
from vnlem.bench import phantoms

LEVELS = (15, 25, 50, "0.3")
USUAL = {"fast": 14, "balanced": 20, "quality": 26}  # radius of the search window
PHANTOMS: dict[str, Callable[[int], np.ndarray]] = {
    "discs of radius 3 to 9": lambda seed: phantoms.mixed_discs(3, 9, 22, 3, seed),
    "discs of radius 6": lambda seed: phantoms.discs(6, 22, 3, seed),
    "discs in perspective": phantoms.floor_of_discs,
    "discs that bear discs": phantoms.budding_discs,
}


def ways(profile: str) -> dict[str, dict[str, Any]]:
    """Names of what is compared, and the parameters."""
    wide = {"profile": profile, "patch_distance": 3 * USUAL[profile]}
    narrow = {"profile": profile, "patch_distance": USUAL[profile], "group": "similarity"}
    groups = {
        group: {"profile": profile, "group": group} for group in ("identity", "d4", "so2", "similarity")
    }
    return groups | {
        "similarity, usual window": narrow,
        "d4, wide window": wide,
        "so2, wide window": wide | {"group": "so2"},
    }


def chosen_ways(profile: str, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Parameters of the ways that are printed."""
    return [ways(profile)[name] for name in names]


def snr(clean: np.ndarray, estimate: np.ndarray) -> float:
    """In dB."""
    return float(10 * np.log10(clean.var() / np.mean((clean - estimate) ** 2)))


def on_phantom(given: list[dict[str, Any]], name: str, seed: int) -> list[float]:
    """SNR of every way."""
    clean = PHANTOMS[name](seed)
    noisy = clean + np.random.default_rng(seed).normal(0, 0.3**0.5, clean.shape)
    return [snr(clean, vnlem.denoise_vnlr(noisy, 0.3**0.5, workers=1, **way)) for way in given]


def on_photograph(given: list[dict[str, Any]], crop: int, level: Any, case: tuple[int, Path]) -> list[float]:
    """SNR of every way on the middle of an image."""
    index, path = case
    clean = read_grey(path, crop)
    sigma = 0.3**0.5 * clean.std() if level == "0.3" else float(level)
    noisy = clean + np.random.default_rng(index).normal(0, sigma, clean.shape)
    return [snr(clean, vnlem.denoise_vnlr(noisy, sigma, workers=1, **way)) for way in given]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--ways", help="names of columns, with semicolons between them")
    parser.add_argument("--profile", default="balanced", choices=tuple(USUAL))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("--crop", type=int, default=256)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    names = options.ways.split(";") if options.ways else list(ways(options.profile))
    given = chosen_ways(options.profile, tuple(names))
    with ProcessPoolExecutor(options.processes) as pool:
        if options.seeds > 0:
            print(
                f"phantoms, noise variance 0.3, SNR in dB, profile {options.profile}, "
                f"seeds 1 to {options.seeds}\n"
            )
            print("| | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
            for phantom in PHANTOMS:
                rows = list(
                    pool.map(functools.partial(on_phantom, given, phantom), range(1, options.seeds + 1))
                )
                print(
                    f"| {phantom} | " + " | ".join(f"{value:.2f}" for value in np.mean(rows, axis=0)) + " |",
                    flush=True,
                )
        if options.folder is None:
            return
        paths = sorted(options.folder.rglob("*.png"))
        chosen = list(enumerate(paths))[:: options.every]
        print(f"\n{len(chosen)} photographs, SNR in dB above d4 (gain / lose, p, largest loss)\n")
        print(
            "| noise | d4 | "
            + " | ".join(name for name in names if name != "d4")
            + " |\n|---|"
            + "---|" * len(names)
        )
        for level in LEVELS:
            work = functools.partial(on_photograph, given, options.crop, level)
            found = np.array(list(pool.map(work, chosen)))
            base = found[:, names.index("d4")]
            cells = [f"{base.mean():.2f}"]
            for name, column in zip(names, found.T, strict=True):
                if name != "d4":
                    gain = column - base
                    gains, losses = np.count_nonzero(gain > 0), np.count_nonzero(gain < 0)
                    chance, worst = wilcoxon(gain).pvalue, min(gain.min(), 0.0)
                    cells.append(f"{gain.mean():+.3f} ({gains} / {losses}, {chance:.1g}, {worst:+.3f})")
            print(f"| {level} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
