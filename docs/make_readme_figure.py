"""The picture of the README: noisy, BM3D and VNLR on a photograph and on particles.

    python docs/make_readme_figure.py

Needs the extras `bench` and `peers`.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from bm3d import bm3d
from skimage import data

import vnlem
from vnlem.bench import phantoms

OUT = Path(__file__).parent / "figures" / "readme.png"


def rows() -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Clean and noisy images with their noise level."""
    coins = data.coins().astype(np.float64)[20:180, 150:340]
    particles = 127 + 60 * phantoms.half_discs(6, 16, 2, seed=1)[:108, :128]
    sigma = 60 * float(np.sqrt(0.3))
    return [
        (coins, vnlem.noise.add_gaussian(coins, 25, seed=1), 25.0),
        (particles, vnlem.noise.add_gaussian(particles, sigma, seed=1), sigma),
    ]


def main() -> None:
    figure, axes = plt.subplots(2, 4, figsize=(11, 4.9), layout="constrained")
    for line, group, (clean, noisy, sigma) in zip(axes, ("d4", "so2"), rows(), strict=True):
        panels = {
            "noisy": noisy,
            "BM3D": 255 * bm3d(noisy / 255, sigma / 255),
            f"vnlem (VNLR, group {group})": vnlem.denoise_vnlr(noisy, sigma, profile="quality", group=group),
            "clean": clean,
        }
        for axis, (name, image) in zip(line, panels.items(), strict=True):
            axis.imshow(image, cmap="gray", vmin=clean.min() - 10, vmax=clean.max() + 10)
            axis.set_axis_off()
            gain = "" if image is clean else f"  {vnlem.metrics.snr(clean, image):.1f} dB SNR"
            axis.set_title(name + gain, fontsize=9)
    figure.savefig(OUT, dpi=80)


if __name__ == "__main__":
    main()
