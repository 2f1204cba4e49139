"""How much of an estimate's change is kept."""

import numpy as np
import pytest

from vnlem.estimate.change import REACH, shrink_change, window_means
from vnlem.reference import change as plain


def images(channels=2, shape=(40, 53), seed=0):
    """A noisy image, an estimate whose changes grow from left to right, and the variance of the noise."""
    rng = np.random.default_rng(seed)
    noisy = rng.normal(0, 1, (channels, *shape)).astype(np.float32)
    changes = np.linspace(0, 0.8, shape[1]) * rng.normal(0, 1, (channels, *shape))
    variance = rng.uniform(0.5, 2, (channels, *shape)).astype(np.float32)
    return noisy, (noisy + np.sqrt(variance) * changes).astype(np.float32), variance


@pytest.mark.parametrize("channels", [1, 3])
def test_as_defined(channels):
    noisy, estimate, variance = images(channels)
    found = shrink_change(noisy, estimate, variance)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, plain.shrink_change(noisy, estimate, variance), atol=2e-6)


def test_images_smaller_than_the_window():
    noisy, estimate, variance = images(1, (5, 3))
    found = shrink_change(noisy, estimate, variance)
    np.testing.assert_allclose(found, plain.shrink_change(noisy, estimate, variance), atol=2e-6)


def test_all_and_nothing_keep_their_bits():
    noisy, estimate, variance = images()
    found = shrink_change(noisy, estimate, variance)
    np.testing.assert_array_equal(found[:, :, -5:], estimate[:, :, -5:])
    np.testing.assert_allclose(found[:, :, 0], noisy[:, :, 0], atol=1e-7)
    assert (found != estimate).mean() > 0.3


def test_a_part_has_the_bytes_of_the_whole():
    noisy, estimate, variance = images()
    whole = shrink_change(noisy, estimate, variance)
    part = shrink_change(*(planes[:, 3:, 11:] for planes in (noisy, estimate, variance)))
    np.testing.assert_array_equal(part[:, REACH:, REACH:], whole[:, 3 + REACH :, 11 + REACH :])


@pytest.mark.parametrize("reach", [0, 1, 2, 3, 5, 8])
def test_means_of_windows(reach):
    values = np.random.default_rng(1).normal(0, 1, (20, 31))
    padded = np.pad(values, reach, mode="symmetric")
    side = 2 * reach + 1
    expected = np.lib.stride_tricks.sliding_window_view(padded, (side, side)).mean(axis=(2, 3))
    np.testing.assert_allclose(window_means(values, reach), expected, atol=1e-12)
