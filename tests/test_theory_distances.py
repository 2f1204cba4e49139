"""Overlap sets, distance moments and the neighbour theorem, against brute force and simulation."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vnlem import theory

ROTATIONS = (0, 90, 180, 270)


def patches_of(image, q, offset):
    """Two patches of one image at an offset, the first one as far up and left as the offset allows."""
    rows, columns = (0, q) if offset is None else offset
    top, left = max(0, -rows), max(0, -columns)
    return image[top : top + q, left : left + q], image[top + rows :, left + columns :][:q, :q]


def brute_force_sets(q, offset, rotation):
    """The definitions, pixel by pixel, with a noise value for every pixel of the image."""
    image = np.arange(900).reshape(30, 30)
    first, second = patches_of(image, q, offset)
    xi, rotated = first.ravel(), np.rot90(second, rotation // 90).ravel()
    pairs = list(itertools.product(range(q * q), repeat=2))
    overlap = {(a, b) for a, b in pairs if xi[a] == rotated[b]}
    swapped = {(a, b) for a, b in pairs if a != b and xi[a] == rotated[b] and xi[b] == rotated[a]}
    return overlap, swapped, {a for a in range(q * q) if xi[a] == rotated[a]}


@pytest.mark.parametrize("rotation", ROTATIONS)
@pytest.mark.parametrize("offset", [(0, 1), (1, 1), (-2, 1), (0, 2), (2, 2), (0, 0), (0, -4), None])
def test_the_sets_are_those_of_the_definition(offset, rotation):
    q = 5
    sets = theory.overlap_sets(q, offset, rotation)
    overlap, swapped, identical = brute_force_sets(q, offset, rotation)
    assert set(map(tuple, sets.overlap.tolist())) == overlap
    assert set(map(tuple, sets.swapped.tolist())) == swapped
    assert set(sets.identical.tolist()) == identical


def test_the_papers_example_with_three_shared_pixels():
    sets = theory.overlap_sets(3, (0, 2), 180)
    assert sets.labels("overlap") == {(7, 9), (8, 8), (9, 7)}
    assert sets.labels("identical") == {8}


def test_the_papers_example_with_six_shared_pixels():
    sets = theory.overlap_sets(3, (0, 1), 180)
    assert sets.labels("swapped") == {(4, 9), (9, 4), (5, 8), (8, 5), (6, 7), (7, 6)}
    assert sets.sizes == (6, 6, 0)


@settings(max_examples=60, deadline=None)
@given(
    half=st.integers(0, 4),
    rotation=st.sampled_from(ROTATIONS),
    rows=st.integers(-8, 8),
    columns=st.integers(-8, 8),
)
def test_the_sizes_stay_within_the_papers_bounds(half, rotation, rows, columns):
    q = 2 * half + 1
    if max(abs(rows), abs(columns)) >= q or (rows, columns) == (0, 0):
        return
    n_overlap, n_swapped, n_identical = theory.overlap_sets(q, (rows, columns), rotation).sizes
    bounds = theory.overlap_bounds(q, rotation)
    assert n_overlap == (q - abs(rows)) * (q - abs(columns)) <= bounds.overlap
    assert n_swapped <= bounds.swapped
    assert n_identical <= bounds.identical


@pytest.mark.parametrize("rotation", ROTATIONS)
@pytest.mark.parametrize("offset", [(0, 1), (1, 1), (2, -1), (0, 2), (4, 4), None])
def test_moments_equal_those_of_the_gaussian_quadratic_form(offset, rotation):
    """Var = 4 s^2 P'CP + 2 s^4 tr C^2, with C built from the noise image itself."""
    q, sigma = 5, 0.7
    image = theory.random_image(seed=3)
    first, second = patches_of(image, q, offset)
    moments = theory.distance_moments(first, second, offset, rotation, sigma)
    pixels = np.eye(image.size).reshape(*image.shape, -1)
    a, b = patches_of(pixels, q, offset)
    map_to_difference = (a - np.rot90(b, rotation // 90)).reshape(q * q, -1)
    cov = map_to_difference @ map_to_difference.T
    p = map_to_difference @ image.ravel()
    assert moments.mean == pytest.approx(p @ p + sigma**2 * np.trace(cov))
    assert moments.variance == pytest.approx(4 * sigma**2 * p @ cov @ p + 2 * sigma**4 * np.trace(cov @ cov))
    # From one image the printed term over K_I vanishes.
    assert moments.printed_variance == pytest.approx(moments.variance)


@pytest.mark.parametrize("q", [3, 5, 7])
def test_moments_agree_with_simulation(q):
    rows = list(theory.check_distance_moments(q, sigma=0.5, n_trials=20000, seed=0))
    assert len(rows) >= 24
    assert [row.name for row in rows if not row.agrees] == []


def test_the_printed_variance_is_wrong_for_patches_of_two_images_that_share_their_noise():
    """Slip 8: where the noise is identical it cancels, so P(a) cannot contribute to the variance."""
    q, sigma, offset, rotation = 3, 0.5, (0, 2), 180
    rng = np.random.default_rng(0)
    clean_i, clean_j = rng.normal(size=(2, q, q))
    moments = theory.distance_moments(clean_i, clean_j, offset, rotation, sigma)
    assert len(moments.overlap.identical) == 1
    noise = sigma * rng.standard_normal((40000, 3, 5))
    noise_i, noise_j = noise[:, :, :3], np.rot90(noise[:, :, 2:], 2, axes=(1, 2))
    draws = np.sum((clean_i - np.rot90(clean_j, 2) + noise_i - noise_j) ** 2, axis=(1, 2))
    error = np.std((draws - draws.mean()) ** 2) / np.sqrt(len(draws))
    assert abs(draws.var() - moments.variance) < 3 * error
    assert abs(draws.var() - moments.printed_variance) > 5 * error


def test_without_noise_the_distance_is_the_clean_one():
    image = theory.random_image()
    moments = theory.distance_moments(image[:5, :5], image[:5, 1:6], (0, 1), 90, 0)
    assert (moments.mean, moments.variance) == (moments.clean, 0)


def test_a_patch_has_no_distance_to_itself():
    patch = theory.random_image()[:5, :5]
    moments = theory.distance_moments(patch, patch, (0, 0), 0, 1.0)
    assert (moments.mean, moments.variance) == (0, 0)


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("rotation", ["any", "identity"])
def test_bounds_follow_from_the_lemma_at_its_worst_case(overlap, rotation):
    """Evaluate Var / gap^2 over every admissible size of the sets: none may exceed the bound's ratio."""
    q, sigma, epsilon = 7, 0.11, 1.0
    bounds = theory.neighbor_bounds(q, sigma, epsilon, overlap, rotation=rotation)
    sizes = [(0, 0, 0)]
    if overlap:
        most = q * (q - 1)
        swaps = (0, most) if rotation == "any" else (0,)
        sizes = list(itertools.product((0, most), swaps, (0, 1) if rotation == "any" else (0,)))
    worst_close, worst_far = 0.0, 0.0
    for n_overlap, n_swapped, n_identical in sizes:
        for sign in (-1, 0, 1) if overlap else (0,):
            spread = 4 * sigma**4 * (2 * q * q + n_swapped + n_overlap - 3 * n_identical)
            for p2 in np.linspace(0, epsilon**2, 20):
                gap = 4 * epsilon**2 - p2 - 2 * sigma**2 * (q * q - n_identical)
                worst_close = max(worst_close, (8 * sigma**2 * p2 * (1 - sign) + spread) / gap**2)
            for p2 in np.linspace(4, 50, 200) * epsilon**2:
                gap = p2 + 2 * sigma**2 * (q * q - n_identical) - epsilon**2
                worst_far = max(worst_far, (8 * sigma**2 * p2 * (1 - sign) + spread) / gap**2)
    assert bounds.close <= 1 / (1 + worst_close) + 1e-12
    assert bounds.far <= 1 / (1 + worst_far) + 1e-12
    assert bounds.close == pytest.approx(1 / (1 + worst_close), rel=1e-6)  # and it is attained


def test_the_printed_close_bound_with_overlap_exceeds_what_the_lemma_gives():
    """It takes |K_I| = 1 in the denominator, where |K_I| = 0 is the worst case."""
    corrected = theory.neighbor_bounds(7, 0.11, 1.0)
    printed = theory.neighbor_bounds(7, 0.11, 1.0, form="printed")
    assert printed.close > corrected.close
    assert printed.far == corrected.far
    s2, n = 0.11**2, 49
    ratio = 8 * s2 * (2 + s2 * (2 * n - 7)) / (3 - 2 * s2 * (n - 1)) ** 2
    assert printed.close == pytest.approx(1 / (1 + ratio))


@pytest.mark.parametrize("ratio", [0.2, 0.6, 0.95])
@pytest.mark.parametrize("q", [3, 5, 9])
def test_no_bound_is_violated_for_a_fixed_rotation(q, ratio):
    rows = list(theory.check_neighbor_bounds(q, ratio, n_trials=4000, seed=1))
    assert len(rows) == 18
    assert [row.name for row in rows if not row.agrees] == []


def test_exact_probabilities_lie_above_the_bounds_and_meet_simulation():
    q, sigma, epsilon = 5, 0.19, 1.0
    exact = theory.neighbor_probabilities(q, sigma, epsilon)
    bounds = theory.neighbor_bounds(q, sigma, epsilon, overlap=False)
    assert exact.close > bounds.close
    assert exact.far > bounds.far
    rng = np.random.default_rng(0)
    p = np.zeros(q * q)
    p[3] = epsilon
    draws = np.sum((p + sigma * np.sqrt(2) * rng.standard_normal((40000, q * q))) ** 2, axis=1)
    share = np.mean(draws < 4 * epsilon**2)
    assert abs(share - exact.close) < 3 * np.sqrt(exact.close * (1 - exact.close) / 40000) + 1e-4


def test_the_printed_far_statement_without_overlap_is_false_between_epsilon_and_two_epsilon():
    q, sigma, epsilon, distance = 3, 0.01, 1.0, 1.001
    printed = theory.neighbor_bounds(q, sigma, epsilon, False, form="printed", distance=distance)
    exact = theory.neighbor_probabilities(q, sigma, epsilon, distance=distance)
    assert printed.far > 0.99
    assert exact.far < 0.6
    with pytest.raises(ValueError, match="at least 2"):
        theory.neighbor_bounds(q, sigma, epsilon, False, distance=distance)


def test_staying_far_for_all_rotations_is_rarer_than_for_each_of_them():
    """Slip 9: a bound for each rotation is none for the minimum. The union bound holds."""
    q, sigma, epsilon, n = 3, 0.33, 1.0, 300_000
    rng = np.random.default_rng(0)
    # A constant second patch is at the same clean distance, 2 epsilon, for every rotation.
    p = np.full((q, q), 2 * epsilon / q)
    noise_i, noise_j = (sigma * rng.standard_normal((n, q, q), dtype=np.float32) for _ in range(2))
    near = np.array(
        [
            np.sum((p + noise_i - np.rot90(noise_j, turns, axes=(1, 2))) ** 2, axis=(1, 2)) <= epsilon**2
            for turns in range(4)
        ]
    )
    single, any_of_them = near.mean(axis=1), near.any(axis=0).mean()
    error = np.sqrt(any_of_them / n)
    assert any_of_them - 5 * error > single.max()
    union = theory.neighbor_bounds(q, sigma, epsilon, overlap=False, n_rotations=4).far
    assert 1 - any_of_them >= union
    exact = theory.neighbor_probabilities(q, sigma, epsilon).far
    assert single.mean() == pytest.approx(1 - exact, rel=0.25)


def test_the_union_bound_over_rotations_is_weaker_and_labelled():
    one = theory.neighbor_bounds(7, 0.05, 1.0, overlap=False)
    four = theory.neighbor_bounds(7, 0.05, 1.0, overlap=False, n_rotations=4)
    assert one.far_scope == "proved for a fixed rotation only"
    assert four.far_scope == "proved for the minimum over 4 rotations (union bound)"
    assert 1 - four.far == pytest.approx(4 * (1 - one.far))
    assert four.close == one.close
    assert "all rotations" in four.close_scope


def test_bounds_move_with_q_as_the_theorem_says():
    close, far = zip(
        *((b.close, b.far) for b in (theory.neighbor_bounds(q, 0.05, 1.0) for q in range(3, 20, 2))),
        strict=True,
    )
    assert np.all(np.diff(close) < 0)
    assert np.all(np.diff(far) > 0)


def test_the_two_bounds_are_equal_at_the_balance_ratio():
    q, sigma = 1001, 1e-3
    bounds = theory.neighbor_bounds(q, sigma, sigma * q / theory.balance_ratio(), overlap=False)
    assert bounds.close == pytest.approx(bounds.far, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.overlap_sets(4, (0, 1)), "must be odd"),
        (lambda: theory.overlap_sets(3, (0, 3)), "beyond the patch of size 3"),
        (lambda: theory.overlap_sets(3, (0, 1), 45), "multiple of 90"),
        (lambda: theory.overlap_sets(3, (0, 1, 2)), "pair"),
        (lambda: theory.overlap_sets(3, (0, 0.5)), "whole number"),
        (lambda: theory.distance_moments(np.eye(3), np.eye(3), (3, 0), 0, 1), "beyond the patch"),
        (lambda: theory.distance_moments(np.eye(4), np.eye(4), (1, 0), 0, 1), "must be odd"),
        (lambda: theory.distance_moments(np.eye(3), np.eye(3), (1, 0), 30, 1), "multiple of 90"),
        (lambda: theory.distance_moments(np.eye(3), np.eye(3), (1, 0), 0, -1), "not negative"),
        (lambda: theory.distance_moments(np.eye(3), np.eye(5), (1, 0), 0, 1), "same size"),
        (lambda: theory.distance_moments(np.zeros((3, 5)), np.eye(3), None, 0, 1), "square patch"),
        (lambda: theory.distance_moments(np.full((3, 3), np.nan), np.eye(3), None, 0, 1), "NaN"),
        (lambda: theory.neighbor_bounds(6, 0.1, 1), "must be odd"),
        (lambda: theory.neighbor_bounds(7, -0.1, 1), "not negative"),
        (lambda: theory.neighbor_bounds(7, 0.2, 1), "sigma \\* q < epsilon"),
        (lambda: theory.neighbor_bounds(5, 0.2, 1.0), "sigma \\* q < epsilon"),
        (lambda: theory.neighbor_probabilities(7, 0.2, 1), "sigma \\* q < epsilon"),
        (lambda: theory.neighbor_bounds(7, 0.1, 1, form="mine"), "form must be one of"),
        (lambda: theory.neighbor_bounds(7, 0.1, 1, distance=1.5), "at least 2"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_a_wrong_formula_does_not_pass_the_second_draw():
    from vnlem.theory.simulate import _confirmed, _mean

    def draw(again, n):
        return np.random.default_rng([5, again]).standard_normal(n) + 0.1

    rows = _confirmed(draw, lambda draws: [_mean("mean", 0.0, draws)], 5000)
    assert not rows[0].agrees
    assert rows[0].standard_error == pytest.approx(1 / np.sqrt(20000), rel=0.05)
