"""Draw docs/figures/stacks-*.png: a page before and after, a kymograph, a section through depth.

    python docs/make_figures_stacks.py DATA [drosophila] [ovule] [kymograph]

DATA is the set `stacks`: time_drosophila_real.tif, volume_ovule_real.tif and video_city.tif.
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
    heights = [max(s[0] / s[1] for s in shapes[r * columns : (r + 1) * columns]) for r in range(rows)]
    size = (3.2 * columns, 3.2 * sum(heights) + 0.35 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, height_ratios=heights)
    for ax, (title, picture) in zip(axes.flat, pictures, strict=False):
        low, high = np.percentile(pictures[0][1], (0.5, 99.7))
        ax.imshow(picture, cmap="gray", vmin=low, vmax=high, interpolation="nearest")
        ax.set_title(title, fontsize=9)
    for ax in axes.flat:
        ax.set_axis_off()
    figure.tight_layout(pad=0.4)
    figure.savefig(FIGURES / name, dpi=110)
    plt.close(figure)


def drosophila(data: Path) -> None:
    movie = tifffile.imread(data / "time_drosophila_real.tif").astype(float)
    together = vnlem.denoise(movie, axes="TYX")
    page = vnlem.denoise(movie[6])
    panels(
        "stacks-drosophila.png", [("frame 7", movie[6]), ("alone", page), ("in the movie", together[6])], 3
    )


def ovule(data: Path) -> None:
    volume = tifffile.imread(data / "volume_ovule_real.tif").astype(float)
    solved, info = vnlem.denoise(volume, axes="ZYX", return_info=True)
    print("ovule:", info.noise.describe())
    pictures = [("slice 17", volume[16]), ("alone", vnlem.denoise(volume[16])), ("in the volume", solved[16])]
    noisy = volume + np.random.default_rng(4020).normal(0, 20, volume.shape)
    together = vnlem.denoise(noisy, 20, axes="ZYX", noise_model="gaussian")
    pages = np.stack([vnlem.denoise(slice_, 20, noise_model="gaussian") for slice_ in noisy])
    for title, stack in (("noise 20 added", noisy), ("page by page", pages), ("as a volume", together)):
        print(f"ovule, {title}: rms {np.sqrt(np.mean((stack - volume) ** 2)):.2f}")
        pictures.append((title, stack[16]))
    for title, stack in (("noise 20 added", noisy), ("page by page", pages), ("as a volume", together)):
        pictures.append((f"{title}, section z-x", np.repeat(stack[:, 64], 2, axis=0)))
    panels("stacks-ovule.png", pictures, 3)


def kymograph(data: Path) -> None:
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


FIGURES_BY_NAME = {"drosophila": drosophila, "ovule": ovule, "kymograph": kymograph}


def main() -> None:
    data, *only = sys.argv[1:]
    for name in only or FIGURES_BY_NAME:
        FIGURES_BY_NAME[name](Path(data))


if __name__ == "__main__":
    main()
