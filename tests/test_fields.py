"""Noise that varies over the image: found if obvious, and texture is not mistaken for it."""

import numpy as np
import pytest
from skimage import data

import vnlem
from vnlem.noise import NoiseModel, estimate_noise
from vnlem.noise.simulate import add_noise


def psnr(clean, image):
    return 10 * np.log10(255**2 / np.mean((image - clean) ** 2))


@pytest.fixture(scope="module")
def camera():
    return data.camera()[128:384, 128:384].astype(float)


def ramp(shape, low=5.0, high=30.0):
    return np.broadcast_to(np.linspace(low, high, shape[1]), shape)


def vignette(shape):
    rows, columns = (np.linspace(-1, 1, side) for side in shape)
    return 6 + 10 * (rows[:, None] ** 2 + columns**2)


def noisy(clean, sigma, seed=0):
    return clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape)


@pytest.mark.parametrize(
    "make", [ramp, lambda shape: ramp(shape[::-1]).T, vignette], ids=["columns", "rows", "corners"]
)
def test_a_field_is_found_and_its_map_is_right(camera, make):
    sigma = make(camera.shape)
    model = estimate_noise(noisy(camera, sigma))
    assert model.kind == "field"
    found = model.sigma * model.maps.sigma
    assert np.std(np.log(found / sigma)) < 0.12
    assert abs(np.mean(np.log(found / sigma))) < 0.12


def test_denoise_knows_the_field_without_being_told(camera):
    sigma = ramp(camera.shape)
    image = noisy(camera, sigma)
    blind, info = vnlem.denoise(image, return_info=True)
    assert psnr(camera, blind) > psnr(camera, vnlem.denoise(image, sigma)) - 0.4
    assert psnr(camera, blind) > psnr(camera, vnlem.denoise(image, noise_model="gaussian")) + 2
    assert info.noise_check.verdict == "yes"


@pytest.mark.parametrize("sigma", [0, 2, 5, 10, 20])
def test_texture_that_varies_is_no_field(sigma):
    """Sky above, grass below; white noise on both."""
    grass = data.grass()[:256, :256].astype(float)
    fade = np.linspace(0, 1, 256)[:, None]
    for scene in (150 + fade * (grass - grass.mean()), np.where(fade > 0.5, grass, 180.0)):
        image = np.clip(np.round(noisy(scene, sigma)), 0, 255)
        assert "field" not in estimate_noise(image).kind


def test_noise_that_follows_the_brightness_is_no_field():
    photons = np.broadcast_to(np.linspace(5, 60, 256), (256, 256))
    image = np.random.default_rng(0).poisson(photons).astype(float)
    assert estimate_noise(image).kind == "poisson-gaussian"


def test_told_a_weak_field_is_taken(camera):
    image = noisy(camera, ramp(camera.shape, 10, 13))
    assert estimate_noise(image).kind == "white"
    model = estimate_noise(image, kind="field")
    assert model.kind == "field"
    assert 1.1 < model.maps.sigma[:, -1].mean() / model.maps.sigma[:, 0].mean() < 1.6


@pytest.mark.slow
def test_a_field_is_saved_drawn_and_put_back(camera, tmp_path):
    sigma = ramp(camera.shape)
    model = NoiseModel.field(sigma)
    model.save(tmp_path / "model.json")
    assert NoiseModel.load(tmp_path / "model.json") == model
    assert model.describe() == "white noise that varies over the image, sigma 5 to 30"
    drawn = add_noise(model, camera[None], np.random.default_rng(0))[0] - camera
    np.testing.assert_allclose(drawn[:, :32].std(), sigma[:, :32].mean(), rtol=0.1)
    np.testing.assert_allclose(drawn[:, -32:].std(), sigma[:, -32:].mean(), rtol=0.1)
    stable = model.stabilise(noisy(camera, sigma)[None] - camera)
    assert stable.std() == pytest.approx(1, rel=0.02)
    np.testing.assert_allclose(model.unstabilise(model.stabilise(camera[None])), camera[None])
    pytest.importorskip("matplotlib")
    model.draw(tmp_path / "model.png", noisy(camera, sigma))
    assert (tmp_path / "model.png").stat().st_size > 1000


def test_a_given_field_is_a_given_sigma_map(camera):
    sigma = ramp(camera.shape)
    image = noisy(camera, sigma)
    model = NoiseModel.field(sigma)
    expected = vnlem.denoise(image, sigma, profile="fast", scales=1)
    result = vnlem.denoise(image, noise_model=model, profile="fast", scales=1)
    assert np.std(result - expected) < 0.02  # maps are kept in single precision


@pytest.mark.slow
@pytest.mark.parametrize("method", ["nlm", "vnlem"])
def test_methods_without_maps_divide_by_the_field(camera, method):
    image, sigma = camera[:96, :96], ramp((96, 96))
    given = noisy(image, sigma)
    result = vnlem.denoise(given, method=method, noise_model=NoiseModel.field(sigma))
    assert psnr(image, result) > psnr(image, vnlem.denoise(given, method=method, noise_model="gaussian"))


@pytest.mark.slow
def test_all_pages_of_a_stack_have_one_field(camera):
    clean = np.stack([camera[:128, :160]] * 4)
    sigma = ramp(clean.shape[1:])
    stack = np.stack([noisy(page, sigma, seed) for seed, page in enumerate(clean)])
    result, info = vnlem.denoise(stack, axes="TYX", profile="fast", return_info=True)
    assert info.noise.kind == "field"
    even = vnlem.denoise(stack, axes="TYX", profile="fast", noise_model="gaussian")
    assert psnr(clean, result) > psnr(clean, even) + 1


def test_workers_do_not_change_it(camera):
    image = noisy(camera, ramp(camera.shape))
    one, two = (vnlem.denoise(image, profile="fast", workers=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_small_images_have_no_field():
    image = noisy(np.full((40, 40), 100.0), ramp((40, 40)))
    assert estimate_noise(image).kind == "white"
    assert estimate_noise(image, kind="field").kind == "white"


def test_what_cannot_be_said_in_one_sentence_each(camera, tmp_path):
    with pytest.raises(ValueError, match="a map \\(height, width\\) of numbers larger than 0"):
        NoiseModel.field(np.zeros((8, 8)))
    with pytest.raises(ValueError, match="for an image of 8x8 pixels, and the image has 256x256"):
        vnlem.denoise(camera, noise_model=NoiseModel.field(np.ones((8, 8))))
    with pytest.raises(ValueError, match="need whole images"):
        vnlem.denoise_large(camera, tmp_path / "out.zarr", noise_model="field")
    with pytest.raises(ValueError, match="sigma is for white noise"):
        vnlem.denoise(camera, 5.0, noise_model="field")
    values = NoiseModel.field(np.ones((8, 8))).to_dict()
    values["maps"]["sigma"]["float32"] = "nothing"
    with pytest.raises(ValueError, match="a map of the noise model is damaged"):
        NoiseModel.from_dict(values)
