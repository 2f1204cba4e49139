"""
What is the noise?
==================

``vnlem.estimate_noise`` describes the noise in words and as a drawing. Here it sees photon noise, then the
same frame after smoothing, where neighbouring pixels share their noise. A single sigma
(``vnlem.estimate_sigma``) describes neither.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import skimage as ski
from scipy import ndimage

import vnlem

clean = ski.data.camera()[:384, :384].astype(float)
rng = np.random.default_rng(7)
frame = 100 + 3.0 * rng.poisson(clean / 6) + rng.normal(0, 4, clean.shape)
smoothed = ndimage.gaussian_filter(frame, 0.6)

# %%

for name, image in (("camera", frame), ("resampled", smoothed)):
    model = vnlem.estimate_noise(image)
    print(f"{name}: {model.describe()}")
    print(f"{'':{len(name)}}  one sigma would be {vnlem.estimate_sigma(image):.1f}")

# %%
# The drawing of the second shows noise against brightness, correlation with the neighbours, and the spectrum.

picture = Path(tempfile.mkdtemp()) / "noise.png"
model.draw(picture, smoothed)
drawn = plt.imread(picture)
figure = plt.figure(figsize=(9, 9 * drawn.shape[0] / drawn.shape[1]))
figure.figimage(drawn, resize=True)
plt.show()
