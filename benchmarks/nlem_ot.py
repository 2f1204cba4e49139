"""NLEM's OT under other interpretations of what the paper leaves open, as a Markdown table.

    python benchmarks/nlem_ot.py --data ../shared/data/categories --images 12 --size 256

The paper's Table 1 has 0.59 for NLEM (and 13.33 dB SNR). OT is 100 times the earth mover's distance between
the removed and the true noise on the [0, 1] grey scale. The rows with another self weight are solved in plain
NumPy at some hundred pixels of each image, and compared with the printed reading at the same pixels.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import vnlem
from vnlem.bench.datasets import READABLE, find_images
from vnlem.bench.protocols import Case, Scene, scenes
from vnlem.metrics import emd, snr
from vnlem.reference.regression import irls
from vnlem.reference.window import patches_of, window_of

VARIANCE = 0.3
Row = Callable[[Scene], tuple[float, float]]


def with_options(method: str = "nlem", **options: object) -> Row:
    """SNR and OT of a method with some options."""

    def row(scene: Scene) -> tuple[float, float]:
        result = vnlem.denoise(scene.noisy, scene.sigma, method=method, **options)
        return snr(scene.clean, result), 100 * emd(scene.noisy - result, scene.noisy - scene.clean, 255)

    return row


def clipped(scene: Scene) -> tuple[float, float]:
    """The noisy image is stored in 8 bits before it is denoised."""
    stored = np.clip(np.rint(scene.noisy), 0, 255)
    result = vnlem.denoise_nlem(stored, scene.sigma, preset="paper")
    return snr(scene.clean, result), 100 * emd(stored - result, stored - scene.clean, 255)


def of_images(scene: Scene) -> tuple[float, float]:
    """The distance between the values of the denoised and of the clean image."""
    result = vnlem.denoise_nlem(scene.noisy, scene.sigma, preset="paper")
    return snr(scene.clean, result), 100 * emd(result, scene.clean, 255)


ROWS: dict[str, Row] = {
    "as in the preset: 221 of 441, epsilon 6.5^2": with_options(preset="paper"),
    "all 441 of the window": with_options(preset="paper", n_neighbors=441),
    "100 nearest": with_options(preset="paper", n_neighbors=100),
    "50 nearest": with_options(preset="paper", n_neighbors=50),
    "epsilon 16.5^2, as VNLEM": with_options(preset="paper", bandwidth=16.5),
    "epsilon 16.5^2, 50 nearest": with_options(preset="paper", bandwidth=16.5, n_neighbors=50),
    "epsilon 10^2": with_options(preset="paper", bandwidth=10.0),
    "distances less the noise's share": with_options(preset="paper", noise_correction=True),
    "gamma 0.1 in place of 1": with_options(
        "nlpr", gamma=0.1, patch_size=13, patch_distance=10, n_neighbors=221, bandwidth=6.5,
        noise_correction=False,
    ),
    "noisy image clipped to 8 bits": clipped,
    "OT between the images, not the noises": of_images,
}  # fmt: skip
SELF_WEIGHTS = {
    "self weight 1": lambda others: 1.0,
    "self weight as the best neighbour's": lambda others: float(others.max()),
    "self weight 0": lambda others: 0.0,
}


def with_self_weight(scene: Scene, rule: Callable[[np.ndarray], float], step: int) -> tuple[float, float]:
    """NLEM with another weight of the patch itself, at every `step`-th pixel of every `step`-th row."""
    scale = float(np.sqrt(scene.noisy.var() - scene.sigma**2))
    patches = patches_of(scene.noisy[None] / scale, 13)
    pixels = [(y, x) for y in range(7, len(scene.noisy), step) for x in range(7, len(scene.noisy), step)]
    values = []
    for y, x in pixels:
        window = window_of(y, x, scene.noisy.shape, 10)
        candidates = patches[window[:, 0], window[:, 1]]
        squared = ((candidates - patches[y, x]) ** 2).sum(axis=1)
        order = np.argsort(squared, kind="stable")[:221]
        weights = np.exp(-squared[order] / 6.5**2)
        weights[0] = rule(weights[1:])
        values.append(irls(candidates[order], weights / weights.max(), 1.0)[84] * scale)
    rows, columns = np.array(pixels).T
    noisy, clean = scene.noisy[rows, columns], scene.clean[rows, columns]
    return snr(clean, np.array(values)), 100 * emd(noisy - values, noisy - clean, 255)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--images", type=int, default=12)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--step", type=int, default=16, help="of the pixels for other self weights")
    options = parser.parse_args()
    items = [item for item in find_images(Path(options.data)) if item.path.lower().endswith(READABLE)]
    chosen = items[:: max(len(items) // options.images, 1)][: options.images]
    case = Case("paper", options.size, VARIANCE)
    found = [next(scenes(item, [case]))[1] for item in chosen]
    print(f"{len(found)} images, {options.size}x{options.size}; the paper: 13.33 dB, OT 0.59\n")
    print("| reading | SNR dB | OT x100 |\n|---|---:|---:|")
    for name, row in ROWS.items():
        value = np.mean([row(scene) for scene in found], axis=0)
        print(f"| {name} | {value[0]:.2f} | {value[1]:.2f} |", flush=True)
    for name, rule in SELF_WEIGHTS.items():
        value = np.mean([with_self_weight(scene, rule, options.step) for scene in found], axis=0)
        print(f"| {name}, at sampled pixels | {value[0]:.2f} | {value[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
