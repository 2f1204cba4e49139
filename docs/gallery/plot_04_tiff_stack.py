"""
A 16-bit TIFF stack
===================

``vnlem.io`` keeps the dtype, the pages and the metadata of a file. On the command line this is
``vnlem denoise stack.tif denoised.tif --profile fast``.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tifffile

import vnlem
from vnlem.bench.phantoms import discs

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(3)
pages = [500 + 100 * discs(5, 20, 4, seed=seed, size=128) for seed in range(3)]
stack = np.rint(pages + rng.normal(0, 60, (3, 128, 128))).astype(np.uint16)
tifffile.imwrite(folder / "stack.tif", stack, imagej=True, metadata={"axes": "TYX", "finterval": 2.0})

# %%
# ``Picture.map`` calls a function for every page and keeps the rest of the file.

picture = vnlem.io.read(folder / "stack.tif")
denoised = picture.map(lambda page: vnlem.denoise(page, sigma=60, profile="fast"))
vnlem.io.write(folder / "denoised.tif", denoised)
with tifffile.TiffFile(folder / "denoised.tif") as file:
    print(file.series[0].shape, file.series[0].dtype, "frame interval", file.imagej_metadata["finterval"])

# %%

figure, axes = plt.subplots(2, 3, figsize=(8, 5.5), layout="constrained")
results = tifffile.imread(folder / "denoised.tif")
for column, (before, after) in enumerate(zip(stack, results, strict=True)):
    for panel, image in zip(axes[:, column], (before, after), strict=True):
        panel.imshow(image, cmap="gray", vmin=350, vmax=800)
        panel.axis("off")
    axes[0, column].set_title(f"page {column + 1}")
plt.show()
