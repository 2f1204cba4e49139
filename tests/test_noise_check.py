"""Add simulated noise back: does it look like the image? Right models must pass, wrong ones must not."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage
from skimage import data

import vnlem
from vnlem.noise import NoiseModel, estimate_noise, predictive_check
from vnlem.noise.correlated import SIDE, Spectrum
from vnlem.noise.predictive import check_by_tiles, worst
from vnlem.noise.simulate import add_noise
from vnlem.pipeline.image import to_planes

CAMERA = data.camera()[100:356, 100:356].astype(float)
COLOURS = data.astronaut()[100:260, 120:280].astype(float)
BLURRED = Spectrum.of(np.exp(-0.05 * np.add.outer(np.arange(SIDE) ** 2, np.arange(SIDE) ** 2)) + 0.01)
CORRELATED = replace(NoiseModel.white(12.0), spectra=(BLURRED,))
PHOTONS = NoiseModel.camera(gain=3.0, offset=5.0, read_noise=4.0)
RIGHT = {
    "white": NoiseModel.white(10.0),
    "weak": NoiseModel.white(5.0),
    "photons": PHOTONS,
    "correlated": CORRELATED,
}


def drawn(model, clean=CAMERA, axis=None, seed=1):
    planes = to_planes(clean, axis)
    return planes.layout(add_noise(model, planes.data, np.random.default_rng(seed)))


@pytest.mark.parametrize("name", RIGHT)
def test_the_right_model_looks_like_the_image(name):
    check = vnlem.check_noise(drawn(RIGHT[name]), RIGHT[name])
    assert (check.verdict, check.reason) == ("yes", "")


def test_the_right_model_of_bytes_and_of_colours_looks_like_the_image():
    noisy = np.clip(np.round(drawn(RIGHT["white"])), 0, 255).astype(np.uint8)
    assert vnlem.check_noise(noisy).verdict == "yes"
    assert vnlem.check_noise(drawn(RIGHT["white"], COLOURS, -1), RIGHT["white"], -1).verdict == "yes"


@pytest.mark.parametrize(
    ("truth", "told", "verdicts"),
    [
        ("white", NoiseModel.white(20.0), {"no"}),
        ("white", NoiseModel.white(5.0), {"no", "mostly"}),
        ("white", CORRELATED, {"no", "mostly"}),
        ("white", NoiseModel.camera(gain=1.0), {"no", "mostly"}),
        ("correlated", NoiseModel.white(12.0), {"no"}),
        ("photons", NoiseModel.white(25.0), {"no"}),
        ("photons", NoiseModel.camera(gain=6.0, offset=5.0, read_noise=8.0), {"no"}),
    ],
    ids=["twice", "half", "as correlated", "as photons", "as white", "of one level", "more photon noise"],
)
def test_a_wrong_model_does_not_look_like_the_image(truth, told, verdicts):
    check = vnlem.check_noise(drawn(RIGHT[truth]), told)
    assert check.verdict in verdicts
    assert check.reason in check.describe()


@pytest.mark.parametrize("name", ["grass", "gravel"])
def test_texture_that_was_taken_for_noise_is_told(name):
    texture = getattr(data, name)()[:256, :256].astype(float)
    noisy = texture + np.random.default_rng(2).normal(0, 2, texture.shape)
    model = estimate_noise(noisy, kind="correlated")
    assert model.sigma > 4
    assert vnlem.check_noise(noisy, model).verdict in ("no", "mostly")


def test_a_wrong_level_in_one_of_the_channels_is_told():
    right = NoiseModel.white(10.0)
    wrong = replace(right, curves=(right.curves[0], right.curves[0], NoiseModel.white(25.0).curves[0]))
    assert vnlem.check_noise(drawn(right, COLOURS, -1), wrong, -1).verdict != "yes"


def test_painted_and_clipped_areas_have_no_say():
    noisy = drawn(RIGHT["white"])
    noisy[:40], noisy[:, 200:] = 128.0, 255.0
    clean = CAMERA.copy()
    clean[:40], clean[:, 200:] = 128.0, 255.0
    assert predictive_check(noisy, clean, RIGHT["white"]).verdict == "yes"


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (np.full((64, 64), 7, np.uint8), "no noise was found"),
        (np.indices((64, 64)).sum(axis=0) % 2, "clipped or constant"),
        (np.random.default_rng(3).integers(0, 2, (64, 64)), "clipped or constant"),
        (np.random.default_rng(4).normal(0, 3, (20, 20)), "smaller than 32x32"),
        (np.random.default_rng(4).normal(0, 3, (3, 3)), "smaller than 32x32"),
        (np.round(np.random.default_rng(5).normal(9, 0.2, (64, 64))).astype(np.uint8), "cannot tell"),
    ],
    ids=["constant", "checkerboard", "two values", "small", "tiny", "rounded away"],
)
def test_odd_images_get_a_sentence(image, words):
    model = NoiseModel.white(0.0 if np.ptp(image) == 0 else 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check = vnlem.check_noise(image, model)
        on_result = predictive_check(image, image, model)
    assert check.verdict == on_result.verdict == "unknown"
    assert words in check.describe()


def test_images_that_cannot_belong_together_are_refused():
    with pytest.raises(ValueError, match="differ in shape"):
        predictive_check(np.zeros((64, 64)), np.zeros((64, 65)), RIGHT["white"])
    with pytest.raises(TypeError, match="noise must be a NoiseModel"):
        predictive_check(CAMERA, CAMERA, 3.0)
    with pytest.raises(TypeError, match="noise_model must be a NoiseModel"):
        vnlem.check_noise(CAMERA, CAMERA)
    with pytest.raises(ValueError, match="was made for values from"):
        vnlem.check_noise(1e7 * CAMERA, PHOTONS)


def test_a_photon_model_without_photons_can_be_checked_and_used():
    blurred = ndimage.gaussian_filter(drawn(CORRELATED), 2).round().astype(np.uint8)
    for noisy in (drawn(RIGHT["white"]), blurred):
        model = estimate_noise(noisy, kind="poisson-gaussian")
        assert vnlem.denoise(noisy, noise_model=model, profile="fast").shape == noisy.shape
        assert vnlem.check_noise(noisy, model).verdict in ("yes", "unknown")


def test_the_check_is_the_same_every_time_and_for_any_number_of_workers():
    noisy = drawn(PHOTONS)
    first = vnlem.check_noise(noisy, PHOTONS, workers=1)
    assert vnlem.check_noise(noisy, PHOTONS, workers=2) == first
    assert vnlem.check_noise(noisy.astype(np.float32), PHOTONS).verdict == first.verdict


def test_of_a_large_image_nine_tiles_are_denoised():
    seen = []

    def denoise(tile, model):
        seen.append(tile.shape)
        return np.full_like(tile, 100.0)

    image = to_planes(np.random.default_rng(6).normal(100, 5, (700, 1500)))
    assert check_by_tiles(image, NoiseModel.white(5.0), denoise).verdict == "yes"
    assert seen == 9 * [(128, 128)]


def test_info_holds_the_check_of_the_result():
    noisy = np.clip(np.round(drawn(RIGHT["white"])), 0, 255).astype(np.uint8)
    result, info = vnlem.denoise(noisy, profile="fast", return_info=True)
    assert info.noise_check.verdict == "yes"
    assert info.noise_check == predictive_check(noisy, result, info.noise)
    assert info.timings["check_noise"] > 0
    _, info = vnlem.denoise(noisy, 20.0, noise_model="gaussian", profile="fast", return_info=True)
    assert info.noise_check.verdict == "no"
    _, info = vnlem.denoise(noisy, np.full(noisy.shape, 9.0), profile="fast", return_info=True)
    assert info.noise_check is None
    _, info = vnlem.denoise(noisy[0].astype(float), 10.0, method="nlm", return_info=True)
    assert info.noise_check.verdict == "unknown"


def test_info_of_a_stack_holds_the_check_of_the_worst_channel():
    clean = CAMERA[:96, :96]
    movie = np.stack([[drawn(RIGHT["white"], clean, seed=10 * c + t) for t in range(3)] for c in range(2)])
    options = {"axes": "CTYX", "profile": "fast", "return_info": True, "noise_model": "gaussian"}
    _, info = vnlem.denoise(movie, (10.0, 30.0), channels="separate", **options)
    assert [check.verdict for check in info.details["noise_checks"]] == ["yes", "no"]
    assert info.noise_check == worst(info.details["noise_checks"])
    assert info.noise_check.verdict == "no"


@pytest.mark.parametrize("name", RIGHT)
def test_drawn_noise_has_the_variance_and_the_correlation_of_its_model(name):
    model = RIGHT[name]
    clean = np.full((1, 384, 384), 60.0)
    noise = add_noise(model, clean, np.random.default_rng(7)) - clean
    assert noise.var() == pytest.approx(float(model.variance(60.0)), rel=0.05)
    along = np.mean(noise[0, :, 1:] * noise[0, :, :-1]) / noise.var()
    assert along == pytest.approx(model.correlation(1)[0, 1], abs=0.05)


def test_drawn_noise_of_colours_has_the_strength_of_every_component():
    model = replace(NoiseModel.white(4.0), strengths=(2.0, 0.5, 0.5))
    noise = add_noise(model, np.zeros((3, 256, 256)), np.random.default_rng(8))
    assert noise.mean(axis=0).var() == pytest.approx(16 * 2.0 / 3, rel=0.05)
    assert (noise[0] - noise[2]).var() == pytest.approx(16 * 0.5 * 2, rel=0.05)


def test_a_check_needs_no_flat_area():
    rng = np.random.default_rng(9)
    leaves = 120 + 200 * ndimage.gaussian_filter(rng.standard_normal((256, 256)), 1.5)
    noisy = leaves + rng.normal(0, 10, leaves.shape)
    verdicts = [predictive_check(noisy, leaves, NoiseModel.white(sigma)).verdict for sigma in (10.0, 20.0)]
    assert verdicts == ["yes", "no"]
