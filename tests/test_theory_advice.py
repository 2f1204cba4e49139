"""Patch-size advice, neighbour recovery and the lag map."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import vnlem
from vnlem import theory


def test_advice_from_the_bounds_is_the_size_where_they_meet():
    for sigma, epsilon in ((0.1, 1.0), (0.1, 1.5), (0.02, 0.41)):
        advice = theory.suggest_patch_size(sigma, epsilon, largest=31)
        meeting = theory.balance_ratio() * epsilon / sigma
        assert abs(advice.q - meeting) <= 2
        assert advice.criterion == "balanced bounds"
        assert np.minimum(advice.close, advice.far).argmax() == list(advice.sizes).index(advice.q)


def test_the_two_ways_to_call_agree():
    by_position = theory.suggest_patch_size(0.1, 1.5)
    by_name = theory.suggest_patch_size(sigma=0.1, epsilon=1.5)
    assert by_position.q == by_name.q


def test_the_curve_stops_where_the_theorem_does():
    advice = theory.suggest_patch_size(0.1, 1.0, largest=21)
    assert list(advice.sizes) == [3, 5, 7, 9]


def test_the_estimated_risk_is_the_squared_error_of_nlm():
    """Against the clean image, at the noise level of the part that is denoised."""
    rng = np.random.default_rng(99)
    clean = gaussian_filter(rng.standard_normal((96, 96)), 2)
    clean /= clean.std()
    sigma = 0.7
    noisier = sigma * np.sqrt(1 + 0.5**2)
    estimates, truths = [], []
    for seed in range(6):
        noisy = clean + sigma * rng.standard_normal(clean.shape)
        estimates.append(theory.suggest_patch_size(noisy, sigma, seed=seed, largest=5).risk)
        noisy = clean + noisier * rng.standard_normal(clean.shape)
        truths.append(
            [
                np.mean(
                    (
                        vnlem.denoise_nlm(
                            noisy,
                            noisier,
                            patch_size=q,
                            patch_distance=7,
                            bandwidth=theory.noise_bandwidth(q, noisier / np.sqrt(noisy.var() - noisier**2)),
                        )
                        - clean
                    )
                    ** 2
                )
                for q in (3, 5)
            ]
        )
    error = np.hypot(np.std(estimates, axis=0, ddof=1), np.std(truths, axis=0, ddof=1)) / np.sqrt(6)
    assert np.all(np.abs(np.mean(estimates, axis=0) - np.mean(truths, axis=0)) < 3.5 * error)


@pytest.mark.parametrize("seed", [0, 1, 42])
def test_noise_made_with_the_same_seed_does_not_spoil_the_split(seed):
    clean = theory.random_image(96, seed=11)
    noisy = clean + 0.7 * np.random.default_rng(seed).standard_normal(clean.shape)
    risk = theory.suggest_patch_size(noisy, 0.7, seed=seed, largest=5).risk
    # Sampling error of the mean of n_2^2 over the pixels, n_2^2 having mean 5 sigma^2.
    assert np.all(risk > -4 * np.sqrt(2 / clean.size) * 5 * 0.49)
    assert np.all(risk < 0.49)


def test_more_noise_asks_for_larger_patches():
    stripes = np.sin(np.arange(96) / 2) + np.sin(np.arange(96)[:, None] / 3)
    rng = np.random.default_rng(1)
    advice = [
        theory.suggest_patch_size(stripes + s * rng.standard_normal(stripes.shape), s).q for s in (0.1, 1.0)
    ]
    assert advice[0] < advice[1]


def test_the_advice_does_not_depend_on_the_units():
    rng = np.random.default_rng(2)
    noisy = theory.random_image(64, seed=7) + 0.6 * rng.standard_normal((64, 64))
    one, other = theory.suggest_patch_size(noisy, 0.6), theory.suggest_patch_size(50 + 40 * noisy, 24.0)
    assert one.q == other.q
    assert one.bandwidth == pytest.approx(other.bandwidth)
    assert np.allclose(one.risk * 1600, other.risk, rtol=1e-3, atol=0.5)


def test_the_bandwidth_is_the_spread_of_distances_that_are_noise_alone():
    q, sigma = 5, 0.3
    draws = theory.simulate_distances(np.zeros((32, 32)), q, None, 0, sigma, n_trials=40000)
    assert theory.noise_bandwidth(q, sigma) ** 2 == pytest.approx(draws.std(), rel=0.02)


def test_everything_is_found_without_noise():
    image = theory.random_image(64, seed=1)
    for metric in ("euclidean", "rid"):
        found = theory.neighbor_recovery(image, 0, 7, metric=metric, n_references=40)
        assert found.share == 1


def test_nothing_but_chance_is_left_when_noise_drowns_the_image():
    image = theory.random_image(64, seed=1)
    found = theory.neighbor_recovery(image, 100.0, 5, n_references=400)
    # Overlapping patches have more variable distances, so chance alone does not give exactly k/n.
    assert found.share < 3 * found.chance
    assert found.chebyshev_bound == 0


@pytest.mark.parametrize("q", [3, 7, 11])
@pytest.mark.parametrize("sigma", [0.05, 0.2, 0.5])
def test_recovery_never_falls_below_what_the_theory_guarantees(q, sigma):
    image = theory.random_image(64, seed=2)
    found = theory.neighbor_recovery(image, sigma, q, n_references=100)
    assert found.share + 3 * found.standard_error >= found.chebyshev_bound


def test_the_guarantee_bites_at_low_noise():
    image = theory.random_image(64, seed=2)
    found = theory.neighbor_recovery(image, 0.02, 7, n_references=100)
    assert 0.3 < found.chebyshev_bound < found.gaussian_bound <= 1


def test_the_recovery_variance_is_that_of_the_lemma():
    from vnlem.theory.recovery import _Squares

    image, q, reach, sigma = theory.random_image(40, seed=4), 5, 3, 0.6
    squares = _Squares(image, q, reach)
    row, column = np.array([15]), np.array([20])
    clean = squares(row, column)
    variance = squares.noisy_variance(row, column, clean, sigma)
    offsets = [(dy, dx) for dy in range(-3, 4) for dx in range(-3, 4) if (dy, dx) != (0, 0)]
    for index, (dy, dx) in enumerate(offsets):
        first, second = image[13:18, 18:23], image[13 + dy : 18 + dy, 18 + dx : 23 + dx]
        moments = theory.distance_moments(first, second, (dy, dx), 0, sigma)
        assert clean[0, index] == pytest.approx(moments.clean)
        assert variance[0, index] == pytest.approx(moments.variance)


def test_rid_sees_rotated_copies_as_neighbours():
    from vnlem.theory.recovery import _Rings

    block = gaussian_filter(np.random.default_rng(0).standard_normal((15, 15)), 1.5)
    image = np.zeros((15, 31))
    image[:, :15], image[:, 16:] = block, np.rot90(block)
    rings = _Rings(image, 9, 1)
    rings.offsets = np.array([[0, 16], [0, 1]])
    rotated, shifted = rings(np.array([7]), np.array([7]))[0]
    assert rotated < 1e-3 * shifted


@pytest.mark.parametrize(("dim", "step"), [(1, 1), (3, 1), (3, 4), (7, 2)])
def test_rows_of_the_lag_map_are_samples_a_step_apart(dim, step):
    series = np.random.default_rng(0).normal(size=50)
    rows = theory.lag_map(series, dim, step)
    assert rows.shape == (50 - (dim - 1) * step, dim)
    for k in (0, 5, len(rows) - 1):
        assert np.array_equal(rows[k], series[k : k + (dim - 1) * step + 1 : step])


def test_the_lag_map_embeds_a_circle():
    """A sine observes a rotation of the circle: its lag map is an ellipse, of rank two, traversed once."""
    t = np.linspace(0, 20 * np.pi, 2000, endpoint=False)
    rows = theory.lag_map(np.sin(t), dim=3, step=50)
    singular = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)
    assert singular[2] < 1e-9 * singular[0]
    assert np.allclose(rows[0], rows[200], atol=1e-9)
    assert np.linalg.norm(rows[1:200] - rows[0], axis=1).min() > 1e-3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.suggest_patch_size(0.1), "epsilon is missing"),
        (lambda: theory.suggest_patch_size(), "sigma is missing"),
        (lambda: theory.suggest_patch_size(np.zeros((64, 64))), "sigma is missing"),
        (lambda: theory.suggest_patch_size(0.1, 0.2), "says nothing here"),
        (lambda: theory.suggest_patch_size(0.0, 0.2), "positive"),
        (lambda: theory.suggest_patch_size(-1.0, 0.2), "not negative"),
        (lambda: theory.suggest_patch_size(np.zeros((9, 9)), 0.2), "too small"),
        (lambda: theory.suggest_patch_size(np.zeros((64, 64)), 0.2, 1.0), "not both"),
        (lambda: theory.suggest_patch_size(0.1, 0.2, 1.0), "must be an array"),
        (lambda: theory.suggest_patch_size(0.1, 2.0, largest=8), "must be odd"),
        (lambda: theory.neighbor_recovery(np.zeros((64, 64)), 0.2, 6), "must be odd"),
        (lambda: theory.neighbor_recovery(np.zeros((64, 64)), 0.2, 5, k=440), "k must be below"),
        (lambda: theory.neighbor_recovery(np.zeros((9, 9)), 0.2, 5), "too small"),
        (lambda: theory.neighbor_recovery(np.zeros((64, 64)), 0.2, 5, metric="l1"), "metric"),
        (lambda: theory.lag_map(np.zeros((3, 3)), 2), "one dimension"),
        (lambda: theory.lag_map(np.zeros(5), 4, 2), "spans 7 samples"),
        (lambda: theory.lag_map(np.zeros(5), 0), "dim"),
        (lambda: theory.run_checks(q=4), "must be odd"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
