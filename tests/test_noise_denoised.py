"""Images with estimated noise: how well they are denoised."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from noise_scene import scene, shared
from own_method import use
from scipy import ndimage

import vnlem
from vnlem.noise import NoiseModel, estimate_noise

pytestmark = pytest.mark.slow


class TestDenoise:
    """Denoise it with `vnlem.denoise`."""

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
            ({"noise_model": NoiseModel.white(3.0), "sigma": 3}, ValueError, "leave sigma out"),
            ({"noise_model": NoiseModel.white(3.0), "gain": 3}, ValueError, "leave gain out"),
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
    copied = pytest.warns(UserWarning, match="repeated 2 x 2") if name == "moon" else nullcontext()
    with copied:
        model = estimate_noise(image, channel_axis=axis)
    at = np.quantile(image, [0.1, 0.5, 0.9])
    assert np.sqrt(model.variance(at)).max() < 2.2
    part = image[:160, :160]
    result = vnlem.denoise(part, channel_axis=axis, noise_model=model, profile="fast")
    assert np.std(result.astype(float) - part) < 1.8


class TestFewPhotons:
    """A second round, with half of the noise, if bright pixels have few photons."""

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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stable = vnlem.denoise_vnlr(model.stabilise(noisy[None])[0], 1.0, profile="fast", scales=3)
        once = model.unstabilise(stable[None])[0]
        assert np.mean((result - clean) ** 2) < 0.9 * np.mean((once - clean) ** 2)

    def test_with_photons_enough_one_round_is_all(self):
        _, noisy = self.counts(60.0)
        model = NoiseModel.camera(1.0)
        stable = vnlem.denoise_vnlr(model.stabilise(noisy[None])[0], 1.0, profile="fast", scales=1)
        result = vnlem.denoise(noisy, noise_model=model, profile="fast", scales=1)
        np.testing.assert_array_equal(result, model.unstabilise(stable[None])[0])

    @pytest.mark.parametrize(("peak", "sizes"), [(60.0, [128]), (5.0, [128, 128]), (2.0, [64, 128])])
    def test_the_fewer_photons_the_smaller_the_image_of_the_first_round(self, peak, sizes, monkeypatch):
        _, noisy = self.counts(peak)
        seen = []
        use(monkeypatch, lambda job: seen.append(job.pixels.shape[1]) or job.pixels)
        vnlem.denoise(noisy, noise_model=NoiseModel.camera(1.0), method="own", scales=1)
        assert seen == sizes

    @pytest.mark.parametrize("peak", [0.5, 5.0])
    def test_workers_change_not_a_bit(self, peak, monkeypatch):
        noisy = np.random.default_rng(47).poisson(peak * scene(331)[:300] / 200).astype(float)
        use(monkeypatch, lambda job: ndimage.uniform_filter(job.pixels, (0, 5, 5)))
        one, several = (
            vnlem.denoise(noisy, noise_model=NoiseModel.camera(1.0), method="own", scales=3, workers=workers)
            for workers in (1, 3)
        )
        np.testing.assert_array_equal(one, several)

    def test_a_first_round_at_half_the_size_finds_what_is_weaker_than_the_noise(self):
        clean, noisy = self.counts(1.0)
        model = NoiseModel.camera(1.0)
        result = vnlem.denoise(noisy, noise_model=model, profile="fast")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
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

    @pytest.mark.parametrize("peak", [1.0, 5.0])
    def test_channels_that_stand_alone_have_units_of_their_own(self, peak):
        channels = np.stack([self.counts(peak)[1], self.counts(peak, seed=44)[1] * 2])
        model = NoiseModel((NoiseModel.camera(1.0).curves[0], NoiseModel.camera(2.0).curves[0]))
        options = {"profile": "fast", "scales": 1}
        both = vnlem.denoise(channels, noise_model=model, channel_axis=0, channels="separate", **options)
        for gain, channel, result in zip((1.0, 2.0), channels, both, strict=True):
            alone = vnlem.denoise(channel, noise_model=NoiseModel.camera(gain), **options)
            np.testing.assert_array_equal(result, alone)

    def test_the_units_of_the_second_round_are_known_before_the_first(self, monkeypatch):
        """Parts of an image, which do not know the whole first result, need this."""
        _, noisy = self.counts(5.0)
        levels = []
        for strength in (1.0, 0.2):
            use(monkeypatch, lambda job, strength=strength: levels.append(job.sigma) or strength * job.pixels)
            vnlem.denoise(noisy, noise_model=NoiseModel.camera(1.0), method="own", scales=1)
        assert len(levels) == 4
        assert levels[:2] == levels[2:]

    def test_the_noise_of_a_mixture(self):
        clean, noisy = self.counts(5.0)
        quieter = NoiseModel.camera(1.0, 0.0, 0.0).with_share(0.5)
        mixed = 0.5 * noisy + 0.5 * clean
        bright = clean > 1
        expected = np.mean(quieter.variance(clean[bright]))
        assert np.mean((mixed - clean)[bright] ** 2) == pytest.approx(expected, rel=0.15)


class TestScalesOfPhotons:
    """Images whose noise depends on the brightness are halved before they are stabilised."""

    def test_fine_texture_does_not_darken_the_image(self, monkeypatch):
        # The mean of roots is below the root of the mean. The method here only takes means.
        rng = np.random.default_rng(46)
        photons = rng.choice([15.0, 25.0], (192, 192))
        noisy = rng.poisson(photons).astype(float)
        use(monkeypatch, lambda job: ndimage.uniform_filter(job.pixels, (0, 9, 9)))
        once, thrice = (
            vnlem.denoise(noisy, noise_model=NoiseModel.camera(1.0), method="own", scales=scales)
            for scales in (1, 3)
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


@pytest.mark.parametrize("method", ["nlm", "vnlem-dd", "vnlr"])
@pytest.mark.parametrize(
    "model",
    [
        NoiseModel.camera(1200.0, -1200.0),
        NoiseModel.speckle(1.0),
        NoiseModel.field(np.geomspace(0.1, 10, 48)[:, None] * np.ones((48, 40))),
    ],
    ids=["camera", "speckle", "field"],
)
def test_a_model_that_contradicts_the_image_does_not_take_it_out_of_its_range(method, model):
    image = 500 + np.random.default_rng(0).normal(0, 2, (48, 40)) + np.linspace(0, 20, 40)
    result = vnlem.denoise(image, noise_model=model, method=method)
    assert result.min() >= image.min()
    assert result.max() <= image.max()
