"""
Colour
======

Name the axis of the channels; they share their groups of patches.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage as ski

import vnlem

clean = ski.data.astronaut()[:192, 128:320]
noise = np.random.default_rng(4).normal(0, 30, clean.shape)
noisy = np.clip(np.rint(clean + noise), 0, 255).astype(np.uint8)

denoised = vnlem.denoise(noisy, sigma=30, channel_axis=-1)
print(
    denoised.dtype,
    f"PSNR {vnlem.metrics.psnr(clean, noisy):.2f} -> {vnlem.metrics.psnr(clean, denoised):.2f} dB",
)

# %%

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for panel, title, image in zip(axes, ("clean", "noisy", "denoised"), (clean, noisy, denoised), strict=True):
    panel.imshow(image)
    panel.set_title(title)
    panel.axis("off")
plt.show()
