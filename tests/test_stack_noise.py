"""The noise of a stack: maps of sigma, one photon model for all pages, no noise at all."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from stack_scene import SMALL, drifting, error

import vnlem


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "channels"), [("T", 1), ("T", 3), ("Z", 3)])
def test_a_map_of_the_noise_agrees_with_the_reference(kind, channels):
    clean, _ = drifting(4, size=12)
    clean = clean[..., None] * np.linspace(1, 0.5, channels)
    level = np.random.default_rng(2).uniform(5, 40, (4, 12, 12, 1))
    noisy = clean + level * np.random.default_rng(3).normal(size=clean.shape)
    options = {**SMALL, "axes": f"{kind}YXC", "patch_depth": 2, "channels": "joint"}
    fast = vnlem.denoise(noisy, level, **options)
    plain = vnlem.denoise(noisy, level, engine="reference", **options)
    assert np.abs(fast - plain).max() < 0.02
    assert np.abs(fast - noisy).max() > 10


def test_a_sigma_for_each_frame_gains_over_one_for_all():
    clean, _ = drifting(6, size=48)
    level = np.array([5.0, 40.0, 5.0, 40.0, 5.0, 40.0])[:, None, None]
    noisy = clean + level * np.random.default_rng(3).normal(size=clean.shape)
    each = vnlem.denoise(noisy, level, axes="TYX", profile="fast")
    one = vnlem.denoise(noisy, float(np.sqrt(np.mean(level**2))), axes="TYX", profile="fast")
    assert error(each, clean) < 0.8 * error(one, clean)


def test_an_even_map_is_one_number():
    _, noisy = drifting(4, size=100)
    options = {"axes": "TYX", "profile": "fast", "noise_model": "gaussian"}
    given = vnlem.denoise(noisy, np.full((1, 100, 1), 25.0), **options)
    np.testing.assert_allclose(given, vnlem.denoise(noisy, 25, **options), rtol=0, atol=0.02)


def test_photon_noise_is_stabilised_with_one_model_for_all_pages():
    clean, _ = drifting(5)
    clean = clean - clean.min() + 20
    noisy = np.random.default_rng(4).poisson(clean).astype(float)
    result, info = vnlem.denoise(
        noisy, axes="TYX", noise_model="poisson-gaussian", gain=1.0, profile="fast", return_info=True
    )
    assert info.noise.gain.gain == 1.0
    assert error(result, clean) < 0.6 * error(noisy, clean)


BLEACHING = {
    "found": {"noise_model": "poisson-gaussian"},
    "told": {"gain": 2.0, "offset": 100.0, "read_noise": 1.5},
}


@pytest.mark.parametrize("options", list(BLEACHING.values()), ids=list(BLEACHING))
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_one_photon_model_follows_a_movie_that_bleaches(options, seed):
    rng = np.random.default_rng(seed)
    scene = gaussian_filter(rng.normal(size=(96, 96)), 4)
    scene = 200 * (scene - scene.min()) / np.ptp(scene) + 20
    photons = scene * np.exp(-np.arange(12) / 4)[:, None, None]  # to 6 % of the first frame
    clean = 100 + 2 * photons
    noisy = 100 + 2.0 * rng.poisson(photons) + rng.normal(0, 1.5, photons.shape)
    result, info = vnlem.denoise(noisy, axes="TYX", profile="fast", return_info=True, **options)
    assert info.noise.kind == "poisson-gaussian"
    for page, before, after in zip(result, noisy, clean, strict=True):
        noise = np.std(before - after)
        assert error(page, after) < 0.3 * noise
        assert abs(np.mean(page - after)) < 0.05 * noise


def test_no_noise_gives_the_stack_back():
    _, noisy = drifting(3)
    np.testing.assert_array_equal(vnlem.denoise(noisy, 0, axes="TYX"), noisy)
