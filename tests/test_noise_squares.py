"""Squares of four pixels: their differences bound white noise, and equal ones show drawings."""

import harm
import numpy as np
import pytest
import saved

import vnlem
from vnlem.noise.squares import is_drawn, least_peak


def between(share, sigma, seed=0):
    """Noise, and strokes that cover a share of the pixels at random."""
    rng = np.random.default_rng(seed)
    page = np.where(rng.random((256, 256)) < share, rng.uniform(0, 200, (256, 256)), 220.0)
    return page + rng.normal(0, sigma, page.shape)


@pytest.mark.parametrize("sigma", [1.0, 5.0, 20.0])
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_the_noise_between_strokes_is_seen(share, sigma):
    found = least_peak(between(share, sigma), -np.inf, np.inf, 60.0)
    assert 0.9 * sigma < found < 1.6 * sigma


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("whole", [False, True])
def test_it_is_not_below_the_noise(share, whole):
    noisy = between(share, 4.0)
    noisy = np.round(noisy) if whole else noisy
    assert least_peak(noisy, float(noisy.min()), float(noisy.max()), 4.2) > 0.9 * 4.0


def test_units_do_not_matter():
    noisy = np.round(between(0.3, 4.0))
    found = least_peak(noisy, -np.inf, np.inf, 40.0)
    assert least_peak(257 * noisy + 1e4, -np.inf, np.inf, 257 * 40.0) == pytest.approx(257 * found)


@pytest.mark.parametrize("plane", [np.zeros((64, 64)), np.kron(np.arange(64.0), np.ones((64, 4)))])
def test_painted_images_have_no_peak(plane):
    assert least_peak(plane, -np.inf, np.inf, 3.0) == 3.0


def test_whole_images_are_not_needed():
    """A large plane is sampled."""
    noisy = np.tile(between(0.3, 4.0), (4, 5))
    assert least_peak(noisy, -np.inf, np.inf, 40.0) == pytest.approx(4.0, rel=0.3)


@pytest.mark.parametrize("make", [harm.tiny_print, harm.tiny_print_on_white, harm.small_print])
@pytest.mark.parametrize(("sigma", "quality"), [(2, None), (5, None), (0, 90), (2, 95), (5, 75)])
def test_small_print_is_kept(make, sigma, quality):
    clean, noisy = harm.white(make(), sigma, 3)
    if quality is not None:
        noisy = saved.as_jpeg(noisy, quality)
    result = vnlem.denoise(noisy, profile="fast")
    assert harm.psnr(clean, result) > harm.psnr(clean, noisy) - 0.1
    assert vnlem.estimate_sigma(noisy) < (1.2 * sigma if quality is None else 11)


def enlarged(factor, channels=None):
    rng = np.random.default_rng(2)
    shape = (48, 64) if channels is None else (48, 64, channels)
    return rng.normal(100, 10, shape).astype(np.uint8).repeat(factor, 0).repeat(factor, 1)


@pytest.mark.parametrize(("factor", "channels"), [(2, None), (3, None), (2, 3)])
def test_copies_of_pixels_are_named(factor, channels):
    image = enlarged(factor, channels)[1:, factor - 1 :]
    with pytest.warns(UserWarning, match=f"repeated {factor} x {factor} times.*image\\[::{factor}"):
        result = vnlem.denoise(image, channel_axis=None if channels is None else -1)
    assert np.array_equal(result, image)


@pytest.mark.parametrize("image", [np.zeros((64, 64)), np.arange(64.0).repeat(64).reshape(64, 64)])
def test_constant_images_and_stripes_are_no_copies(image, recwarn):
    vnlem.denoise(image)
    assert not [one for one in recwarn if "repeated" in str(one.message)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("colour", [False, True])
def test_drawings_without_noise_do_not_change(seed, colour):
    page = harm.line_drawing(seed).astype(np.uint8)
    page = np.stack([page] * 3, axis=-1) if colour else page
    result = vnlem.denoise(page, profile="fast", channel_axis=-1 if colour else None)
    assert np.array_equal(result, page)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("sigma", [3, 10])
def test_noise_of_drawings_is_removed(seed, sigma):
    clean, noisy = harm.white(harm.line_drawing(seed), sigma, 1)
    assert harm.psnr(clean, vnlem.denoise(noisy, profile="fast")) > harm.psnr(clean, noisy) + 0.8


def test_dark_backgrounds_of_counts_are_not_drawn():
    rng = np.random.default_rng(4)
    y, x = np.mgrid[:256, :256]
    beads = sum(20.0 * (np.hypot(y - a, x - b) < 4) for a, b in rng.uniform(0, 256, (150, 2)))
    assert not is_drawn(rng.poisson(beads).astype(float), 0.0, 40.0)
    assert vnlem.estimate_noise(rng.poisson(beads).astype(float)).sigma > 0


@pytest.mark.parametrize("make", [harm.text, harm.lines, harm.screenshot, harm.small_print, harm.tiny_print])
def test_clean_pages_are_drawn_and_noisy_ones_are_not(make):
    clean, noisy = harm.white(make(), 2, 1)
    assert is_drawn(clean, clean.min(), clean.max())
    assert not is_drawn(noisy.astype(float), float(noisy.min()), float(noisy.max()))
