"""NLM, NLEM and NLPR on a signal: the patches are the rows of its lag map."""

import numpy as np
import pytest

import vnlem
from vnlem import theory

pywt = pytest.importorskip("pywt")


@pytest.fixture(scope="module")
def ecg():
    return pywt.data.ecg().astype(float)


@pytest.mark.parametrize("method", ["nlm", "nlem", "nlpr"])
def test_an_ecg_loses_most_of_its_noise_and_keeps_its_peaks(ecg, method):
    sigma = 15.0
    noisy = ecg + sigma * np.random.default_rng(0).standard_normal(ecg.size)
    denoised = vnlem.denoise(noisy, sigma, method=method, patch_size=9)
    assert denoised.shape == ecg.shape
    assert np.sqrt(np.mean((denoised - ecg) ** 2)) < 0.6 * sigma
    peaks = ecg > 0.8 * ecg.max()
    assert denoised[peaks].mean() > 0.85 * ecg[peaks].mean()


def test_nlm_of_a_signal_is_the_weighted_mean_over_the_rows_of_its_lag_map(ecg):
    """Direct computation with lag_map, in the units of the signal."""
    sigma, q, reach, bandwidth = 15.0, 7, 12, 1.5
    noisy = ecg[:200] + sigma * np.random.default_rng(1).standard_normal(200)
    denoised = vnlem.denoise(
        noisy, sigma, method="nlm", patch_size=q, patch_distance=reach, bandwidth=bandwidth
    )
    rows = theory.lag_map(np.pad(noisy, q // 2, mode="symmetric"), q)
    scale = np.sqrt(noisy.var() - sigma**2)
    squared = np.sum((rows[:, None] - rows) ** 2, axis=2) - 2 * sigma**2 * q
    weights = np.exp(-np.maximum(squared, 0) / (bandwidth * scale) ** 2)
    place = np.arange(200)
    weights *= np.abs(place[:, None] - place) <= reach
    assert np.allclose(denoised, weights @ noisy / weights.sum(axis=1), atol=0.2)
