"""Slips of the paper (docs/paper-notes.md) that a small computation shows and no other test covers."""

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates
from scipy.optimize import minimize


def test_the_category_counts_do_not_add_up_to_the_stated_number():
    assert sum([98, 143, 52, 115, 450, 419, 44]) == 1321 != 1361


def test_the_geometric_median_is_not_the_median_of_the_centres():
    patches = np.array([[0.0, 0], [1, 10], [2, -10]])
    found = minimize(
        lambda p: np.linalg.norm(patches - p, axis=1).sum(), [0.7, 0.3], method="Nelder-Mead", tol=1e-10
    ).x
    assert np.allclose(found, patches[0], atol=1e-5)
    assert np.median(patches[:, 0]) == 1


def rotated(patch, degrees):
    """The patch turned about its centre, cubic interpolation, zero outside."""
    half = (patch.shape[0] - 1) / 2
    y, x = np.mgrid[: patch.shape[0], : patch.shape[0]] - half
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return map_coordinates(patch, [c * y - s * x + half, s * y + c * x + half], order=3, mode="constant")


def test_the_rotated_distance_of_square_patches_is_not_symmetric():
    rng = np.random.default_rng(0)
    first, second = gaussian_filter(rng.standard_normal((2, 41, 41)), (0, 2, 2))
    cut = slice(14, 27)
    one = np.linalg.norm(first[cut, cut] - rotated(second[cut, cut], 30))
    other = np.linalg.norm(rotated(first[cut, cut], -30) - second[cut, cut])
    assert abs(one - other) > 0.02 * one
    # On a disc, cut after rotating the surroundings, both orders see the same samples up to interpolation.
    y, x = np.mgrid[-20:21, -20:21]
    disc = 1 / (1 + np.exp(2 * (np.hypot(x, y) - 6)))
    one = np.linalg.norm(disc * (first - rotated(second, 30)))
    other = np.linalg.norm(disc * (rotated(first, -30) - second))
    assert abs(one - other) < 0.005 * one


def test_a_windowed_affinity_matrix_can_have_negative_eigenvalues():
    affinity = np.array([[1, 0.9, 0], [0.9, 1, 0.9], [0, 0.9, 1]])
    assert np.linalg.eigvalsh(affinity).min() < -0.2


def test_the_printed_patch_index_is_off_by_one():
    q, alpha = 13, 50
    positions = [alpha + k - (q - 1) // 2 for k in range(1, q + 1)]
    assert positions[q // 2] == alpha + 1
    assert [p - 1 for p in positions] == list(range(alpha - q // 2, alpha + q // 2 + 1))


def test_two_standardised_images_with_one_snr_have_one_psnr_only_if_they_share_their_peak():
    """Slip 4: PSNR - SNR is 20 log10 of the peak, whatever the error is."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal((32, 32))
    image = (image - image.mean()) / image.std()
    for sigma in (0.1, 0.5):
        error = np.sqrt(np.mean((sigma * rng.standard_normal(image.shape)) ** 2))
        snr, psnr = 20 * np.log10(1 / error), 20 * np.log10(np.abs(image).max() / error)
        assert np.isclose(psnr - snr, 20 * np.log10(np.abs(image).max()))
