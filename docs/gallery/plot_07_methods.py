"""
All methods on one image
========================

Quality and time of each method. The times are from the machine that built this page, after a first call that
loads the kernels; compare them only with each other.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import skimage as ski

import vnlem
from vnlem.registry import METHODS

clean = ski.data.camera()[64:224, 160:320].astype(float)
noisy = clean + np.random.default_rng(6).normal(0, 30, clean.shape)

# %%
# VNLR has three profiles, the other methods have none.

calls = {name: {"method": name} for name in METHODS if name != "vnlr"}
calls |= {
    f"vnlr {profile}": {"method": "vnlr", "profile": profile} for profile in ("fast", "balanced", "quality")
}
results = {}
print(f"{'':14s}   PSNR    SSIM  seconds")
for name, call in calls.items():
    vnlem.denoise(noisy[:64, :64], 30, **call)
    begun = time.perf_counter()
    results[name] = vnlem.denoise(noisy, 30, **call)
    seconds = time.perf_counter() - begun
    psnr = vnlem.metrics.psnr(clean, results[name], data_range=255)
    ssim = ski.metrics.structural_similarity(clean, results[name], data_range=255)
    print(f"{name:14s} {psnr:6.2f}  {ssim:6.4f}  {seconds:7.2f}")

# %%

figure, axes = plt.subplots(2, 5, figsize=(12, 5.2), layout="constrained")
for panel, (name, image) in zip(
    axes.flat, [("clean", clean), ("noisy", noisy), *results.items()], strict=True
):
    panel.imshow(image, cmap="gray", vmin=0, vmax=255)
    panel.set_title(name)
    panel.axis("off")
plt.show()
