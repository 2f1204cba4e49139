"""Stacks on a real CUDA device: the tolerance to the CPU, the same bytes every time, array types, memory."""

import numpy as np
import pytest
from test_gpu import memory_limit as memory_limit
from test_gpu import scene

import vnlem
from vnlem.metrics import psnr
from vnlem.pipeline.device import why_no_gpu

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(why_no_gpu() is not None, reason=f"{why_no_gpu()}")]

TOLERANCE = 0.01  # dB


def movie(n_frames, height, width, speed=1, seed=0):
    """A scene that moves, clean and with noise of standard deviation 20."""
    whole = scene(height + speed * n_frames, width + speed * n_frames)[0]
    clean = np.stack(
        [whole[speed * t : speed * t + height, speed * t : speed * t + width] for t in range(n_frames)]
    )
    return clean, clean + np.random.default_rng(seed).normal(0, 20, clean.shape)


def assert_agreement(clean, noisy, **options):
    here = vnlem.denoise(noisy, 20, **options)
    there, info = vnlem.denoise(noisy, 20, device="cuda", return_info=True, **options)
    assert info.device == "cuda:0"
    assert type(there) is type(here)
    for page, a, b in zip(clean, here, there, strict=True):
        first, second = (psnr(page, image, data_range=255) for image in (a, b))
        assert abs(first - second) < TOLERANCE


@pytest.mark.parametrize("profile", ["fast", "balanced", "quality"])
@pytest.mark.parametrize("kind", ["T", "Z", "N"])
def test_vnlr_agrees_with_the_cpu(kind, profile):
    assert_agreement(*movie(12 if kind != "N" else 5, 83, 74), axes=f"{kind}YX", profile=profile)


@pytest.mark.parametrize("group", ["identity", "c4"])
@pytest.mark.parametrize("kind", ["T", "Z", "N"])
def test_vnlr_agrees_with_the_cpu_under_other_groups(kind, group):
    assert_agreement(*movie(5, 60, 57), axes=f"{kind}YX", group=group, profile="fast")


@pytest.mark.parametrize("size", [(2, 40, 9), (3, 8, 8), (17, 33, 64)])
@pytest.mark.parametrize("kind", ["T", "Z", "N"])
def test_vnlr_agrees_with_the_cpu_at_odd_sizes(kind, size):
    assert_agreement(*movie(*size), axes=f"{kind}YX", profile="fast")


@pytest.mark.parametrize("place", ["here", "on the GPU"])
@pytest.mark.parametrize("channels", ["joint", "separate"])
def test_a_constant_channel_is_left_out(channels, place):
    cupy = pytest.importorskip("cupy")
    _, noisy = movie(5, 60, 57)
    fewer = np.stack([noisy, 0.7 * noisy[:, ::-1]], axis=1)
    stack = np.insert(fewer, 1, 255.0, axis=1)
    move = cupy.asarray if place == "on the GPU" else np.asarray
    options = {"axes": "TCYX", "profile": "fast", "channels": channels, "device": "cuda"}
    expected, result = (cupy.asnumpy(vnlem.denoise(move(given), 20, **options)) for given in (fewer, stack))
    assert (result[:, 1] == 255).all()
    np.testing.assert_array_equal(result[:, ::2], expected)
    assert np.abs(expected - fewer).max() > 10


def test_images_of_several_sizes_agree_with_the_cpu():
    clean, noisy = movie(4, 70, 64)
    cuts = [(70, 64), (33, 60), (70, 21), (12, 12)]
    assert_agreement(
        *([page[:h, :w] for page, (h, w) in zip(pages, cuts, strict=True)] for pages in (clean, noisy))
    )


def test_time_and_depth_together_agree_with_the_cpu():
    pages = [movie(4, 48, 50, seed=seed) for seed in range(3)]
    clean, noisy = (np.stack([pair[i] for pair in pages]) for i in range(2))
    here = vnlem.denoise(noisy, 20, axes="ZTYX")
    there = vnlem.denoise(noisy, 20, axes="ZTYX", device="cuda")
    first, second = (
        psnr(clean.reshape(-1, 50), image.reshape(-1, 50), data_range=255) for image in (here, there)
    )
    assert abs(first - second) < TOLERANCE


@pytest.mark.parametrize("options", [{}, {"patch_size": 7, "patch_distance": 4, "plane_distance": 3}])
@pytest.mark.parametrize("kind", ["T", "Z"])
def test_nlm_agrees_with_the_cpu(kind, options):
    assert_agreement(*movie(9, 83, 74), axes=f"{kind}YX", method="nlm", **options)


@pytest.mark.parametrize("method", ["vnlr", "nlm"])
@pytest.mark.parametrize("kind", ["T", "Z", "N"])
def test_every_run_gives_the_same_bytes(kind, method):
    cupy = pytest.importorskip("cupy")
    _, noisy = movie(9, 100, 90)
    options = {"axes": f"{kind}YX", "method": method}
    results = [vnlem.denoise(noisy, 20, device="cuda", **options) for _ in range(3)]
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
    stays = vnlem.denoise(cupy.asarray(noisy), 20, **options)
    assert isinstance(stays, cupy.ndarray)
    np.testing.assert_array_equal(stays.get(), results[0])


@pytest.mark.parametrize("kind", ["T", "Z", "N"])
def test_nearly_all_members_are_the_same(kind):
    cupy = pytest.importorskip("cupy")
    from vnlem.kernels.cuda.engine import Engine
    from vnlem.kernels.cuda.ridge import Rule
    from vnlem.methods.cuda.sites import sites_of
    from vnlem.methods.cuda.vnlr_planes import Frame, PlanesOnDevice, Room
    from vnlem.methods.vnlr_stack import _sites, schedule_of, search_of
    from vnlem.methods.vnlr_stack_params import resolve_stack
    from vnlem.neighbours.planes import PlaneMatcher
    from vnlem.pipeline.stack_task import StackTask
    from vnlem.pipeline.workers import Pool

    _, noisy = movie(6, 80, 75)
    planes = ((noisy - noisy.mean()) / noisy.std()).astype(np.float32)
    task = StackTask(kind, [(80, 75)] * 6, 0.3)
    params = resolve_stack(kind, 6)
    schedule, search = schedule_of(task, params), search_of(params, 1)
    engine = Engine()
    sites = sites_of(engine, params, schedule.shape, 6, noisy=False, sigma=0.3)
    rule = Rule(search.patch_size, 0.5, 1.0, None, search.depth)
    weights = np.ones(1, np.float32)
    held = PlanesOnDevice(
        engine,
        schedule.shape,
        sweep=schedule.sweeps[1],
        search=search,
        rule=rule,
        sites=sites,
        sigma=0.3,
        weights=weights,
        room=Room(10**6, 0.0),
    )
    with Pool(1) as pool:
        matcher = PlaneMatcher(schedule.shape, search, 0.3, weights, _sites(params, False, 0.3, pool))
        for plane in planes[:, None]:
            matcher.push(plane)
            there = cupy.asarray(plane)
            held.push(Frame(there, there, there, float(np.abs(plane).max())))
        held.work_on(2)
        rows, columns = (line.get() for line in held.references(80, 75))
        corners = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).reshape(-1, 2)
        here = matcher.match(2, corners.astype(np.int64))
    [found] = held.frames[2].groups
    # Planes of the CPU have spare columns.
    stride = matcher._image.shape[3]
    places = here.positions // stride * 75 + here.positions % stride
    ours = places.astype(np.int64) * 16 + here.transforms
    theirs = found.positions.get().astype(np.int64) * 16 + found.transforms.get()
    same = sum(len(np.intersect1d(a, b)) for a, b in zip(ours, theirs, strict=True))
    assert same >= 0.99 * ours.size


@pytest.mark.parametrize("size", [40_000_000, 4_000_000], ids=["one after the other", "not at all"])
def test_planes_that_do_not_fit(memory_limit, size):
    _, noisy = movie(14, 128, 120)
    options = {"axes": "TYX", "profile": "fast", "plane_distance": 4}
    expected = vnlem.denoise(noisy, 20, device="cuda", **options)
    memory_limit(size)
    if size > 10_000_000:
        np.testing.assert_array_equal(vnlem.denoise(noisy, 20, device="cuda", **options), expected)
    else:
        with pytest.raises(
            MemoryError, match="10 planes of 128x120 pixels, held together, need more GPU memory"
        ):
            vnlem.denoise(noisy, 20, device="cuda", **options)


def test_a_long_movie_takes_no_more_memory():
    cupy = pytest.importorskip("cupy")
    pool = cupy.get_default_memory_pool()
    taken = []
    for n_frames in (20, 40):
        pool.free_all_blocks()
        vnlem.denoise(movie(n_frames, 96, 96)[1], 20, axes="TYX", profile="fast", device="cuda")
        taken.append(pool.total_bytes())
    assert taken[1] < 1.2 * taken[0]
