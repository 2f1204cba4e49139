"""The figure of docs/howto/particles.md: simulated particles, denoised one by one and together.

python docs/make_figure_particles.py DATA/formats/clean70SRibosome_vol_65p.mrc
"""

import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import vnlem
from vnlem import io

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from particles import low_pass, projections

SHOWN, SNR = 4, 0.1


def main() -> None:
    """Write the figure."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    clean = projections(io.read(sys.argv[1]).pixels.astype(float), 60, rng)
    sigma = SNR**-0.5
    noisy = clean + rng.normal(0, sigma, clean.shape)
    rows = {
        "clean": clean,
        f"noisy, SNR {SNR:g}": noisy,
        "low-pass": low_pass(noisy, clean),
        "one by one": np.stack([vnlem.denoise(image, sigma) for image in noisy[:SHOWN]]),
        "together": vnlem.denoise(noisy, sigma, axes="NYX"),
    }
    figure, axes = plt.subplots(SHOWN, len(rows), figsize=(1.6 * len(rows), 1.6 * SHOWN + 0.3))
    for column, (name, images) in enumerate(rows.items()):
        axes[0, column].set_title(name, fontsize=9)
        for row in range(SHOWN):
            low, high = np.percentile((noisy if images is noisy else clean)[row], (0.5, 99.5))
            axes[row, column].imshow(images[row], cmap="gray", vmin=low, vmax=high)
            axes[row, column].set_axis_off()
    figure.tight_layout()
    figure.savefig(Path(__file__).parent / "figures" / "particles.png", dpi=110)


if __name__ == "__main__":
    main()
