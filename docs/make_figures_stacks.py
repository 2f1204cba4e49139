"""Draw docs/figures/stacks-*.png: a page before and after, a kymograph, a section through depth.

    python docs/make_figures_stacks.py DATA

DATA holds time_drosophila_real.tif, volume_ovule_real.tif and video_city.tif.
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import tifffile

import vnlem

FIGURES = Path(__file__).parent / "figures"


def panels(name: str, pictures: list[tuple[str, Any]], columns: int) -> None:
    rows = -(-len(pictures) // columns)
    shapes = [picture.shape for _, picture in pictures]
    width = 3.2 * columns
    height = sum(3.2 * max(s[0] / s[1] for s in shapes[r * columns : (r + 1) * columns]) for r in range(rows))
    figure, axes = plt.subplots(rows, columns, figsize=(width, height + 0.35 * rows), squeeze=False)
    for ax, (title, picture) in zip(axes.flat, pictures, strict=False):
        low, high = np.percentile(pictures[0][1], (0.5, 99.7))
        ax.imshow(picture, cmap="gray", vmin=low, vmax=high, interpolation="nearest")
        ax.set_title(title, fontsize=9)
    for ax in axes.flat:
        ax.set_axis_off()
    figure.tight_layout(pad=0.4)
    figure.savefig(FIGURES / name, dpi=110)
    plt.close(figure)


def main(data: Path) -> None:
    movie = tifffile.imread(data / "time_drosophila_real.tif").astype(float)
    together = vnlem.denoise(movie, axes="TYX")
    page = vnlem.denoise(movie[6])
    panels(
        "stacks-drosophila.png", [("frame 7", movie[6]), ("alone", page), ("in the movie", together[6])], 3
    )
    volume = tifffile.imread(data / "volume_ovule_real.tif").astype(float)
    solved = vnlem.denoise(volume, axes="ZYX")
    pages = np.stack([vnlem.denoise(slice_) for slice_ in volume])
    sections = [
        (f"{title}, section z-x", np.repeat(stack[:, 64], 2, axis=0))
        for title, stack in (("noisy", volume), ("page by page", pages), ("as a volume", solved))
    ]
    pictures = [("slice 17", volume[16]), ("page by page", pages[16]), ("as a volume", solved[16])]
    panels("stacks-ovule.png", pictures + sections, 3)
    clean = tifffile.imread(data / "video_city.tif").astype(float)
    noisy = clean + np.random.default_rng(3000).normal(0, 40, clean.shape)
    stack = vnlem.denoise(noisy, 40, axes="TYX", noise_model="gaussian")
    alone = np.stack([vnlem.denoise(frame, 40, noise_model="gaussian") for frame in noisy])
    kymographs = [
        (title, np.repeat(movie[:, 128, 40:168], 6, axis=0))
        for title, movie in (
            ("noisy (time downwards)", noisy),
            ("page by page", alone),
            ("as a movie", stack),
            ("clean", clean),
        )
    ]
    panels("stacks-kymograph.png", kymographs, 2)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
