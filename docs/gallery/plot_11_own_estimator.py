"""
Your own estimator
==================

``vnlem.PatchSpace`` gives the patches of an image, one per pixel. That is enough to try an idea: here each
pixel becomes the trimmed mean of the centres of the patches nearest to its own.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import vnlem
from vnlem.bench.phantoms import half_discs

clean = half_discs(6, 16, 2, seed=5, size=64)
sigma = 0.2**0.5
noisy = clean + np.random.default_rng(9).normal(0, sigma, clean.shape)
space = vnlem.PatchSpace(noisy, patch_size=9)
vectors = space.vectors()

# %%
# Nearest by the Euclidean distance, over the whole image.

estimate = np.empty(len(space))
for pixel, own in enumerate(vectors):
    distance = np.sum((vectors - own) ** 2, axis=1)
    nearest = np.argpartition(distance, 40)[:40]
    estimate[pixel] = stats.trim_mean(noisy.ravel()[nearest], 0.2)
estimate = estimate.reshape(clean.shape)

# %%
# The library's own estimators on the same image, for comparison.

results = {
    "noisy": noisy,
    "trimmed mean": estimate,
    "vnlem": vnlem.denoise(noisy, sigma, method="vnlem"),
    "vnlr": vnlem.denoise(noisy, sigma),
}
figure, axes = plt.subplots(1, 4, figsize=(11, 3.1), layout="constrained")
for panel, (name, image) in zip(axes, results.items(), strict=True):
    print(f"{name:13s} SNR {vnlem.metrics.snr(clean, image):.2f} dB")
    panel.imshow(image, cmap="gray", vmin=-1.5, vmax=2.5)
    panel.set_title(name)
    panel.axis("off")
plt.show()
