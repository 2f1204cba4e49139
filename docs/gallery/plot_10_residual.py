"""
Look at what was removed
========================

Without a clean image the residual is the best check: it should be pure noise.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import skimage as ski

import vnlem

clean = ski.data.coins()[100:260, 60:220].astype(float)
noisy = clean + np.random.default_rng(8).normal(0, 20, clean.shape)

# %%
# With the right sigma the residual has that standard deviation and no shapes. With three times the sigma it
# shows the edges of the coins. vnlem warns if the image contradicts sigma.

figure, axes = plt.subplots(2, 3, figsize=(9, 6.2), layout="constrained")
for column, factor in enumerate((0.5, 1.0, 3.0)):
    with warnings.catch_warnings(record=True) as warned:
        denoised = vnlem.denoise(noisy, 20 * factor)
    for warning in warned:
        print(warning.message)
    residual = noisy - denoised
    axes[0, column].imshow(denoised, cmap="gray", vmin=0, vmax=255)
    axes[0, column].set_title(f"sigma {20 * factor:.0f}")
    axes[1, column].imshow(residual, cmap="gray", vmin=-60, vmax=60)
    axes[1, column].set_title(f"residual, std {residual.std():.1f}")
for panel in axes.flat:
    panel.axis("off")
plt.show()
