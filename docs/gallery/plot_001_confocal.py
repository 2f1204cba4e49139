"""
A real confocal frame
=====================

A frame of mouse brain from the set FMD, as the microscope recorded it. The noise is unknown.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import vnlem

here = Path.cwd()  # anywhere in a clone
samples = next(
    found for folder in (here, *here.parents) if (found := folder / "docs" / "tutorials" / "data").is_dir()
)
frame = vnlem.io.read(samples / "confocal.tif").pixels

# %%
# vnlem recognises photon noise and estimates the gain, the grey levels per photon.

denoised, info = vnlem.denoise(frame, return_info=True)
print(info.noise.describe())
print(info.noise_check.describe())

# %%

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
removed = frame.astype(float) - denoised
for panel, title, image in zip(
    axes, ("frame", "denoised", "removed"), (frame, denoised, removed), strict=True
):
    panel.imshow(
        image, cmap="gray", vmin=-40 if title == "removed" else 0, vmax=40 if title == "removed" else 160
    )
    panel.set_title(title)
    panel.axis("off")
plt.show()
