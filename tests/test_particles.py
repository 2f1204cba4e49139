"""A set of noisy particles at all angles: the Wiener filter of their covariance."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, rotate

import vnlem
from vnlem.estimate import particles
from vnlem.metrics import snr


def particle_set(count=32, side=41, noise=2.0, seed=0):
    """Turned pictures of a shape without symmetry, in units of their standard deviation, and with noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    shape = 1.0 * (np.hypot(y, x / 1.6) < side / 6) + 1.5 * (np.hypot(y - 5, x + 4) < side / 10)
    shape = gaussian_filter(shape, 1.0)
    clean = np.stack([rotate(shape, angle, reshape=False, order=1) for angle in rng.uniform(0, 360, count)])
    clean = (clean - clean.mean()) / clean.std()
    return clean, clean + rng.normal(0, noise, clean.shape)


def test_a_set_of_particles_gains_by_what_they_share():
    clean, noisy = particle_set()
    together = vnlem.denoise(noisy, 2.0, axes="NYX")
    alone = np.stack([vnlem.denoise(image, 2.0, profile="fast") for image in noisy])
    assert snr(clean, together) > snr(clean, alone) + 1.5
    np.testing.assert_allclose(together, particles.filter_set(noisy, 2.0), atol=0.02)


def test_turning_all_images_turns_the_result():
    _, noisy = particle_set(16, 31)
    found = particles.filter_set(noisy, 2.0)
    for turn in (lambda a: np.rot90(a, 1, axes=(1, 2)), lambda a: a[:, :, ::-1], lambda a: a[::-1]):
        np.testing.assert_allclose(particles.filter_set(turn(noisy), 2.0), turn(found), atol=1e-8)


def test_more_images_say_more():
    (few, noisy_few), (many, noisy_many) = particle_set(20, 31), particle_set(80, 31)
    gains = [
        snr(clean, particles.filter_set(noisy, 2.0))
        for clean, noisy in ((few, noisy_few), (many, noisy_many))
    ]
    assert gains[1] > gains[0]


@pytest.mark.parametrize("kind", ["noise", "texture"])
def test_a_set_that_shows_no_particle_is_left_to_patches(kind):
    rng = np.random.default_rng(0)
    images = rng.normal(size=(32, 40, 40))
    if kind == "texture":
        images = np.stack([gaussian_filter(image, 2.0, mode="wrap") for image in images])
        images /= images.std()
        images += rng.normal(0, 1.5, images.shape)
    assert particles.filter_set(images, 1.0 if kind == "noise" else 1.5) is None


def test_parameters_of_patches_ask_for_patches():
    clean, noisy = particle_set(16, 25)
    by_patches = vnlem.denoise(noisy, 2.0, axes="NYX", passes=1, profile="fast")
    assert np.abs(by_patches - vnlem.denoise(noisy, 2.0, axes="NYX", profile="fast")).max() > 0.1
    assert np.isfinite(by_patches).all()
    assert clean.shape == by_patches.shape


def test_shares_of_components_are_those_of_the_spiked_model():
    """With many samples a component of variance s in noise 1 keeps s / (s + 1); pure noise keeps nothing."""
    np.testing.assert_allclose(particles._kept(np.array([1.0, 4.0]), 1e-6), [0.0, 0.75], atol=1e-4)
    assert (particles._kept(np.array([0.5, 2.0, 3.9]), 1.0) == 0).all()
