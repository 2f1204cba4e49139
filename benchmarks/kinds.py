"""Kinds of patches: what VNLEM (preset auto) gains from separate parameters for each kind of pixel.

Pixels are flat, edge, corner or texture by the structure tensor of a pilot, the result of VNLEM itself with
one set of parameters (adapt=False). Prints, relative to that pilot:

- the error of some variants of VNLEM on each kind, in dB below (negative) or above;
- the SNR if each kind uses the variant that was best for it on the other half of the images;
- the SNR of VNLEM auto, which chooses in each neighbourhood (adapt=True);
- the SNR of a smoother and a sharper variant, blended by lost contrast.

Each with how many images gain and lose, and the p value of a Wilcoxon signed-rank test. Images: every
`--every`-th PNG of the folder, the middle `--crop` pixels; noise default_rng(number of the image).

    python benchmarks/kinds.py DATA/categories --every 8 --crop 192 --processes 16
    python benchmarks/kinds.py DATA/set12 --picture kinds.png
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
from vnlem.estimate.contrast import Contrast
from vnlem.estimate.contrast import smooth as smooth_planes

LEVELS = ("15", "25", "50", "0.3")
KINDS = ("flat", "edge", "corner", "texture")
COLOURS = ((0.25, 0.35, 0.6), (0.95, 0.75, 0.2), (0.9, 0.2, 0.2), (0.2, 0.7, 0.35))
VARIANTS = (
    "one set of parameters",
    "patches of 7",
    "patches of 13",
    "bandwidth x 0.7",
    "bandwidth x 1.4",
    "80 neighbours",
)


def kinds_of(pilot: np.ndarray, sigma: float) -> np.ndarray:
    """The kind of every pixel: 0 flat, 1 edge, 2 corner, 3 texture.

    From the structure tensor over a few pixels: little energy is flat, one direction an edge, two directions
    a corner, and energy all around, in a window three times as wide, texture.
    """
    gy, gx = (ndimage.gaussian_filter(pilot, 1.0, order=order) for order in ((1, 0), (0, 1)))

    def tensor(width: float) -> tuple[np.ndarray, np.ndarray]:
        yy, xx, xy = (ndimage.gaussian_filter(p, width) for p in (gy * gy, gx * gx, gx * gy))
        middle, spread = (yy + xx) / 2, np.sqrt(((yy - xx) / 2) ** 2 + xy**2)
        return middle + spread, middle - spread

    (large, small), (large_around, small_around) = tensor(2.0), tensor(6.0)
    enough = (0.12 * sigma) ** 2
    coherent = (large - small) > 0.6 * (large + small)
    kinds = np.where(large < enough, 0, np.where(coherent, 1, 2))
    busy = (small_around > 0.25 * large_around) & (large_around > enough)
    return np.where((kinds == 2) & busy, 3, kinds)


def variants_of(noisy: np.ndarray, sigma: float) -> list[np.ndarray]:
    """VNLEM with one set of parameters, and with others."""
    given = {"workers": 1, "adapt": False}
    pilot, info = vnlem.denoise_vnlem(noisy, sigma, return_info=True, **given)
    bandwidth = info.parameters["bandwidth"]
    others = (
        {"coarse_patch_size": 0, "patch_size": 7},
        {"coarse_patch_size": 0, "patch_size": 13},
        {"bandwidth": 0.7 * bandwidth},
        {"bandwidth": 1.4 * bandwidth},
        {"n_neighbors": 80},
    )
    return [pilot, *(vnlem.denoise_vnlem(noisy, sigma, **given, **other) for other in others)]


def errors_on(crop: int, level: str, case: tuple[int, Path]) -> tuple[np.ndarray, list[float]]:
    """Squared errors (kinds, variants) in units of the clean image's energy; and of auto and the blends."""
    index, path = case
    clean = read_grey(path, crop)
    sigma = 0.3**0.5 * clean.std() if level == "0.3" else float(level)
    noisy = clean + np.random.default_rng(index).normal(0, sigma, clean.shape)
    found = variants_of(noisy, sigma)
    kinds = kinds_of(found[0], sigma)
    squares = [(estimate - clean) ** 2 / clean.var() / clean.size for estimate in found]
    table = np.array([[square[kinds == kind].sum() for square in squares] for kind in range(len(KINDS))])
    variance = np.full((1, 1, 1), sigma**2)
    auto = vnlem.denoise_vnlem(noisy, sigma, workers=1)
    blends = [float(np.mean((auto - clean) ** 2) / clean.var())]
    for smooth, sharp in ((4, 3), (4, 0), (2, 1), (4, 1)):
        a, b = found[smooth][None], found[sharp][None]
        blend = a + Contrast.of(a, noisy[None], variance, smooth_planes).sureness() * (b - a)
        blends.append(float(np.mean((blend[0] - clean) ** 2) / clean.var()))
    return table, blends


BLENDS = (
    "auto: chosen in every neighbourhood by Stein's estimate",
    "bandwidth x 1.4, x 0.7 where contrast was lost",
    "bandwidth x 1.4, x 1 where contrast was lost",
    "patches of 13, of 7 where contrast was lost",
    "bandwidth x 1.4, patches of 7 where contrast was lost",
)


def line(name: str, gains: np.ndarray) -> str:
    """One row about gains in dB."""
    better, worse = np.count_nonzero(gains > 0), np.count_nonzero(gains < 0)
    chance = wilcoxon(gains).pvalue if np.any(gains) else 1.0
    return f"| {name} | {gains.mean():+.3f} | {better} / {worse} | {chance:.1g} | {gains.min():+.2f} |"


def report(level: str, tables: np.ndarray, blends: np.ndarray) -> None:
    """Print what was found at one noise level."""
    print(f"\nnoise {level}: error on each kind relative to one set of parameters, dB\n")
    print(
        "| kind | share of the error | "
        + " | ".join(VARIANTS[1:])
        + " |\n|---|---|"
        + "---|" * len(VARIANTS[1:])
    )
    total = tables.sum(axis=0)
    for kind, row in zip(KINDS, total, strict=True):
        cells = " | ".join(f"{10 * np.log10(error / row[0]):+.2f}" for error in row[1:])
        print(f"| {kind} | {row[0] / total[:, 0].sum():.0%} | {cells} |")
    base = 10 * np.log10(tables[:, :, 0].sum(axis=1))
    chosen = np.empty(len(tables))
    for half in (0, 1):
        best = tables[1 - half :: 2].sum(axis=0).argmin(axis=1)
        chosen[half::2] = tables[half::2][:, range(len(KINDS)), best].sum(axis=1)
    oracle = tables.min(axis=2).sum(axis=1)
    print("\n| | SNR above one set of parameters, dB | gain / lose | p | worst |\n|---|---|---|---|---|")
    print(line("each kind its best, from the other half", base - 10 * np.log10(chosen)))
    print(line("each kind its best on this very image (oracle)", base - 10 * np.log10(oracle)))
    for number, name in enumerate(VARIANTS[1:], 1):
        print(line(f"everywhere {name}", base - 10 * np.log10(tables[:, :, number].sum(axis=1))))
    for name, errors in zip(BLENDS, blends.T, strict=True):
        print(line(name, base - 10 * np.log10(errors)), flush=True)


def draw(images: list[np.ndarray], out: Path) -> None:
    """Four images, noisy, above their kinds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.2), layout="constrained")
    axes = figure.subplots(2, 4)
    for column, clean in enumerate(images[:4]):
        sigma = 0.3**0.5 * clean.std()
        noisy = clean + np.random.default_rng(column).normal(0, sigma, clean.shape)
        kinds = kinds_of(vnlem.denoise_vnlem(noisy, sigma, workers=1), sigma)
        axes[0, column].imshow(noisy, cmap="gray", vmin=0, vmax=255)
        axes[1, column].imshow(np.array(COLOURS)[kinds])
    for cell in axes.ravel():
        cell.set_axis_off()
    figure.suptitle("noise variance 0.3; flat: blue, edge: yellow, corner: red, texture: green")
    figure.savefig(out, dpi=80)


def main() -> None:
    """Print the tables, or draw the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("--crop", type=int, default=192)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    paths = sorted(options.folder.rglob("*.png"))
    if options.picture is not None:
        chosen = paths[:: options.every][:4]
        draw([read_grey(path, options.crop) for path in chosen], options.picture)
        return
    cases = list(enumerate(paths))[:: options.every]
    print(f"{len(cases)} images of {options.crop} x {options.crop} pixels")
    with ProcessPoolExecutor(options.processes) as pool:
        for level in LEVELS:
            found = list(pool.map(functools.partial(errors_on, options.crop, level), cases))
            report(level, np.array([table for table, _ in found]), np.array([blends for _, blends in found]))


if __name__ == "__main__":
    main()
