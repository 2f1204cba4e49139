"""Camera noise: the transform and its inverse against simulation, the gain estimate, the entry point."""

import numpy as np
import pytest

import vnlem
from vnlem.noise import estimate_gain
from vnlem.noise.poisson_gaussian import GainModel, stabilise, unstabilise


def camera(photons: np.ndarray, model: GainModel, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    read = model.read_noise * rng.standard_normal(photons.shape)
    return model.gain * rng.poisson(photons) + model.offset + read


def scene(size: int = 96) -> np.ndarray:
    """Photon counts from 3 to 120: a ramp with bright discs."""
    y, x = np.mgrid[:size, :size]
    discs = sum(((y - a) ** 2 + (x - b) ** 2 < 90) * 60.0 for a in (20, 48, 76) for b in (25, 70))
    return 3 + 60.0 * x / size + discs


@pytest.mark.parametrize("photons", [8.0, 30.0, 200.0])
@pytest.mark.parametrize("read_noise", [0.0, 6.0])
def test_stabilised_noise_has_standard_deviation_one(photons, read_noise):
    model = GainModel(gain=3.0, offset=100.0, read_noise=read_noise)
    values = stabilise(camera(np.full(200_000, photons), model), model)
    assert values.std() == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("photons", [0.3, 2.0, 20.0, 290.0, 310.0, 5000.0])
@pytest.mark.parametrize("read_noise", [0.0, 2.0])
def test_the_inverse_of_the_mean_is_the_true_mean(photons, read_noise):
    model = GainModel(gain=2.0, offset=50.0, read_noise=read_noise)
    pixels = camera(np.full(400_000, photons), model, seed=1)
    back = unstabilise(stabilise(pixels, model).mean(), model)
    # The simulated mean itself is off by its standard error.
    standard_error = np.sqrt(model.variance(2.0 * photons + 50.0) / pixels.size)
    assert abs(back - (2.0 * photons + 50.0)) < 5 * standard_error + 2e-3


def test_the_algebraic_inverse_would_be_biased_at_low_counts():
    model = GainModel(1.0)
    mean = stabilise(camera(np.full(400_000, 1.0), model), model).mean()
    assert abs((mean / 2) ** 2 - 0.375 - 1.0) > 0.05
    assert abs(unstabilise(mean, model) - 1.0) < 0.01


def test_the_inverse_rises_without_steps():
    values = unstabilise(np.linspace(1.0, 60.0, 5000), GainModel(1.0, 0.0, 0.5))
    assert (np.diff(values) >= 0).all()
    assert np.diff(values).max() < 0.5


@pytest.mark.parametrize("read_noise", [0.0, 0.1, 2.0, 1e4])
def test_values_below_the_offset_stay_what_they_are(read_noise):
    model = GainModel(2.0, 100.0, read_noise)
    far = np.array([-1e6, -1e5]) - 20 * read_noise
    np.testing.assert_allclose(unstabilise(stabilise(far, model), model), far, rtol=1e-9)
    near = np.linspace(-5 * read_noise - 50, 100, 300)
    back = unstabilise(stabilise(near, model), model)
    assert (np.diff(back) > 0).all()
    # Read noise bends the transform's mean near the offset.
    assert np.abs(back - near).max() < 0.5 * max(read_noise, 2.0)


def test_a_dark_image_keeps_its_level_and_its_offset_is_doubted():
    with pytest.warns(UserWarning, match="the offset 0 lies above most of the image, whose median is -50"):
        assert vnlem.denoise(np.full((64, 64), -50.0), gain=1.0).mean() == pytest.approx(-50)
    counts = np.random.default_rng(0).poisson(6, (96, 96)).astype(np.uint16)
    with pytest.warns(UserWarning, match="the offset 100 lies above most of the image"):
        result = vnlem.denoise(counts, gain=1.0, offset=100, dtype="float32")
    assert result.mean() == pytest.approx(counts.mean(), abs=0.1)


@pytest.mark.parametrize(
    "model", [GainModel(2.0, 0.0, 5.0), GainModel(0.5, 0.0, 0.0), GainModel(4.0, 30.0, 0.0)]
)
def test_the_gain_is_found_from_one_image(model):
    pixels = camera(scene(192), model, seed=2)
    found = estimate_gain(pixels)
    assert found.gain == pytest.approx(model.gain, rel=0.25)
    means = model.gain * np.array([10.0, 60.0, 110.0]) + model.offset
    np.testing.assert_allclose(np.sqrt(found.variance(means)), np.sqrt(model.variance(means)), rtol=0.15)


@pytest.mark.parametrize("method", ["vnlr", "nlm"])
def test_the_model_beats_white_noise_on_photon_noise(method):
    model = GainModel(1.0)
    photons = scene()
    pixels = camera(photons, model, seed=3)
    aware = vnlem.denoise(pixels, method=method, noise_model="poisson-gaussian", gain=1.0)
    white = vnlem.denoise(pixels, float(np.sqrt(photons.mean())), method=method)
    assert np.mean((aware - photons) ** 2) < np.mean((white - photons) ** 2)


def test_the_model_that_was_used_is_reported():
    pixels = camera(scene(64), GainModel(2.0), seed=4).astype(np.uint16)
    result, info = vnlem.denoise(pixels, noise_model="poisson-gaussian", return_info=True, profile="fast")
    assert result.dtype == np.uint16
    assert info.noise.gain.gain == pytest.approx(2.0, rel=0.3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"noise_model": "poisson"}, "noise_model must be one of"),
        ({"noise_model": "poisson-gaussian", "sigma": 3.0}, "leave sigma out"),
        ({"noise_model": "poisson-gaussian", "gain": -1.0}, "gain must lie"),
        ({"noise_model": "poisson-gaussian", "read_noise": 1.0}, "need gain too"),
        ({"noise_model": "gaussian", "gain": 1.0}, "belongs to noise_model"),
        ({"gain": 1.0, "sigma": 3.0}, "leave sigma out"),
    ],
)
def test_contradictory_arguments_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        vnlem.denoise(scene(32), **wrong)


def test_an_image_too_small_for_an_estimate_is_refused():
    with pytest.raises(ValueError, match="too small"):
        estimate_gain(np.ones((10, 40)))


@pytest.mark.parametrize("gain", [1e-4, 1e-7, 1e-8, 1e-12, 1e-300])
def test_photons_that_read_noise_hides_leave_a_line(gain):
    model = GainModel(gain, 5.0, 1.2)
    values = np.linspace(-20, 300, 1001)
    stable = stabilise(values, model)
    steps = np.diff(stable) / np.diff(values)
    np.testing.assert_allclose(steps, 1 / np.sqrt(model.variance(np.maximum(values[:-1], 5))), rtol=0.02)
    np.testing.assert_allclose(unstabilise(stable, model), values, atol=0.02)


def test_white_noise_may_be_called_photon_noise(monkeypatch):
    rng = np.random.default_rng(0)
    clean = np.zeros((96, 96)) + np.linspace(-20, 60, 96)[:, None].clip(0)
    noisy = np.clip(clean + rng.normal(0, 2, clean.shape), 0, 255).round().astype(np.uint8)
    monkeypatch.setattr("vnlem.noise.auto.gain_of_planes", lambda *_: GainModel(1.3e-8, 0.0, 2.0))
    denoised = vnlem.denoise(noisy, noise_model="poisson-gaussian", scales=3, profile="fast")
    assert np.abs(denoised - clean).mean() < np.abs(noisy - clean).mean()


@pytest.mark.parametrize("level", [0.0, 1.4, 7.0, 300.0])
def test_a_constant_stays_what_it_is_whatever_the_camera(level):
    image = np.full((40, 40), level)
    assert np.array_equal(vnlem.denoise(image, gain=1.0, read_noise=1.0), image)
    da = pytest.importorskip("dask.array", reason="needs the extra 'large'")
    assert np.array_equal(vnlem.denoise(da.from_array(image), gain=1.0, read_noise=1.0).compute(), image)


def test_an_offset_beside_which_the_pixels_vanish_is_told():
    image = np.random.default_rng(0).poisson(30.0, (48, 48)).astype(float)
    with pytest.raises(ValueError, match=r"offset is 1e\+20, and the pixels lie between .* dark pixel"):
        vnlem.denoise(image, gain=1.0, offset=1e20)
