"""Which noise is this: simulated noise of every kind, the transforms, saving, and bad input."""

import warnings

import numpy as np
import pytest
from scipy import ndimage

import vnlem
from vnlem.bench.phantoms import half_discs
from vnlem.noise import NoiseModel, estimate_noise
from vnlem.noise import blocks as block
from vnlem.noise.blocks import painted, usable
from vnlem.noise.correlated import SIDE, Spectrum, check_spectrum
from vnlem.noise.curve import Classes, Curve, check_curve, fit
from vnlem.noise.rounds import in_rounds
from vnlem.pipeline.warn import silent


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


def test_white_noise_is_called_white():
    model = estimate_noise(scene() + np.random.default_rng(0).normal(0, 10, (256, 256)))
    assert model.is_white
    assert model.kind == "white"
    assert model.sigma == pytest.approx(10, rel=0.05)
    assert "white noise" in model.describe()


@pytest.mark.parametrize(
    ("gain", "offset", "read_noise"), [(1.0, 0.0, 0.0), (3.0, 100.0, 5.0), (0.2, 0.0, 4.0)]
)
def test_photon_noise_is_found(gain, offset, read_noise):
    rng = np.random.default_rng(1)
    photons = scene() / gain
    image = offset + gain * rng.poisson(photons) + rng.normal(0, read_noise, photons.shape)
    model = estimate_noise(image)
    assert model.kind == "poisson-gaussian"
    at = np.array([40.0, 100.0, 200.0])
    np.testing.assert_allclose(model.variance(at + offset), gain * at + read_noise**2, rtol=0.25)


def test_a_bent_curve_is_followed():
    rng = np.random.default_rng(2)
    clean = scene()
    deviation = 3 + 9 * np.sin(np.pi * clean / 240)
    model = estimate_noise(clean + deviation * rng.standard_normal(clean.shape))
    assert model.kind == "signal-dependent"
    at = np.array([60.0, 120.0, 180.0])
    np.testing.assert_allclose(np.sqrt(model.variance(at)), 3 + 9 * np.sin(np.pi * at / 240), rtol=0.2)


@pytest.mark.parametrize("width", [0.6, 1.0])
def test_correlated_noise_is_found_with_its_correlation(width):
    rng = np.random.default_rng(3)
    noise = shared((256, 256), rng, width)
    model = estimate_noise(scene() + 12 * noise)
    assert model.is_correlated
    truth = np.mean(noise[:, 1:] * noise[:, :-1])
    assert model.correlation(1)[0, 1] == pytest.approx(truth, abs=0.12)
    assert np.sqrt(model.variance(100.0)) == pytest.approx(12, rel=0.25)


def test_texture_is_not_noise():
    y, x = np.mgrid[:256, :256]
    texture = 30 * np.sin(x / 3.0) * np.sin(y / 4.0) * (x > 128)
    model = estimate_noise(scene() + texture + np.random.default_rng(4).normal(0, 8, (256, 256)))
    assert model.is_white
    assert model.sigma == pytest.approx(8, rel=0.1)


def test_channels_that_share_their_noise_are_told_apart():
    rng = np.random.default_rng(5)
    common = rng.normal(0, 10, (128, 128, 1))
    own = rng.normal(0, 3, (128, 128, 3))
    model = estimate_noise(scene(128)[..., None] + common + own, channel_axis=-1)
    assert not model.is_white
    np.testing.assert_allclose(np.sqrt(model.variance(100.0)), np.sqrt(109), rtol=0.15)
    assert "shared between the colours" in model.describe()


@pytest.mark.parametrize("share", [0.05, 0.4])
@pytest.mark.parametrize("value", [0.0, 90.0])
def test_a_painted_area_does_not_hide_the_noise(share, value):
    noisy = scene() + np.random.default_rng(6).normal(0, 10, (256, 256))
    noisy[: int(256 * share)] = value
    assert vnlem.estimate_sigma(noisy) == pytest.approx(10, rel=0.1)
    assert estimate_noise(noisy).sigma == pytest.approx(10, rel=0.1)


def test_a_drawing_without_noise_has_none():
    drawing = np.where(scene() > 110, 200.0, 50.0)
    assert vnlem.estimate_sigma(drawing) == 0
    assert estimate_noise(drawing).sigma == 0
    np.testing.assert_array_equal(vnlem.denoise(drawing, profile="fast"), drawing)


def test_saturated_pixels_do_not_count():
    rng = np.random.default_rng(7)
    image = np.clip(scene() * 1.6 + rng.normal(0, 10, (256, 256)), 0, 255).astype(np.uint8)
    assert estimate_noise(image).sigma == pytest.approx(10, rel=0.15)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (9, 9), (20, 33), (33, 20), (40, 40), (64, 64)])
def test_small_images_get_some_model(shape):
    image = 100 + np.random.default_rng(8).normal(0, 5, shape)
    model = estimate_noise(image)
    assert model.sigma >= 0
    assert model.confidence <= 0.5 or min(shape) >= 40


def test_a_signal_gets_white_noise():
    model = estimate_noise(np.random.default_rng(9).normal(0, 2, 500))
    assert model.is_white
    assert model.sigma == pytest.approx(2, rel=0.2)


@pytest.mark.parametrize("size", [16, 64, 200])
def test_a_constant_image_has_no_noise(size):
    assert estimate_noise(np.full((size, size), 7.0)).sigma == 0
    assert estimate_noise(np.zeros((size, size, 3)), channel_axis=-1).describe() == "no noise found"


def test_few_grey_levels():
    image = np.round((scene() + np.random.default_rng(10).normal(0, 20, (256, 256))) / 16) * 16
    assert estimate_noise(image).sigma == pytest.approx(20, rel=0.2)


def test_an_image_that_is_all_clipped_is_warned_of():
    image = np.where(np.random.default_rng(11).random((64, 64)) < 0.5, 0, 255).astype(np.uint8)
    with pytest.warns(UserWarning, match="can hardly be seen"):
        estimate_noise(image)


MODELS = {
    "white": NoiseModel.white(4.0),
    "camera": NoiseModel.camera(2.0, 10.0, 3.0),
    "bent": NoiseModel((Curve((0.0, 100.0, 200.0), (9.0, 64.0, 25.0)),)),
    "correlated": NoiseModel(
        (Curve((0.0,), (25.0,)),),
        (Spectrum.of(1 + 20 * np.exp(-np.add.outer(np.arange(16.0), np.arange(16.0)) / 4)),),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_stabilising_is_undone(name):
    planes = scene(96)[None]
    model = MODELS[name]
    back = model.unstabilise(model.stabilise(planes))
    # The inverse is that of the mean, so it differs by a fraction of the noise.
    assert np.abs(back - planes).max() < 0.3 * model.sigma


def test_the_noise_of_a_bent_curve_becomes_one_everywhere():
    curve = MODELS["bent"].curves[0]
    rng = np.random.default_rng(12)
    for level in (30.0, 80.0, 150.0):
        pixels = level + np.sqrt(curve.variance(level)) * rng.standard_normal(200_000)
        stable = curve.stabilise(pixels)
        assert stable.std() == pytest.approx(1, abs=0.08)
        assert curve.unstabilise(stable.mean()) == pytest.approx(level, abs=0.7)


def test_whitened_noise_has_equal_power_where_it_was_strong():
    noise = shared((256, 256), np.random.default_rng(13), 1.0)
    spectrum = estimate_noise(noise).spectra[0]
    white = spectrum.whiten(noise)

    def ratio(plane):
        power = np.mean(block.cosine(block.cut(plane, SIDE, SIDE)) ** 2, axis=0)
        radius = np.hypot(*np.indices(power.shape))
        return power[(radius > 1) & (radius < 4)].mean() / power[(radius >= 5) & (radius < 7)].mean()

    assert ratio(noise) > 2
    assert ratio(white) == pytest.approx(1, abs=0.3)
    np.testing.assert_allclose(spectrum.colour(white)[16:-16, 16:-16], noise[16:-16, 16:-16], atol=0.1)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_survives_its_file(name, tmp_path):
    model = MODELS[name]
    model.save(tmp_path / "noise.json")
    loaded = NoiseModel.load(tmp_path / "noise.json")
    assert loaded.curves == model.curves
    assert loaded.kind == model.kind
    np.testing.assert_allclose(np.array(loaded.spectra[0].power), np.array(model.spectra[0].power))
    assert [path.name for path in tmp_path.iterdir()] == ["noise.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "something"}, "no noise model"),
        ({"curves": [{"levels": [0, 1], "variances": [1, -1]}]}, "must be positive"),
        ({"curves": [{"levels": [1, 0], "variances": [1, 1]}]}, "must rise"),
        ({"curves": [{"levels": [0]}]}, "damaged"),
        ({"curves": []}, "empty"),
        ({"spectra": [[[1.0, -1.0], [1.0, 1.0]]]}, "spectrum must be positive"),
        ({"spectra": [[1.0, 2.0]]}, "square table"),
        ({"strengths": [-1.0]}, "strength must lie"),
    ],
)
def test_a_damaged_model_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        NoiseModel.from_dict({**MODELS["camera"].to_dict(), **change})


def test_what_is_no_json_is_refused(tmp_path):
    (tmp_path / "noise.json").write_text("gain 3")
    with pytest.raises(ValueError, match="not JSON"):
        NoiseModel.load(tmp_path / "noise.json")


def test_a_model_for_other_values_is_refused():
    model = NoiseModel((Curve((0.0, 255.0), (4.0, 200.0)),))
    with pytest.raises(ValueError, match="rescaled or stored with another dtype"):
        vnlem.denoise(scene(64) * 257 + 30000, noise_model=model)


def test_a_model_for_other_channels_is_refused():
    model = NoiseModel((Curve((0.0,), (4.0,)), Curve((0.0,), (5.0,))))
    with pytest.raises(ValueError, match="2 curves and the image 1 channels"):
        vnlem.denoise(scene(64), noise_model=model)


@pytest.mark.parametrize("wrong", [-1.0, 0.0, np.nan])
def test_a_wrong_gain_is_refused(wrong):
    with pytest.raises(ValueError, match="gain must lie"):
        NoiseModel.camera(wrong)


def test_tables_of_wrong_shape_are_refused():
    with pytest.raises(ValueError, match="one variance per level"):
        check_curve([1, 2], [1])
    with pytest.raises(ValueError, match="square table"):
        check_spectrum(np.ones((SIDE, 2)))


def test_painted_blocks_are_known():
    noisy = np.random.default_rng(14).normal(size=(3, 8, 8))
    noisy[1] = 4.0
    assert painted(noisy).tolist() == [False, True, False]
    assert usable(noisy, -9, 9, enough=2).tolist() == [True, False, True]
    assert usable(noisy, -9, 9, enough=3).all()


class TestDenoise:
    """What `vnlem.denoise` does with it."""

    def test_the_default_knows_photon_noise(self):
        rng = np.random.default_rng(20)
        clean = scene(128)
        noisy = 8.0 * rng.poisson(clean / 8.0)
        result, info = vnlem.denoise(noisy, profile="fast", return_info=True)
        white = vnlem.denoise(noisy, profile="fast", noise_model="gaussian")
        assert info.noise.kind == "poisson-gaussian"
        assert np.mean((result - clean) ** 2) < 0.9 * np.mean((white - clean) ** 2)

    def test_the_default_knows_correlated_noise(self):
        rng = np.random.default_rng(21)
        clean = scene(128)
        noisy = clean + 12 * shared(clean.shape, rng)
        result, info = vnlem.denoise(noisy, profile="fast", return_info=True)
        white = vnlem.denoise(noisy, profile="fast", noise_model="gaussian")
        assert info.noise.is_correlated
        assert np.mean((result - clean) ** 2) < 0.7 * np.mean((white - clean) ** 2)

    def test_a_model_of_another_image_serves(self):
        rng = np.random.default_rng(22)
        clean = scene(128)
        model = estimate_noise(8.0 * rng.poisson(clean / 8.0))
        noisy = 8.0 * rng.poisson(clean.T / 8.0)
        result, info = vnlem.denoise(noisy, noise_model=model, profile="fast", return_info=True)
        assert info.noise is model
        assert np.mean((result - clean.T) ** 2) < 0.2 * np.mean((noisy - clean.T) ** 2)

    def test_a_given_sigma_means_white_noise(self):
        noisy = scene(96) + np.random.default_rng(23).normal(0, 10, (96, 96))
        result, info = vnlem.denoise(noisy, 10, profile="fast", return_info=True)
        np.testing.assert_array_equal(result, vnlem.denoise_vnlr(noisy, 10, profile="fast"))
        assert info.noise == NoiseModel.white(10)

    def test_a_sigma_far_from_the_truth_is_warned_of_once(self):
        noisy = scene(128) + np.random.default_rng(24).normal(0, 10, (128, 128))
        for sigma in (2.0, 40.0):
            with pytest.warns(UserWarning, match="seems to have white noise") as caught:
                vnlem.denoise(noisy, sigma, profile="fast")
            assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            vnlem.denoise(noisy, 15.0, profile="fast")

    @pytest.mark.parametrize("kind", ["auto", "poisson-gaussian"])
    def test_a_background_that_was_subtracted_stays(self, kind):
        rng = np.random.default_rng(25)
        signal = np.maximum(scene(128) - 90, 0)
        noisy = 4.0 * rng.poisson(signal / 4.0) + rng.normal(0, 6, signal.shape)
        result = vnlem.denoise(noisy, noise_model=kind, profile="fast")
        assert np.mean((result - signal) ** 2) < 0.3 * np.mean((noisy - signal) ** 2)
        assert abs(result[signal == 0].mean()) < 1.0

    @pytest.mark.parametrize("kind", ["auto", "poisson-gaussian", "correlated"])
    def test_an_image_of_negative_integers(self, kind):
        clean = scene(128) - 3000
        noisy = np.rint(clean + np.random.default_rng(26).normal(0, 10, clean.shape)).astype(np.int16)
        result = vnlem.denoise(noisy, noise_model=kind, profile="fast")
        assert result.dtype == np.int16
        assert np.mean((result - clean) ** 2) < 0.3 * np.mean((noisy - clean) ** 2)

    def test_a_grey_picture_stored_as_rgb_is_no_worse(self):
        clean = scene(128)
        noisy = clean + np.random.default_rng(27).normal(0, 12, clean.shape)
        grey = vnlem.denoise(noisy, profile="fast")
        colour = vnlem.denoise(np.repeat(noisy[..., None], 3, axis=2), channel_axis=-1, profile="fast")
        assert np.mean((colour - clean[..., None]) ** 2) < 1.25 * np.mean((grey - clean) ** 2)

    @pytest.mark.parametrize(
        ("wrong", "error", "message"),
        [
            ({"noise_model": MODELS["white"], "sigma": 3}, ValueError, "leave sigma out"),
            ({"noise_model": MODELS["white"], "gain": 3}, ValueError, "leave gain out"),
            ({"noise_model": "correlated", "sigma": 3}, ValueError, "leave sigma out"),
            ({"noise_model": "correlated", "gain": 3}, ValueError, "belongs to noise_model"),
            ({"noise_model": 3}, TypeError, "name or a NoiseModel"),
            ({"offset": 3}, ValueError, "need gain too"),
        ],
    )
    def test_contradictory_arguments_are_refused(self, wrong, error, message):
        with pytest.raises(error, match=message):
            vnlem.denoise(scene(32), **wrong)


@pytest.mark.parametrize("shift", [0, 1e4])
def test_a_smooth_image_without_noise_is_left_as_it_is(shift):
    y, x = np.mgrid[:128, :128].astype(float)
    clean = shift + np.sin(x / 9) * np.cos(y / 7)
    assert np.std(vnlem.denoise(clean) - clean) < 0.005 * np.std(clean)


@pytest.mark.parametrize("name", ["camera", "coins", "moon", "brick", "astronaut"])
def test_pictures_with_hardly_any_noise_are_left_almost_as_they_are(name):
    from skimage import data

    image = getattr(data, name)()
    axis = -1 if image.ndim == 3 else None
    model = estimate_noise(image, channel_axis=axis)
    at = np.quantile(image, [0.1, 0.5, 0.9])
    assert np.sqrt(model.variance(at)).max() < 2.2
    part = image[:160, :160]
    result = vnlem.denoise(part, channel_axis=axis, noise_model=model, profile="fast")
    assert np.std(result.astype(float) - part) < 1.8


def test_texture_alone_is_taken_for_the_safer_model_and_said():
    rng = np.random.default_rng(40)
    # Fibres of random strength: smooth at fine scales like correlated noise, but not the same everywhere.
    fibres = ndimage.gaussian_filter(rng.standard_normal((256, 256)), (1.0, 2.0))
    strength = np.exp(20 * ndimage.gaussian_filter(rng.standard_normal((256, 256)), 12))
    image = 120 + 200 * fibres * strength / strength.mean() + rng.normal(0, 1.0, (256, 256))
    model = estimate_noise(image)
    assert not model.is_correlated
    assert "safer" in model.doubt
    assert model.doubt in model.describe()
    assert NoiseModel.from_dict(model.to_dict()) == model
    _, info = vnlem.denoise(image[:64, :64], noise_model=model, profile="fast", return_info=True)
    assert info.noise.doubt == model.doubt


def test_classes_with_texture_have_no_say_in_the_curve():
    y, x = np.mgrid[:256, :256]
    ramp = 20 + 200.0 * x / 256
    texture = 25 * np.sin(y / 1.7) * np.sin(x / 1.3) * (x > 150) * (y // 16 % 2)
    noisy = ramp + texture + np.random.default_rng(41).normal(0, 5, ramp.shape)
    model = estimate_noise(noisy)
    assert model.is_white
    assert model.sigma == pytest.approx(5, rel=0.1)


def test_a_line_that_ends_within_the_image_is_no_camera():
    levels = np.linspace(10, 200, 24)
    variances = np.maximum(0.2 * (levels - 90), 0.3)
    unevenness = np.where(levels < 92, 6.0, 1.0)
    curve, _ = fit(Classes(levels, variances, np.full(24, 0.03), unevenness, np.full(24, 3.0)))
    assert curve.gain is None
    assert curve.variance(20.0) > 0


def test_texture_that_the_colours_share_is_not_their_noise():
    rng = np.random.default_rng(42)
    texture = 25 * ndimage.gaussian_filter(rng.standard_normal((160, 160)), 0.6)
    texture *= 1 + np.sin(np.arange(160) / 11)
    clean = scene(160) + texture
    model = estimate_noise(clean[..., None] + rng.normal(0, 6, (160, 160, 3)), channel_axis=-1)
    assert model.is_white
    assert model.sigma == pytest.approx(6, rel=0.06)
    assert "safer" in model.doubt


@pytest.mark.parametrize("sigma", [15, 25, 50])
def test_small_objects_do_not_make_the_noise_depend_on_the_brightness(sigma):
    clean = 128 + 45 * half_discs(6, 16, 2, seed=1, size=256)
    model = estimate_noise(clean + np.random.default_rng(48).normal(0, sigma, clean.shape))
    assert model.is_white
    assert model.sigma == pytest.approx(sigma, rel=0.04)


def test_one_flat_area_that_is_noisier_is_enough_for_a_line():
    # Most classes are one dark background; objects of texture lead up to a bright area without any.
    levels = np.concatenate([np.full(14, 10.0) + np.arange(14) * 0.01, np.linspace(15, 60, 10)])
    variances = np.concatenate([np.full(14, 20.0), np.linspace(30, 120, 10)])
    tilt = np.concatenate([np.full(14, 0.7), np.linspace(4, 6, 9), [0.7]])
    curve, _ = fit(Classes(levels, variances, np.full(24, 0.05), np.ones(24), tilt))
    assert len(curve.levels) > 1
    tilt[-1] = 6.0
    curve, _ = fit(Classes(levels, variances, np.full(24, 0.05), np.ones(24), tilt))
    assert curve.variances == pytest.approx((20.0,), rel=0.1)


def test_a_bent_curve_is_right_at_its_ends():
    levels = np.concatenate([np.linspace(20, 150, 20), [240.0]])
    variances = (4 + 14 * np.sin(np.pi * levels / 255)) ** 2
    curve, _ = fit(Classes(levels, variances, np.full(21, 0.05), np.ones(21), np.full(21, 0.7)))
    np.testing.assert_allclose(curve.variance(levels[[0, -1]]), variances[[0, -1]], rtol=0.05)


class TestFewPhotons:
    """A second round, with half of the noise, where bright pixels have counted a few photons."""

    @staticmethod
    def counts(peak: float, seed: int = 43) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        spots = np.zeros((128, 128))
        spots[tuple(rng.integers(0, 128, (2, 40)))] = 1.0
        spots = ndimage.grey_dilation(spots, footprint=np.hypot(*np.mgrid[-3:4, -3:4]) < 3)
        photons = peak * (0.1 + 0.9 * ndimage.gaussian_filter(spots, 0.5))
        return photons, rng.poisson(photons).astype(float)

    def test_weak_structures_are_kept_better(self):
        clean, noisy = self.counts(5.0)
        model = NoiseModel.camera(1.0)
        result = vnlem.denoise(noisy, noise_model=model, profile="fast")
        with silent():
            stable = vnlem.denoise_vnlr(model.stabilise(noisy[None])[0], 1.0, profile="fast", scales=3)
        once = model.unstabilise(stable[None])[0]
        assert np.mean((result - clean) ** 2) < 0.9 * np.mean((once - clean) ** 2)

    def test_with_photons_enough_one_round_is_all(self):
        _, noisy = self.counts(60.0)
        model = NoiseModel.camera(1.0)
        stable = vnlem.denoise_vnlr(model.stabilise(noisy[None])[0], 1.0, profile="fast")
        result = vnlem.denoise(noisy, noise_model=model, profile="fast", scales=1)
        np.testing.assert_array_equal(result, model.unstabilise(stable[None])[0])

    @pytest.mark.parametrize(("peak", "sizes"), [(60.0, [128]), (5.0, [128, 128]), (2.0, [64, 128])])
    def test_the_fewer_photons_the_smaller_the_image_of_the_first_round(self, peak, sizes):
        _, noisy = self.counts(peak)
        seen = []
        in_rounds(NoiseModel.camera(1.0), noisy[None], False, lambda x, _: (seen.append(x.shape[1]) or x, 0))
        assert seen == sizes

    def test_a_first_round_at_half_the_size_finds_what_is_weaker_than_the_noise(self):
        clean, noisy = self.counts(1.0)
        model = NoiseModel.camera(1.0)
        result = vnlem.denoise(noisy, noise_model=model, profile="fast")
        with silent():
            stable = vnlem.denoise_vnlr(model.stabilise(noisy[None])[0], 1.0, profile="fast", scales=3)
        once = model.unstabilise(stable[None])[0]
        assert np.mean((result - clean) ** 2) < 0.8 * np.mean((once - clean) ** 2)

    @pytest.mark.parametrize("peak", [1.0, 5.0, 60.0])
    def test_progress_goes_on_through_all_rounds(self, peak):
        _, noisy = self.counts(peak)
        seen = []
        vnlem.denoise(
            noisy,
            gain=1.0,
            profile="fast",
            progress=lambda done, total: seen.append(done / total),
        )
        assert seen == sorted(seen)
        assert seen[-1] == 1

    def test_the_noise_of_a_mixture(self):
        clean, noisy = self.counts(5.0)
        quieter = NoiseModel.camera(1.0, 0.0, 0.0).with_share(0.5)
        mixed = 0.5 * noisy + 0.5 * clean
        bright = clean > 1
        expected = np.mean(quieter.variance(clean[bright]))
        assert np.mean((mixed - clean)[bright] ** 2) == pytest.approx(expected, rel=0.15)


class TestScalesOfPhotons:
    """Images whose noise depends on the brightness are halved before they are stabilised."""

    def test_fine_texture_does_not_darken_the_image(self):
        # The mean of roots is below the root of the mean. The method here knows nothing but means.
        rng = np.random.default_rng(46)
        photons = rng.choice([15.0, 25.0], (192, 192))
        noisy = rng.poisson(photons)[None].astype(float)

        def smooth(stable, _):
            return ndimage.uniform_filter(stable, (0, 9, 9)), None

        once, thrice = (
            in_rounds(NoiseModel.camera(1.0), noisy, False, smooth, scales=scales)[0] for scales in (1, 3)
        )
        lost = noisy.mean() - once.mean()
        assert lost > 0.2
        assert abs(noisy.mean() - thrice.mean()) < 0.7 * lost

    def test_info_counts_the_scales(self):
        rng = np.random.default_rng(47)
        noisy = rng.poisson(np.repeat(np.linspace(10, 200, 128)[None], 100, axis=0)).astype(float)
        _, info = vnlem.denoise(noisy, gain=1.0, profile="fast", return_info=True)
        assert info.details["scales"] == 2
        _, info = vnlem.denoise(noisy, gain=1.0, profile="fast", scales=1, return_info=True)
        assert info.details["scales"] == 1
        with pytest.raises(ValueError, match="scales must be"):
            vnlem.denoise(noisy, gain=1.0, scales=0)


@pytest.mark.parametrize("background", [1.0, 6.0])
@pytest.mark.parametrize("given", [{}, {"gain": 2.0, "offset": 100.0, "read_noise": 3.0}])
def test_read_noise_below_the_offset_leaves_no_specks(background, given):
    rng = np.random.default_rng(44)
    y, x = np.mgrid[:128, :128]
    discs = ((x % 43 - 21) ** 2 + (y % 43 - 21) ** 2 < 81).astype(float)
    photons = background + 20.0 * discs
    noisy = np.rint(100 + 2 * rng.poisson(photons) + rng.normal(0, 3, photons.shape))
    result = (vnlem.denoise(noisy, profile="fast", **given) - 100) / 2
    flat = ndimage.maximum_filter(discs, 9) == 0
    assert np.abs(result - background)[flat].max() < 0.7 * np.sqrt(background + 2.25)


def test_an_offset_above_pixels_becomes_read_noise():
    rng = np.random.default_rng(45)
    photons = np.repeat(np.maximum(np.linspace(-20, 40, 256), 1.0)[None], 256, axis=0)
    counted = 100 + 2.0 * rng.poisson(photons)
    model = estimate_noise(counted).gain
    assert model.read_noise == 0
    assert model.offset == pytest.approx(100, abs=2)
    model = estimate_noise(counted + rng.normal(0, 6, photons.shape)).gain
    assert model.read_noise > 5
    assert model.variance(140.0) == pytest.approx(2 * 40 + 36, rel=0.1)
