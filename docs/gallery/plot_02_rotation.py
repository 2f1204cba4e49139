"""
Cells and particles: what rotations gain
========================================

Half discs at random angles. Hardly any patch has a copy at the same angle, but nearly all have one at
another.
"""

import matplotlib.pyplot as plt
import numpy as np

import vnlem
from vnlem.bench.phantoms import half_discs

clean = half_discs(6, 16, 2, seed=1, size=160)
sigma = 0.3**0.5
noisy = clean + np.random.default_rng(1).normal(0, sigma, clean.shape)

# %%
# "identity" shifts patches only, "d4" also turns them by quarter turns and reflects them, "so2" searches all
# angles, which takes about six times as long.

results = {"noisy": noisy}
for group in ("identity", "d4", "so2"):
    results[group] = vnlem.denoise(noisy, sigma, group=group)
for name, image in results.items():
    print(f"{name:9s} SNR {vnlem.metrics.snr(clean, image):6.2f} dB")

# %%

figure, axes = plt.subplots(1, 4, figsize=(11, 3.1), layout="constrained")
for panel, (name, image) in zip(axes, results.items(), strict=True):
    panel.imshow(image[:96, :96], cmap="gray", vmin=-1.5, vmax=2.5)
    panel.set_title(f"{name}: {vnlem.metrics.snr(clean, image):.1f} dB")
    panel.axis("off")
plt.show()
