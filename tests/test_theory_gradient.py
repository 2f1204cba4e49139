"""The gradient lemma, its corollary, and the orientation proposition under attack."""

import math

import numpy as np
import pytest
from scipy.integrate import dblquad

from vnlem import theory


def test_the_component_variance_is_the_integral_of_the_squared_kernel():
    def squared(y, x):
        return (x / (2 * math.pi) * math.exp(-(x * x + y * y) / 2)) ** 2

    integral, _ = dblquad(squared, -8, 8, -8, 8)
    assert theory.gradient_moments(1.0).component_variance == pytest.approx(integral, rel=1e-8)


@pytest.mark.parametrize("scale", [0.7, 1.0, 2.0])
def test_simulation_confirms_the_exact_variance_and_rejects_the_printed_one(scale):
    rows = {row.name: row for row in theory.check_gradient_moments(0.5, scale, n_trials=15000, seed=2)}
    printed = rows.pop("gradient variance as printed, continuous")
    assert [row.name for row in rows.values() if not row.agrees] == []
    assert printed.deviation < -10
    assert not printed.expected


def test_the_term_the_paper_adds_is_not_even_the_integral_it_stands_for():
    """E xi^4 = 3 times the integral of |grad G|^4 is 12/(256 pi^3), the paper has 27/(256 pi^3)."""

    def fourth_power(y, x):
        norm = (x * x + y * y) * (math.exp(-(x * x + y * y) / 2) / (2 * math.pi)) ** 2
        return norm**2

    integral, _ = dblquad(fourth_power, -7, 7, -7, 7)
    assert 3 * integral == pytest.approx(12 / (256 * math.pi**3), rel=1e-7)
    moments = theory.gradient_moments(1.0)
    assert moments.printed_variance - moments.variance == pytest.approx(27 / (256 * math.pi**3))


@pytest.mark.parametrize("scale", [1.5, 2.0, 4.0])
def test_on_pixels_the_moments_approach_the_continuous_ones_for_large_scales(scale):
    continuous = theory.gradient_moments(1.0, scale).mean
    assert theory.gradient_moments(1.0, scale, "derivative").mean == pytest.approx(continuous, rel=1e-4)
    difference = theory.gradient_moments(1.0, scale, "difference").mean
    assert 1 - 1 / scale**2 < difference / continuous < 1


def test_the_sampled_moments_are_those_of_the_filters_image_code_uses():
    from scipy.ndimage import gaussian_filter

    impulse = np.zeros((41, 41))
    impulse[20, 20] = 1
    smooth = gaussian_filter(impulse, 1.0, truncate=4.0)
    down, right = np.gradient(smooth)
    moments = theory.gradient_moments(2.0, 1.0, "difference")
    assert moments.mean == pytest.approx(4 * np.sum(down**2 + right**2), rel=1e-9)


def test_corollary_holds_in_both_forms_and_the_corrected_one_is_sharper():
    corrected, printed = (theory.gradient_bound(0.4, 3.0, form=form) for form in ("corrected", "printed"))
    assert corrected.threshold < printed.threshold
    assert corrected.probability == printed.probability == pytest.approx(0.9)
    assert corrected.exact > corrected.probability
    mean = 0.16 / (4 * math.pi)
    assert printed.threshold == pytest.approx(0.4 * math.sqrt((1 + 1.25 * 3) / (4 * math.pi)))
    assert corrected.exact == pytest.approx(1 - math.exp(-(corrected.threshold**2) / mean))


def test_orientation_turns_with_the_patch():
    image = theory.random_image(41, seed=5)
    turned = [float(theory.orientation_feature(np.rot90(image, k), 25, radius=12)) for k in range(4)]
    for k in range(1, 4):
        assert (turned[k] - turned[0] - 90 * k + 180) % 360 - 180 == pytest.approx(0, abs=0.11)


def test_orientation_error_grows_with_noise_and_is_reproducible():
    x = np.tile(np.arange(31.0), (31, 1))
    spread = [theory.orientation_errors(x, s, 100, radius=6).errors.std() for s in (0.5, 2.0, 8.0)]
    assert spread[0] < spread[1] < spread[2]
    again = theory.orientation_errors(x, 2.0, 100, radius=6).errors.std()
    assert again == spread[1]


def test_another_estimator_can_be_measured():
    def first_moment(stack):
        return np.degrees(np.angle(np.exp(1j * stack[:, 15, 15])))

    found = theory.orientation_errors(np.zeros((31, 31)), 0.1, 500, estimator=first_moment)
    assert np.std(found.errors) == pytest.approx(math.degrees(0.1), rel=0.15)


def test_the_proposition_is_labelled_as_not_proved():
    claim = theory.orientation_bound(0.5, 3.0, 0.4)
    assert claim.status == "as printed, not proved"
    assert claim.threshold == pytest.approx(0.5 * math.sqrt((1 + 1.25 * 3) / (4 * math.pi)))
    assert claim.probability == pytest.approx(0.9)


def test_the_largest_k_is_found_when_none_is_given():
    claim = theory.orientation_bound(0.5, epsilon=0.4)
    assert claim.threshold == pytest.approx(0.4, rel=1e-9)
    assert claim.threshold < 0.4


@pytest.mark.parametrize(("sigma", "claimed"), [(0.05, 0.999), (0.1, 0.98)])
def test_a_patch_overturns_its_orientation_where_the_proposition_claims_near_certainty(sigma, claimed):
    """Slip 10: directions at the ends of the arc leave it under any noise, and a weaker side wins."""
    case = theory.orientation_counterexample(radius=16)
    assert theory.orientation_bound(sigma, epsilon=case.margin).probability > claimed
    found = theory.orientation_errors(case.patch, sigma, 100, delta=case.delta, radius=case.radius)
    assert found.within(case.delta) < 0.1


def shortfall(patch, delta, radius, k):
    """Claimed probability minus the share found, at the largest noise the proposition allows for k."""
    margin = theory.orientation_margin(patch, delta, radius=radius)
    sigma = 0.999 * margin * math.sqrt(4 * math.pi / (1 + 1.25 * k))
    claim = theory.orientation_bound(sigma, k, margin)
    found = theory.orientation_errors(patch, sigma, 60, delta=delta, radius=radius)
    return claim.probability - found.within(delta)


def test_a_search_over_ridges_finds_counterexamples_for_every_k():
    """The further the directions lie from the ends of the arc, the more noise it takes to push them out."""
    found = {
        (slack, k): shortfall(case.patch, case.delta, case.radius, k)
        for slack in (0.1, 0.2, 1.0, 8.0)
        for case in [theory.orientation_counterexample(12, slack)]
        for k in (2.0, 5.0, 20.0)
    }
    for k in (2.0, 5.0, 20.0):
        assert max(found[slack, k] for slack in (0.1, 0.2)) > 0.7
    assert found[8.0, 20.0] < 0.05


def test_random_patches_obey_the_claim_that_is_not_proved():
    """The exceptions are special: directions at the ends of the arc, not any narrow margin."""
    short = [shortfall(theory.random_image(31, seed=seed), 18, 8, k=3.0) for seed in range(12)]
    assert max(short) < 0.05


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.gradient_moments(-1.0), "not negative"),
        (lambda: theory.gradient_moments(1.0, 0), "scale"),
        (lambda: theory.gradient_moments(1.0, grid="hexagonal"), "grid must be one of"),
        (lambda: theory.gradient_bound(1.0, 0), "k must lie"),
        (lambda: theory.orientation_bound(0.5, 3.0, 0.1), "outside it nothing is claimed"),
        (lambda: theory.orientation_bound(0.5, epsilon=0.01), "no k > 0"),
        (lambda: theory.orientation_bound(0.0, epsilon=0.01), "positive"),
        (lambda: theory.orientation_feature(np.eye(9), 180), "below 180"),
        (lambda: theory.orientation_feature(np.eye(9), 20, radius=9), "radius"),
        (lambda: theory.orientation_errors(np.zeros(9), 1.0), "two dimensions"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
