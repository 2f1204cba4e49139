"""A small scene with structure and noise, and quick parameters: what the tests of VNLR share."""

import numpy as np

from vnlem.noise.model import NoiseModel
from vnlem.plan import Sample, make_plan
from vnlem.registry import find_method

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


def plan_of(image, sigma=20.0, **given):
    """The plan of VNLR for planes (C, H, W), with the halos of its parts."""
    params = find_method("vnlr").with_defaults({"engine": "fast", **given})
    sample = Sample(image, image.shape[1:])
    return make_plan("vnlr", params, sample, NoiseModel.white(sigma), in_parts=True)
