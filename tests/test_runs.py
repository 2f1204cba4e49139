"""The mean of two runs, with small and with large patches."""

import numpy as np
import pytest
from scipy.ndimage import uniform_filter

from vnlem.estimate.runs import EQUAL, REACH, mean_of_runs, mean_of_runs_in_strips
from vnlem.pipeline.workers import Pool


def two_runs(channels=1, height=150, width=90):
    """A flat half and a half with texture, and errors that differ."""
    rng = np.random.default_rng(0)
    clean = np.where(np.arange(width) < width // 2, 0, rng.normal(0, 3, (channels, height, width)))
    return [(clean + rng.normal(0, 0.1, clean.shape)).astype(np.float32) for _ in range(2)]


def test_the_weight_follows_the_local_contrast_in_units_of_the_noise():
    small, large = two_runs(channels=2)
    levels = (small + large).astype(np.float64) / 2 / 0.7
    side = 2 * REACH + 1

    def mean(planes):
        return np.stack([uniform_filter(plane, side, mode="reflect") for plane in planes])

    deviation = np.sqrt((mean(levels**2) - mean(levels) ** 2).mean(axis=0))
    share = deviation / (deviation + EQUAL)
    expected = share * small + (1 - share) * large
    np.testing.assert_allclose(mean_of_runs(small, large, np.float32(0.7)), expected, atol=1e-5)


def test_texture_comes_from_small_patches_and_flat_areas_from_large_ones():
    small, large = two_runs()
    share = (mean_of_runs(small, large, np.float32(1)) - large) / (small - large)
    assert np.median(share[:, :, :35]) < 0.2
    assert np.median(share[:, :, 55:]) > 0.7


@pytest.mark.parametrize("varies", [False, True])
def test_strips_give_the_bytes_of_the_whole(varies):
    runs = two_runs()
    sigma = np.linspace(0.5, 2, runs[0].size, dtype=np.float32).reshape(runs[0].shape) if varies else 0.8
    sigma = np.float32(sigma)
    with Pool(3) as pool:
        found = mean_of_runs_in_strips(*runs, sigma, pool)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, mean_of_runs(*runs, sigma))


def test_no_noise_and_no_contrast_are_no_problem():
    flat = np.full((1, 20, 20), 3, np.float32)
    np.testing.assert_array_equal(mean_of_runs(flat, flat, np.float32(0)), flat)
    small, large = two_runs(height=30)
    np.testing.assert_allclose(mean_of_runs(small, large, np.float32(0)), small, atol=1e-5)
