"""
A real time-lapse: frames help each other
=========================================

Beads under a microscope, from the samples of pims. With ``axes="TYX"`` patches of all frames are combined.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import vnlem

here = Path.cwd()  # anywhere in a clone
samples = next(
    found for folder in (here, *here.parents) if (found := folder / "docs" / "tutorials" / "data").is_dir()
)
movie = vnlem.io.read(samples / "movie.tif").pixels

alone = vnlem.denoise(movie[2])
together = vnlem.denoise(movie, axes="TYX")

# %%

figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for panel, title, image in zip(
    axes,
    ("one of five frames", "denoised alone", "denoised together"),
    (movie[2], alone, together[2]),
    strict=True,
):
    panel.imshow(image, cmap="gray", vmin=movie.min(), vmax=movie.max())
    panel.set_title(title)
    panel.axis("off")
plt.show()
