"""
Particles together
==================

For many small, very noisy pictures of similar objects use ``axes="NYX"``, or pass a list of pictures of
different sizes. Each picture also uses patches of the pictures most like it, at any angle.
"""

import matplotlib.pyplot as plt
import numpy as np

import vnlem
from vnlem.bench.phantoms import half_discs

clean = np.stack([half_discs(6, 16, 2, seed=seed, size=48) for seed in range(12)])
sigma = np.sqrt(0.3)
noisy = clean + np.random.default_rng(2).normal(0, sigma, clean.shape)

alone = np.stack([vnlem.denoise(picture, sigma, profile="fast") for picture in noisy])
together = vnlem.denoise(noisy, sigma, axes="NYX", profile="fast")
for name, pictures in (("noisy", noisy), ("one by one", alone), ("together", together)):
    print(f"{name:11s} SNR {vnlem.metrics.snr(clean, pictures):.2f} dB")

# %%

figure, axes = plt.subplots(3, 6, figsize=(9, 4.8), layout="constrained")
for row, (title, pictures) in enumerate((("noisy", noisy), ("one by one", alone), ("together", together))):
    for column in range(6):
        axes[row, column].imshow(pictures[column], cmap="gray", vmin=-2, vmax=2.5)
        axes[row, column].axis("off")
    axes[row, 0].set_title(title, loc="left")
plt.show()
