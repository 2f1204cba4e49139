"""The gain from dilation on phantoms: VNLR with groups from identity to similarity, and with wide windows.

Prints SNR in dB at noise variance 0.3, mean over seeds; noise default_rng(seed). Photographs are in
`wishes.py`.

    python benchmarks/similarity.py --processes 2
"""

import argparse
import functools
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import vnlem
from vnlem.bench import phantoms
from vnlem.bench.sources import sources_hash

USUAL = {"fast": 14, "balanced": 20, "quality": 26}  # radius of the search window
PHANTOMS: dict[str, Callable[[int], np.ndarray]] = {
    "discs of radius 3 to 9": lambda seed: phantoms.mixed_discs(3, 9, 22, 3, seed),
    "discs of radius 6": lambda seed: phantoms.discs(6, 22, 3, seed),
    "discs in perspective": phantoms.floor_of_discs,
    "discs that bear discs": phantoms.budding_discs,
}


def ways(profile: str) -> dict[str, dict[str, Any]]:
    """Names of the variants, and their parameters."""
    wide = {"profile": profile, "patch_distance": 3 * USUAL[profile]}
    groups = {
        group: {"profile": profile, "group": group} for group in ("identity", "d4", "so2", "similarity")
    }
    return groups | {
        "d4, wide window": wide,
        "so2, wide window": wide | {"group": "so2"},
        "d4, scales=3": {"profile": profile, "scales": 3},
    }


def snr(clean: np.ndarray, estimate: np.ndarray) -> float:
    """In dB."""
    return float(10 * np.log10(clean.var() / np.mean((clean - estimate) ** 2)))


def on_phantom(given: list[dict[str, Any]], name: str, seed: int) -> list[float]:
    """SNR of every variant."""
    clean = PHANTOMS[name](seed)
    noisy = clean + np.random.default_rng(seed).normal(0, 0.3**0.5, clean.shape)
    return [snr(clean, vnlem.denoise_vnlr(noisy, 0.3**0.5, workers=1, **way)) for way in given]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--profile", default="balanced", choices=tuple(USUAL))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    given = ways(options.profile)
    print(
        f"phantoms, noise variance 0.3, SNR in dB, profile {options.profile}, "
        f"seeds 1 to {options.seeds}, sources {sources_hash()[:12]}\n"
    )
    print("| | " + " | ".join(given) + " |\n|---|" + "---|" * len(given))
    with ProcessPoolExecutor(options.processes) as pool:
        for phantom in PHANTOMS:
            work = functools.partial(on_phantom, list(given.values()), phantom)
            means = np.mean(list(pool.map(work, range(1, options.seeds + 1))), axis=0)
            print(f"| {phantom} | " + " | ".join(f"{value:.2f}" for value in means) + " |", flush=True)


if __name__ == "__main__":
    main()
