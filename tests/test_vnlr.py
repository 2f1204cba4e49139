"""VNLR: agreement with its reference, determinism, what it accepts and what it refuses."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
import skimage.data
from vnlr_scene import QUICK, error, noisy_scene, plan_of, scene

import vnlem
from vnlem.estimate.runs import REACH, mean_of_runs
from vnlem.execute import execute
from vnlem.methods.vnlr import halo, resolve
from vnlem.methods.vnlr_passes import matching_of, needed_areas
from vnlem.neighbours.groups import needed_before
from vnlem.pipeline.regions import Region


@pytest.mark.parametrize(
    "group",
    ["identity", "c4", "d4", pytest.param("so2", marks=pytest.mark.slow)],
)
def test_fast_engine_agrees_with_the_reference(group):
    many_copies = group == "so2"  # the reference is slow
    noisy = noisy_scene(height=16, width=18) if many_copies else noisy_scene(height=20, width=26)
    options = dict(group=group, return_info=True, **QUICK)
    if many_copies:
        options["passes"] = 1
    fast, fast_info = vnlem.denoise_vnlr(noisy, 20.0, **options)
    slow, slow_info = vnlem.denoise_vnlr(noisy, 20.0, engine="reference", **options)
    assert np.abs(fast - slow).max() < 1e-3 * 255
    np.testing.assert_allclose(
        fast_info.details["turned_share"], slow_info.details["turned_share"], atol=1e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "group"), [("best", "d4"), ("fast", "d4"), ("balanced", "d4"), ("quality", "identity")]
)
def test_fast_engine_agrees_with_the_reference_in_a_profile_across_the_border_of_a_tile(
    profile, group, monkeypatch
):
    # Patches, members and passes of the profile; only window and tiles are small, to save time.
    monkeypatch.setattr("vnlem.neighbours.groups.TILE", 16)
    noisy = noisy_scene(height=28, width=20)
    options = dict(profile=profile, group=group, patch_distance=6, step=5)
    fast = vnlem.denoise_vnlr(noisy, 20.0, **options)
    slow = vnlem.denoise_vnlr(noisy, 20.0, engine="reference", **options)
    assert np.abs(fast - slow).max() < 1e-3 * 255


@pytest.mark.slow
def test_fast_engine_agrees_with_the_reference_in_colour_and_with_a_sigma_map():
    clean = np.stack([scene(20, 22), scene(20, 22)[::-1], 100 + 0 * scene(20, 22)], axis=-1)
    sigma = np.full((20, 22), 20.0)
    sigma[:, 11:] = 5.0
    noisy = clean + sigma[..., None] * np.random.default_rng(1).standard_normal(clean.shape)
    fast = vnlem.denoise_vnlr(noisy, sigma, channel_axis=-1, **QUICK)
    slow = vnlem.denoise_vnlr(noisy, sigma, channel_axis=-1, engine="reference", **QUICK)
    assert np.abs(fast - slow).max() < 1e-3 * 255
    assert error(fast, clean) < 0.6 * error(noisy, clean)


def test_every_number_of_workers_gives_the_same_bytes():
    noisy = noisy_scene(height=90, width=140)
    results = [vnlem.denoise_vnlr(noisy, 20.0, workers=workers, **QUICK) for workers in (1, 2, 3)]
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()


def test_the_order_in_which_tiles_are_worked_through_does_not_change_the_result():
    from vnlem.estimate.ridge import Pass, PassSettings, run_passes
    from vnlem.kernels.cpu.sheets import Images
    from vnlem.neighbours.groups import Matching, TileGrid
    from vnlem.neighbours.sheets import Reach
    from vnlem.pipeline.regions import Region
    from vnlem.pipeline.workers import Pool

    noisy = ((noisy_scene(height=140, width=140) - 100) / 40)[None].astype(np.float32)
    region = Region.whole(140, 140)
    matching = Matching(Reach(6, 8, region), "identity", 16, np.ones(1, np.float32), 1.3, 0.04)
    settings = PassSettings(tau=0.3, boost=1.1, extra_load=0.25)

    grid = TileGrid.of(matching.reach, 4, region.write)
    assert len(grid.rows) * len(grid.columns) > 4

    def estimate(order, workers=1):
        images = Images(noisy, noisy.copy(), noisy.copy(), np.full((1, 1, 1), 0.25, np.float32))
        found = {}
        passes = [
            Pass(grid, matching, settings, region.write, kept=found),
            Pass(grid, matching, replace(settings, extra_load=None), region.write),
            Pass(grid.needing(region.write), matching, settings, region.write, known=found),
        ]
        with Pool(workers) as pool:
            counts = run_passes(images, passes, pool, order=order)
        assert [total for _, total in counts] == [counts[0][1]] * 3
        assert not found
        return images.pilot

    # Backwards, every tile is held until the first one arrives; in order, none is. Latest pass first: the
    # others wait wherever the next can begin.
    in_order = estimate(lambda step: step)
    for order in (
        lambda step: (step.number, -step.row, -step.column),
        lambda step: (-step.number, step.row, step.column),
        lambda step: (-step.number, -step.column, step.row),
    ):
        assert estimate(order).tobytes() == in_order.tobytes()
        assert estimate(order, workers=3).tobytes() == in_order.tobytes()


@pytest.mark.parametrize(
    ("group", "channels", "size"),
    [
        ("d4", 1, (150, 135)),
        ("identity", 2, (70, 129)),
        ("c4", 3, (128, 64)),
        ("so2", 1, (100, 90)),
    ],
)
def test_parts_that_are_solved_apart_are_the_bytes_of_the_whole(group, channels, size, monkeypatch):
    if group == "identity":  # with the tiles of large images
        monkeypatch.setattr("vnlem.neighbours.groups.MANY_PIXELS", 1000)
    from vnlem.execute import execute
    from vnlem.pipeline.regions import Region
    from vnlem.pipeline.tiles import grid

    image = np.stack([noisy_scene(seed=c, height=size[0], width=size[1]) for c in range(channels)])
    plan = plan_of(image, profile="fast", group=group, patch_distance=4, passes=2)
    whole = execute(plan, image)
    # Parts that end at, just before and just after the lines of the tiles.
    for part in [*grid(*size, 64, 65), *grid(*size, 63, 128)]:
        region = Region.around(size, part, plan.halo)
        rows, columns = slice(region.read.top, region.read.bottom), slice(region.read.left, region.read.right)
        found = execute(plan, image[:, rows, columns], region, workers=2)
        expected = whole[:, part.top : part.bottom, part.left : part.right]
        assert found.tobytes() == expected.tobytes()


def test_a_part_that_reads_too_little_is_refused():
    from vnlem.execute import execute
    from vnlem.pipeline.regions import Region
    from vnlem.pipeline.tiles import Tile

    image = noisy_scene(height=90, width=90)[None]
    plan = plan_of(image, profile="fast", patch_distance=4, passes=1)
    region = Region.around((90, 90), Tile(0, 30, 0, 90), plan.halo // 2)
    with pytest.raises(ValueError, match="halo"):
        execute(plan, image[:, : region.read.bottom], region)


@pytest.mark.parametrize("profile", ["quality", "balanced", "fast"])
def test_profiles_remove_most_of_the_noise(profile):
    noisy, clean = noisy_scene(height=64, width=64), scene(64, 64)
    assert error(vnlem.denoise_vnlr(noisy, 20.0, profile=profile), clean) < 0.4 * 20


def test_sigma_zero_returns_the_image_unchanged():
    image = noisy_scene()
    np.testing.assert_array_equal(vnlem.denoise_vnlr(image, 0), image)


def test_noise_below_single_precision_leaves_the_image_as_it_is():
    image = noisy_scene()
    np.testing.assert_allclose(vnlem.denoise_vnlr(image, 1e-25, **QUICK), image, atol=0.01)


@pytest.mark.parametrize("level", [1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 0.03, 0.1, 0.2, 1.0, 10.0])
@pytest.mark.parametrize("content", ["scene", "waves", "ramp", "texture", "coins"])
def test_the_result_is_never_worse_than_the_input(content, level):
    y, x = np.mgrid[:48, :48].astype(float)
    clean = {
        "scene": scene(48, 48),
        "waves": np.sin(x / 9) * np.cos(y / 7),
        "ramp": x + 2 * y,
        "texture": np.random.default_rng(0).standard_normal((48, 48)),  # nothing can be known about it
        "coins": skimage.data.coins()[70:118, 60:108].astype(float),
    }[content]
    sigma = level * clean.std()
    noisy = clean + sigma * np.random.default_rng(3).standard_normal(clean.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # given noise of ten times the contrast
        result = vnlem.denoise_vnlr(noisy, sigma)
    assert error(result, clean) < 1.0003 * error(noisy, clean)


@pytest.mark.parametrize("patch_size", [2, 3, 4, 5])
@pytest.mark.parametrize("profile", ["quality", "balanced", "fast"])
def test_every_pixel_is_covered_whatever_the_patch(profile, patch_size):
    y, x = np.mgrid[:40, :44]
    ramp = (2 * x + y).astype(np.uint8)
    result = vnlem.denoise_vnlr(ramp, 10, patch_size=patch_size, profile=profile, patch_distance=6)
    assert np.abs(result.astype(float) - ramp).max() < 20


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_step_larger_than_the_patch_is_refused(engine):
    with pytest.raises(ValueError, match="step must be at most the smallest patch of the passes, 6"):
        vnlem.denoise_vnlr(noisy_scene(), 20.0, step=7, engine=engine)


def test_a_window_beyond_the_image_is_the_image():
    noisy = noisy_scene()
    small = {**QUICK, "patch_distance": 60}
    large = {**QUICK, "patch_distance": 1000}
    np.testing.assert_array_equal(
        vnlem.denoise_vnlr(noisy, 20.0, **small), vnlem.denoise_vnlr(noisy, 20.0, **large)
    )


def test_units_do_not_matter():
    noisy = noisy_scene()
    plain = vnlem.denoise_vnlr(noisy, 20.0, **QUICK)
    scaled = vnlem.denoise_vnlr(noisy * 1e-12 + 7e-9, 20e-12, **QUICK)
    np.testing.assert_allclose((scaled - 7e-9) * 1e12, plain, atol=0.05)


def test_a_huge_dynamic_range_stays_finite():
    noisy = noisy_scene()
    noisy[10, 10] = 1e7
    result = vnlem.denoise_vnlr(noisy, 20.0, **QUICK)
    assert np.isfinite(result).all()


def test_integers_keep_their_dtype():
    noisy = np.clip(noisy_scene(), 0, 255).astype(np.uint8)
    assert vnlem.denoise_vnlr(noisy, 20.0, **QUICK).dtype == np.uint8


def test_a_constant_image_stays_constant():
    with pytest.warns(UserWarning, match="sigma"):
        result = vnlem.denoise_vnlr(np.full((20, 20), 7.0), 3.0, **QUICK)
    np.testing.assert_allclose(result, 7.0, atol=1e-5)


def test_an_image_of_a_single_patch_and_one_smaller_than_the_window_work():
    assert vnlem.denoise_vnlr(np.arange(25.0).reshape(5, 5), 1.0, **QUICK).shape == (5, 5)
    assert vnlem.denoise_vnlr(noisy_scene(height=7, width=40), 20.0, **QUICK).shape == (7, 40)


@pytest.mark.parametrize("shape", [(4, 40), (40, 1), (1, 40)])
def test_an_image_smaller_than_a_patch_is_refused(shape):
    with pytest.raises(ValueError, match="smaller than the patch"):
        vnlem.denoise_vnlr(np.random.default_rng(0).normal(size=shape), 0.5, **QUICK)


@pytest.mark.parametrize(
    ("sigma", "message"),
    [
        (np.ones((3, 3)), "shape"),
        (-np.ones((40, 44)), "negative"),
        (np.full((40, 44), np.nan), "NaN"),
        (-1.0, "negative"),
        (np.nan, "finite"),
    ],
)
def test_a_wrong_sigma_is_refused(sigma, message):
    with pytest.raises(ValueError, match=message):
        vnlem.denoise_vnlr(noisy_scene(), sigma, **QUICK)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"group": "d5"}, "group must be one of"),
        ({"profile": "slow"}, "profile must be one of"),
        ({"engine": "gpu"}, "engine must be one of"),
        ({"preset": "paper"}, "vnlem-dd"),
        ({"passes": 0}, "at least 1"),
        ({"n_neighbors": 1}, "at least 2"),
        ({"n_neighbors": 10**9}, "at most 512"),
        ({"patch_size": 33}, "at most 32"),
        ({"patch_distance": 10**30}, "at most 1024"),
    ],
)
def test_wrong_parameters_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        vnlem.denoise_vnlr(noisy_scene(), 20.0, **wrong)


def test_parameters_follow_sigma_without_jumps():
    levels = np.geomspace(0.03, 2.0, 200)
    sizes = [resolve(level, "quality").patch_size for level in levels]
    assert all(0 <= after - before <= 1 for before, after in itertools.pairwise(sizes))


def test_more_noise_never_gives_a_better_result():
    clean = scene(64, 64)
    noise = np.random.default_rng(7).standard_normal(clean.shape)
    levels = [2.0, 5.0, 10.0, 14.0, 16.0, 20.0, 40.0, 80.0, 100.0]
    errors = [error(vnlem.denoise_vnlr(clean + s * noise, s, profile="fast"), clean) for s in levels]
    ratios = np.diff(np.log(errors)) / np.diff(np.log(levels))
    # The error grows steadily with sigma: the slope of its logarithm stays between zero and one.
    assert (ratios > 0.2).all()
    assert (ratios < 1.6).all()


def test_progress_ends_at_its_total():
    seen = []
    vnlem.denoise_vnlr(noisy_scene(), 20.0, progress=lambda done, total: seen.append((done, total)), **QUICK)
    assert seen[-1][0] == seen[-1][1]


def test_vnlr_is_the_default_method():
    _, info = vnlem.denoise(noisy_scene(), 20.0, return_info=True, **QUICK)
    assert info.method == "vnlr"


def test_best_is_the_weighted_mean_of_its_runs():
    image = noisy_scene(height=100, width=104)[None]
    plan = plan_of(image, profile="best", passes=2, n_neighbors=16, scales=1)
    (group,) = plan.sizes[0].groups
    runs = [group.params, *group.params.others]
    assert len(runs) == 2
    assert plan.halo == max(halo(run) for run in runs) + REACH
    found = []
    for run in runs:
        size = replace(plan.sizes[0], groups=(replace(group, params=replace(run, others=())),))
        found.append(execute(replace(plan, rounds=(replace(plan.rounds[0], sizes=(size,)),)), image))
    assert np.abs(found[0] - found[1]).max() > 0.1
    sigma = np.float32(plan.sizes[0].level)
    np.testing.assert_allclose(execute(plan, image), mean_of_runs(*found, sigma), atol=1e-3)


def test_what_is_given_holds_for_all_runs_of_best():
    params = resolve(0.2, "best", patch_distance=9, patch_size=5, passes=2, step=2)
    for run in (params, *params.others):
        assert (run.patch_distance, run.patch_sizes, run.passes, run.step) == (9, (5, 5, 5), 2, 2)


def test_progress_of_best_goes_on_through_all_runs():
    seen = []

    def report(done, total):
        seen.append(done / total)

    vnlem.denoise_vnlr(noisy_scene(), 20.0, profile="best", progress=report, **QUICK)
    assert seen == sorted(seen)
    assert seen[-1] == 1


@pytest.mark.parametrize("group", ["d4", "so2"])
def test_a_whole_image_needs_all_of_its_pixels_in_every_pass(group):
    params, region = resolve(0.3, group=group), Region.whole(63, 50)
    matchings = [matching_of(params, number, region, 1, 0.3) for number in range(params.passes + 1)]
    for number, matching in enumerate(matchings):
        step = params.first_step if number == 0 else params.step
        needed = needed_before(matching.reach, step, region.write, matching.reach_of_copies())
        assert needed == region.write
    assert needed_areas(params, matchings, region) == [region.write] * (len(matchings) + 1)
