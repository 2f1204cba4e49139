"""Movies, volumes and sets of images: the fast passes against the reference, and what a stack promises."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import vnlem
from vnlem.estimate.planes import Sweep
from vnlem.methods.vnlr_stack import solve_stack
from vnlem.methods.vnlr_stack_params import resolve_stack
from vnlem.pipeline.stack_task import StackTask
from vnlem.stacks import denoise_pages_on_disk

SMALL = {"patch_size": 4, "n_neighbors": 10, "patch_distance": 3, "step": 3, "passes": 2, "plane_distance": 1}


def drifting(n_frames, size=32, speed=2, seed=0):
    """A pattern that moves by whole pixels from frame to frame, and its noisy version."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: size + speed * n_frames, : size + speed * n_frames]
    scene = 60 * np.sin(0.5 * x + 0.01 * y**1.6) + 40 * ((y // 9 + x // 7) % 2)
    clean = np.stack(
        [scene[speed * t : speed * t + size, speed * t : speed * t + size] for t in range(n_frames)]
    )
    return clean, clean + rng.normal(0, 25, clean.shape)


def error(result, clean):
    return float(np.sqrt(np.mean((np.asarray(result, float) - clean) ** 2)))


@pytest.mark.parametrize("kind", ["T", "Z", "N"], ids=["time", "depth", "images"])
@pytest.mark.parametrize("group", ["identity", "d4"])
def test_the_fast_passes_agree_with_the_reference(kind, group):
    _, noisy = drifting(5, size=13)
    options = {**SMALL, "group": group, **({} if kind == "N" else {"patch_depth": 2})}
    fast = vnlem.denoise(noisy, 25, axes=f"{kind}YX", **options)
    plain = vnlem.denoise(noisy, 25, axes=f"{kind}YX", engine="reference", **options)
    assert np.abs(fast - plain).max() < 0.02
    assert np.abs(fast - noisy).max() > 10


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "channels"), [("T", 3), ("Z", 3), ("N", 3), ("T", 2)])
def test_channels_together_agree_with_the_reference(kind, channels):
    _, noisy = drifting(4, size=12)
    mixed = noisy[..., None] * np.linspace(1, 0.4, channels)
    mixed += np.random.default_rng(3).normal(0, 25, mixed.shape)
    options = {**SMALL, "axes": f"{kind}YXC", "channels": "joint", "noise_model": "gaussian"}
    options |= {} if kind == "N" else {"patch_depth": 2}
    fast = vnlem.denoise(mixed, 30, **options)
    plain = vnlem.denoise(mixed, 30, engine="reference", **options)
    assert np.abs(fast - plain).max() < 0.02
    assert np.abs(fast - mixed).max() > 10


def test_images_of_several_sizes_agree_with_the_reference():
    _, noisy = drifting(3, size=14)
    images = [noisy[0], noisy[1][:11, :9], noisy[2][:, :10]]
    fast = vnlem.denoise(images, 25, **SMALL)
    plain = vnlem.denoise(images, 25, engine="reference", **SMALL)
    for a, b, given in zip(fast, plain, images, strict=True):
        assert a.shape == given.shape
        assert np.abs(a - b).max() < 0.02


@pytest.mark.parametrize("kind", ["T", "Z"])
@pytest.mark.parametrize("distance", [0, 1, 3])
@pytest.mark.parametrize("noise_correction", [True, False])
def test_nlm_with_windows_in_the_planes_around_agrees_with_the_reference(kind, distance, noise_correction):
    _, noisy = drifting(4, size=11)
    options = {"plane_distance": distance, "patch_distance": 3, "noise_correction": noise_correction}
    fast = vnlem.denoise(noisy, 25, axes=f"{kind}YX", method="nlm", **options)
    plain = vnlem.denoise(noisy, 25, axes=f"{kind}YX", method="nlm", engine="reference", **options)
    np.testing.assert_allclose(fast, plain, rtol=0, atol=0.02)
    assert np.abs(fast - noisy).max() > 5


def test_nlm_without_other_planes_is_nlm():
    _, noisy = drifting(3, size=70)
    movie = vnlem.denoise(noisy, 25, axes="TYX", method="nlm", plane_distance=0)
    pages = np.stack([vnlem.denoise(page, 25, method="nlm") for page in noisy])
    np.testing.assert_allclose(movie, pages, rtol=0, atol=0.02)


@pytest.mark.parametrize("kind", ["T", "Z"])
def test_nlm_gains_from_the_planes_around(kind):
    clean, noisy = drifting(7, speed=1)
    movie = vnlem.denoise(noisy, 25, axes=f"{kind}YX", method="nlm")
    pages = np.stack([vnlem.denoise(page, 25, method="nlm") for page in noisy])
    assert error(movie, clean) < 0.9 * error(pages, clean)


def test_nlm_refuses_pages_of_one_row():
    rows = drifting(3)[1][:, :1]
    with pytest.raises(ValueError, match=r"have one row, less than the patch \(5\)"):
        vnlem.denoise(rows, 25, axes="ZYX", method="nlm", patch_size=5)
    pages = drifting(3)[1][:, :2]
    options = {"axes": "ZYX", "method": "nlm", "patch_size": 9, "noise_model": "gaussian"}
    plain = vnlem.denoise(pages, 25, engine="reference", **options)
    np.testing.assert_allclose(vnlem.denoise(pages, 25, **options), plain, atol=0.02)


def test_nlm_takes_a_set_of_images_one_by_one():
    _, noisy = drifting(3, size=24)
    pages = np.stack([vnlem.denoise(page, 25, method="nlm") for page in noisy])
    np.testing.assert_array_equal(vnlem.denoise(noisy, 25, axes="NYX", method="nlm"), pages)


@pytest.mark.parametrize("method", ["vnlr", "nlm"])
@pytest.mark.parametrize("kind", ["T", "Z", "N"])
def test_the_result_does_not_depend_on_the_workers(kind, method):
    _, noisy = drifting(6, size=72)
    options = {"axes": f"{kind}YX", "method": method} | ({"profile": "fast"} if method == "vnlr" else {})
    one, three = (vnlem.denoise(noisy, 25, workers=n, **options) for n in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_a_movie_gains_over_its_pages():
    clean, noisy = drifting(9)
    movie = vnlem.denoise(noisy, 25, axes="TYX")
    pages = np.stack([vnlem.denoise(page, 25) for page in noisy])
    assert error(movie, clean) < 0.85 * error(pages, clean)


def test_a_still_scene_gains_like_averaging():
    clean, _ = drifting(1)
    noisy = clean + np.random.default_rng(1).normal(0, 25, (9, 32, 32))
    assert error(vnlem.denoise(noisy, 25, axes="TYX"), clean) < 1.2 * 25 / 3


def test_a_volume_gains_over_its_pages():
    z, y, x = np.mgrid[:12, :32, :32]
    clean = 100.0 * ((z - 6) ** 2 + (y - 16) ** 2 + (x - 16) ** 2 < 100) + 50.0 * ((y + x + z) % 16 < 8)
    noisy = clean + np.random.default_rng(2).normal(0, 25, clean.shape)
    pages = np.stack([vnlem.denoise(page, 25) for page in noisy])
    assert error(vnlem.denoise(noisy, 25, axes="ZYX"), clean) < 0.85 * error(pages, clean)


def test_a_set_of_particles_gains_over_one_by_one():
    from vnlem.bench.phantoms import half_discs

    clean = np.stack([half_discs(6, 16, 2, seed=i, size=48) for i in range(12)])
    noisy = clean + np.random.default_rng(3).normal(0, 0.55, clean.shape)
    alone = np.stack([vnlem.denoise(image, 0.55) for image in noisy])
    assert error(vnlem.denoise(noisy, 0.55, axes="NYX"), clean) < 0.95 * error(alone, clean)


@pytest.mark.parametrize("axes", ["TYX", "ZYX", "NYX", "TZCYX"])
@pytest.mark.parametrize("method", ["vnlr", "nlm"])
def test_a_stack_of_one_page_gives_the_bytes_of_the_page(axes, method):
    page = drifting(1)[1][0].astype(np.float32)
    stack = page.reshape((1,) * (len(axes) - 2) + page.shape)
    alone = vnlem.denoise(page, 25, method=method)
    np.testing.assert_array_equal(
        vnlem.denoise(stack, 25, axes=axes, method=method).reshape(page.shape), alone
    )


def test_axes_may_come_in_any_order():
    _, noisy = drifting(4)
    straight = vnlem.denoise(noisy, 25, axes="TYX", profile="fast")
    turned = vnlem.denoise(np.moveaxis(noisy, 0, 2), 25, axes="YXT", profile="fast")
    np.testing.assert_array_equal(np.moveaxis(turned, 2, 0), straight)
    crossed = vnlem.denoise(noisy.transpose(0, 2, 1), 25, axes="TXY", profile="fast")
    np.testing.assert_array_equal(crossed.transpose(0, 2, 1), straight)


def test_channels_have_a_noise_of_their_own():
    _, noisy = drifting(4)
    both = np.stack([noisy, 10 * noisy], axis=1)
    options = {"axes": "TCYX", "profile": "fast", "channels": "separate"}
    result, info = vnlem.denoise(both, return_info=True, **options)
    first, second = info.details["sigma_per_channel"]
    assert second == pytest.approx(10 * first)
    np.testing.assert_array_equal(result[:, 0], vnlem.denoise(noisy, first, axes="TYX", profile="fast"))
    np.testing.assert_array_equal(vnlem.denoise(both, [first, second], **options), result)
    _, info = vnlem.denoise(both, axes="TCYX", profile="fast", return_info=True)
    assert info.details["sigma_per_channel"] == pytest.approx([first, second])


def colours(n_frames=4, size=32):
    """A drifting pattern in three colours that belong together, and its noisy version."""
    grey, _ = drifting(n_frames, size=size)
    clean = grey[..., None] * [1.0, 0.8, 0.5] + [0, 20, 40]
    return clean, clean + np.random.default_rng(8).normal(0, 25, clean.shape)


@pytest.mark.parametrize("kind", "TZN")
def test_colours_gain_over_channels_one_by_one(kind):
    clean, noisy = colours()
    options = {"axes": f"{kind}YXC", "profile": "fast", "return_info": True}
    joint, info = vnlem.denoise(noisy, 25, **options)
    assert info.details["channels"] == "joint"
    apart, info = vnlem.denoise(noisy, 25, channels="separate", **options)
    assert info.details["channels"] == "separate"
    assert error(joint, clean) < 0.9 * error(apart, clean)


def test_colours_may_lie_along_any_axis():
    _, noisy = colours()
    options = {"sigma": 25, "profile": "fast"}
    straight = vnlem.denoise(noisy, axes="TYXC", **options)
    for axes in ("TCYX", "CTYX", "XYCT"):
        order = ["TYXC".index(letter) for letter in axes]
        found = vnlem.denoise(noisy.transpose(order), axes=axes, **options)
        np.testing.assert_array_equal(found, straight.transpose(order))


def test_colours_do_not_depend_on_the_workers():
    _, noisy = colours(4, 72)
    one, three = (vnlem.denoise(noisy, 25, axes="TYXC", profile="fast", workers=n) for n in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_channels_that_do_not_belong_together_are_denoised_one_by_one():
    rng = np.random.default_rng(9)
    stains = [100 * (gaussian_filter(rng.normal(size=(80, 80)), 3) > 0.05) for _ in range(2)]
    noisy = np.stack([stains] * 4) + rng.normal(0, 20, (4, 2, 80, 80))
    result, info = vnlem.denoise(noisy, 20, axes="TCYX", profile="fast", return_info=True)
    assert info.details["channels"] == "separate"
    alone = vnlem.denoise(noisy[:, 1], 20, axes="TYX", profile="fast")
    np.testing.assert_array_equal(result[:, 1], alone)


def test_a_grey_movie_stored_in_three_channels_gets_the_grey_result():
    _, noisy = drifting(4)
    result, info = vnlem.denoise(
        np.repeat(noisy[..., None], 3, axis=3), 25, axes="TYXC", profile="fast", return_info=True
    )
    assert info.details["channels"] == "same"
    grey = vnlem.denoise(noisy, 25, axes="TYX", profile="fast")
    np.testing.assert_allclose(result, np.repeat(grey[..., None], 3, axis=3), rtol=0, atol=1e-3)


@pytest.mark.parametrize("axes", ["CYX", "YXC", "TYXC", "NCXY"])
def test_channels_without_other_pages_are_an_image(axes):
    page = colours(1)[1][0]  # rows, columns, channels
    expected = vnlem.denoise(page, 25, channel_axis=-1)
    order = [letter for letter in axes if letter in "CYX"]
    given = page.transpose(["YXC".index(letter) for letter in order])
    shape = [1 if letter not in "CYX" else given.shape[order.index(letter)] for letter in axes]
    found = vnlem.denoise(given.reshape(shape), 25, axes=axes).reshape(given.shape)
    np.testing.assert_array_equal(found.transpose([order.index(letter) for letter in "YXC"]), expected)


@pytest.mark.slow
def test_several_sizes_gain_in_flat_areas():
    rng = np.random.default_rng(4)
    clean = np.full((4, 128, 128), 60.0)
    clean[:, 40:90, 30:100] = 120
    noisy = clean + rng.normal(0, 30, clean.shape)
    one = vnlem.denoise(noisy, 30, axes="TYX", profile="fast", scales=1)
    several, info = vnlem.denoise(noisy, 30, axes="TYX", profile="fast", return_info=True)
    assert info.parameters["scales"] == 3
    assert error(several, clean) < 0.9 * error(one, clean)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "channels"), [("T", 1), ("T", 3), ("Z", 3)])
def test_a_map_of_the_noise_agrees_with_the_reference(kind, channels):
    clean, _ = drifting(4, size=12)
    clean = clean[..., None] * np.linspace(1, 0.5, channels)
    level = np.random.default_rng(2).uniform(5, 40, (4, 12, 12, 1))
    noisy = clean + level * np.random.default_rng(3).normal(size=clean.shape)
    options = {**SMALL, "axes": f"{kind}YXC", "patch_depth": 2, "channels": "joint"}
    fast = vnlem.denoise(noisy, level, **options)
    plain = vnlem.denoise(noisy, level, engine="reference", **options)
    assert np.abs(fast - plain).max() < 0.02
    assert np.abs(fast - noisy).max() > 10


def test_a_sigma_for_each_frame_gains_over_one_for_all():
    clean, _ = drifting(6, size=48)
    level = np.array([5.0, 40.0, 5.0, 40.0, 5.0, 40.0])[:, None, None]
    noisy = clean + level * np.random.default_rng(3).normal(size=clean.shape)
    each = vnlem.denoise(noisy, level, axes="TYX", profile="fast")
    one = vnlem.denoise(noisy, float(np.sqrt(np.mean(level**2))), axes="TYX", profile="fast")
    assert error(each, clean) < 0.8 * error(one, clean)


def test_an_even_map_is_one_number():
    _, noisy = drifting(4, size=100)
    options = {"axes": "TYX", "profile": "fast", "noise_model": "gaussian"}
    given = vnlem.denoise(noisy, np.full((1, 100, 1), 25.0), **options)
    np.testing.assert_allclose(given, vnlem.denoise(noisy, 25, **options), rtol=0, atol=0.02)


def test_channels_of_different_noise_maps_are_denoised_one_by_one():
    _, noisy = colours()
    level = np.full(noisy.shape, 25.0) * [1, 0.9, 0.8]
    result, info = vnlem.denoise(noisy, level, axes="TYXC", profile="fast", return_info=True)
    assert info.details["channels"] == "separate"
    second = vnlem.denoise(noisy[..., 1], level[..., 1], axes="TYX", profile="fast")
    np.testing.assert_array_equal(result[..., 1], second)


@pytest.mark.slow
def test_time_and_depth_together_follow_what_is_more_alike():
    rng = np.random.default_rng(6)
    for kind, blur in (("T", (3, 0.5, 2, 2)), ("Z", (0.5, 3, 2, 2))):
        clean = gaussian_filter(rng.normal(size=(5, 6, 32, 32)), blur)
        clean *= 40 / clean.std()
        noisy = clean + rng.normal(0, 25, clean.shape)
        result, info = vnlem.denoise(noisy, 25, axes="TZYX", profile="fast", return_info=True)
        assert set(info.details["series"]) == {kind}
        movies = [vnlem.denoise(noisy[:, k], 25, axes="TYX", profile="fast") for k in range(6)]
        volumes = [vnlem.denoise(volume, 25, axes="ZYX", profile="fast") for volume in noisy]
        alternatives = {"T": np.stack(movies, axis=1), "Z": np.stack(volumes)}
        np.testing.assert_array_equal(result, alternatives.pop(kind))
        assert error(result, clean) < error(next(iter(alternatives.values())), clean)


def test_time_points_channels_and_slices_together():
    _, noisy = drifting(12, size=24)
    stack = noisy.reshape(3, 4, 24, 24)[:, :, None] * np.array([1.0, 5.0])[:, None, None]
    options = {"axes": "TZCYX", "profile": "fast", "return_info": True}
    _, info = vnlem.denoise(stack, [25, 125], channels="separate", **options)
    assert len(info.details["series"]) in (6, 8)  # of 3 time points or 4 slices in two channels
    result, info = vnlem.denoise(stack, [25, 125], **options)
    assert info.details["channels"] == "joint"
    assert len(info.details["series"]) in (3, 4)
    np.testing.assert_allclose(result[:, :, 1], 5 * result[:, :, 0], rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("axes", ["TYX", "CYX"])
def test_the_order_of_bytes_stays(axes):
    noisy = np.clip(drifting(3, size=16)[1] + 100, 0, 255).astype(">u2")
    assert vnlem.denoise(noisy, 25, axes=axes, method="nlm").dtype == noisy.dtype


def test_integers_keep_their_dtype_and_the_input_stays():
    noisy = np.clip(drifting(4)[1] + 100, 0, 255).astype(np.uint8)
    before = noisy.copy()
    result = vnlem.denoise(noisy, 25, axes="TYX", profile="fast")
    assert result.dtype == np.uint8
    assert result.shape == noisy.shape
    np.testing.assert_array_equal(noisy, before)


@pytest.mark.parametrize("method", ["nlem", "vnlem", "vnlem-dd"])
def test_other_methods_take_stacks_page_by_page(method):
    _, noisy = drifting(2, size=24)
    pages = np.stack([vnlem.denoise(page, 25, method=method) for page in noisy])
    np.testing.assert_array_equal(vnlem.denoise(noisy, 25, axes="TYX", method=method), pages)


def test_photon_noise_is_stabilised_with_one_model_for_all_pages():
    clean, _ = drifting(5)
    clean = clean - clean.min() + 20
    noisy = np.random.default_rng(4).poisson(clean).astype(float)
    result, info = vnlem.denoise(
        noisy, axes="TYX", noise_model="poisson-gaussian", gain=1.0, profile="fast", return_info=True
    )
    assert info.noise.gain.gain == 1.0
    assert error(result, clean) < 0.6 * error(noisy, clean)


def test_pages_are_read_and_given_while_only_some_are_held():
    params = resolve_stack("T", 60, **{**SMALL, "patch_depth": 2})
    read = []

    def pages():
        rng = np.random.default_rng(5)
        for number in range(60):
            read.append(number)
            yield rng.normal(size=(16, 16)).astype(np.float32)

    ahead = []
    for given, _ in enumerate(solve_stack(pages(), StackTask("T", [(16, 16)] * 60, 0.5), params)):
        ahead.append(len(read) - given)
    in_flight = Sweep(60, params.reach, 3, 1).in_flight(0, 2)[1]
    assert max(ahead) <= (params.passes + 1) * in_flight
    assert given == 59


class Counting:
    """An array of pages that counts how often each is read."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.reads = np.zeros(array.shape[0], int)

    def __getitem__(self, index):
        self.reads[index[0]] += 1
        return self.array[index]


def test_no_page_is_read_for_its_shape_alone():
    movie = np.random.default_rng(0).normal(100, 10, (30, 16, 16))
    pages, out = Counting(movie), np.empty_like(movie)
    camera = {"gain": None, "offset": None, "read_noise": None}
    options = {"axes": "TYX", "method": "nlm", "noise_model": "gaussian", "workers": 1, "progress": False}
    denoise_pages_on_disk(pages, out, 9.0, device="cpu", **camera, **options)
    # Once for the units of the whole, once for denoising; the middle one again, to check its noise.
    assert np.delete(pages.reads, 15).max() == 2
    assert pages.reads[15] == 3
    np.testing.assert_array_equal(out, vnlem.denoise(movie, 9.0, axes="TYX", method="nlm"))


def test_progress_runs_over_all_pages():
    _, noisy = drifting(4)
    seen = []
    vnlem.denoise(
        noisy[None], 25, axes="CTYX", profile="fast", progress=lambda done, total: seen.append((done, total))
    )
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]
    assert len(seen) > 4


def test_a_stack_can_be_cancelled():
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vnlem.denoise(drifting(4)[1], 25, axes="TYX", progress=stop)


def test_no_noise_gives_the_stack_back():
    _, noisy = drifting(3)
    np.testing.assert_array_equal(vnlem.denoise(noisy, 0, axes="TYX"), noisy)


STACK = np.zeros((3, 16, 16))
BAD = {
    "too few letters": (STACK, {"axes": "YX"}, "names 2 axes, but the array has 3"),
    "doubled": (STACK, {"axes": "TTYX"}, "names 'T' twice"),
    "no rows": (STACK, {"axes": "TZX"}, "names no Y"),
    "no columns": (STACK, {"axes": "TYZ"}, "names no X"),
    "unknown letter": (STACK, {"axes": "QYX"}, "holds the letter 'Q'"),
    "no pages": (STACK[:0], {"axes": "TYX"}, "the stack is empty"),
    "no axes": (STACK, {}, "axes"),
    "both": (STACK, {"axes": "TYX", "channel_axis": 0}, "exclude each other"),
    "sizes": ([STACK[0], STACK[0, :9]], {"axes": "TYX"}, "must have one size, got 16x16 and 9x16"),
    "tiny pages": (STACK[:, :3] + 9 * np.arange(16.0), {"axes": "TYX"}, "less than the patch"),
    "so2": (STACK + 9 * np.arange(16.0), {"axes": "TYX", "group": "so2"}, "not available for stacks"),
    "similarity": (STACK + 9 * np.arange(16.0), {"axes": "TYX", "group": "similarity"}, "not available for"),
    "no such channels": (
        STACK[..., None] + np.zeros(3),
        {"axes": "TYXC", "channels": "some"},
        "channels must be",
    ),
    "nlm's channels": (
        STACK[..., None] + np.zeros(3),
        {"axes": "TYXC", "channels": "joint", "method": "nlm"},
        "denoises the channels of a stack one by one",
    ),
    "too many sizes": (STACK + 9 * np.arange(16.0), {"axes": "TYX", "scales": 99}, "scales must be at most"),
    "sigma of another shape": (
        STACK,
        {"axes": "TYX", "sigma": np.ones((2, 1, 1))},
        "as many axes as the stack",
    ),
    "negative sigma": (STACK, {"axes": "TYX", "sigma": -np.ones((3, 1, 1))}, "must not be negative"),
    "sigma map of photons": (
        STACK,
        {"axes": "TYX", "sigma": np.ones((3, 1, 1)), "noise_model": "poisson-gaussian"},
        "is for white noise",
    ),
    "nlm's sigma": (
        STACK + 9 * np.arange(16.0),
        {"axes": "TYX", "sigma": np.ones((3, 1, 1)), "method": "nlm"},
        "takes one sigma for all of a stack",
    ),
    "sigma per page": (STACK, {"axes": "TYX", "sigma": [1, 2, 3]}, "one for each of the 1 channels"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_told_in_one_sentence(case):
    stack, options, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        vnlem.denoise(stack, **{"sigma": 5.0, "noise_model": "gaussian", **options})


def test_a_page_that_is_no_number_is_named():
    _, noisy = drifting(3)
    noisy[1, 4, 4] = np.inf
    with pytest.raises(ValueError, match=r"page 2 of 3: .*infinite"):
        vnlem.denoise(noisy, 25, axes="TYX")


def test_axes_must_be_text():
    with pytest.raises(TypeError, match="axes must be a text"):
        vnlem.denoise(STACK, 5, axes=0)


def test_a_parameter_that_stacks_lack_is_named():
    with pytest.raises(TypeError, match="on a stack has no parameter 'gamma'"):
        vnlem.denoise(STACK, 5, axes="TYX", gamma=1)


@pytest.mark.parametrize("sigma", [None, 1e-12])
def test_a_stack_without_noise_comes_back_and_its_parameters_are_checked(sigma):
    ramp = np.tile(np.linspace(0, 255, 32), (4, 32, 1))
    np.testing.assert_array_equal(vnlem.denoise(ramp, sigma, axes="TYX", plane_distance=1), ramp)
    with pytest.raises(TypeError, match="on a stack has no parameter 'scale'; it has"):
        vnlem.denoise(ramp, sigma, axes="TYX", scale=1)
    flat = np.full((3, 16, 16), 7.0)
    np.testing.assert_array_equal(vnlem.denoise(flat, axes="TYX"), flat)


BLEACHING = {
    "found": {"noise_model": "poisson-gaussian"},
    "told": {"gain": 2.0, "offset": 100.0, "read_noise": 1.5},
}


@pytest.mark.parametrize("options", list(BLEACHING.values()), ids=list(BLEACHING))
@pytest.mark.parametrize("seed", [0, 1])
def test_one_photon_model_follows_a_movie_that_bleaches(options, seed):
    rng = np.random.default_rng(seed)
    scene = gaussian_filter(rng.normal(size=(96, 96)), 4)
    scene = 200 * (scene - scene.min()) / np.ptp(scene) + 20
    photons = scene * np.exp(-np.arange(12) / 4)[:, None, None]  # to 6 % of the first frame
    clean = 100 + 2 * photons
    noisy = 100 + 2.0 * rng.poisson(photons) + rng.normal(0, 1.5, photons.shape)
    result, info = vnlem.denoise(noisy, axes="TYX", profile="fast", return_info=True, **options)
    assert info.noise.kind == "poisson-gaussian"
    for page, before, after in zip(result, noisy, clean, strict=True):
        noise = np.std(before - after)
        assert error(page, after) < 0.3 * noise
        assert abs(np.mean(page - after)) < 0.05 * noise
