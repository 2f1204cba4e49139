"""
A movie
=======

With ``axes`` the frames help each other: VNLR searches for similar patches in the frames around. T is time, Z
depth, C channels, N several images; a volume is ``axes="ZYX"``.
"""

import matplotlib.pyplot as plt
import numpy as np

import vnlem
from vnlem.bench.phantoms import half_discs

still = 100 * half_discs(6, 18, 3, seed=4, size=112)
clean = np.stack([np.roll(still, (frame, 2 * frame), axis=(0, 1))[:96, :96] for frame in range(6)])
noisy = clean + np.random.default_rng(13).normal(0, 80, clean.shape)

alone = np.stack([vnlem.denoise(frame, 80, profile="fast") for frame in noisy])
together = vnlem.denoise(noisy, 80, axes="TYX", profile="fast")
for name, movie in (("noisy", noisy), ("frame by frame", alone), ("together", together)):
    print(f"{name:15s} SNR {vnlem.metrics.snr(clean, movie):.2f} dB")

# %%

figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for panel, title, movie in zip(
    axes, ("noisy", "frame by frame", "together"), (noisy, alone, together), strict=True
):
    panel.imshow(movie[3], cmap="gray", vmin=-150, vmax=250)
    panel.set_title(title)
    panel.axis("off")
plt.show()
