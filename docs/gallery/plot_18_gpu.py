"""
On a GPU
========

``device="auto"`` uses a GPU if there is one and otherwise the CPU; ``device="cuda"`` requires a GPU. The
results agree to a hundredth of a decibel. ``info.device`` says which device was used. ``pip install
"vnlem[gpu]"`` installs what is needed; see :doc:`/gpu`.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import vnlem

clean = data.camera()[100:356, 100:356].astype(float)
noisy = clean + np.random.default_rng(0).normal(0, 25, clean.shape)

denoised, info = vnlem.denoise(noisy, sigma=25, device="auto", return_info=True)
print(f"ran on {info.device}: PSNR {vnlem.metrics.psnr(clean, denoised, data_range=255):.2f} dB")

figure, axes = plt.subplots(1, 2, figsize=(7, 3.7), layout="constrained")
for panel, title, image in zip(axes, ("noisy", f"denoised on {info.device}"), (noisy, denoised), strict=True):
    panel.imshow(image, cmap="gray", vmin=0, vmax=255)
    panel.set_title(title)
    panel.axis("off")
plt.show()

# %%
# Without a GPU, ``device="cuda"`` raises an error that says how to fix it.

try:
    vnlem.denoise(noisy, sigma=25, device="cuda")
except (RuntimeError, ValueError, ImportError) as error:
    print(error)

# %%
# An array on the device stays there, and the result has its type: CuPy array or CUDA tensor of PyTorch.

try:
    import cupy

    on_device = cupy.asarray(noisy)
    print(type(vnlem.denoise(on_device, sigma=25)))
except Exception as error:  # no CuPy, or no device
    print(f"not here: {type(error).__name__}")
