"""
A real wide-field frame: neighbours share their noise
=====================================================

BPAE cells from the set FMD. Neighbouring pixels of this frame share more than half of their noise, so it
looks like fine texture. A denoiser for white noise, with sigma given, leaves most of it.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import vnlem

here = Path.cwd()  # anywhere in a clone
samples = next(
    found for folder in (here, *here.parents) if (found := folder / "docs" / "tutorials" / "data").is_dir()
)
frame = vnlem.io.read(samples / "widefield.tif").pixels

denoised, info = vnlem.denoise(frame, return_info=True)
print(info.noise.describe())
as_white = vnlem.denoise(frame, sigma=info.noise.sigma)

# %%

figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for panel, title, image in zip(
    axes, ("frame", "taken for white noise", "denoised"), (frame, as_white, denoised), strict=True
):
    panel.imshow(image, cmap="gray", vmin=0, vmax=130)
    panel.set_title(title)
    panel.axis("off")
plt.show()
