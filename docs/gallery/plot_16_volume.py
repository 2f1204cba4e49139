"""
A volume
========

With ``axes="ZYX"`` patches span several slices and members come from the slices around. Patches are turned
only within the plane, and z is only reflected, because slices are often farther apart than pixels.
"""

import matplotlib.pyplot as plt
import numpy as np

import vnlem

z, y, x = np.mgrid[:16, :80, :80]
rng = np.random.default_rng(5)
clean = np.zeros(z.shape)
for row, column in rng.uniform(10, 70, (12, 2)):
    drift = 0.8 * (z - 8)  # tilted tubes
    clean += 100.0 * (np.hypot(y - row - drift, x - column + 0.5 * drift) < 5)
noisy = clean + rng.normal(0, 60, clean.shape)

alone = np.stack([vnlem.denoise(page, 60, profile="fast") for page in noisy])
together = vnlem.denoise(noisy, 60, axes="ZYX", profile="fast")
for name, volume in (("noisy", noisy), ("slice by slice", alone), ("volume", together)):
    print(f"{name:15s} SNR {vnlem.metrics.snr(clean, volume):.2f} dB")

# %%
# One slice, and a section along z below it.

figure, axes = plt.subplots(2, 3, figsize=(9, 4.2), height_ratios=(5, 1.2), layout="constrained")
for column, (title, volume) in enumerate((("noisy", noisy), ("slice by slice", alone), ("volume", together))):
    axes[0, column].imshow(volume[8], cmap="gray", vmin=-80, vmax=200)
    axes[0, column].set_title(title)
    axes[1, column].imshow(volume[:, 40], cmap="gray", vmin=-80, vmax=200, aspect="auto")
for panel in axes.flat:
    panel.axis("off")
plt.show()
