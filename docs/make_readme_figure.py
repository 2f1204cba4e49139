"""The picture of the README: a real micrograph and a real photograph, before and after one call.

    python docs/make_readme_figure.py DATA

DATA is the folder of sets that docs/data.md describes. Needs the extra `bench`. The micrograph is of the set
FMD, the photograph of the set CC; the references are means of many shots of the same scene.
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import vnlem
from vnlem import io

OUT = Path(__file__).parent / "figures" / "readme.png"
SCENES = (
    ("fmd/Confocal_MICE", np.s_[150:350, 150:410], "confocal frame"),
    ("photo_pairs/cc_d800_iso6400_1", np.s_[40:240, 60:320], "photograph, ISO 6400"),
)
INK = "#808080"  # readable on white and on black, because the picture is transparent


def main(data: Path) -> None:
    """Draw both scenes and print the errors."""
    figure, axes = plt.subplots(2, 3, figsize=(10.5, 5.7), layout="constrained")
    for line, (name, part, title) in zip(axes, SCENES, strict=True):
        noisy, reference = (io.read(data / f"{name}_{kind}.png").pixels for kind in ("noisy", "ref"))
        after = vnlem.denoise(noisy, channel_axis=-1 if noisy.ndim == 3 else None)
        panels: dict[str, Any] = {
            title: noisy,
            "vnlem.denoise(image)": after,
            "mean of many shots": reference,
        }
        for axis, (words, image) in zip(line, panels.items(), strict=True):
            psnr = "" if image is reference else f", {vnlem.metrics.psnr(reference, image, 255):.1f} dB"
            axis.imshow(image[part], cmap="gray", vmin=0, vmax=np.percentile(reference[part], 99.8))
            axis.set_axis_off()
            axis.set_title(words + psnr, fontsize=13, color=INK)
            print(words + psnr)
    figure.savefig(OUT, dpi=90, transparent=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
