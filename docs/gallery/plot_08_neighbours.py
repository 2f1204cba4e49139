"""
The 49 neighbours of a patch
============================

The paper's picture: the patches nearest to one of them, first by the Euclidean distance, then by the
rotation-invariant distance (RID). On the command line: ``vnlem neighbors image.png --at 96,120``.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import skimage as ski

import vnlem

image = ski.data.coins()[:160, :160].astype(float)
picture = Path(tempfile.mkdtemp()) / "neighbours.png"
vnlem.figures.neighbors(image, at=(45, 60), out=picture)

# %%

drawn = plt.imread(picture)
figure = plt.figure(figsize=(9, 9 * drawn.shape[0] / drawn.shape[1]))
figure.figimage(drawn, resize=True)
plt.show()
