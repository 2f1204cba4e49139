"""Which noise is this: simulated noise of every kind, and images that could be mistaken for it."""

import numpy as np
import pytest
from noise_scene import scene, shared
from scipy import fft, ndimage

import vnlem
from vnlem.bench.phantoms import discs, half_discs
from vnlem.noise import NoiseModel, estimate_gain, estimate_noise
from vnlem.noise.auto import DEMANDS
from vnlem.noise.blocks import cosine, left_by_clipping, painted, unclipped
from vnlem.noise.correlated import _lower_quartile
from vnlem.noise.fit import fit
from vnlem.noise.levels import Levels
from vnlem.pipeline.workers import Pool


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


def test_painted_blocks_are_known():
    noisy = np.random.default_rng(14).normal(size=(8, 8, 3))
    noisy[:, :, 1] = 4.0
    assert painted(noisy, noisy.var(axis=(0, 1)), 1e-9).tolist() == [False, True, False]


def test_text_is_painted_and_counts_of_few_photons_are_not():
    rng = np.random.default_rng(15)
    text = np.where(rng.random((8, 8, 50)) < 0.3, 20.0, 230.0).round()
    text[:, 3:] = 230
    assert painted(text, text.var(axis=(0, 1)), 1.0).mean() > 0.9
    counts = rng.poisson(0.8, (8, 8, 200)).astype(float)
    assert painted(counts, counts.var(axis=(0, 1)), 1.0).mean() < 0.1


def test_clipped_blocks_are_left_out_where_others_exist():
    natural = np.array([True, True, True, False])
    assert unclipped(natural, np.array([True, False, False, False]), 2).tolist() == [False, True, True, False]
    assert unclipped(natural, np.array([True, True, False, False]), 2).tolist() == natural.tolist()


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_clipping_leaves_the_variance_it_is_said_to(share):
    noise = np.random.default_rng(16).standard_normal(200_000)
    clipped = np.maximum(noise, np.quantile(noise, share))
    assert left_by_clipping(np.array([share]))[0] == pytest.approx(clipped.var(), rel=0.02)


@pytest.mark.parametrize("shape", [(6, 5), (8, 8), (1, 16)])
def test_blocks_are_transformed_as_scipy_does(shape):
    blocks = np.random.default_rng(15).normal(size=(*shape, 7))
    np.testing.assert_allclose(cosine(blocks), fft.dctn(blocks, axes=(0, 1), norm="ortho"), atol=1e-12)


@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("size", [(40, 37), (300, 280)])
def test_the_number_of_workers_does_not_change_the_model(channels, size):
    rng = np.random.default_rng(16)
    image = rng.poisson(20 + np.add.outer(np.arange(size[0]), np.arange(size[1]))).astype(float)
    axis = None if channels is None else -1
    if channels is None:
        image = ndimage.gaussian_filter(image, 0.7)
    else:
        image = image[..., None] + rng.normal(0, 4, (*size, channels))
    found = [estimate_noise(image, axis, workers=workers) for workers in (1, 2, 5)]
    assert found[0] == found[1] == found[2]


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


def test_texture_that_the_colours_share_is_not_their_noise():
    rng = np.random.default_rng(42)
    texture = 25 * ndimage.gaussian_filter(rng.standard_normal((160, 160)), 0.6)
    texture *= 1 + np.sin(np.arange(160) / 11)
    clean = scene(160) + texture
    model = estimate_noise(clean[..., None] + rng.normal(0, 6, (160, 160, 3)), channel_axis=-1)
    assert model.is_white
    assert model.sigma == pytest.approx(6, rel=0.06)


@pytest.mark.parametrize("sigma", [15, 25, 50])
def test_small_objects_do_not_make_the_noise_depend_on_the_brightness(sigma):
    clean = 128 + 45 * half_discs(6, 16, 2, seed=1, size=256)
    model = estimate_noise(clean + np.random.default_rng(48).normal(0, sigma, clean.shape))
    assert model.is_white
    assert model.sigma == pytest.approx(sigma, rel=0.04)


@pytest.mark.parametrize(("radius", "spacing", "seed"), [(3, 12, 1), (5, 18, 1), (5, 18, 2)])
def test_weak_noise_on_dense_discs_is_read_inside_the_discs(radius, spacing, seed):
    # No block of 8x8 pixels fits into a disc, so all bright ones hold edges.
    clean = 128 + 45 * discs(radius, spacing, 3, seed, 256)
    model = estimate_noise(clean + np.random.default_rng(49).normal(0, 5, clean.shape))
    assert model.is_white
    assert model.sigma == pytest.approx(5, rel=0.04)


def test_the_gain_of_dense_discs_is_read_inside_the_discs():
    shape = discs(3, 12, 3, seed=1, size=256)
    photons = 340 + 250 * (shape - shape.min()) / np.ptp(shape)
    model = estimate_gain(np.random.default_rng(50).poisson(photons))
    np.testing.assert_allclose(np.sqrt(model.variance(np.array([340.0, 590.0]))), [18.4, 24.3], rtol=0.15)


def _levels(brightness, high, middle, unevenness=1.0):
    count = len(brightness)
    return Levels(brightness, high, middle, np.full(count, unevenness), np.full(count, 0.05))


def test_a_line_needs_classes_that_look_like_noise():
    levels = np.linspace(10, 200, 24)
    rising = 20 + levels
    camera = fit(_levels(levels, rising, 1.1 * rising), 50.0, DEMANDS["auto"]).gain
    assert camera.gain == pytest.approx(1, rel=0.05)
    # Texture has more at middle frequencies, or is uneven; and noise that is weak compared with the contrast
    # needs more evidence.
    assert fit(_levels(levels, rising, 4 * rising), 50.0, DEMANDS["auto"]) is None
    assert fit(_levels(levels, rising, 1.1 * rising, 2.0), 50.0, DEMANDS["auto"]) is None
    weak = fit(_levels(levels, 100 + 0.5 * levels, 100 + 0.5 * levels), 300.0, DEMANDS["auto"])
    assert weak is None


def test_a_few_flat_areas_that_are_noisier_are_enough_for_a_line():
    # Half of the classes are one dark background; objects of texture lead up to bright areas without any.
    levels = np.concatenate([np.full(12, 10.0) + np.arange(12) * 0.01, np.linspace(15, 60, 12)])
    variances = np.concatenate([np.full(12, 20.0), np.linspace(30, 120, 12)])
    middle = variances * np.concatenate([np.ones(12), np.full(9, 5.0), np.ones(3)])
    assert fit(_levels(levels, variances, middle), 20.0, DEMANDS["auto"]).gain is not None
    middle[-3:] *= 5
    assert fit(_levels(levels, variances, middle), 20.0, DEMANDS["auto"]) is None


def test_a_bent_curve_is_right_at_its_ends():
    levels = np.concatenate([np.linspace(20, 150, 20), [240.0]])
    variances = (4 + 14 * np.sin(np.pi * levels / 255)) ** 2
    curve = fit(_levels(levels, variances, variances), 50.0, DEMANDS["auto"])
    np.testing.assert_allclose(curve.variance(levels[[0, -1]]), variances[[0, -1]], rtol=0.05)


def test_where_whole_areas_have_no_noise_the_line_begins_there():
    levels = np.linspace(2, 20, 24)
    variances = np.maximum(levels - 0.5, 0.1)
    curve = fit(_levels(levels, variances, variances), 6.0, DEMANDS["auto"], dark=0.0)
    assert curve.gain.offset == 0
    assert curve.gain.read_noise == 0
    assert curve.gain.gain == pytest.approx(1, rel=0.1)
    # A black border around an image with an offset says nothing about its noise.
    curve = fit(_levels(levels + 100, variances, variances), 6.0, DEMANDS["auto"], dark=0.0)
    assert curve.gain.offset > 90


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


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8, 40, 41])
def test_the_lower_quartile_is_numpys(count):
    energy = np.random.default_rng(count).chisquare(1, (2, 3, 4, count))
    with Pool(2) as pool:
        found = _lower_quartile(energy, pool)
    np.testing.assert_array_equal(found, np.quantile(energy, 0.25, axis=-1))


def test_a_colour_that_is_clipped_does_not_hide_the_noise_of_the_others():
    rng = np.random.default_rng(0)
    # A photograph in the dark: over a third of it blue, and for another part red, lie at the limit.
    colours = np.stack([scene(), scene(), scene()], axis=-1) * [1.0, 0.8, 0.5]
    colours[:90, :, 2], colours[-40:, :, 0] = 4.0, 6.0
    noisy = np.clip(np.rint(colours + rng.normal(0, 20, colours.shape)), 0, 255).astype(np.uint8)
    assert estimate_noise(noisy, -1).sigma == pytest.approx(20, rel=0.04)
