"""A small scene with structure and noise, and quick parameters: what the tests of VNLR share."""

import numpy as np

QUICK = dict(patch_size=5, n_neighbors=16, patch_distance=5, step=3, passes=2)


def scene(height: int = 40, width: int = 44) -> np.ndarray:
    """Discs and stripes on a ramp, 0..255."""
    y, x = np.mgrid[:height, :width].astype(float)
    image = 60 + x + 40 * (((y - 14) ** 2 + (x - 12) ** 2) < 60) + 50 * (((y - 26) ** 2 + (x - 32) ** 2) < 60)
    return image + 20 * np.sin(0.9 * y) * (x > 22)


def noisy_scene(sigma: float = 20.0, seed: int = 0, **size: int) -> np.ndarray:
    clean = scene(**size)
    return clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape)


def error(estimate: np.ndarray, clean: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.asarray(estimate, float) - clean) ** 2)))
