"""
A real photograph at ISO 6400
=============================

From the set CC. The noise of such a photograph depends on the brightness, and the camera has spread it over
neighbours and colours. vnlem estimates all of this from the picture.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import vnlem

here = Path.cwd()  # anywhere in a clone
samples = next(
    found for folder in (here, *here.parents) if (found := folder / "docs" / "tutorials" / "data").is_dir()
)
photo = vnlem.io.read(samples / "photo.png").pixels

denoised, info = vnlem.denoise(photo, channel_axis=-1, return_info=True)
print(info.noise.describe())

# %%

figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
for panel, title, image in zip(axes, ("photograph", "denoised"), (photo, denoised), strict=True):
    panel.imshow(image)
    panel.set_title(title)
    panel.axis("off")
plt.show()
