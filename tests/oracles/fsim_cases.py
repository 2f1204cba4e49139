"""Pairs of images on which FSIM is compared with piq: below and above 384 pixels, grey and colour."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from skimage import data

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def cases() -> dict[str, Pair]:
    """Name -> (clean, other), both 0..255 (piq takes nothing outside)."""
    camera, moon = data.camera().astype(float), data.moon().astype(float)
    coins, coffee = data.coins().astype(float), data.coffee().astype(float)
    astronaut = data.astronaut().astype(float)
    return {
        "camera_512_noise": _noisy(camera, 25, seed=0),
        "camera_512_blur": _blurred(camera, 2),
        "moon_400x399_noise": _noisy(moon[:400, :399], 10, seed=1),
        "coins_303x384_noise": _noisy(coins, 40, seed=2),
        "coins_303x384_blur": _blurred(coins, 1),
        "camera_383_noise": _noisy(camera[100:483, 60:443], 15, seed=3),
        "camera_384x500_noise": _noisy(camera[:384, :500], 15, seed=4),
        "camera_64x97_noise": _noisy(camera[80:144, 200:297], 20, seed=5),
        "camera_33_blur": _blurred(camera[100:133, 220:253], 1.5),
        "camera_640_noise": _noisy(np.tile(camera, (2, 2))[:640, :640], 30, seed=6),
        "astronaut_512_rgb_noise": _noisy(astronaut, 25, seed=7),
        "astronaut_201x200_rgb_blur": _blurred(astronaut[50:251, 150:350], 2),
        "coffee_400x600_rgb_noise": _noisy(coffee, 15, seed=8),
        # Opposite hues: the chromatic similarity is negative in places.
        "astronaut_160_rgb_swapped": (astronaut[:160, 150:310], astronaut[:160, 150:310, ::-1]),
    }


def _noisy(clean: NDArray[np.float64], sigma: float, seed: int) -> Pair:
    noise = np.random.default_rng(seed).normal(0, sigma, clean.shape)
    return clean, np.clip(clean + noise, 0, 255)


def _blurred(clean: NDArray[np.float64], sigma: float) -> Pair:
    return clean, ndimage.gaussian_filter(clean, (sigma, sigma, 0)[: clean.ndim], mode="nearest")
