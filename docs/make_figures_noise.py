"""Draw docs/figures/noise-*.jpg: pictures with real noise, and what two cautions remove.

    python docs/make_figures_noise.py DATA

DATA holds the folders real_noise (photographs without a reference) and microscopy (blood smears).
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import vnlem

FIGURES = Path(__file__).parent / "figures"
SIDE = 200  # side in pixels of the shown part of each picture
# file, without .png -> top left corner of the shown part
PHOTOGRAPHS = {
    "rni6_Building": (120, 120),
    "rni6_Marilyn": (60, 100),
    "rni6_Old_Tom_Morris": (40, 60),
    "rni6_Vinegar": (100, 100),
    "rni6_Chupa_Chups": (100, 100),
    "rni6_David_Hilbert": (60, 60),
}
SMEARS = {"blood_bccd__00000": (100, 100), "blood_wbc_014": (40, 40)}


def main(data: Path) -> None:
    """Draw both figures."""
    draw("noise-photographs.jpg", data / "real_noise", PHOTOGRAPHS)
    draw("noise-blood.jpg", data / "microscopy", SMEARS)


def draw(name: str, folder: Path, pictures: dict[str, tuple[int, int]]) -> None:
    """A row for each picture: noisy, denoised by default and with strong caution, and what each removed."""
    figure, axes = plt.subplots(len(pictures), 5, figsize=(11.5, 2.45 * len(pictures)), squeeze=False)
    for row, (stem, (top, left)) in zip(axes, pictures.items(), strict=True):
        image = vnlem.io.read(folder / f"{stem}.png").pixels
        axis = -1 if image.ndim == 3 else None
        part = np.s_[top : top + SIDE, left : left + SIDE]
        show(row[0], image[part], stem.split("_", 1)[1].strip("_").replace("_", " "))
        for place, caution in ((1, "auto"), (3, "strong")):
            result, info = vnlem.denoise(
                image, channel_axis=axis, profile="fast", caution=caution, return_info=True
            )
            removed = image.astype(float) - result
            show(row[place], result[part], f"{caution}: {info.noise.kind}")
            show(
                row[place + 1],
                np.clip(128 + 8 * removed[part], 0, 255).astype(np.uint8),
                f"removed: {removed.std():.1f} rms, x 8",
            )
            print(f"{stem}, {caution}: {info.noise.describe()}; removed {removed.std():.2f}")
    figure.tight_layout(pad=0.4)
    figure.savefig(FIGURES / name, dpi=100, pil_kwargs={"quality": 82})
    plt.close(figure)


def show(ax: Any, picture: Any, title: str) -> None:
    """One picture under its title."""
    ax.imshow(picture, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    ax.set_title(title, fontsize=8)
    ax.set_axis_off()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
