"""
A real MRI scan: magnitudes of several coils
============================================

Six slices of a head, from the samples of dipy. The noise of magnitudes raises the air above zero, and
``noise_model="rician"`` lowers it again. Reading NIfTI needs ``pip install "vnlem[mri]"``.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import vnlem

here = Path.cwd()  # anywhere in a clone
samples = next(
    found for folder in (here, *here.parents) if (found := folder / "docs" / "tutorials" / "data").is_dir()
)
head = vnlem.io.read(samples / "head.nii.gz").pixels

one = vnlem.denoise(head, axes="ZYX", noise_model="rician")
two = vnlem.denoise(head, axes="ZYX", noise_model="rician", coils=2)

# %%
# The scanner combined several coils, so the model of one coil leaves most of the floor.

for name, scan in (("scan", head), ("one coil", one), ("two coils", two)):
    print(f"{name:9s} mean of the air in the corner: {scan[:, :12, :12].mean():.1f}")

figure, axes = plt.subplots(1, 3, figsize=(9, 3.9), layout="constrained")
for panel, title, scan in zip(axes, ("scan", "one coil", "two coils"), (head, one, two), strict=True):
    panel.imshow(scan[3] ** 0.5, cmap="gray", vmin=0, vmax=40)
    panel.set_title(title)
    panel.axis("off")
figure.suptitle("square roots, which show the air")
plt.show()
