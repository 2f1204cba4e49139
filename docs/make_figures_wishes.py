"""Figures of docs/wishes.md, on pictures that scikit-image ships: `python docs/make_figures_wishes.py`."""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from skimage import color, data

import vnlem
from vnlem import figures, metrics
from vnlem.bench import phantoms

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "benchmarks"))
from kinds import draw  # noqa: E402

SIGMA = 25.0


def cat() -> np.ndarray:
    """Fur."""
    return 255 * color.rgb2gray(data.cat())


def perception() -> None:
    """Clean, noisy, fidelity and perception, 2 x 2."""
    clean = cat()[60:252, 100:292]
    noisy = clean + np.random.default_rng(0).normal(0, SIGMA, clean.shape)
    shown = {"clean": clean, f"noisy, sigma {SIGMA:.0f}": noisy}
    for aim in ("fidelity", "perception"):
        result = vnlem.denoise_vnlr(noisy, SIGMA, aim=aim).clip(0, 255)
        snr = 10 * np.log10(clean.var() / np.mean((clean - result) ** 2))
        ssim = metrics.ssim(clean, result, data_range=255)
        fsim = metrics.fsim(clean, result, data_range=255)
        shown[f'aim="{aim}": SNR {snr:.2f} dB, SSIM {ssim:.4f}, FSIM {fsim:.4f}'] = result
    figure = Figure(figsize=(9, 9.4), layout="constrained")
    for cell, (title, image) in zip(figure.subplots(2, 2).ravel(), shown.items(), strict=True):
        cell.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        cell.set_title(title, fontsize=9)
        cell.set_axis_off()
    figure.savefig(HERE / "figures" / "wishes-perception.png", dpi=80)


def neighbours() -> None:
    """A disc with smaller discs: its nearest patches, over rotations and over dilations."""
    clean = phantoms.budding_discs(seed=1)
    noisy = clean + np.random.default_rng(0).normal(0, 0.2, clean.shape)
    figure = figures.neighbors(noisy, (30, 80), patch_size=21, scales=(0.6, 1.0, 1 / 0.6))
    figure.savefig(HERE / "figures" / "wishes-neighbors.png", dpi=70)


if __name__ == "__main__":
    perception()
    neighbours()
    camera, coins = data.camera().astype(float), data.coins().astype(float)
    fine = [camera[60:252, 150:342], coins[20:212, 60:252], cat()[60:252, 100:292], camera[300:492, 300:492]]
    draw(fine, HERE / "figures" / "wishes-kinds.png")
