"""Transients of a movie: what is bright in a few frames keeps its height."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import vnlem
from vnlem.estimate.transients import Frame, reach, restore_transients

SIGMA = 10.0


def cells(seed=0, count=24, rise=20.0, size=48):
    """A still scene in which four cells are bright for three frames each; and which cell is bright where."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:size, :size]
    scene = 100 + 150 * gaussian_filter(rng.normal(0, 1, (size, size)), 3)
    clean = np.repeat(scene[None], count, axis=0)
    masks, frames = [], []
    for number, (y, x) in enumerate([(12, 12), (12, 36), (36, 12), (36, 36)]):
        distance = np.hypot(rows - y, columns - x)
        begin = 4 + 4 * number
        clean[begin : begin + 3] += rise / (1 + np.exp(2 * (distance - 4)))
        masks.append(distance < 4)
        frames.append(range(begin, begin + 3))
    return clean, clean + rng.normal(0, SIGMA, clean.shape), masks, frames


def height_kept(movie, clean, masks, frames):
    """The mean height of the transients above the other frames, as a share of the clean movie's."""

    def height(values):
        found = 0.0
        for mask, bright in zip(masks, frames, strict=True):
            trace = values[:, mask].mean(axis=1)
            found += trace[bright].mean() - np.delete(trace, bright).mean()
        return found

    return height(movie) / height(clean)


def error(result, clean):
    return float(np.sqrt(np.mean((result - clean) ** 2)))


@pytest.mark.parametrize(("options", "least"), [({}, 0.95), ({"delay": 2}, 0.92)], ids=["movie", "delay"])
def test_a_transient_keeps_its_height(options, least):
    clean, noisy, masks, frames = cells()
    result = vnlem.denoise(noisy, SIGMA, axes="TYX", profile="fast", **options)
    assert least < height_kept(result, clean, masks, frames) < 1.05
    assert error(result, clean) < 0.25 * SIGMA


def of_estimates(noisy, estimates, ahead=8):
    frames = [Frame.of(a[None], b[None], SIGMA) for a, b in zip(noisy, estimates, strict=True)]
    return np.stack([found[0] for found in restore_transients(frames, ahead=ahead)])


def test_the_share_that_was_lost_comes_back():
    clean, noisy, masks, frames = cells()
    quiet = np.median(clean, axis=0)
    for share in (0.5, 0.8, 1.0):
        found = of_estimates(noisy, quiet + share * (clean - quiet))
        assert abs(height_kept(found, clean, masks, frames) - 1) < 0.06


def test_what_does_not_change_keeps_its_bits():
    clean, noisy, _, _ = cells(rise=0.0)
    np.testing.assert_array_equal(of_estimates(noisy, clean), clean)


def test_noise_that_is_left_is_not_given_back():
    clean, noisy, _, _ = cells(rise=0.0)
    left = gaussian_filter(noisy - clean, 1.5)  # groups average over time too
    assert error(of_estimates(noisy, clean + left), clean) < 1.02 * error(clean + left, clean)


def test_a_few_frames_say_nothing_about_what_is_quiet():
    clean, noisy, _, _ = cells()
    few = slice(3, 11)
    np.testing.assert_array_equal(of_estimates(noisy[few], 0.9 * clean[few]), 0.9 * clean[few])


def test_a_part_of_the_frames_has_the_bytes_of_all():
    _, noisy, _, _ = cells(count=40)
    estimates = gaussian_filter(noisy, (0.5, 2, 2))
    whole = of_estimates(noisy, estimates)
    assert np.any(whole != estimates)
    part = slice(18 - reach(), 22 + reach())
    inner = of_estimates(noisy[part], estimates[part])[reach() : -reach()]
    np.testing.assert_array_equal(inner, whole[18:22])


def test_with_a_delay_later_frames_change_nothing():
    _, noisy, _, _ = cells()
    estimates = gaussian_filter(noisy, (0, 2, 2))
    found = of_estimates(noisy, estimates, ahead=0)
    np.testing.assert_array_equal(of_estimates(noisy[:12], estimates[:12], ahead=0), found[:12])
    assert np.any(found[:12] != estimates[:12])
    asked = []

    def frames():
        for index, (values, estimate) in enumerate(zip(noisy, estimates, strict=True)):
            asked.append(index)
            yield Frame.of(values[None], estimate[None], SIGMA)

    given = restore_transients(frames(), ahead=0)
    next(given)
    assert asked == [0]
