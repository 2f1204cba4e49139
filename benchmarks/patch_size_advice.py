"""Does the theory's patch-size advice help? NLM with automatic parameters against the advised patch size.

On the central 256x256 of Set12 and of the first two images of every category; noise from
default_rng(1000 + i). `best` chooses the size for each image by the clean image.
"""

import argparse
from pathlib import Path

import numpy as np

import vnlem

SIGMAS = (15, 25, 50)
SIZES = range(3, 16, 2)


def central(image: np.ndarray, size: int = 256) -> np.ndarray:
    top, left = ((n - min(n, size)) // 2 for n in image.shape)
    return image[top : top + size, left : left + size]


def load(path: Path) -> np.ndarray:
    picture = vnlem.io.read(path)
    pixels = picture.pixels.astype(np.float64)
    if picture.channel_axis is not None:
        pixels = pixels.mean(axis=picture.channel_axis)
    return central(pixels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds set12/ and categories/")
    data = parser.parse_args().data
    folders = sorted(folder for folder in (data / "categories").iterdir() if folder.is_dir())
    sets = {
        "Set12": sorted((data / "set12").glob("*.png")),
        "categories": [path for folder in folders for path in sorted(folder.iterdir())[:2]],
    }
    print('| set | sigma | `preset="auto"` | q as advised | best q for each image |\n|---|---|---|---|---|')
    for name, files in sets.items():
        for sigma in SIGMAS:
            rows = []
            for i, path in enumerate(files):
                clean = load(path)
                noisy = clean + np.random.default_rng(1000 + i).normal(0, sigma, clean.shape)
                scores = {
                    q: vnlem.metrics.psnr(
                        clean, vnlem.denoise_nlm(noisy, sigma, patch_size=q, patch_distance=7), 255
                    )
                    for q in SIZES
                }
                advice = vnlem.theory.suggest_patch_size(noisy, sigma)
                auto = vnlem.metrics.psnr(clean, vnlem.denoise_nlm(noisy, sigma), data_range=255)
                rows.append((auto, scores[advice.q], max(scores.values())))
            auto, advised, best = np.mean(rows, axis=0)
            print(
                f"| {name} ({len(files)}) | {sigma} | {auto:.2f} | {advised:.2f} | {best:.2f} |", flush=True
            )


if __name__ == "__main__":
    main()
