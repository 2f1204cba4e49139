"""The noise level estimated from one image, the noise model, standardisation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from skimage import data

import vnlem
from vnlem.noise import add_gaussian, estimate_sigma, standardise, unstandardise
from vnlem.noise.white import estimate_sigma_of_planes

PICTURES = {
    "camera": data.camera(),
    "moon": data.moon(),
    "coins": data.coins(),
    "astronaut": data.astronaut()[..., 1],
    "coffee": data.coffee()[..., 0],
    "chelsea": data.chelsea()[..., 1],
}


@pytest.mark.parametrize(("sigma", "bound"), [(10, 0.08), (25, 0.03), (50, 0.03)])
@pytest.mark.parametrize("name", PICTURES)
def test_sigma_is_found_on_photographs(name, sigma, bound):
    noisy = add_gaussian(PICTURES[name], sigma, seed=1)
    assert estimate_sigma(noisy) == pytest.approx(sigma, rel=bound)


@pytest.mark.parametrize("sigma", [0.01, 1, 300])
def test_sigma_of_pure_noise_is_found_without_bias(sigma):
    estimates = [estimate_sigma(add_gaussian(np.zeros((64, 64)), sigma, seed)) for seed in range(10)]
    assert np.mean(estimates) == pytest.approx(sigma, rel=0.02)


def test_choosing_flat_blocks_does_not_bias_the_estimate_for_smooth_images():
    ramp = np.add.outer(np.arange(256.0), np.arange(256.0))
    estimates = [estimate_sigma(add_gaussian(ramp, 5, seed)) for seed in range(10)]
    assert np.mean(estimates) == pytest.approx(5, rel=0.01)


@pytest.mark.parametrize("sigma", [10, 25])
def test_clipping_to_bytes_costs_little(sigma):
    noisy = add_gaussian(data.camera(), sigma, seed=1)
    stored = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    assert estimate_sigma(stored) == pytest.approx(sigma, rel=0.04)


def test_a_noise_free_black_frame_does_not_hide_the_noise():
    framed = np.zeros((256, 256))
    framed[64:192, 64:192] = add_gaussian(np.full((128, 128), 120), 10, seed=1)
    assert estimate_sigma(framed) == pytest.approx(10, rel=0.05)


def test_a_drawing_without_noise_has_none():
    drawing = np.zeros((100, 100))
    drawing[20:60, 30:80] = 0.1
    drawing[50:90, 10:50] = 0.7
    assert estimate_sigma(drawing) == 0


@given(
    st.integers(0, 2**31),
    st.sampled_from([(24, 31), (1, 40), (9, 3), (200,)]),
    st.floats(1e-3, 1e3) | st.floats(-1e3, -1e-3),
    st.floats(-1e3, 1e3),
)
@settings(max_examples=50, deadline=None)
def test_estimate_follows_the_units(seed, shape, factor, offset):
    image = np.random.default_rng(seed).normal(0, 10, shape)
    # An offset a million times the values would lose them to rounding, in any method.
    assert estimate_sigma(factor * (image + offset)) == pytest.approx(
        abs(factor) * estimate_sigma(image), rel=1e-8
    )


@pytest.mark.parametrize(("factor", "offset"), [(1 / 255, 0), (-0.3, 7), (1.7, 100)])
def test_ties_between_blocks_of_bytes_do_not_depend_on_the_units(factor, offset):
    stored = np.rint(add_gaussian(data.page(), 0.4, seed=0))
    expected = abs(factor) * estimate_sigma(stored)
    assert estimate_sigma(factor * stored + offset) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e297])
def test_extreme_units_are_no_problem(scale):
    noisy = add_gaussian(PICTURES["camera"], 10, seed=1)
    assert estimate_sigma(noisy * scale) / scale == pytest.approx(estimate_sigma(noisy), rel=1e-9)


@given(
    hnp.arrays(
        st.sampled_from([np.uint8, np.int16, np.uint16, np.float32, np.float64]),
        hnp.array_shapes(min_dims=1, max_dims=2, max_side=24),
    ).filter(lambda a: np.isfinite(a).all() and np.abs(a.astype(float)).max() < 1e300)
)
@settings(max_examples=100, deadline=None)
def test_any_image_has_an_estimate_within_its_own_range(image):
    values = image.astype(float)
    assert 0 <= estimate_sigma(image) <= (values.max() - values.min()) * math.sqrt(0.5) * (1 + 1e-9)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 9), (9, 1), (30, 40), (1000,)])
def test_constant_images_have_no_noise(shape):
    assert estimate_sigma(np.full(shape, 0.1)) == 0


def test_two_pixels_differ_by_their_noise():
    assert estimate_sigma([[0.0, 2.0]]) == pytest.approx(math.sqrt(2))


def test_signals_have_noise_too():
    time = np.linspace(0, 1, 4000)
    signal = 100 * np.sin(20 * time) + 50 * (time > 0.5)
    noisy = add_gaussian(signal, 5, seed=1)
    assert estimate_sigma(noisy) == pytest.approx(5, rel=0.05)
    assert estimate_sigma_of_planes(noisy[None, None]) == estimate_sigma(noisy)


def test_colour_gives_the_mean_over_channels():
    image = np.stack([add_gaussian(np.zeros((64, 64)), sigma, seed=sigma) for sigma in (5, 10, 30)], axis=-1)
    expected = np.mean([estimate_sigma(image[..., k]) for k in range(3)])
    assert estimate_sigma(image, channel_axis=-1) == pytest.approx(expected)


def test_the_image_is_left_unchanged():
    image = add_gaussian(np.zeros((32, 32)), 1, seed=0)
    before = image.copy()
    estimate_sigma(image)
    np.testing.assert_array_equal(image, before)


def test_large_images_are_sampled():
    noisy = add_gaussian(np.zeros((1500, 1501)), 10, seed=0)
    assert estimate_sigma(noisy) == pytest.approx(10, rel=0.02)


def test_estimate_sigma_is_public():
    assert vnlem.estimate_sigma is estimate_sigma


@pytest.mark.parametrize(
    ("image", "error", "message"),
    [
        (np.array([[1.0, np.nan]]), ValueError, "NaN"),
        (np.ones((2, 2), complex), TypeError, "complex"),
        (np.ones((0, 3)), ValueError, "empty"),
        (np.ones((4, 4, 3)), ValueError, "channel_axis"),
        (np.float64(3), ValueError, "dimensions"),
    ],
)
def test_bad_images_are_refused(image, error, message):
    with pytest.raises(error, match=message):
        estimate_sigma(image)


def test_noise_is_numpys_own_for_the_seed():
    image = np.arange(12, dtype=np.uint8).reshape(3, 4)
    expected = image + np.random.default_rng(1000).normal(0, 25, (3, 4))
    np.testing.assert_array_equal(add_gaussian(image, 25, seed=1000), expected)
    assert add_gaussian(image, 25, seed=1000).dtype == np.float64


def test_a_generator_goes_on_from_call_to_call():
    rng = np.random.default_rng(0)
    first, second = add_gaussian(np.zeros(5), 1, rng), add_gaussian(np.zeros(5), 1, rng)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("sigma", [-1, np.nan, np.inf])
def test_a_noise_level_that_is_none_is_refused(sigma):
    with pytest.raises(ValueError, match="sigma must be finite and not negative"):
        add_gaussian(np.zeros(3), sigma, 0)


@given(
    hnp.arrays(
        np.float64, hnp.array_shapes(min_dims=1, max_dims=3, max_side=9), elements=st.floats(-1e6, 1e6)
    ),
    st.sampled_from([1e-30, 1, 1e30]),
)
def test_standardising_and_back_gives_the_image(image, scale):
    image = image * scale
    standard, mean, std = standardise(image)
    tolerance = 1e-12 * np.abs(image).max()
    np.testing.assert_allclose(unstandardise(standard, mean, std), image, rtol=0, atol=tolerance)


def test_standardised_images_have_mean_zero_and_deviation_one():
    standard, mean, std = standardise(data.astronaut())
    assert standard.mean() == pytest.approx(0, abs=1e-12)
    assert standard.std() == pytest.approx(1)
    assert (mean, std) == pytest.approx((data.astronaut().mean(), data.astronaut().std()))


def test_a_constant_image_standardises_to_zeros():
    standard, mean, std = standardise(np.full((3, 7), 0.1))
    assert not standard.any()
    assert (mean, std) == (0.1, 0.0)


def test_the_papers_noise_on_the_standardised_clean_image_has_its_snr():
    clean, _, _ = standardise(data.camera())
    noisy = add_gaussian(clean, math.sqrt(0.3), seed=0)
    assert vnlem.metrics.snr(clean, noisy) == pytest.approx(5.23, abs=0.03)
