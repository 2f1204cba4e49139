"""
What is the noise?
==================

How well the estimate does, and what makes it fail: smoothing, as by JPEG or resampling, hides noise from it.
"""

import matplotlib.pyplot as plt
import numpy as np
import skimage as ski
from scipy import ndimage

import vnlem

clean = ski.data.camera().astype(float)
rng = np.random.default_rng(7)
truth = np.array([2, 5, 10, 15, 20, 30, 40, 50], float)
white, smoothed = [], []
for sigma in truth:
    noise = rng.normal(0, sigma, clean.shape)
    white.append(vnlem.estimate_sigma(clean + noise))
    # The same standard deviation, but neighbouring pixels are alike.
    alike = ndimage.gaussian_filter(noise, 0.7)
    smoothed.append(vnlem.estimate_sigma(clean + alike * sigma / alike.std()))
for values in zip(truth, white, smoothed, strict=True):
    print("true {:4.0f}   white noise {:5.1f}   correlated noise {:5.1f}".format(*values))

# %%

figure, panel = plt.subplots(figsize=(5, 4), layout="constrained")
panel.plot(truth, truth, color="0.7", label="truth")
panel.plot(truth, white, "o-", label="white noise")
panel.plot(truth, smoothed, "s-", label="noise alike in neighbouring pixels")
panel.set_xlabel("standard deviation of the noise")
panel.set_ylabel("vnlem.estimate_sigma")
panel.legend()
plt.show()
