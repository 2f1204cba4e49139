"""Movies and volumes in parts: frames and slices help each other, and parts have the bytes of the whole."""

import numpy as np
import pytest

zarr = pytest.importorskip("zarr", reason="needs the extra 'large'")

import vnlem  # noqa: E402
from vnlem.large import blocks, stack_solver  # noqa: E402
from vnlem.large.sample import take_sample  # noqa: E402
from vnlem.large.solvers import find_solver  # noqa: E402
from vnlem.large.sources import open_source  # noqa: E402
from vnlem.methods.vnlr_stack import solve_stack  # noqa: E402
from vnlem.methods.vnlr_stack_params import halo, resolve_stack  # noqa: E402
from vnlem.pipeline.stack_task import Part, StackTask  # noqa: E402

# Small windows, for parts of small stacks to have an interior.
pytestmark = pytest.mark.slow

SMALL = {
    "T": {"patch_size": 5, "plane_distance": 1, "passes": 1, "n_neighbors": 12, "patch_distance": 3},
    "Z": {"patch_distance": 2, "plane_distance": 1, "passes": 1, "n_neighbors": 12, "patch_depth": 2},
}


def noisy(shape, seed=0, dtype=np.uint16):
    """Waves that change from page to page."""
    *leading, height, width = shape
    n_pages = int(np.prod(leading))
    k, y, x = np.mgrid[:n_pages, :height, :width]
    clean = 1000 + 200 * np.sin(x / 5 + k / 7) + 200 * np.cos(y / 6 - k / 9)
    return (clean + np.random.default_rng(seed).normal(0, 80, clean.shape)).reshape(shape).astype(dtype)


@pytest.fixture
def small_units(monkeypatch):
    """Units of few planes and pixels instead of 2048."""
    monkeypatch.setattr(blocks, "USUAL_SIDE", 12)
    monkeypatch.setattr(blocks, "SIDE_PER_HALO", 0)
    monkeypatch.setattr(blocks, "SMALLEST_BLOCK", 12)


@pytest.mark.parametrize("kind", ["T", "Z"])
@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("write", [((20, 23), (40, 47), (30, 50)), ((0, 3), (0, 20), (61, 80))])
def test_what_lies_deeper_than_the_halo_has_the_bytes_of_the_whole(kind, passes, write):
    shape = (44, 70, 80)
    stack = np.random.default_rng(0).normal(0, 0.4, shape).astype(np.float32) + np.sin(np.arange(80) / 5)
    stack = stack.astype(np.float32)
    params = resolve_stack(kind, shape[0], **{**SMALL[kind], "passes": passes})
    whole = list(solve_stack(iter(stack), StackTask(kind, [shape[1:]] * shape[0], 0.4), params))
    if kind == "T":
        write = (write[0], (0, 70), (0, 80))
    read = [
        (max(0, a - by), min(size, b + by))
        for (a, b), by, size in zip(write, halo(params), shape, strict=True)
    ]
    assert kind == "T" or read[1] != (0, 70)
    part = stack[tuple(slice(*span) for span in read)]
    place = Part(tuple(start for start, _ in read), shape)
    task = StackTask(kind, [part.shape[1:]] * len(part), 0.4, part=place)
    found = list(solve_stack(iter(part), task, params))
    inner = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(write, read, strict=True))
    expected = np.stack(whole)[tuple(slice(*span) for span in write)]
    np.testing.assert_array_equal(np.stack(found)[inner], expected)


@pytest.mark.parametrize("kind", ["T", "Z"])
@pytest.mark.parametrize("given", [80, None], ids=["sigma given", "estimated"])
def test_parts_of_a_stack_equal_the_whole(tmp_path, small_units, kind, given):
    pixels = noisy((30, 50, 60))
    whole = vnlem.denoise(pixels, given, axes=f"{kind}YX", **SMALL[kind])
    array = zarr.create_array(
        tmp_path / "in.zarr", shape=pixels.shape, chunks=(4, 32, 32), dtype=pixels.dtype
    )
    array[:] = pixels
    summary = vnlem.denoise_large(
        tmp_path / "in.zarr",
        tmp_path / "out.zarr",
        given,
        axes=f"{kind}YX".lower(),
        memory="1GB",
        **SMALL[kind],
    )
    assert summary.units == (3 if kind == "T" else 12)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out.zarr")[:], whole)


@pytest.mark.parametrize("kind", ["T", "Z"])
def test_parts_of_a_stack_by_nlm_equal_the_whole(tmp_path, small_units, kind):
    pixels = noisy((30, 50, 60))
    whole = vnlem.denoise(pixels, axes=f"{kind}YX", method="nlm", patch_distance=3)
    options = {"axes": f"{kind}YX", "method": "nlm", "patch_distance": 3, "memory": "1GB"}
    array = zarr.create_array(
        tmp_path / "in.zarr", shape=pixels.shape, chunks=(8, 16, 16), dtype=pixels.dtype
    )
    array[:] = pixels
    summary = vnlem.denoise_large(tmp_path / "in.zarr", tmp_path / "out.zarr", **options)
    assert summary.units > 12
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out.zarr")[:], whole)


def test_channels_and_time_points_equal_those_in_memory(tmp_path, small_units):
    pixels = noisy((2, 2, 9, 40, 30))  # t, c, z, y, x
    pixels[:, 1] *= 3
    options = {**SMALL["Z"], "axes": "TCZYX"}
    whole, info = vnlem.denoise(pixels, return_info=True, **options)
    assert info.details["series"] == ["Z"] * 4
    summary = vnlem.denoise_large(pixels, tmp_path / "out.zarr", memory="1GB", **options)
    assert summary.settings["solver"] == "stack along Z"
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out.zarr/0")[:], whole)


def colours(shape):
    """Waves in three channels that belong together, with noise of standard deviation 80 in each."""
    grey = noisy(shape).astype(float)[..., None] * [1.0, 0.7, 0.5]
    return np.rint(grey + np.random.default_rng(5).normal(0, 60, grey.shape)).astype(np.uint16)


@pytest.mark.parametrize("kind", ["T", "Z"])
@pytest.mark.parametrize("given", [80, None], ids=["sigma given", "estimated"])
def test_colours_in_parts_equal_the_whole(tmp_path, small_units, kind, given):
    pixels = colours((24, 40, 44))
    whole, info = vnlem.denoise(pixels, given, axes=f"{kind}YXC", return_info=True, **SMALL[kind])
    assert info.details["channels"] == "joint"
    summary = vnlem.denoise_large(
        pixels, tmp_path / "out.zarr", given, axes=f"{kind}YXC", memory="1GB", **SMALL[kind]
    )
    assert summary.units > 1
    assert summary.settings["channels"] == "joint"
    order = "tcyx" if kind == "T" else "czyx"
    found = zarr.open_array(tmp_path / "out.zarr/0")[:]
    back = [order.index(letter) for letter in f"{kind}YXC".lower()]
    np.testing.assert_array_equal(found.transpose(back), whole)


@pytest.mark.parametrize("kind", ["T", "Z"])
def test_several_sizes_in_parts_equal_the_whole(tmp_path, small_units, kind):
    pixels = noisy((26, 97, 98))
    options = {"axes": f"{kind}YX", "scales": 2, **SMALL[kind]}
    whole = vnlem.denoise(pixels, 80, **options)
    assert not np.array_equal(whole, vnlem.denoise(pixels, 80, **(options | {"scales": 1})))
    summary = vnlem.denoise_large(pixels, tmp_path / "out.zarr", 80, memory="1GB", **options)
    assert summary.units > 1
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out.zarr/0")[:], whole)


def test_a_region_of_a_movie_has_the_bytes_of_the_whole(tmp_path, small_units):
    pixels = noisy((30, 24, 28))
    whole = vnlem.denoise(pixels, 80, axes="TYX", **SMALL["T"])
    region = {"t": (11, 14), "y": (3, 20)}
    vnlem.denoise_large(pixels, tmp_path / "out.zarr", 80, axes="tyx", region=region, **SMALL["T"])
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out.zarr/0")[:], whole[11:14, 3:20])


@pytest.mark.parametrize("kind", ["T", "Z"])
def test_above_the_size_of_a_sample_parts_equal_one_part(tmp_path, small_units, monkeypatch, kind):
    """Noise and units then come from some pages, for any parts."""
    monkeypatch.setattr(stack_solver, "MOST_PIXELS", 1000)
    pixels = noisy((30, 40, 44))
    options = {"axes": f"{kind}YX", **SMALL[kind]}
    vnlem.denoise_large(pixels, tmp_path / "parts.zarr", 80, **options)
    monkeypatch.setattr(blocks, "USUAL_SIDE", 2048)
    one = vnlem.denoise_large(pixels, tmp_path / "one.zarr", 80, **options)
    assert one.units == 1
    parts, whole = (zarr.open_array(tmp_path / f"{name}.zarr/0")[:] for name in ("parts", "one"))
    np.testing.assert_array_equal(parts, whole)


def test_pages_of_axes_that_nobody_named_stand_alone(tmp_path):
    pixels = noisy((3, 40, 44))
    page_by_page = np.stack([vnlem.denoise(page, 80, passes=1, patch_distance=4) for page in pixels])
    options = {"passes": 1, "patch_distance": 4, "memory": "1GB"}
    for name, extra in (("unnamed", {}), ("asked", {"axes": "tyx", "stack": False})):
        summary = vnlem.denoise_large(pixels, tmp_path / f"{name}.zarr", 80, **options, **extra)
        assert "solver" not in summary.settings
        result = zarr.open_array(tmp_path / f"{name}.zarr/0")[:]
        assert np.abs(result.astype(int) - page_by_page).max() <= 1


def test_the_command_line_gives_the_same_bytes_in_parts(cli, tmp_path):
    import tifffile

    pixels = noisy((6, 40, 44))
    tifffile.imwrite(tmp_path / "in.tif", pixels, metadata={"axes": "TYX"}, photometric="minisblack")
    for name, options in (("all", ()), ("parts", ("--memory", "1GB")), ("pages", ("--page-by-page",))):
        arguments = ("--sigma", "80", "--profile", "fast", "--quiet", *options)
        assert cli("denoise", tmp_path / "in.tif", tmp_path / f"{name}.tif", *arguments) == (0, "", "")
    whole, parts, pages = (tifffile.imread(tmp_path / f"{name}.tif") for name in ("all", "parts", "pages"))
    np.testing.assert_array_equal(parts, whole)
    alone = np.stack([vnlem.denoise(page, 80, profile="fast") for page in pixels])
    np.testing.assert_array_equal(pages, alone)
    assert not np.array_equal(pages, whole)


@pytest.mark.parametrize("kind", ["T", "Z"])
def test_correlated_noise_in_parts_of_a_stack_equals_the_whole(tmp_path, small_units, monkeypatch, kind):
    monkeypatch.setattr(blocks, "USUAL_SIDE", 64)
    pixels = noisy((8, 64, 420)).astype(np.float32)
    pixels = (pixels + np.roll(pixels, 1, axis=2)) / 2
    options = {"noise_model": "correlated", **SMALL[kind]}
    whole, info = vnlem.denoise(pixels, axes=f"{kind}YX", return_info=True, **options)
    assert info.noise.is_correlated
    array = zarr.create_array(
        tmp_path / "in.zarr", shape=pixels.shape, chunks=(8, 64, 64), dtype=pixels.dtype
    )
    array[:] = pixels
    summary = vnlem.denoise_large(
        tmp_path / "in.zarr", tmp_path / "out.zarr", axes=f"{kind}YX".lower(), memory="1GB", **options
    )
    assert summary.units == (1 if kind == "T" else 7)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out.zarr")[:], whole)


def test_memory_bounds_the_planes_that_are_held(tmp_path):
    source = open_source(noisy((30, 64, 64)), "tyx")
    solver = find_solver(source, take_sample(source), 80, "vnlr", {}, stack=True)
    assert solver.halo[1:] == (64, 64)
    assert solver.memory((30, 64, 32)) < solver.memory((30, 64, 64)) == solver.memory((2000, 64, 64))
    with pytest.raises(ValueError, match=r"of memory are too little.*or denoise page by page \(stack=False"):
        vnlem.denoise_large(noisy((30, 64, 64)), tmp_path / "out.zarr", 80, axes="tyx", memory="20MB")
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_of_a_movie(tmp_path):
    forecast = vnlem.denoise_large(
        noisy((20, 40, 44)), tmp_path / "out.zarr", 80, axes="tyx", dry_run=True, **SMALL["T"]
    )
    assert forecast.halo == (17, 40, 44)
    assert forecast.seconds > 0


@pytest.mark.parametrize("channels", ["joint", "separate"])
@pytest.mark.parametrize("axes", ["tcyx", "cztyx"])
def test_a_dry_run_of_channels_of_which_one_is_black(tmp_path, axes, channels):
    pixels = noisy((8, 3, 40, 44) if axes == "tcyx" else (3, 4, 8, 40, 44))
    np.moveaxis(pixels, axes.index("c"), 0)[0] = 0
    options = {"axes": axes, "channels": channels, **SMALL["T"]}
    forecast = vnlem.denoise_large(pixels, tmp_path / "out.zarr", 80, dry_run=True, **options)
    assert forecast.settings["denoised_channels"] == [1, 2]
    assert forecast.seconds > 0
    assert 100 * 2**20 < forecast.memory < 200 * 2**20


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"gamma": 1}, "on a stack has no parameter 'gamma'"),
        ({"part": None, "report": 3}, "on a stack has no parameter 'report'"),
        ({"group": "so2"}, "not available for stacks"),
        ({"patch_size": 24}, "less than the patch"),
        ({"delay": 2}, "delay is for movies in memory"),
    ],
)
def test_bad_wishes_are_told_in_one_sentence(tmp_path, options, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        vnlem.denoise_large(noisy((6, 20, 44)), tmp_path / "out.zarr", 80, axes="zyx", **options)
    assert list(tmp_path.iterdir()) == []


def with_holes(kind, shape):
    """A stack with NaN, with hot pixels that stay at their place, or with both masks."""
    pixels = noisy(shape, dtype=np.float32)
    rng = np.random.default_rng(5)
    if kind == "nan":
        return np.where(rng.random(pixels.shape) < 0.2, np.nan, pixels).astype(np.float32), {}
    if kind == "few nan":
        return np.where(rng.random(pixels.shape) < 0.005, np.nan, pixels).astype(np.float32), {"fill": False}
    if kind == "hot":
        return np.where(rng.random(pixels.shape[1:]) < 0.004, 4000, pixels).astype(np.uint16), {}
    mask, protect = rng.random(shape[1:]) < 0.05, np.zeros(shape[1:])
    protect[20:30] = 0.5
    options = {"mask": mask, "protect": protect, "strength": 0.75}
    if kind == "protected":
        del options["mask"]
    return pixels.astype(np.uint16), options | {"impulses": False}


@pytest.mark.parametrize(
    ("axis", "holes"),
    [("T", "nan"), ("Z", "nan"), ("Z", "few nan"), ("T", "hot"), ("Z", "masked"), ("Z", "protected")],
)
def test_holes_in_parts_of_a_stack_are_those_of_the_whole(tmp_path, small_units, axis, holes):
    pixels, options = with_holes(holes, (40, 66, 66) if axis == "T" else (6, 66, 240))
    options |= SMALL[axis]
    whole, info = vnlem.denoise(pixels, 80, axes=f"{axis}YX", return_info=True, **options)
    assert holes == "protected" or info.details["missing"] > 0
    array = zarr.create_array(
        tmp_path / "in.zarr", shape=pixels.shape, chunks=(4, 40, 40), dtype=pixels.dtype
    )
    array[:] = pixels
    summary = vnlem.denoise_large(
        tmp_path / "in.zarr", tmp_path / "out.zarr", 80, axes=f"{axis}YX", memory="1GB", **options
    )
    assert summary.units > 1
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out.zarr")[:], whole)


def test_channels_with_holes_equal_those_in_memory(tmp_path, small_units):
    pixels = noisy((6, 2, 50, 60), dtype=np.float32)
    pixels[np.random.default_rng(6).random(pixels.shape) < 0.1] = np.nan
    whole = vnlem.denoise(pixels, 80, axes="TCYX", **SMALL["T"])
    vnlem.denoise_large(pixels, tmp_path / "out.zarr", 80, axes="TCYX", **SMALL["T"])
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out.zarr/0")[:], whole)


def test_nan_in_pages_that_stand_alone_equal_those_in_memory(tmp_path):
    pixels = noisy((2, 60, 64), dtype=np.float32)
    pixels[np.random.default_rng(7).random(pixels.shape) < 0.1] = np.nan
    options = {"impulses": False, "profile": "fast", "scales": 1}
    vnlem.denoise_large(pixels[:1], tmp_path / "out.zarr", 80, axes="zyx", stack=False, **options)
    found = zarr.open_array(tmp_path / "out.zarr/0")[0]
    np.testing.assert_array_equal(found, vnlem.denoise(pixels[0], 80, **options))


def test_a_stack_without_any_pixel_is_refused(tmp_path):
    pixels = noisy((6, 40, 44), dtype=np.float32)
    with pytest.raises(ValueError, match="all pixels are masked"):
        vnlem.denoise_large(pixels, tmp_path / "out.zarr", 80, axes="tyx", mask=np.ones((40, 44), bool))
    pixels[0] = np.nan
    with pytest.raises(ValueError, match=r"all pixels of a page .* are NaN or masked; leave it out"):
        vnlem.denoise_large(pixels, tmp_path / "out.zarr", 80, axes="tyx")
