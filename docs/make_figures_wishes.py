"""Figures of docs/wishes.md: `python docs/make_figures_wishes.py IMAGE`, a photograph with texture."""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import vnlem
from vnlem import io, metrics

FIGURES = Path(__file__).parent / "figures"
SIGMA = 25.0


def perception(path: Path) -> None:
    """Clean, noisy, fidelity and perception, 2 x 2."""
    page = next(iter(io.read(path).pages())).astype(float)
    top, left = ((side - 192) // 2 for side in page.shape)
    clean = page[top : top + 192, left : left + 192]
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
    figure.savefig(FIGURES / "wishes-perception.png", dpi=80)


if __name__ == "__main__":
    perception(Path(sys.argv[1]))
