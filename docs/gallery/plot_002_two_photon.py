"""
A real two-photon frame and the mean of many
============================================

Mouse brain from the set FMD. Only one frame is denoised; the mean of many frames of the same place shows the
expected result.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import vnlem

here = Path.cwd()  # anywhere in a clone
samples = next(
    found for folder in (here, *here.parents) if (found := folder / "docs" / "tutorials" / "data").is_dir()
)
frame = vnlem.io.read(samples / "two-photon.tif").pixels
mean = vnlem.io.read(samples / "two-photon-mean.tif").pixels

denoised, info = vnlem.denoise(frame, return_info=True)
print(info.noise.describe())

# %%

figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for panel, title, image in zip(
    axes, ("frame", "denoised", "mean of many frames"), (frame, denoised, mean), strict=True
):
    psnr = "" if image is mean else f", {vnlem.metrics.psnr(mean, image):.1f} dB"
    panel.imshow(image, cmap="gray", vmin=0, vmax=180)
    panel.set_title(title + psnr)
    panel.axis("off")
plt.show()
