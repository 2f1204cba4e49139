"""
An image larger than memory
===========================

``vnlem.denoise_large`` works through a zarr store, a TIFF file or anything with shape, dtype and slicing,
part by part. The result has the same bytes as denoising the whole image at once. The image here is small to
build the page quickly; the call is the same for a whole slide. On the command line:
``vnlem denoise scan.zarr clean.zarr --memory 4GB``. Needs ``pip install "vnlem[large]"``.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import zarr

import vnlem
from vnlem.bench.phantoms import discs

folder = Path(tempfile.mkdtemp())
clean = 500 + 100 * discs(5, 20, 4, seed=1, size=512)
noisy = np.rint(clean + np.random.default_rng(12).normal(0, 60, clean.shape)).astype(np.uint16)
scan = zarr.create_array(folder / "scan.zarr", shape=noisy.shape, chunks=(128, 128), dtype="uint16")
scan[:] = noisy

# %%
# Each part writes whole chunks of the target, so an interrupted run can be resumed.

summary = vnlem.denoise_large(folder / "scan.zarr", folder / "clean.zarr", sigma=60, profile="fast")
result = zarr.open_array(folder / "clean.zarr", mode="r")[:]
print(f"{summary.units} part(s)")
print("the bytes of the whole:", np.array_equal(result, vnlem.denoise(noisy, 60, profile="fast")))

# %%

figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
for panel, title, image in zip(axes, ("scan", "clean"), (noisy, result), strict=True):
    panel.imshow(image[:256, :256], cmap="gray", vmin=350, vmax=800)
    panel.set_title(title)
    panel.axis("off")
plt.show()
