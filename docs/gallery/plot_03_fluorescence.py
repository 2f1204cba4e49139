"""
A fluorescence frame: photon noise
==================================

A camera counts photons, so the noise grows with the brightness. No single sigma fits the whole frame.
"""

import matplotlib.pyplot as plt
import numpy as np

import vnlem
from vnlem.bench.phantoms import discs

rng = np.random.default_rng(0)
cells = discs(7, 26, 6, seed=2, size=192)
brightness = np.linspace(0.05, 1.0, 192)[None, :] * (cells > 0) + 0.05
clean = 100.0 + 2.0 * 40.0 * brightness
frame = np.rint(100.0 + 2.0 * rng.poisson(40.0 * brightness) + rng.normal(0, 2.0, clean.shape)).astype(
    np.uint16
)

# %%
# Without any noise parameters vnlem estimates the model from the frame itself.

one_sigma = vnlem.denoise(frame, sigma=vnlem.estimate_sigma(frame))
photons, info = vnlem.denoise(frame, return_info=True)
print(info.noise.describe())
for name, image in (("frame", frame), ("one sigma", one_sigma), ("noise found", photons)):
    print(f"{name:13s} PSNR {vnlem.metrics.psnr(clean, image.astype(float), data_range=80):.2f} dB")

# %%

figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for panel, title, image in zip(
    axes, ("frame", "one sigma", "noise found"), (frame, one_sigma, photons), strict=True
):
    panel.imshow(image, cmap="inferno", vmin=95, vmax=190)
    panel.set_title(title)
    panel.axis("off")
plt.show()
