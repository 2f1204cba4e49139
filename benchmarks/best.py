"""What could be added to the profile "quality": runs with other parameters, alone and averaged with it.

"quality" is used without its window here.

    python benchmarks/best.py DATA/set12 --sigma 25 --limit 7

Prints the mean gain in PSNR (dB) over "quality" and that of the worst image. Three scales; noise:
numpy.random.default_rng(1000 + i) for the i-th file in sorted order, not clipped.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import vnlem
from vnlem import metrics
from vnlem.bench.datasets import read_grey
from vnlem.bench.sources import sources_hash
from vnlem.execute import execute
from vnlem.methods.vnlr_params import VnlrParams
from vnlem.noise.model import NoiseModel
from vnlem.plan import Sample, make_plan
from vnlem.registry import find_method

Change = Callable[[VnlrParams], VnlrParams]


def with_patches(
    early: int, late: int | None = None, larger_late: int = 0, first: int | None = None, **others: float
) -> Change:
    """Sides of patches in the first pass, in the first half of the pilot passes and in the second.

    larger_late: pixels added to the usual side in the second half.
    """

    def change(params: VnlrParams) -> VnlrParams:
        half, last = params.passes // 2, late or params.patch_size + larger_late
        sizes = (first or params.patch_sizes[0], *[early] * half, *[last] * (params.passes - half))
        search = [m for m in range(1, params.passes + 1) if m % 2 == 1 or sizes[m] != sizes[m - 1]]
        return replace(params, patch_sizes=sizes, patch_size=last, rematch=tuple(search), **others)

    return change


def with_others(**others: float | str) -> Change:
    """Other numbers."""
    return lambda params: replace(params, **others)


VARIANTS: dict[str, Change] = {
    "search radius 52 (26)": with_others(patch_distance=52),
    "search radius 52, first 26 (18), step 4 (5)": with_others(
        patch_distance=52, first_patch_distance=26, step=4
    ),
    "early patches 6 (7), radius 52": with_patches(6, patch_distance=52),
    "the same, boost 1.4 (1.2), noise kept 0.9 (0.75)": with_patches(
        6, patch_distance=52, boost=1.4, noise_kept=0.9
    ),
    "the same, window 2.5": with_patches(6, patch_distance=52, boost=1.4, noise_kept=0.9, window=2.5),
    "the same, window 4": with_patches(6, patch_distance=52, boost=1.4, noise_kept=0.9, window=4.0),
    "window 1.5, as in quality": with_others(window=1.5),
    "window 3": with_others(window=3.0),
    "small patches: first run of best": with_patches(
        5, larger_late=-1, patch_distance=52, step=4, boost=1.6, noise_kept=1.0, window=2.5
    ),
    "large patches: second run of best": with_patches(
        5, larger_late=2, first=8, patch_distance=40, n_neighbors=96, noise_kept=0.9, window=1.5
    ),
    "step 3 (5)": with_others(step=3),
    "patches 6": with_patches(6, 6),
    "patches 8": with_patches(8, 8),
    "patches 7, late 9": with_patches(7, 9),
    "120 members (80)": with_others(n_neighbors=120),
    "48 members": with_others(n_neighbors=48),
    "noise kept 0.9": with_others(noise_kept=0.9),
    "noise kept 0.6": with_others(noise_kept=0.6),
    "boost 1.0": with_others(boost=1.0),
    "boost 1.4": with_others(boost=1.4),
    "no penalty on turned members": with_others(match_penalty=0.0, match_factor=1.0),
    "shifts alone": with_others(group="identity"),
}
RUNS = [name for name in VARIANTS if name.endswith("run of best")]


def _plain(params: VnlrParams) -> VnlrParams:
    return replace(params, window=0.0)


def denoised(noisy: np.ndarray, sigma: float, change: Change) -> np.ndarray:
    """One run of "quality" without a window and with changed parameters, at all scales."""
    params = find_method("vnlr").with_defaults({"profile": "quality"})
    plan = make_plan("vnlr", params, Sample(noisy[None], noisy.shape), NoiseModel.white(sigma))
    sizes = tuple(
        replace(
            size, groups=tuple(replace(group, params=change(_plain(group.params))) for group in size.groups)
        )
        for size in plan.sizes
    )
    return execute(replace(plan, rounds=(replace(plan.rounds[0], sizes=sizes),)), noisy[None])[0]


def main() -> None:
    """Parse the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="clean images")
    parser.add_argument("--sigma", type=float, default=25.0)
    parser.add_argument("--limit", type=int, default=None, help="how many images to use")
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    options = parser.parse_args()
    scenes = []
    for index, path in enumerate(sorted(options.folder.rglob("*.png"))[: options.limit]):
        clean = read_grey(str(path))
        noise = np.random.default_rng(1000 + index).standard_normal(clean.shape)
        noisy = clean + options.sigma * noise
        scenes.append((clean, noisy, denoised(noisy, options.sigma, lambda params: params)))

    def psnr(clean: np.ndarray, estimate: np.ndarray) -> float:
        return metrics.psnr(clean, np.clip(estimate, 0, 255), 255)

    def told(gains: list[float]) -> str:
        return f"{np.mean(gains):+.3f} ({min(gains):+.3f})"

    usual = np.mean([psnr(clean, quality) for clean, _, quality in scenes])
    print(f"sources {sources_hash()}, {len(scenes)} images, sigma {options.sigma:g}, quality {usual:.3f} dB")
    print("| | alone | in the mean |\n|---|---|---|")
    for name in options.variants:
        alone, both = [], []
        for clean, noisy, quality in scenes:
            found = denoised(noisy, options.sigma, VARIANTS[name])
            alone.append(psnr(clean, found) - psnr(clean, quality))
            both.append(psnr(clean, (found + quality) / 2) - psnr(clean, quality))
        print(f"| {name} | {told(alone)} | {told(both)} |", flush=True)
    whole: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "best": lambda noisy: vnlem.denoise_vnlr(noisy, options.sigma, profile="best"),
        "its two runs in equal parts": lambda noisy: np.mean(
            [denoised(noisy, options.sigma, VARIANTS[run]) for run in RUNS], axis=0
        ),
    }
    for name, denoise in whole.items():
        gains = [psnr(clean, denoise(noisy)) - psnr(clean, quality) for clean, noisy, quality in scenes]
        print(f"| {name} | {told(gains)} | |", flush=True)


if __name__ == "__main__":
    main()
