"""
A real confocal volume: slices help each other
==============================================

Ten slices of a plant ovule, from the samples of plant-seg, with noise of 20 grey levels added. With
``axes="ZYX"`` patches span several slices.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import vnlem

here = Path.cwd()  # anywhere in a clone
samples = next(
    found for folder in (here, *here.parents) if (found := folder / "docs" / "tutorials" / "data").is_dir()
)
volume = vnlem.io.read(samples / "volume.tif").pixels

alone = vnlem.denoise(volume[5])
together = vnlem.denoise(volume, axes="ZYX")

# %%

figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for panel, title, image in zip(
    axes,
    ("one of ten slices", "denoised alone", "denoised together"),
    (volume[5], alone, together[5]),
    strict=True,
):
    panel.imshow(image, cmap="gray", vmin=0, vmax=volume.max())
    panel.set_title(title)
    panel.axis("off")
plt.show()
