"""
A photograph
============

White noise of a known level, the default method.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage as ski

import vnlem

clean = ski.data.camera()[:256, 128:384].astype(float)
noisy = clean + np.random.default_rng(0).normal(0, 25, clean.shape)

# %%
# One call. The noise level is in the units of the pixels; if you leave it out, vnlem estimates it.

denoised, info = vnlem.denoise(noisy, sigma=25, return_info=True)
print(f"{info.method}, sigma {info.sigma:.1f}")
for name, image in (("noisy", noisy), ("denoised", denoised)):
    print(f"{name:9s} PSNR {vnlem.metrics.psnr(clean, image, data_range=255):.2f} dB")

# %%

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for panel, title, image in zip(axes, ("clean", "noisy", "denoised"), (clean, noisy, denoised), strict=True):
    panel.imshow(image, cmap="gray", vmin=0, vmax=255)
    panel.set_title(title)
    panel.axis("off")
plt.show()
