"""Parts of an image on a GPU: the bytes of the whole there. Most run on an emulated device."""

from itertools import product

import numpy as np
import pytest
from cuda_on_cpu import COMPILER
from test_device import fake_gpu  # noqa: F401

import vnlem
from vnlem.large import blocks
from vnlem.large.blocks import Block
from vnlem.large.boxes import grown, slices
from vnlem.large.sample import take_sample
from vnlem.large.solvers import find_solver
from vnlem.large.sources import open_source
from vnlem.methods.cuda import vnlr_planes
from vnlem.noise.correlated import Spectrum
from vnlem.noise.curve import Curve
from vnlem.noise.model import NoiseModel
from vnlem.pipeline.device import why_no_gpu

pytestmark = pytest.mark.slow
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
SMALL = {"patch_distance": 3, "n_neighbors": 8, "passes": 1, "patch_size": 4, "step": 4}
SHARED = NoiseModel(
    (Curve((0.0,), (900.0,)),),
    (Spectrum.of(1 + 20 * np.exp(-np.add.outer(np.arange(16.0), np.arange(16.0)) / 4)),),
)
PHOTONS = NoiseModel.camera(1.5)
CASES = {
    "nlm": {"method": "nlm", "patch_size": 3, "patch_distance": 3},
    "vnlr": SMALL,
    "vnlr best": SMALL | {"profile": "best"},
    "photons": {"method": "nlm", "patch_size": 3, "patch_distance": 3, "noise_model": PHOTONS},
    "correlated": {"method": "nlm", "patch_size": 3, "patch_distance": 2, "noise_model": SHARED},
    "few photons": {"method": "nlm", "patch_distance": 2, "noise_model": NoiseModel.camera(300.0)},
    "fewer photons": {"method": "nlm", "patch_distance": 2, "noise_model": NoiseModel.camera(1000.0)},
}


def noisy(shape, dtype=np.uint16):
    y, x = np.mgrid[: shape[-2], : shape[-1]]
    clean = 900 + 300 * np.sin(x / 6) * np.cos(y / 9) + 400 * ((y % 37) < 12)
    return (clean + np.random.default_rng(0).normal(0, 60, shape)).astype(dtype)


def in_parts(pixels, sides, sigma=None, colour=False, **options):
    """The results of the parts of an image, side by side; each is read with the halo of the solver."""
    source = open_source(pixels, "cyx" if colour else "yx")
    source.colour = colour
    method = options.pop("method", "vnlr")
    solver = find_solver(
        source, take_sample(source), sigma, method, {**options, "device": "cuda"}, stack=False
    )
    result = np.zeros_like(pixels)
    shape = pixels.shape
    cuts = [range(0, size, side) for size, side in zip(shape[-2:], sides, strict=True)]
    channels = ((0, shape[0]),) if colour else ()
    for top in cuts[0]:
        for left in cuts[1]:
            ends = (min(top + sides[0], shape[-2]), min(left + sides[1], shape[-1]))
            write = (*channels, (top, ends[0]), (left, ends[1]))
            read = grown(write, solver.halo, shape)
            result[slices(write)] = solver.solve(pixels[slices(read)], Block(read, write, shape), 1)
    return result


@needs_compiler
@pytest.mark.usefixtures("fake_gpu")
@pytest.mark.parametrize("case", CASES)
def test_parts_have_the_bytes_of_the_whole(case):
    # VNLR is slow on the emulated device.
    pixels = noisy((32, 56) if case.startswith("vnlr") else (100, 60), np.float32)
    sigma = None if "noise_model" in CASES[case] else 60
    whole, info = vnlem.denoise(pixels, sigma, device="cuda", return_info=True, **CASES[case])
    assert info.device == "cuda:0"
    np.testing.assert_array_equal(in_parts(pixels, (70, 40), sigma, **CASES[case]), whole)


@needs_compiler
@pytest.mark.usefixtures("fake_gpu")
def test_a_run_on_a_gpu(tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr", reason="needs the extra 'large'")
    monkeypatch.setattr(blocks, "USUAL_SIDE", 64)
    monkeypatch.setattr(blocks, "SIDE_PER_HALO", 0)
    pixels = noisy((100, 150))
    array = zarr.create_array(tmp_path / "in.zarr", shape=pixels.shape, chunks=(32, 32), dtype=pixels.dtype)
    array[:] = pixels
    whole = vnlem.denoise(pixels, 60, device="cuda", **CASES["nlm"])
    settings = {"memory": "1GB", **CASES["nlm"]}
    forecast = vnlem.denoise_large(
        tmp_path / "in.zarr", tmp_path / "out.zarr", 60, device="cuda", dry_run=True, **settings
    )
    assert "on its GPU" in str(forecast)
    summary = vnlem.denoise_large(tmp_path / "in.zarr", tmp_path / "out.zarr", 60, device="cuda", **settings)
    assert summary.units > 1
    assert summary.settings["device"] == "cuda"
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out.zarr")[:], whole)
    with pytest.raises(ValueError, match=r"begun with other options .*device was 'cuda' and is 'cpu'"):
        vnlem.denoise_large(tmp_path / "in.zarr", tmp_path / "out.zarr", 60, resume=True, **settings)


@needs_compiler
@pytest.mark.usefixtures("fake_gpu")
def test_a_dask_array_is_solved_on_a_gpu_when_it_is_computed(monkeypatch):
    da = pytest.importorskip("dask.array", reason="needs the extra 'large'")
    monkeypatch.setattr(blocks, "USUAL_SIDE", 64)
    monkeypatch.setattr(blocks, "SIDE_PER_HALO", 0)
    pixels = noisy((100, 150))
    lazy = vnlem.denoise(da.from_array(pixels, chunks=(40, 64)), 60, device="cuda", **CASES["nlm"])
    assert lazy.npartitions > 4
    whole = vnlem.denoise(pixels, 60, device="cuda", **CASES["nlm"])
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), whole)


def test_workers_elsewhere_may_have_the_gpu_that_is_not_here(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    pixels = noisy((64, 64))
    source = open_source(pixels, "yx")
    options = {"device": "cuda"}
    solver = find_solver(source, take_sample(source), 60, "nlm", options, stack=False, elsewhere=True)
    assert solver.plan.device == "cuda"
    assert solver.describe()["device"] == "cuda"
    with pytest.raises(ValueError, match="needs CuPy, which is not installed"):
        find_solver(source, take_sample(source), 60, "nlm", options, stack=False)


def stack_in_parts(pixels, kind, sides, sigma=None, **options):
    """The results of the parts of a movie or a volume, each with the halo of the solver; and their number."""
    source = open_source(pixels, f"{kind}YX".lower())
    method = options.pop("method", "vnlr")
    solver = find_solver(
        source, take_sample(source), sigma, method, {**options, "device": "cuda"}, stack=True
    )
    assert solver.describe()["solver"] == f"stack along {kind}"
    assert solver.describe()["device"] == "cuda"
    result = np.zeros_like(pixels)
    # An axis with a halo of its own length is not cut.
    steps = [
        side if by < size else size for side, by, size in zip(sides, solver.halo, pixels.shape, strict=True)
    ]
    boxes = [
        [(start, min(start + step, size)) for start in range(0, size, step)]
        for step, size in zip(steps, pixels.shape, strict=True)
    ]
    for write in product(*boxes):
        read = grown(write, solver.halo, pixels.shape)
        result[slices(write)] = solver.solve(pixels[slices(read)], Block(read, write, pixels.shape), 1)
    return result, len(list(product(*boxes)))


def stack(shape, dtype=np.float32):
    """A movie or a volume that grows brighter to its end."""
    bright = np.arange(shape[0])[:, None, None]
    return (np.stack([noisy(shape[1:], np.float64)] * shape[0]) + 40 * bright**1.5).astype(dtype) + noisy(
        shape, dtype
    )


SMALL_STACKS = {
    "vnlr T": (
        "T",
        (26, 16, 19),
        (4, 9, 9),
        SMALL | {"plane_distance": 0, "patch_depth": 1, "n_neighbors": 5},
    ),
    "vnlr Z": ("Z", (3, 40, 20), (2, 12, 20), SMALL | {"plane_distance": 0, "patch_distance": 1}),
    "nlm T": ("T", (7, 70, 24), (3, 40, 24), {"method": "nlm", "patch_distance": 2, "plane_distance": 1}),
    "nlm Z": ("Z", (7, 70, 24), (3, 40, 24), {"method": "nlm", "patch_distance": 2, "plane_distance": 1}),
}


@needs_compiler
@pytest.mark.usefixtures("fake_gpu")
@pytest.mark.parametrize("case", SMALL_STACKS)
def test_parts_of_a_stack_have_the_bytes_of_the_whole(case):
    kind, shape, sides, options = SMALL_STACKS[case]
    pixels = stack(shape)
    whole, info = vnlem.denoise(pixels, 60, axes=f"{kind}YX", device="cuda", return_info=True, **options)
    assert info.device == "cuda:0"
    found, count = stack_in_parts(pixels, kind, sides, 60, **options)
    assert count > 2
    np.testing.assert_array_equal(found, whole)


@needs_compiler
@pytest.mark.usefixtures("fake_gpu")
@pytest.mark.parametrize("channels", ["joint", "same"])
def test_channels_of_a_stack_on_a_device_are_those_of_the_cpu(channels):
    grey = stack((4, 14, 16))
    pixels = grey[..., None] * ([1.0, 0.7, 0.5] if channels == "joint" else [1.0, 1.0, 1.0])
    options = SMALL | {"plane_distance": 1, "axes": "TYXC", "channels": channels}
    here = vnlem.denoise(pixels, 60, noise_model="gaussian", **options)
    there, info = vnlem.denoise(pixels, 60, device="cuda", return_info=True, **options)
    assert info.device == "cuda:0"
    np.testing.assert_allclose(there, here, rtol=0, atol=0.05)
    assert np.abs(here - pixels).max() > 10
    with pytest.raises(ValueError, match="works on the CPU only"):
        vnlem.denoise(pixels, np.full((4, 1, 1, 1), 60.0), device="cuda", **options)


@needs_compiler
@pytest.mark.usefixtures("fake_gpu")
@pytest.mark.parametrize("case", ["vnlr T", "vnlr Z"])
def test_sums_over_parts_of_a_stack_have_the_units_of_the_whole(case, monkeypatch):
    kind, shape, sides, options = SMALL_STACKS[case]
    pixels, plain, seen = stack(shape), vnlr_planes.units_of_sums, []

    def watched(n_members, cover, largest):
        seen.append((n_members, cover, largest))
        return plain(n_members, cover, largest)

    monkeypatch.setattr(vnlr_planes, "units_of_sums", watched)
    vnlem.denoise(pixels, 60, axes=f"{kind}YX", device="cuda", **options)
    of_whole = set(seen[-2:])
    peak = np.abs(pixels - pixels.mean()).max() / pixels.std()
    assert all(largest >= peak for _, _, largest in of_whole)
    seen.clear()
    stack_in_parts(pixels, kind, sides, 60, **options)
    # Kernels are compiled on a small stack whose peak is unknown.
    assert {one for one in seen if one[2] > 2.0} == of_whole


def test_bad_devices_are_told(tmp_path):
    with pytest.raises(ValueError, match="device must be 'cpu', 'cuda', 'cuda:N' or 'auto'"):
        vnlem.denoise_large(noisy((40, 40)), tmp_path / "out.zarr", 60, device="gpu")
    assert list(tmp_path.iterdir()) == []


FULL = {
    "nlm": {"method": "nlm"},
    "nlem": {"method": "nlem"},
    "nlpr": {"method": "nlpr"},
    "vnlem": {"method": "vnlem"},
    "vnlr fast": {"profile": "fast", "scales": 1},
    "vnlr": {"scales": 3},
    "vnlr best": {"profile": "best", "scales": 2},
    "vnlr so2": {"profile": "fast", "group": "so2", "scales": 1},
    "correlated": {"profile": "fast", "noise_model": SHARED, "scales": 1},
    "few photons": {"profile": "fast", "noise_model": NoiseModel.camera(300.0), "scales": 2},
    "fewer photons": {"profile": "fast", "noise_model": NoiseModel.camera(1000.0), "scales": 1},
}


@pytest.mark.gpu
@pytest.mark.skipif(why_no_gpu() is not None, reason=f"{why_no_gpu()}")
@pytest.mark.parametrize("case", FULL)
@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
def test_parts_on_a_real_gpu_have_the_bytes_of_the_whole(case, dtype):
    pixels = noisy((700, 900), dtype)
    sigma = None if "noise_model" in FULL[case] else 60
    whole = vnlem.denoise(pixels, sigma, device="cuda", **FULL[case])
    np.testing.assert_array_equal(in_parts(pixels, (250, 300), sigma, **FULL[case]), whole)


STACKS = {
    "vnlr T": ("T", (40, 90, 100), {"profile": "fast", "plane_distance": 1, "passes": 1}),
    "vnlr T balanced": ("T", (120, 64, 70), {}),
    "vnlr Z": ("Z", (30, 150, 160), {"profile": "fast", "plane_distance": 1, "passes": 1}),
    "vnlr photons": ("T", (40, 90, 100), {"profile": "fast", "plane_distance": 1, "noise_model": PHOTONS}),
    "nlm T": ("T", (20, 200, 210), {"method": "nlm"}),
    "nlm Z": ("Z", (20, 200, 210), {"method": "nlm", "patch_size": 5}),
    "nlm correlated": ("T", (9, 420, 430), {"method": "nlm", "noise_model": SHARED}),
}


@pytest.mark.gpu
@pytest.mark.skipif(why_no_gpu() is not None, reason=f"{why_no_gpu()}")
@pytest.mark.parametrize("case", STACKS)
def test_parts_of_a_stack_on_a_real_gpu_have_the_bytes_of_the_whole(case):
    kind, shape, options = STACKS[case]
    pixels = stack(shape)
    sigma = None if "noise_model" in options else 60
    whole = vnlem.denoise(pixels, sigma, axes=f"{kind}YX", device="cuda", **options)
    found, count = stack_in_parts(pixels, kind, (9, 70, 75), sigma, **options)
    assert count > 2
    np.testing.assert_array_equal(found, whole)


@pytest.mark.gpu
@pytest.mark.skipif(why_no_gpu() is not None, reason=f"{why_no_gpu()}")
def test_a_memory_map_is_denoised_in_parts_on_a_real_gpu(tmp_path):
    """A source on the disk whose parts are read when they are solved; it needs neither zarr nor dask."""
    pixels = stack((3, 300, 310))
    np.save(tmp_path / "in.npy", pixels)
    mapped = np.load(tmp_path / "in.npy", mmap_mode="r")
    whole = vnlem.denoise(pixels, 60, axes="TYX", device="cuda", method="nlm")
    found, _ = stack_in_parts(mapped, "T", (1, 100, 100), 60, method="nlm")
    np.testing.assert_array_equal(found, whole)


@pytest.mark.gpu
@pytest.mark.skipif(why_no_gpu() is not None, reason=f"{why_no_gpu()}")
@pytest.mark.parametrize("options", [{"method": "nlm"}, {"profile": "fast", "channels": "joint"}], ids=str)
def test_parts_of_colours_on_a_real_gpu_have_the_bytes_of_the_whole(options):
    pixels = noisy((3, 400, 500))
    whole = vnlem.denoise(pixels, 60, channel_axis=0, device="cuda", **options)
    np.testing.assert_array_equal(in_parts(pixels, (250, 300), 60, colour=True, **options), whole)
