"""
The patch space, embedded
=========================

VNLEM-DD makes every patch a vertex of a graph and follows random walks on it. The leading eigenvectors are
coordinates in which connected patches are close together. Here they are drawn as images.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import skimage as ski

import vnlem

clean = ski.data.coins()[:96, :96].astype(float)
noisy = clean + np.random.default_rng(10).normal(0, 15, clean.shape)
picture = Path(tempfile.mkdtemp()) / "embedding.png"
vnlem.figures.embedding(noisy, picture, sigma=15)

# %%

drawn = plt.imread(picture)
figure = plt.figure(figsize=(9, 9 * drawn.shape[0] / drawn.shape[1]))
figure.figimage(drawn, resize=True)
plt.show()
