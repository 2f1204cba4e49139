"""
Noise that varies over the image
================================

Pass a sigma for every pixel. Here the noise grows from left to right, as after a flat-field correction.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage as ski

import vnlem

clean = ski.data.coins()[:192, :192].astype(float)
sigma = np.broadcast_to(np.linspace(5, 60, 192)[None, :], clean.shape)
noisy = clean + sigma * np.random.default_rng(5).normal(size=clean.shape)

one = vnlem.denoise(noisy, float(np.sqrt(np.mean(sigma**2))))
each = vnlem.denoise(noisy, sigma)
for name, image in (("one sigma", one), ("sigma map", each)):
    print(f"{name} PSNR {vnlem.metrics.psnr(clean, image, data_range=255):.2f} dB")

# %%

figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for panel, title, image in zip(axes, ("noisy", "one sigma", "sigma map"), (noisy, one, each), strict=True):
    panel.imshow(image, cmap="gray", vmin=0, vmax=255)
    panel.set_title(title)
    panel.axis("off")
plt.show()
