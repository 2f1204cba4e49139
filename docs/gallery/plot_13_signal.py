"""
A one-dimensional signal
========================

NLM, NLEM and NLPR denoise signals too.
"""

import matplotlib.pyplot as plt
import numpy as np

import vnlem

time = np.linspace(0, 8, 1200)
clean = np.exp(-(((time % 1.0) - 0.4) ** 2) / 0.002) - 0.3 * np.exp(-(((time % 1.0) - 0.55) ** 2) / 0.004)
noisy = clean + np.random.default_rng(11).normal(0, 0.15, clean.shape)
denoised = vnlem.denoise(noisy, 0.15, method="nlem", patch_size=31, patch_distance=400)
print(f"SNR {vnlem.metrics.snr(clean, noisy):.1f} -> {vnlem.metrics.snr(clean, denoised):.1f} dB")

# %%

figure, panel = plt.subplots(figsize=(9, 3), layout="constrained")
panel.plot(time, noisy, color="0.75", linewidth=0.8, label="noisy")
panel.plot(time, denoised, linewidth=1.4, label="denoised")
panel.set_xlim(0, 4)
panel.set_xlabel("beats")
panel.legend(loc="upper right")
plt.show()
