"""Movies to denoise, and small windows in which the reference is not slow."""

import numpy as np

SMALL = {"patch_size": 4, "n_neighbors": 10, "patch_distance": 3, "step": 3, "passes": 2, "plane_distance": 1}


def drifting(n_frames, size=32, speed=2, seed=0):
    """A pattern that moves by whole pixels from frame to frame, and its noisy version."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: size + speed * n_frames, : size + speed * n_frames]
    scene = 60 * np.sin(0.5 * x + 0.01 * y**1.6) + 40 * ((y // 9 + x // 7) % 2)
    clean = np.stack(
        [scene[speed * t : speed * t + size, speed * t : speed * t + size] for t in range(n_frames)]
    )
    return clean, clean + rng.normal(0, 25, clean.shape)


def error(result, clean):
    return float(np.sqrt(np.mean((np.asarray(result, float) - clean) ** 2)))


def colours(n_frames=4, size=32):
    """A drifting pattern in three colours that belong together, and its noisy version."""
    grey, _ = drifting(n_frames, size=size)
    clean = grey[..., None] * [1.0, 0.8, 0.5] + [0, 20, 40]
    return clean, clean + np.random.default_rng(8).normal(0, 25, clean.shape)
