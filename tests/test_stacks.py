"""Movies, volumes and sets of images: the fast passes against the reference, and what a stack promises."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from stack_scene import SMALL, drifting, error

import vnlem
from vnlem.estimate.planes import Sweep
from vnlem.methods.vnlr_stack import solve_stack
from vnlem.methods.vnlr_stack_params import resolve_stack
from vnlem.pipeline.stack_task import StackTask
from vnlem.stacks import denoise_pages_on_disk


@pytest.mark.parametrize("kind", ["T", "Z", "N"], ids=["time", "depth", "images"])
@pytest.mark.parametrize("group", ["identity", "d4"])
def test_the_fast_passes_agree_with_the_reference(kind, group):
    _, noisy = drifting(5, size=13)
    options = {**SMALL, "group": group, **({} if kind == "N" else {"patch_depth": 2})}
    fast = vnlem.denoise(noisy, 25, axes=f"{kind}YX", **options)
    plain = vnlem.denoise(noisy, 25, axes=f"{kind}YX", engine="reference", **options)
    assert np.abs(fast - plain).max() < 0.02
    assert np.abs(fast - noisy).max() > 10


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


@pytest.mark.slow
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
    for of_stacks in ({}, {"plane_distance": 1} if method == "vnlr" or axes != "NYX" else {}):
        found = vnlem.denoise(stack, 25, axes=axes, method=method, **of_stacks)
        np.testing.assert_array_equal(found.reshape(page.shape), alone)


def test_axes_may_come_in_any_order():
    _, noisy = drifting(4)
    straight = vnlem.denoise(noisy, 25, axes="TYX", profile="fast")
    turned = vnlem.denoise(np.moveaxis(noisy, 0, 2), 25, axes="YXT", profile="fast")
    np.testing.assert_array_equal(np.moveaxis(turned, 2, 0), straight)
    crossed = vnlem.denoise(noisy.transpose(0, 2, 1), 25, axes="TXY", profile="fast")
    np.testing.assert_array_equal(crossed.transpose(0, 2, 1), straight)


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
