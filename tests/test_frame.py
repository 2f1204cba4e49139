"""The contract every method shares: dtypes, layouts, units, bad input, threads, progress."""

import inspect
import threading
import time
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vnlem
from vnlem.pipeline.dtypes import as_dtype
from vnlem.pipeline.image import Planes, to_planes
from vnlem.pipeline.scale import standard_scale
from vnlem.pipeline.tiles import grid
from vnlem.pipeline.workers import for_each
from vnlem.registry import METHODS, find_function


@pytest.fixture
def image():
    return np.random.default_rng(0).normal(100, 20, (24, 30)) + 60 * (np.arange(30) > 15)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"])
def test_integers_come_back_rounded_in_their_dtype(image, dtype):
    whole = np.clip(image / 2, 0, 127).astype(dtype)
    result = vnlem.denoise(whole, 10, method="nlm")
    exact = vnlem.denoise(whole.astype(float), 10, method="nlm")
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(float), exact, atol=0.5 + 1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_keep_their_dtype_and_are_not_clipped(image, dtype):
    result = vnlem.denoise(image.astype(dtype) - 150, 20, method="nlm")
    assert result.dtype == dtype
    assert result.min() < -20


def test_big_endian_and_non_contiguous_images_are_taken(image):
    plain = vnlem.denoise(image, 20, method="nlm")
    np.testing.assert_array_equal(vnlem.denoise(image.astype(">f8"), 20, method="nlm"), plain)
    wide = np.repeat(image, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(vnlem.denoise(wide, 20, method="nlm"), plain)


def test_the_input_is_left_alone(image):
    before = image.copy()
    vnlem.denoise(image, 20, method="nlm")
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize("method", METHODS)
def test_sigma_zero_returns_an_equal_copy(image, method):
    result = vnlem.denoise(image, 0, method=method)
    np.testing.assert_array_equal(result, image)
    assert result is not image


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_image_stays_constant(method):
    flat = np.full((40, 40), 7.0)
    with pytest.warns(UserWarning, match="all of the image's own standard deviation"):
        np.testing.assert_allclose(vnlem.denoise(flat, 1.0, method=method), flat, atol=1e-5)
    np.testing.assert_array_equal(vnlem.denoise(flat, method=method), flat)


def test_sigma_is_estimated_and_reported(image):
    _, info = vnlem.denoise(image, method="nlm", return_info=True)
    assert 14 < info.sigma < 26
    assert info.method == "nlm"
    assert info.parameters["patch_size"] % 2 == 1
    assert info.timings["total"] > 0


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    scale=st.sampled_from([1e-30, 1e-5, 1.0, 1e30]),
    shape=st.tuples(st.integers(7, 20), st.integers(7, 20)),
    method=st.sampled_from(["nlm", "nlem"]),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_any_scale_and_shape_gives_finite_values_inside_the_range(scale, shape, method, dtype):
    image = (np.random.default_rng(1).random(shape) * scale).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = vnlem.denoise(image, 0.1 * scale, method=method)
    slack = 1e-4 * scale
    assert np.isfinite(result).all()
    assert image.min() - slack <= result.min() <= result.max() <= image.max() + slack


@settings(max_examples=25, deadline=None)
@given(height=st.integers(1, 12), width=st.integers(1, 12))
def test_tiny_images_are_denoised_with_a_patch_that_fits(height, width):
    image = np.random.default_rng(2).random((height, width)) + np.arange(width)
    size = 1 if min(height, width) < 3 else 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = vnlem.denoise(image, 0.1, method="nlm", patch_size=size)
    assert result.shape == image.shape
    assert np.isfinite(result).all()


BAD_INPUT = {
    "signalling nan": (
        lambda a: np.full(a.shape, 0x7FA00000, np.uint32).view(np.float32),
        {},
        ValueError,
        "all 720 pixels of the image are NaN",
    ),
    "all nan": (lambda a: np.full(a.shape, np.nan), {}, ValueError, "all 720 pixels of the image are NaN"),
    "infinity": (lambda a: np.where(a > 150, np.inf, a), {}, ValueError, "NaN or infinite"),
    "empty": (lambda a: a[:0], {}, ValueError, "empty"),
    "scalar": (lambda a: a[0, 0], {}, ValueError, "two dimensions"),
    "boolean": (lambda a: a > 100, {}, TypeError, "boolean"),
    "text": (lambda a: np.array([["a"]]), {}, TypeError, "integers or floats"),
    "too large": (lambda a: a * 1e305, {}, ValueError, "beyond 1e\\+300"),
    "stack": (lambda a: np.stack([a, a]), {}, ValueError, "channel_axis.*for a stack axes to vnlem.denoise"),
    "no such axis": (lambda a: a, {"channel_axis": 2}, ValueError, "channel_axis 2 does not exist"),
    "two-d with axis": (lambda a: a, {"channel_axis": 0}, ValueError, "three dimensions"),
    "small": (
        lambda a: a[:4, :4],
        {"patch_size": 5, "sigma": 1},
        ValueError,
        r"image \(4x4\) is smaller than the patch",
    ),
    "negative sigma": (lambda a: a, {"sigma": -1}, ValueError, "sigma must be finite and not negative"),
    "nan sigma": (lambda a: a, {"sigma": np.nan}, ValueError, "sigma must be finite"),
    "array sigma": (lambda a: a, {"sigma": [1, 2]}, ValueError, "single number"),
    "ragged sigma": (lambda a: a, {"sigma": [[1], [1, 2]]}, ValueError, "sigma .* different lengths"),
    "ragged gain": (lambda a: a, {"sigma": None, "gain": [[1], [1, 2]]}, ValueError, "gain .* different len"),
    "an array as model": (lambda a: a, {"noise_model": np.ones(3)}, TypeError, "a name or a NoiseModel"),
    "text sigma": (lambda a: a, {"sigma": "much"}, TypeError, "sigma must be a number"),
    "number as text": (lambda a: a, {"sigma": "25"}, TypeError, "sigma must be a number, got '25'"),
    "true sigma": (lambda a: a, {"sigma": True}, TypeError, "sigma must be a number, got True"),
    "huge sigma": (lambda a: a, {"sigma": 10**400}, ValueError, r"sigma must be finite .* \(401 digits\)"),
    "sigma beyond": (lambda a: a, {"sigma": 1e307}, ValueError, "sigma is beyond 1e\\+300"),
    "all masked": (lambda a: np.ma.masked_less(a, 1e9), {}, ValueError, "all 720 pixels"),
    "axis as text": (lambda a: a, {"channel_axis": "last"}, TypeError, "channel_axis must be a whole number"),
    "axis half": (lambda a: a, {"channel_axis": 0.5}, TypeError, "channel_axis must be a whole number"),
    "axis true": (lambda a: a, {"channel_axis": True}, TypeError, "channel_axis must be a whole number"),
    "workers as text": (lambda a: a, {"workers": "two"}, TypeError, "workers must be a whole number"),
    "half a worker": (lambda a: a, {"workers": 1.5}, ValueError, "workers must be a whole number"),
    "profile no text": (lambda a: a, {"method": "vnlr", "profile": 2}, TypeError, "profile must be one of"),
    "profile an array": (
        lambda a: a,
        {"method": "vnlr", "profile": np.ones(2)},
        TypeError,
        "profile must be",
    ),
    "huge patch": (lambda a: a, {"patch_size": 10**400 + 1}, ValueError, "patch_size must be at most"),
    "huge float patch": (lambda a: a, {"patch_size": 1e300}, ValueError, "patch_size must be at most"),
    "huge window": (lambda a: a, {"patch_distance": 10**5000}, ValueError, "patch_distance must be at most"),
    "bandwidth 1e400": (lambda a: a, {"bandwidth": 10**400}, ValueError, r"must lie in \(0, inf\)"),
    "bandwidth text": (lambda a: a, {"bandwidth": "1"}, TypeError, "bandwidth must be a number"),
    "correction": (
        lambda a: a,
        {"noise_correction": "no"},
        TypeError,
        "must be True or False",
    ),
    "even patch": (lambda a: a, {"patch_size": 6}, ValueError, "must be odd.*try 7"),
    "zero patch": (lambda a: a, {"patch_size": 0}, ValueError, "at least 1"),
    "half patch": (lambda a: a, {"patch_size": 3.5}, ValueError, "whole number"),
    "zero window": (lambda a: a, {"patch_distance": 0}, ValueError, "patch_distance must be at least 1"),
    "bandwidth": (lambda a: a, {"bandwidth": 0}, ValueError, "bandwidth"),
    "workers": (lambda a: a, {"workers": 0}, ValueError, "workers"),
    "progress": (lambda a: a, {"progress": "yes"}, TypeError, "progress"),
    "engine": (lambda a: a, {"engine": "gpu"}, ValueError, "'fast', 'reference'"),
    "preset": (lambda a: a, {"preset": "best"}, ValueError, "'auto', 'paper'"),
    "paper preset": (lambda a: a, {"preset": "paper"}, ValueError, "nlem, vnlem, vnlem-dd"),
    "method": (lambda a: a, {"method": "magic"}, ValueError, "unknown method 'magic'; the methods are nlm"),
    "parameter": (lambda a: a, {"colour": 1}, TypeError, "no parameter 'colour'; it has patch_size"),
    "gamma zero": (lambda a: a, {"method": "nlpr", "gamma": 0}, ValueError, r"gamma must lie in \(0, 2\]"),
    "gamma three": (lambda a: a, {"method": "nlpr", "gamma": 3}, ValueError, "gamma"),
    "neighbours": (
        lambda a: a,
        {"method": "nlem", "patch_distance": 2, "n_neighbors": 26},
        ValueError,
        "window holds only 25",
    ),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_told_in_one_sentence(image, case):
    spoil, arguments, error, message = BAD_INPUT[case]
    with pytest.raises(error, match=message) as caught:
        vnlem.denoise(spoil(image), **({"sigma": 20, "method": "nlm"} | arguments))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [vnlem.denoise, *(find_function(method) for method in METHODS)],
    ids=lambda function: function.__name__,
)
def test_a_warning_points_at_the_callers_line(call):
    flat = np.full((24, 24), 7.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(flat, 1.0)
        line = inspect.currentframe().f_lineno - 1
    assert {(warning.filename, warning.lineno) for warning in caught} == {(__file__, line)}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sigma", [1e-320, 1e-160, 1e-7])
def test_noise_below_single_precision_is_left_alone(image, method, sigma):
    np.testing.assert_array_equal(vnlem.denoise(image, sigma, method=method), image)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_the_largest_integers_do_not_wrap(dtype):
    limits = np.iinfo(dtype)
    image = np.full((24, 24), limits.max, dtype)
    image[:, :12] = limits.min
    np.testing.assert_array_equal(vnlem.denoise(image, 0, method="nlm"), image)
    result = vnlem.denoise(image, 2.0**55, method="nlm")
    np.testing.assert_allclose(result.astype(float), image.astype(float), rtol=1e-6, atol=2.0**45)
    assert as_dtype(np.array([2.0**70]), np.dtype(dtype))[0] == limits.max


def test_a_sigma_above_the_images_own_deviation_warns(image):
    with pytest.warns(UserWarning, match="check the units of sigma"):
        vnlem.denoise(image, 500, method="nlm")


def test_calls_from_several_threads_at_once_give_the_single_threads_bytes(image):
    big = np.tile(image, (6, 6))
    expected = vnlem.denoise(big, 20, method="nlem", workers=1).tobytes()
    results = []

    def call():
        results.append(vnlem.denoise(big, 20, method="nlem", workers=2).tobytes())

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_counts_up_to_the_total_in_the_callers_thread(workers):
    calls = []
    here = threading.get_ident()

    def report(done, total):
        calls.append((done, total, threading.get_ident() == here))

    vnlem.denoise(
        np.random.default_rng(0).random((100, 200)), 0.2, method="nlem", workers=workers, progress=report
    )
    assert [done for done, _, _ in calls] == list(range(1, calls[-1][1] + 1))
    assert all(mine for *_, mine in calls)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_stops_the_work(workers):
    begun = []

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        for_each(begun.append, list(range(100)), workers, interrupt)
    assert len(begun) <= 2 * workers


@pytest.mark.parametrize("progress", [None, lambda done, total: None])
def test_an_error_in_a_thread_is_raised_and_stops_the_others(progress):
    begun = []

    def fail(item):
        begun.append(item)
        time.sleep(0.01)
        if item == 3:
            raise ValueError("the third")

    with pytest.raises(ValueError, match="the third"):
        for_each(fail, list(range(100)), 2, progress)
    assert len(begun) < 10


def test_progress_true_draws_a_bar_on_a_terminal_and_nothing_elsewhere(image, capsys, monkeypatch):
    vnlem.denoise(image, 20, method="nlm", progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    vnlem.denoise(image, 20, method="nlm", progress=True)
    shown = capsys.readouterr()
    assert "nlm" in shown.err
    assert shown.out == ""


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 40), st.integers(1, 40))
def test_tiles_cover_every_pixel_once(height, width, tile_height, tile_width):
    seen = np.zeros((height, width), int)
    for tile in grid(height, width, tile_height, tile_width):
        seen[tile.top : tile.bottom, tile.left : tile.right] += 1
    assert (seen == 1).all()


def test_standardisation_survives_extreme_values():
    values = np.array([[[1e-300, 2e-300, 3e-300]]])
    _, scale = standard_scale(values, 1e-301)
    assert scale == pytest.approx(np.sqrt(2 / 3 - 0.01) * 1e-300)


def test_planes_go_back_to_where_they_came_from():
    colour = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    for axis in (0, 1, 2, -1):
        planes = to_planes(colour, axis)
        assert isinstance(planes, Planes)
        np.testing.assert_array_equal(planes.restore(planes.data), colour)
