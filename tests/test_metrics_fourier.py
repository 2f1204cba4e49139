"""Fourier ring and shell correlation against their definition, written out ring by ring."""

import numpy as np
import pytest

from vnlem.metrics import frc, fsc


def by_definition(one, other):
    """Correlation and number of all coefficients of the full transform, in the ring nearest to each."""
    side = min(one.shape)
    one_hat, other_hat = (np.fft.fftn(values - values.mean()) for values in (one, other))
    frequencies = np.meshgrid(*(np.fft.fftfreq(length) for length in one.shape), indexing="ij")
    ring = np.rint(np.sqrt(sum(f**2 for f in frequencies)) * side)
    found = []
    for number in range(1, side // 2 + 1):
        a, b = one_hat[ring == number], other_hat[ring == number]
        power = np.sqrt((abs(a) ** 2).sum() * (abs(b) ** 2).sum())
        found.append(((a * b.conj()).sum().real / power, a.size))
    return np.array(found).T


@pytest.mark.parametrize("shape", [(32, 32), (31, 40), (40, 31), (24, 25)])
def test_rings_follow_the_definition(shape):
    rng = np.random.default_rng(1)
    common = rng.normal(size=shape)
    one, other = common + rng.normal(size=shape), common + rng.normal(size=shape)
    curve = frc(one, other)
    np.testing.assert_allclose((curve.correlation, curve.count), by_definition(one, other), atol=1e-12)


def test_shells_follow_the_definition():
    rng = np.random.default_rng(2)
    common = rng.normal(size=(12, 15, 14))
    one, other = common + rng.normal(size=common.shape), common + rng.normal(size=common.shape)
    curve = fsc(one, other)
    np.testing.assert_allclose((curve.correlation, curve.count), by_definition(one, other), atol=1e-12)


def test_independent_noise_of_known_strength_gives_the_known_correlation():
    """With white signal and white noise the correlation is S / (S + N) on every ring."""
    rng = np.random.default_rng(3)
    signal = rng.normal(0, 1, (256, 256))
    curve = frc(signal + rng.normal(0, 0.5, signal.shape), signal + rng.normal(0, 0.5, signal.shape))
    mean = np.average(curve.correlation, weights=curve.count)
    assert mean == pytest.approx(1 / 1.25, abs=0.01)


def test_brightness_and_contrast_do_not_matter_and_pixels_have_a_size():
    rng = np.random.default_rng(4)
    one, other = rng.normal(size=(2, 32, 32))
    np.testing.assert_allclose(
        frc(one, 1e200 * other + 3).correlation, frc(one, other).correlation, atol=1e-9
    )
    np.testing.assert_allclose(frc(one, other, pixel_size=2.5).frequency, frc(one, other).frequency / 2.5)
    assert frc(one, other).frequency[-1] == 0.5


def test_a_constant_image_correlates_with_nothing():
    curve = frc(np.ones((16, 16)), np.random.default_rng(5).normal(size=(16, 16)))
    np.testing.assert_array_equal(curve.correlation, 0)
    assert curve.crossing() == curve.frequency[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: frc(np.ones((8, 8)), np.ones((8, 9))), "first and second must have the same shape"),
        (
            lambda: frc(np.ones((8, 8, 8)), np.ones((8, 8, 8))),
            "first must be an image of 2 axes.*fsc is for volumes",
        ),
        (
            lambda: fsc(np.ones((8, 8)), np.ones((8, 8))),
            "first must be a volume of 3 axes.*frc is for images",
        ),
        (lambda: frc(np.ones((3, 8)), np.ones((3, 8))), "at least 4 pixels a side"),
        (lambda: frc(np.ones((8, 8)), np.full((8, 8), np.nan)), "second"),
        (lambda: frc(np.ones((8, 8)), np.ones((8, 8)), pixel_size=0), "pixel_size"),
    ],
)
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
