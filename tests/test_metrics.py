"""SNR, PSNR, RMS, the Sobolev index, the earth mover's distance and evaluate, against closed forms."""

import dataclasses
import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from skimage import data
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from vnlem import metrics
from vnlem.noise import add_gaussian, standardise

IMAGES = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12),
    elements=st.floats(-1000, 1000, width=32),
)
MEASURES = {
    "snr": metrics.snr,
    "psnr": functools.partial(metrics.psnr, data_range=255),
    "psnr_paper": metrics.psnr_paper,
    "rms": metrics.rms,
    "sobolev": metrics.sobolev,
    "fsim": metrics.fsim,
    "evaluate": metrics.evaluate,
}


@pytest.fixture(scope="module")
def camera():
    return data.camera()[::2, ::2].astype(float)


def test_snr_of_known_noise_is_the_ratio_of_standard_deviations(camera):
    noisy = add_gaussian(camera, camera.std() * math.sqrt(0.3), seed=0)
    assert metrics.snr(camera, noisy) == pytest.approx(-10 * math.log10(0.3), abs=0.03)


def test_snr_is_the_same_before_and_after_standardisation(camera):
    noisy = add_gaussian(camera, 20, seed=0)
    standard, mean, std = standardise(camera)
    assert metrics.snr(standard, (noisy - mean) / std) == pytest.approx(metrics.snr(camera, noisy), abs=1e-9)


def test_papers_psnr_takes_the_peak_of_the_standardised_clean_image(camera):
    noisy = add_gaussian(camera, 20, seed=0)
    peak = np.abs(standardise(camera)[0]).max()
    expected = metrics.snr(camera, noisy) + 20 * math.log10(peak)
    assert metrics.psnr_paper(camera, noisy) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32"])
@pytest.mark.parametrize("low", [0, -100])
def test_psnr_of_integers_takes_its_range_from_the_dtype_as_scikit_image_does(dtype, low):
    rng = np.random.default_rng(0)
    clean, other = rng.integers(max(low, np.iinfo(dtype).min), 100, (2, 20, 20)).astype(dtype)
    expected = peak_signal_noise_ratio(clean, other)
    assert metrics.psnr(clean, other) == pytest.approx(expected, abs=1e-9)


def test_psnr_of_floats_asks_for_the_range(camera):
    with pytest.raises(ValueError, match=r"data_range is needed for float64 images.*data_range=1"):
        metrics.psnr(camera, camera)


def test_psnr_with_data_range_is_the_usual_one(camera):
    noisy = add_gaussian(camera, 20, seed=0)
    usual = peak_signal_noise_ratio(camera, noisy, data_range=255)
    assert metrics.psnr(camera, noisy, data_range=255) == pytest.approx(usual, abs=1e-9)
    converted = metrics.snr(camera, noisy) + 20 * math.log10(255 / camera.std())
    assert converted == pytest.approx(usual, abs=1e-9)


def test_rms_sobolev_and_emd_are_on_the_unit_scale(camera):
    noisy = add_gaussian(camera, 25.5, seed=0)
    assert metrics.rms(camera, noisy) == pytest.approx(0.1, rel=0.02)
    for measure in (metrics.rms, metrics.sobolev, metrics.emd):
        assert measure(camera / 255, noisy / 255, data_range=1) == pytest.approx(measure(camera, noisy))


def test_unsigned_integers_do_not_wrap_around():
    dark, bright = np.full((4, 4), 10, np.uint8), np.full((4, 4), 61, np.uint8)
    assert metrics.rms(bright, dark) == pytest.approx(0.2)
    assert metrics.rms(dark, bright) == pytest.approx(0.2)


@given(IMAGES, st.integers(0, 2**31))
def test_sobolev_of_order_zero_is_rms(clean, seed):
    other = add_gaussian(clean, 10, seed)
    assert metrics.sobolev(clean, other, kappa=0) == pytest.approx(metrics.rms(clean, other), rel=1e-9)


@given(IMAGES, st.integers(0, 2**31), st.floats(0.01, 3))
def test_sobolev_lies_between_rms_and_the_largest_weight(clean, seed, kappa):
    other = add_gaussian(clean, 10, seed)
    index, error = metrics.sobolev(clean, other, kappa=kappa), metrics.rms(clean, other)
    assert error * (1 - 1e-9) <= index <= error * 1.5 ** (kappa / 2) * (1 + 1e-9)


@pytest.mark.parametrize("frequency", [(0, 0), (1, 0), (3, 5), (8, 0), (8, 10)])
def test_sobolev_weighs_a_wave_by_its_frequency(frequency):
    rows, columns = np.mgrid[:16, :20]
    wave = np.cos(2 * np.pi * (frequency[0] * rows / 16 + frequency[1] * columns / 20))
    squared = (frequency[0] / 16) ** 2 + (frequency[1] / 20) ** 2
    expected = metrics.rms(0 * wave, wave) * (1 + squared) ** 0.25
    assert metrics.sobolev(0 * wave, wave) == pytest.approx(expected, rel=1e-12)


def test_sobolev_averages_squares_over_channels(camera):
    colour = np.stack([camera, camera + 3, camera + 4], axis=-1)
    zero = np.stack([camera] * 3, axis=-1)
    expected = math.sqrt((9 + 16) / 3) / 255
    assert metrics.sobolev(zero, colour, channel_axis=-1) == pytest.approx(expected)


@given(IMAGES, st.floats(-500, 500), st.floats(1e-3, 1e3))
def test_emd_to_a_shifted_copy_is_the_shift(values, shift, data_range):
    expected = abs(shift) / data_range
    assert metrics.emd(values, values + shift, data_range) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(st.integers(0, 2**31), st.integers(1, 40), st.integers(1, 40))
def test_emd_is_scipys_wasserstein_distance(seed, n, m):
    rng = np.random.default_rng(seed)
    # Whole numbers, so that ties occur.
    x, y = rng.integers(-5, 5, n), rng.integers(-4, 7, m)
    assert metrics.emd(x, y, data_range=1) == pytest.approx(stats.wasserstein_distance(x, y), abs=1e-12)


def test_emd_does_not_see_the_order_of_the_values(camera):
    shuffled = np.random.default_rng(0).permutation(camera.ravel())
    assert metrics.emd(camera, shuffled) == 0


@given(IMAGES)
@settings(max_examples=40)
def test_equal_images_are_perfect(image):
    result = metrics.evaluate(image, image.copy(), image + 1)
    assert (result.snr, result.psnr, result.psnr_paper) == (math.inf,) * 3
    assert (result.rms, result.sobolev, result.emd) == (0, 0, 0)
    assert result.fsim == pytest.approx(1, abs=1e-12)
    assert result.ssim is None or result.ssim == pytest.approx(1, abs=1e-12)


def test_snr_of_a_constant_clean_image_is_minus_infinity():
    assert metrics.snr(np.full((3, 3), 0.1), np.eye(3)) == -math.inf


@pytest.mark.parametrize("scale", [1e-30, 1e30, 1e-280, 1e280])
def test_units_do_not_matter(camera, scale):
    noisy = add_gaussian(camera, 20, seed=0)
    smooth = (camera + noisy) / 2
    plain = dataclasses.astuple(metrics.evaluate(camera, smooth, noisy))
    scaled = metrics.evaluate(camera * scale, smooth * scale, noisy * scale, data_range=255 * scale)
    assert dataclasses.astuple(scaled) == pytest.approx(plain, rel=1e-9)


def test_evaluate_returns_what_the_measures_return(camera):
    noisy = add_gaussian(camera, 20, seed=0)
    smooth = (camera + noisy) / 2
    result = metrics.evaluate(camera, smooth, noisy)
    expected = metrics.Evaluation(
        snr=metrics.snr(camera, smooth),
        psnr=metrics.psnr(camera, smooth, 255),
        psnr_paper=metrics.psnr_paper(camera, smooth),
        rms=metrics.rms(camera, smooth),
        sobolev=metrics.sobolev(camera, smooth),
        # The removed noise is half of the true noise.
        emd=metrics.emd((noisy - camera) / 2, noisy - camera),
        ssim=structural_similarity(
            camera, smooth, data_range=255, gaussian_weights=True, sigma=1.5, use_sample_covariance=False
        ),
        fsim=metrics.fsim(camera, smooth),
    )
    assert dataclasses.asdict(result) == pytest.approx(dataclasses.asdict(expected), rel=1e-9)


def test_evaluate_leaves_out_emd_without_the_noisy_image(camera):
    assert metrics.evaluate(camera, camera + 1).emd is None


def test_evaluate_takes_colour_on_any_axis():
    clean = data.astronaut()[:64, :48].astype(float)
    noisy = add_gaussian(clean, 20, seed=0)
    last = metrics.evaluate(clean, noisy, noisy, channel_axis=-1)
    first = metrics.evaluate(np.moveaxis(clean, -1, 0), np.moveaxis(noisy, -1, 0), channel_axis=0)
    for name in ("snr", "psnr", "rms", "sobolev", "ssim", "fsim"):
        assert getattr(first, name) == pytest.approx(getattr(last, name))


def test_an_evaluation_cannot_be_changed(camera):
    result = metrics.evaluate(camera, camera)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.snr = 0


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
class TestBadInput:
    def test_different_shapes_are_refused(self, measure):
        with pytest.raises(ValueError, match=r"same shape, got \(3, 4\) and \(4, 3\)"):
            measure(np.ones((3, 4)), np.ones((4, 3)))

    def test_nan_is_refused_and_located(self, measure):
        bad = np.ones((3, 4))
        bad[1, 2] = np.nan
        with pytest.raises(ValueError, match=r"other holds 1 NaN .* \(1, 2\)"):
            measure(np.ones((3, 4)), bad)

    def test_complex_numbers_are_refused(self, measure):
        with pytest.raises(TypeError, match="clean must hold integers or floats, got dtype complex128"):
            measure(np.ones((3, 4), complex), np.ones((3, 4)))

    def test_empty_images_are_refused(self, measure):
        with pytest.raises(ValueError, match="clean is empty"):
            measure(np.ones((0, 4)), np.ones((0, 4)))

    def test_values_whose_squares_overflow_are_refused(self, measure):
        with pytest.raises(ValueError, match="beyond 1e"):
            measure(np.full((3, 4), 1e305), np.ones((3, 4)))


@pytest.mark.parametrize("data_range", [0, -1, np.inf, np.nan])
@pytest.mark.parametrize("name", ["psnr", "rms", "sobolev", "fsim", "evaluate", "emd"])
def test_a_data_range_that_is_not_positive_is_refused(name, data_range):
    with pytest.raises(ValueError, match="data_range must lie in"):
        getattr(metrics, name)(np.ones((3, 4)), np.ones((3, 4)), data_range=data_range)


def test_a_noisy_image_of_another_shape_is_refused(camera):
    with pytest.raises(ValueError, match="clean and noisy must have the same shape"):
        metrics.evaluate(camera, camera, camera[1:])


@pytest.mark.parametrize("name", ["sobolev", "fsim", "evaluate"])
def test_a_colour_image_without_channel_axis_is_refused(name):
    with pytest.raises(ValueError, match="channel_axis"):
        getattr(metrics, name)(np.ones((8, 8, 3)), np.ones((8, 8, 3)))
