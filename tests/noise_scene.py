"""A scene with many brightnesses, and noise that neighbours share: what the tests of noise models use."""

import numpy as np
from scipy import ndimage


def scene(size: int = 256) -> np.ndarray:
    """Values from 20 to 220: a ramp with discs."""
    y, x = np.mgrid[:size, :size]
    discs = sum(
        ((y - a) ** 2 + (x - b) ** 2 < 300) * 60.0 for a in range(40, size, 80) for b in range(40, size, 80)
    )
    return 20 + 140.0 * x / size + discs


def shared(shape: tuple[int, int], rng: np.random.Generator, width: float = 1.0) -> np.ndarray:
    """Noise of variance one that neighbours share."""
    noise = ndimage.gaussian_filter(rng.standard_normal(shape), width, mode="wrap")
    return noise / noise.std()
