"""Frames one by one: the passes with a delay, and what a stream promises."""

import numpy as np
import pytest
from skimage import data
from stack_scene import SMALL, drifting, error

import vnlem
from vnlem.methods.vnlr_stack import solve_stack
from vnlem.methods.vnlr_stack_params import resolve_stack
from vnlem.pipeline.stack_task import StackTask


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delay", "depth", "passes"), [(0, 1, 1), (1, 2, 1), (1, 2, 2), (3, 1, 2), (3, 2, 2), (7, 2, 2)]
)
def test_the_passes_with_a_delay_agree_with_the_reference(delay, depth, passes):
    _, noisy = drifting(9, size=11)
    options = {**SMALL, "patch_depth": depth, "delay": delay, "passes": passes, "step": 4}
    options |= {"plane_distance": 2, "profile": "fast"}
    fast = vnlem.denoise(noisy, 25, axes="TYX", **options)
    plain = vnlem.denoise(noisy, 25, axes="TYX", engine="reference", **options)
    assert np.abs(fast - plain).max() < 0.02
    assert np.abs(fast - noisy).max() > 10


@pytest.mark.slow
@pytest.mark.parametrize(("delay", "channels"), [(1, 1), (2, 3), (5, 3)])
def test_colours_and_depths_that_differ_agree_with_the_reference(delay, channels):
    _, noisy = drifting(8, size=11)
    movie = np.stack([noisy, 0.8 * noisy[::-1], noisy[:, ::-1]][:channels], axis=1)
    options = {**SMALL, "delay": delay, "passes": 2, "step": 4, "plane_distance": 2, "profile": "fast"}
    options |= {"patch_depth": None, "channels": "joint", "axes": "TCYX"}
    fast, info = vnlem.denoise(movie, 25, return_info=True, **options)
    assert info.parameters["depths"] == (2, 1, 1)
    plain = vnlem.denoise(movie, 25, engine="reference", **options)
    assert np.abs(fast - plain).max() < 0.02


def streamed(movie, **options):
    """The frames of a stream for a movie, and how many each push returned."""
    stream = vnlem.Stream(workers=1, **options)
    pushed = [stream.push(frame) for frame in movie]
    rest = stream.finish()
    frames = [frame for some in pushed for frame in some] + rest
    return np.stack(frames), [len(some) for some in pushed] + [len(rest)], stream


TINY = {"patch_size": 4, "n_neighbors": 8, "patch_distance": 2, "step": 4}


@pytest.mark.parametrize("sigma", [25.0, None], ids=["given", "estimated"])
@pytest.mark.parametrize("delay", [0, 1, 2, 5])
def test_a_stream_has_the_bytes_of_the_whole_movie(delay, sigma):
    _, noisy = drifting(9)
    result, counts, _ = streamed(noisy, sigma=sigma, delay=delay)
    assert counts == [0] * delay + [1] * (9 - delay) + [delay]
    whole = vnlem.denoise(noisy, sigma, axes="TYX", delay=delay, profile="fast")
    np.testing.assert_array_equal(result, whole)


@pytest.mark.parametrize(
    ("delay", "options"),
    [
        (1, {"passes": 3, "profile": "balanced"}),
        (2, {"passes": 4, "patch_depth": 3, "profile": "balanced"}),
        (3, {"passes": 2, "plane_distance": 0, "patch_depth": 3}),
        (6, {"passes": 3, "plane_distance": 1}),
        (9, {"plane_distance": 2, "profile": "quality"}),
        (3, {"plane_distance": 5}),
    ],
    ids=str,
)
def test_every_frame_comes_out_in_time_whatever_the_passes(delay, options):
    _, noisy = drifting(12, size=14)
    options = {**TINY, **options}
    result, counts, _ = streamed(noisy, sigma=25.0, delay=delay, **options)
    assert counts == [0] * delay + [1] * (12 - delay) + [delay]
    whole = vnlem.denoise(noisy, 25.0, axes="TYX", delay=delay, **{"profile": "fast", **options})
    np.testing.assert_array_equal(result, whole)


def test_a_stream_does_not_search_for_impulses():
    movie = np.where(np.arange(64) < 32, 100, 160) + np.random.default_rng(0).normal(0, 5, (6, 64, 64))
    movie[:, *np.random.default_rng(1).integers(1, 63, (2, 40))] = 250
    options = {"sigma": 5.0, "delay": 2, "profile": "fast", "axes": "TYX"}
    frames, *_ = streamed(movie, **options)
    np.testing.assert_array_equal(frames, vnlem.denoise(movie, impulses=False, **options))
    assert abs(frames - vnlem.denoise(movie, **options)).max() > 50


def test_a_movie_of_one_frame_has_the_bytes_of_its_stream():
    _, noisy = drifting(1)
    frames, *_ = streamed(noisy, sigma=25, delay=0, axes="TYX", profile="fast")
    np.testing.assert_array_equal(frames, vnlem.denoise(noisy, 25, axes="TYX", delay=0, profile="fast"))
    with pytest.raises(ValueError, match="at least 2 frames"):
        vnlem.denoise(noisy, 25, axes="TYX", delay=1)


@pytest.mark.parametrize("hot", [0, 400])
def test_frames_beyond_the_delay_change_nothing(hot):
    noisy = np.where(np.arange(64) < 32, 100, 160) + np.random.default_rng(0).normal(0, 25, (9, 64, 64))
    noisy[:, 5::9, 4::11] += hot
    other = noisy.copy()
    other[6:] = 1000
    first, second = (vnlem.denoise(movie, 25, axes="TYX", delay=2, **TINY) for movie in (noisy, other))
    np.testing.assert_array_equal(first[:4], second[:4])
    assert np.any(first[4] != second[4])


def test_a_longer_delay_makes_a_better_picture():
    clean, noisy = drifting(12, speed=1)
    alone = np.stack([vnlem.denoise(page, 25, profile="fast") for page in noisy])
    errors = [error(vnlem.denoise(noisy, 25, axes="TYX", delay=k, profile="fast"), clean) for k in (0, 2, 8)]
    assert error(alone, clean) > errors[0] > errors[1] > errors[2]


def test_a_delay_of_all_that_the_passes_reach_is_the_ordinary_movie_in_the_middle():
    _, noisy = drifting(30, size=16)
    planes = (noisy / 50).astype(np.float32)
    task = StackTask("T", [(16, 16)] * 30, 0.5)
    options = {**TINY, "passes": 1, "plane_distance": 1, "patch_depth": 2}
    delayed, ordinary = (
        list(solve_stack(iter(planes), task, resolve_stack("T", 30, delay=delay, **options)))[12:18]
        for delay in (6, None)
    )
    np.testing.assert_allclose(delayed, ordinary, atol=1e-5)


@pytest.mark.parametrize("axes", ["TYXC", "TCYX", "CTXY"])
def test_channels_of_a_stream(axes):
    _, noisy = drifting(6, size=24)
    colour = np.stack([noisy, 5 * noisy[:, ::-1]])  # CTYX
    movie = colour.transpose(["CTYX".index(letter) for letter in axes])
    frames = np.moveaxis(movie, axes.index("T"), 0)
    result, _, stream = streamed(frames, axes=axes, sigma=[25.0, 125.0])
    whole = vnlem.denoise(movie, [25.0, 125.0], axes=axes, delay=2, profile="fast")
    np.testing.assert_array_equal(np.moveaxis(result, 0, axes.index("T")), whole)
    assert stream.info.details["sigma_per_channel"] == [25.0, 125.0]


@pytest.mark.slow
@pytest.mark.parametrize(("channels", "sigma"), [("auto", None), ("separate", None), ("same", 20.0)])
def test_colours_of_a_stream_at_several_sizes(channels, sigma):
    view = data.astronaut()[30:190, 150:310].astype(float)
    clean = np.stack([view[4 * t : 96 + 4 * t, 3 * t : 96 + 3 * t] for t in range(5)])
    movie = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    options = {**TINY, "patch_size": 6, "sigma": sigma, "axes": "TYXC", "channels": channels}
    result, _, stream = streamed(movie, **options)
    whole = vnlem.denoise(movie, delay=2, profile="fast", **options)
    np.testing.assert_array_equal(result, whole)
    assert stream.info.details["channels"] == ("joint" if channels == "auto" else channels)
    assert len(stream.info.details["sigma_per_channel"]) == 3
    one_size = vnlem.denoise(movie, delay=2, profile="fast", scales=1, **options)
    assert np.any(whole != one_size)


@pytest.mark.slow
def test_lines_of_colours():
    view = data.astronaut()[30:190, 150:310].astype(float)
    clean = np.stack([view[4 * t : 96 + 4 * t, 3 * t : 96 + 3 * t] for t in range(4)])
    rng = np.random.default_rng(0)
    noisy = clean + rng.normal(0, 15, clean.shape) + rng.normal(0, 10, (4, 1, 96, 3))
    options = {**TINY, "patch_size": 6, "axes": "TYXC", "lines": True}
    result, _, stream = streamed(noisy, **options)
    assert stream.info.details["channels"] == "joint"
    np.testing.assert_array_equal(result, vnlem.denoise(noisy, delay=2, profile="fast", **options))
    left = vnlem.denoise(noisy, delay=2, profile="fast", **options | {"lines": False})
    assert error(result, clean) < 0.8 * error(left, clean)


@pytest.mark.parametrize("dtype", [None, "float32"])
def test_integers_and_photons(dtype):
    clean, _ = drifting(7)
    noisy = np.random.default_rng(1).poisson(clean - clean.min() + 20).astype(np.uint16)
    options = {"noise_model": "poisson-gaussian", "gain": 1.0, "dtype": dtype}
    result, _, stream = streamed(noisy, **options)
    assert result.dtype == (dtype or np.uint16)
    whole = vnlem.denoise(noisy, axes="TYX", delay=2, profile="fast", **options)
    np.testing.assert_array_equal(result, whole)
    assert stream.info.noise.kind == "poisson-gaussian"


def test_info_says_where_the_noise_is_from():
    _, noisy = drifting(5)
    _, _, stream = streamed(noisy)
    assert stream.info.details["noise_from"] == "the first 3 frames"
    assert stream.info.sigma == pytest.approx(vnlem.denoise(noisy[:3], axes="TYX", return_info=True)[1].sigma)
    assert stream.info.parameters["delays"] == ((1, 0), (1, 0))
    assert streamed(noisy, sigma=25.0)[2].info.details["noise_from"] == "sigma"
    with pytest.raises(ValueError, match="ask for info later"):
        _ = vnlem.Stream().info


def test_frames_without_noise_come_back():
    ramp = np.tile(np.arange(32.0), (5, 32, 1))
    np.testing.assert_array_equal(streamed(ramp)[0], ramp)


def test_a_generator_is_taken_frame_by_frame():
    _, noisy = drifting(8, size=16)
    taken = []

    def camera():
        for number, frame in enumerate(noisy):
            taken.append(number)
            yield frame

    out = []
    for frame in vnlem.Stream(sigma=25.0, delay=3, workers=1, **TINY).denoise(camera()):
        if len(out) < 5:
            assert len(taken) == len(out) + 4
        out.append(frame)
    np.testing.assert_array_equal(np.stack(out), streamed(noisy, sigma=25.0, delay=3, **TINY)[0])


def test_memory_does_not_grow_with_the_frames():
    import gc
    import tracemalloc

    stream = vnlem.Stream(sigma=25.0, workers=1, **TINY)
    frame = drifting(1, size=48)[1][0]  # far more bytes than Python's own lists of free objects
    levels = []
    tracemalloc.start()
    try:
        for _ in range(2):
            for _ in range(16):
                stream.push(frame)
            gc.collect()
            levels.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert levels[1] < levels[0] + frame.nbytes


FRAME = np.random.default_rng(0).normal(100, 20, (24, 24)) + 9 * np.arange(24)
BAD_STREAMS = {
    "no time": ({"axes": "ZYX"}, "the axes of a stream are T, Y, X"),
    "depth too": ({"axes": "TZYX"}, "the axes of a stream are T, Y, X"),
    "negative delay": ({"delay": -1}, "delay must be"),
    "half a frame": ({"delay": 0.5}, "delay must be"),
    "delay of no use": ({"delay": 21, "passes": 3, "plane_distance": 2}, "delay must be from 1 to 17 with 4"),
    "patch too deep": ({"delay": 1, "patch_depth": 3}, "delay must be from 2 to"),
    "dtype": ({"dtype": "text"}, "dtype must be"),
    "sigma per channel": ({"sigma": [1, 2]}, "one for each of the 1 channels"),
    "ragged sigma": ({"sigma": [[1], [1, 2]]}, "sigma .* different lengths"),
    "model": ({"noise_model": "blue"}, "noise_model must be one of"),
    "sigma": ({"sigma": -1.0}, "sigma"),
}


@pytest.mark.parametrize("case", BAD_STREAMS)
def test_a_stream_that_cannot_be_is_told_of(case):
    options, sentence = BAD_STREAMS[case]
    with pytest.raises(ValueError, match=sentence):
        list(vnlem.Stream(**options).denoise([FRAME] * 25))


def test_an_unknown_parameter_is_named():
    with pytest.raises(TypeError, match="on a stack has no parameter 'speed'"):
        vnlem.Stream(speed=3)
    with pytest.raises(TypeError, match="a name or a NoiseModel"):
        vnlem.Stream(noise_model=np.ones(3))


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (FRAME[:20], r"frame 4 has the shape \(20, 24\) .* the first one had \(24, 24\)"),
        (FRAME.astype(np.float32), "frame 4 has the shape .* and the dtype float32"),
        (FRAME * np.nan, "frame 4: .*NaN"),
    ],
    ids=["size", "dtype", "nan"],
)
def test_a_frame_that_does_not_fit_is_refused_and_the_stream_goes_on(frame, sentence):
    _, noisy = drifting(6, size=24)
    stream = vnlem.Stream(sigma=25.0, workers=1)
    out = []
    for number, good in enumerate(noisy):
        if number == 3:
            with pytest.raises(ValueError, match=sentence):
                stream.push(frame)
        out += stream.push(good)
    np.testing.assert_array_equal(np.stack(out + stream.finish()), streamed(noisy, sigma=25.0)[0])


def test_a_stream_that_ends_early_is_told_of():
    stream = vnlem.Stream(sigma=20.0, delay=3)
    stream.push(FRAME)
    with pytest.raises(ValueError, match="ended after 1 frames, and a delay of 3 needs at least 4"):
        stream.finish()
    with pytest.raises(ValueError, match="the stream has ended"):
        stream.push(FRAME)
    with pytest.raises(ValueError, match="needs the axes YX"):
        vnlem.Stream().push(FRAME[None])
    with pytest.raises(ValueError, match="has the engine 'fast' only"):
        vnlem.Stream(engine="reference")
    with pytest.raises(ValueError, match="delay=4 needs a movie of at least 5 frames, got 4"):
        vnlem.denoise(np.stack([FRAME] * 4), 20, axes="TYX", delay=4)


def test_a_delay_is_for_movies():
    with pytest.raises(ValueError, match="delay is for movies"):
        vnlem.denoise(np.stack([FRAME] * 4), 20, axes="ZYX", delay=2)
