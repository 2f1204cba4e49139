"""The kernels that look for noise agree with plain NumPy."""

import numpy as np
import pytest
import scipy.fft
from numpy.lib.stride_tricks import sliding_window_view

from vnlem.kernels.cpu.blocks import measure_blocks
from vnlem.kernels.cpu.impulses import OTHERS, find_extremes
from vnlem.kernels.cpu.lines import middle_means
from vnlem.kernels.cpu.pixels import sum_powers, take_ends
from vnlem.noise.blocks import cosine_matrix
from vnlem.noise.impulses import _usual_range


def extremes(plane, deviation, excess, noise, share):
    """`find_extremes` from windows of 5x5 pixels."""
    around = sliding_window_view(np.pad(plane, 2, mode="reflect"), (5, 5))
    near = around[..., 1:4, 1:4]
    extreme = (plane == near.max(axis=(2, 3))) | (plane == near.min(axis=(2, 3)))
    apart = np.abs(plane - around.mean(axis=(2, 3))) > deviation
    ranked = np.sort(np.delete(around.reshape(*plane.shape, 25), 12, axis=2), axis=2)
    low, high = ranked[..., OTHERS], ranked[..., -1 - OTHERS]
    beyond = np.maximum(plane - high, low - plane) > np.maximum(excess, noise + share * (high - low))
    return np.flatnonzero(extreme & apart & beyond)


@pytest.mark.parametrize("shape", [(5, 5), (7, 31), (40, 33), (64, 5)])
@pytest.mark.parametrize(
    ("excess", "noise", "share"), [(-1e300, -1e300, 0), (0.3, 0, 0), (-1e300, 0, 0.2), (0.2, 0.1, 0.1)]
)
def test_extremes_are_those_of_windows(shape, excess, noise, share):
    rng = np.random.default_rng(shape[1])
    plane = rng.normal(size=shape)
    plane[rng.random(shape) < 0.05] = 4
    found = np.empty(0, np.int64)
    for top, bottom in ((0, 3), (3, shape[0])):
        places = np.empty((bottom - top) * shape[1], np.int64)
        count = find_extremes(plane, top, bottom, 1.0, excess, noise, share, places)
        found = np.concatenate([found, places[:count]])
    np.testing.assert_array_equal(found, extremes(plane, 1.0, excess, noise, share))
    assert found.size


@pytest.mark.parametrize(
    ("shape", "height", "lag", "dropped"),
    [
        ((33, 7), 16, 1, 4),
        ((33, 7), 13, 0, 6),
        ((70, 41), 1, 3, 0),
        ((70, 41), 35, 2, 9),
        ((130, 19), 64, 1, 16),
        ((180, 9), 77, 1, 0),
    ],
)
@pytest.mark.parametrize("across", [False, True])
def test_middle_means_are_those_of_sorted_blocks(shape, height, lag, dropped, across):
    plane = np.random.default_rng(height).normal(size=shape)
    means = np.empty((2, shape[1] - lag))
    middle_means(np.ascontiguousarray(plane.T) if across else plane, height, lag, across, dropped, means)
    steps = plane[:, lag:] - plane[:, : shape[1] - lag] if lag else plane
    blocks = steps[: shape[0] // 2 * 2].reshape(2, shape[0] // 2, -1)[:, :height]
    ordered = np.sort(blocks, axis=1)[:, dropped : height - dropped]
    np.testing.assert_allclose(means, ordered.mean(axis=1), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("shape", "step"), [((8, 8), 1), ((19, 30), 3), ((33, 26), 2)])
def test_blocks_are_measured_like_windows(shape, step):
    rng = np.random.default_rng(step)
    plane = np.round(rng.normal(0, 1.5, shape))
    low, high = plane.min(), plane.max()
    weights = rng.random((64, 8))
    windows = sliding_window_view(plane, (8, 8))[::step, ::step].reshape(-1, 8, 8)
    energy = scipy.fft.dctn(windows, axes=(1, 2), norm="ortho").reshape(-1, 64) ** 2
    equal = [(np.diff(windows, axis=axis) == 0).mean(axis=(1, 2)) for axis in (2, 1)]
    limits = [(windows == limit).mean(axis=(1, 2)) for limit in (low, high)]
    expected = np.column_stack([energy @ weights, windows.mean(axis=(1, 2)), *equal, *limits])
    for first in (0, len(windows) // 2):
        found = np.empty((len(windows) - first, 13))
        measure_blocks(plane, step, first, cosine_matrix(8), weights, low, high, found)
        np.testing.assert_allclose(found, expected[first:], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("count", [1, 7, 8, 1001])
def test_ends_and_sums_are_those_of_numpy(count):
    values = np.random.default_rng(count).normal(3, 1, count).round(1)
    below, above, counts = np.empty(count), np.empty(count), np.empty(2, np.int64)
    take_ends(values, 2.5, 3.5, below, above, counts)
    np.testing.assert_array_equal(below[: counts[0]], values[values <= 2.5])
    np.testing.assert_array_equal(above[: counts[1]], values[values >= 3.5])
    sums = np.empty(2)
    sum_powers(values, 2.0, sums)
    np.testing.assert_allclose(sums, [np.sum(values - 2), np.sum((values - 2) ** 2)], rtol=1e-12)


@pytest.mark.parametrize(
    "make", [np.arange, np.ones, lambda n: np.where(np.arange(n) % 4097, 0, np.arange(n))]
)
@pytest.mark.parametrize("count", [25, 5000, 100_000])
def test_the_usual_range_is_that_of_percentiles(make, count):
    values = np.asarray(make(count), np.float64)
    np.testing.assert_allclose(_usual_range(values), np.percentile(values, [0.5, 99.5]), rtol=1e-12)
