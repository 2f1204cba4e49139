"""Every method that works in windows: parts have the bytes of the whole."""

import numpy as np
import pytest

zarr = pytest.importorskip("zarr", reason="needs the extra 'large'")
da = pytest.importorskip("dask.array", reason="needs the extra 'large'")

import vnlem  # noqa: E402
from vnlem.large import blocks  # noqa: E402
from vnlem.large.blocks import Block  # noqa: E402
from vnlem.large.sample import take_sample  # noqa: E402
from vnlem.large.solvers import find_solver  # noqa: E402
from vnlem.large.sources import open_source  # noqa: E402

# Small windows, for blocks of small images to have an interior; all other parameters are defaults.
pytestmark = pytest.mark.slow

SMALL = {
    "nlm": {"patch_distance": 4},
    "nlem": {"patch_distance": 4},
    "nlpr": {"patch_distance": 4},
    "vnlem": {"patch_distance": 4},
    "vnlem as in the paper": {"preset": "paper", "patch_distance": 4},
    "vnlr identity": {"group": "identity", "patch_distance": 4, "passes": 1, "scales": 1},
    "vnlr c4": {"group": "c4", "patch_distance": 4, "passes": 2, "scales": 1},
    "vnlr d4": {"group": "d4", "patch_distance": 5, "passes": 2, "scales": 1, "profile": "fast"},
    "vnlr so2": {"group": "so2", "patch_distance": 3, "passes": 1, "scales": 1},
    "vnlr best": {"profile": "best", "patch_distance": 3, "passes": 1, "scales": 1},
    "vnlr for the eye": {"aim": "perception", "patch_distance": 3, "passes": 1, "scales": 1},
}


def phantom(shape):
    """Discs of several sizes on a slope."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    image = 0.3 * x / shape[1]
    for cy, cx, radius in ((40, 50, 20), (90, 130, 30), (20, 160, 9), (120, 40, 14)):
        image = image + ((y - cy) ** 2 + (x - cx) ** 2 < radius**2)
    return image


def noisy(shape, dtype=np.uint16, seed=0):
    clean = phantom(shape[-2:])
    values = 1000 + 500 * clean + np.random.default_rng(seed).normal(0, 100, shape)
    return values.clip(0, 65535).astype(dtype)


@pytest.fixture
def small_units(monkeypatch):
    """Units of 64 pixels instead of 2048."""
    monkeypatch.setattr(blocks, "USUAL_SIDE", 64)
    monkeypatch.setattr(blocks, "SIDE_PER_HALO", 0)


@pytest.mark.parametrize("case", SMALL)
def test_parts_equal_the_whole(tmp_path, small_units, case):
    method = case.split()[0]
    pixels = noisy((150, 203))
    whole = vnlem.denoise(pixels, 100, method=method, **SMALL[case])
    array = zarr.create_array(tmp_path / "in.zarr", shape=pixels.shape, chunks=(32, 64), dtype=pixels.dtype)
    array[:] = pixels
    summary = vnlem.denoise_large(
        tmp_path / "in.zarr", tmp_path / "out.zarr", 100, method=method, memory="1GB", **SMALL[case]
    )
    assert summary.units == 12
    assert np.array_equal(zarr.open_array(tmp_path / "out.zarr")[:], whole)


@pytest.mark.parametrize("shape", [(300, 411), (250, 401), (97, 330)])
def test_parts_at_several_scales_equal_the_whole(tmp_path, small_units, shape):
    pixels = noisy(shape)
    options = {"patch_distance": 3, "passes": 1, "scales": 3}
    whole, info = vnlem.denoise(pixels, return_info=True, **options)
    assert info.details["scales"] == (3 if min(shape) > 200 else 2)
    summary = vnlem.denoise_large(pixels, tmp_path / "out.zarr", memory="1GB", **options)
    assert len(summary.settings["scales"]) == info.details["scales"]
    assert np.array_equal(zarr.open_array(tmp_path / "out.zarr/0")[:], whole)
    regions = ({"y": (11, 90), "x": (101, 202)}, {"y": (0, 33)}, {"y": (90, 97), "x": (300, 330)})
    for number, region in enumerate(regions):
        target = tmp_path / f"part{number}.zarr"
        vnlem.denoise_large(pixels, target, region=region, memory="1GB", **options)
        box = tuple(slice(*region.get(axis, (0, None))) for axis in "yx")
        assert np.array_equal(zarr.open_array(target / "0")[:], whole[box])


def test_above_the_size_of_a_sample_parts_have_its_noise_and_scale(tmp_path, small_units, monkeypatch):
    """The sample is 64 tiles, for any parts; tiles of 64 pixels instead of 512."""
    monkeypatch.setattr("vnlem.large.sample.MOST_PIXELS", 512**2)
    monkeypatch.setattr("vnlem.large.sample.TILE", 64)
    y, x = np.mgrid[:530, :521]
    noise = np.random.default_rng(0).normal(0, 12, y.shape)
    pixels = (100 + 50 * np.sin(y / 40) * np.cos(x / 30) + noise).clip(0, 255).astype(np.uint8)
    source = open_source(pixels)
    sample = take_sample(source)
    assert sample.planes.shape == (1, 8 * 64, 8 * 64)
    options = {"method": "nlm", "patch_size": 3, "patch_distance": 1}
    summary = vnlem.denoise_large(pixels, tmp_path / "out.zarr", **options)
    assert summary.units > 1
    params = {name: value for name, value in options.items() if name != "method"}
    solver = find_solver(source, sample, None, "nlm", params, stack=True)
    everything = ((0, 530), (0, 521))
    whole = solver.solve(pixels, Block(everything, everything, pixels.shape), None)
    assert np.array_equal(zarr.open_array(tmp_path / "out.zarr/0")[:], whole)
    assert solver.plan.sizes[0].level == pytest.approx(12, rel=0.1)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_dtypes_come_back_as_they_were(tmp_path, small_units, dtype):
    pixels = (noisy((100, 130)) / 10).astype(dtype)
    whole = vnlem.denoise(pixels, 10, method="nlm")
    vnlem.denoise_large(pixels, tmp_path / "out.zarr", 10, method="nlm")
    result = zarr.open_array(tmp_path / "out.zarr/0")[:]
    assert result.dtype == dtype
    assert np.array_equal(result, whole)


def test_the_noise_is_estimated_as_for_the_whole(tmp_path, small_units):
    pixels = noisy((200, 250))
    whole, info = vnlem.denoise(pixels, method="nlm", return_info=True)
    summary = vnlem.denoise_large(pixels, tmp_path / "out.zarr", method="nlm")
    assert summary.settings["scales"][0]["noise"] == pytest.approx(info.sigma)
    assert np.array_equal(zarr.open_array(tmp_path / "out.zarr/0")[:], whole)


# Photons of bright pixels -> how often the image is halved before each round.
FEW = {4.0: [0, 0], 1.5: [1, 0], 0.6: [2, 1, 0]}


def counts(shape, photons, dtype=np.float32):
    clean = photons * (0.1 + 0.7 * phantom(shape[-2:]))
    return np.random.default_rng(3).poisson(np.broadcast_to(clean, shape)).astype(dtype)


@pytest.mark.parametrize(
    ("method", "scales", "photons"),
    [*(("nlm", 1, photons) for photons in FEW), *(("vnlr", 1, photons) for photons in FEW), ("vnlr", 2, 4.0)],
)
def test_few_photons_in_parts_equal_the_whole(tmp_path, small_units, method, scales, photons):
    pixels = counts((203, 391), photons)
    options = {"method": method, "gain": 1.0, "patch_distance": 3}
    if method == "vnlr":
        options |= {"scales": scales, "passes": 1, "n_neighbors": 12, "profile": "fast"}
    whole = vnlem.denoise(pixels, **options)
    source = zarr.create_array(tmp_path / "in.zarr", shape=pixels.shape, chunks=(50, 64), dtype=pixels.dtype)
    source[:] = pixels
    options["memory"] = "1GB"
    summary = vnlem.denoise_large(tmp_path / "in.zarr", tmp_path / "out.zarr", **options)
    assert summary.settings["rounds"] == FEW[photons]
    assert summary.units > 1
    assert np.array_equal(zarr.open_array(tmp_path / "out.zarr")[:], whole)
    region = {"y": (11, 60), "x": (101, 202)}
    vnlem.denoise_large(pixels, tmp_path / "part.zarr", region=region, **options)
    assert np.array_equal(zarr.open_array(tmp_path / "part.zarr/0")[:], whole[11:60, 101:202])
    del options["memory"]
    lazy = vnlem.denoise(da.from_array(pixels, chunks=(50, 64)), **options)
    assert lazy.npartitions > 1
    assert np.array_equal(lazy.compute(scheduler="sync"), whole)


@pytest.mark.parametrize("photons", FEW)
def test_few_photons_of_colours_in_parts_equal_the_whole(small_units, photons):
    pixels = counts((3, 150, 203), photons)
    options = {"gain": 1.0, "method": "nlm", "patch_distance": 3, "channel_axis": 0}
    whole = vnlem.denoise(pixels, **options)
    lazy = vnlem.denoise(da.from_array(pixels, chunks=(3, 64, 64)), **options)
    assert lazy.npartitions > 1
    assert np.array_equal(lazy.compute(scheduler="sync"), whole)


def test_photon_noise(tmp_path, small_units):
    photons = 20 + 60 * phantom((120, 140))
    pixels = (100 + 2 * np.random.default_rng(0).poisson(photons)).astype(np.uint16)
    options = {"method": "nlm", "noise_model": "poisson-gaussian", "gain": 2.0, "offset": 100.0}
    whole = vnlem.denoise(pixels, **options)
    vnlem.denoise_large(pixels, tmp_path / "out.zarr", **options)
    assert np.array_equal(zarr.open_array(tmp_path / "out.zarr/0")[:], whole)


def test_photon_noise_at_several_scales(tmp_path, small_units):
    photons = 20 + 60 * phantom((212, 140))
    pixels = (100 + 2 * np.random.default_rng(0).poisson(photons)).astype(np.uint16)
    options = {"gain": 2.0, "offset": 100.0, "patch_distance": 3, "passes": 1, "scales": 3}
    whole, info = vnlem.denoise(pixels, return_info=True, **options)
    assert info.details["scales"] == 2
    vnlem.denoise_large(pixels, tmp_path / "out.zarr", **options)
    assert np.array_equal(zarr.open_array(tmp_path / "out.zarr/0")[:], whole)


def test_colours(tmp_path, small_units):
    import tifffile

    pixels = np.stack([noisy((96, 110), seed=k) for k in range(3)], axis=-1)
    tifffile.imwrite(tmp_path / "in.tif", pixels, photometric="rgb", tile=(64, 64))
    options = {"patch_distance": 4, "passes": 1}
    vnlem.denoise_large(tmp_path / "in.tif", tmp_path / "out.tif", 100, **options)
    whole = vnlem.denoise(pixels, 100, channel_axis=-1, **options)
    assert np.array_equal(tifffile.imread(tmp_path / "out.tif"), whole)


@pytest.mark.parametrize("method", ["nlm", "vnlr"])
def test_a_dask_array_gives_a_lazy_one(small_units, method):
    pixels = noisy((150, 203))
    options = {"method": method, "patch_distance": 4} | ({"passes": 1} if method == "vnlr" else {})
    lazy = vnlem.denoise(da.from_array(pixels, chunks=(40, 64)), 100, **options)
    assert lazy.shape == pixels.shape
    assert lazy.dtype == pixels.dtype
    assert lazy.npartitions > 4
    whole = vnlem.denoise(pixels, 100, **options)
    assert np.array_equal(lazy.compute(scheduler="sync"), whole)
    assert np.array_equal(lazy[30:70, 100:180].compute(scheduler="sync"), whole[30:70, 100:180])


def test_a_lazy_colour_image(small_units):
    pixels = np.stack([noisy((70, 90), seed=k) for k in range(3)], axis=-1)
    lazy = vnlem.denoise(da.from_array(pixels, chunks=(40, 40, 3)), 100, method="nlm", channel_axis=-1)
    whole = vnlem.denoise(pixels, 100, method="nlm", channel_axis=-1)
    assert np.array_equal(lazy.compute(scheduler="sync"), whole)


def channels_of(kind, shape=(96, 120)):
    """Three clean channels: with the same edges, with different edges, or one picture three times."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    disc, stripes, slopes = (y - 40) ** 2 + (x - 50) ** 2 < 600, x // 14 % 2 == 0, (x + y) // 17 % 2 == 0
    own = {"separate": [disc, stripes, slopes], "joint": [disc, 0.8 * disc, 0.5 * disc]}
    return 100.0 * np.stack(own.get(kind, [disc] * 3))


@pytest.mark.parametrize("noise", [{"sigma": 15.0}, {}, {"gain": 20.0}, {"gain": 100.0}])
@pytest.mark.parametrize("kind", ["separate", "joint", "same"])
def test_channels_of_a_lazy_image_are_handled_as_in_memory(small_units, kind, noise):
    clean = channels_of(kind)
    rng = np.random.default_rng(0)
    if "gain" in noise:
        noisy = noise["gain"] * rng.poisson(clean / noise["gain"] + 0.5)
    else:
        noisy = clean + rng.normal(0, 15.0, clean.shape)
    if kind == "same":
        noisy = np.stack([noisy[0]] * 3)
    options = {"channel_axis": 0, "patch_distance": 4, "passes": 1, "scales": 2, **noise}
    whole = vnlem.denoise(noisy, **options)
    lazy = vnlem.denoise(da.from_array(noisy, chunks=(3, 50, 60)), **options)
    assert np.array_equal(lazy.compute(scheduler="sync"), whole)
    told = vnlem.denoise(da.from_array(noisy, chunks=(3, 50, 60)), channels=kind, **options)
    assert np.array_equal(told.compute(scheduler="sync"), whole)
    if kind != "same":
        other = "joint" if kind == "separate" else "separate"
        forced = vnlem.denoise(da.from_array(noisy, chunks=(3, 50, 60)), channels=other, **options)
        assert not np.array_equal(forced.compute(scheduler="sync"), whole)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "vnlem-dd"}, "vnlem-dd needs the whole image at once"),
        ({"method": "vnlem", "search": "image"}, "search='image' needs the whole image at once"),
        ({"method": "nlm", "gamma": 1}, "method 'nlm' has no parameter 'gamma'"),
        ({"method": "nlm", "patch_size": 4}, "patch_size must be odd"),
        ({"region": "q=0:5"}, "region names the axis 'q'"),
        ({"region": {"y": "abc"}}, "region must give an axis its first pixel and the one after its last"),
        ({"region": {"y": slice(0, 9, 2)}}, "region must give an axis its first pixel"),
        ({"memory": "much"}, "memory must be a number of bytes or a text"),
        ({"part": "5/4"}, "part must lie between"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_wishes_are_told_in_one_sentence(tmp_path, options, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        vnlem.denoise_large(noisy((64, 64)), tmp_path / "out.zarr", 100, **options)
    assert not (tmp_path / "out.zarr").exists()


def test_infinite_pixels_are_refused(tmp_path):
    pixels = noisy((64, 64), np.float32)
    pixels[3, 4] = np.inf
    with pytest.raises(ValueError, match="holds infinite values"):
        vnlem.denoise_large(pixels, tmp_path / "out.zarr", 100, method="nlm")


def shared_noise(shape, seed=0):
    """Noise that neighbours share, on discs of several sizes."""
    clean = np.resize(phantom((150, 180)), (shape[-2], 180))
    clean = np.resize(clean.T, (shape[-1], shape[-2])).T
    drawn = np.random.default_rng(seed).normal(0, 200, (*shape[:-2], shape[-2] + 1, shape[-1] + 1))
    mixed = (drawn[..., 1:, 1:] + drawn[..., :-1, 1:] + drawn[..., 1:, :-1] + drawn[..., :-1, :-1]) / 4
    return (1000 + 500 * clean + mixed).astype(np.uint16)


# Whitening works on tiles of 64 pixels and reaches 48 beyond them, twice: images are larger than these halos.
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((65, 350), {"method": "nlm"}),
        ((321, 64), {"method": "nlm"}),
        ((240, 257), {"method": "nlm"}),
        ((70, 520), {"patch_distance": 3, "passes": 1, "scales": 1}),
        ((97, 800), {"patch_distance": 3, "passes": 1, "scales": 2}),
    ],
)
def test_correlated_noise_in_parts_equals_the_whole(tmp_path, small_units, shape, options):
    pixels = shared_noise(shape)
    whole, info = vnlem.denoise(pixels, noise_model="correlated", return_info=True, **options)
    assert info.noise.is_correlated
    array = zarr.create_array(tmp_path / "in.zarr", shape=shape, chunks=(32, 64), dtype=pixels.dtype)
    array[:] = pixels
    summary = vnlem.denoise_large(
        tmp_path / "in.zarr", tmp_path / "out.zarr", noise_model="correlated", memory="1GB", **options
    )
    assert summary.units > 1
    assert np.array_equal(zarr.open_array(tmp_path / "out.zarr")[:], whole)
    box = tuple((size // 2, size // 2 + 31) for size in shape)
    region = dict(zip("yx", box, strict=True))
    vnlem.denoise_large(
        pixels, tmp_path / "part.zarr", noise_model="correlated", region=region, memory="1GB", **options
    )
    assert np.array_equal(zarr.open_array(tmp_path / "part.zarr/0")[:], whole[tuple(slice(*s) for s in box)])


def test_correlated_noise_of_colours_in_parts_equals_the_whole(small_units):
    pixels = np.moveaxis(shared_noise((3, 100, 330)), 0, -1)
    options = {"method": "nlm", "noise_model": "correlated", "channel_axis": -1}
    whole, info = vnlem.denoise(pixels, return_info=True, **options)
    assert len(info.noise.spectra) == 3
    lazy = vnlem.denoise(da.from_array(pixels, chunks=(64, 90, 3)), **options)
    assert lazy.npartitions == 4
    assert np.array_equal(lazy.compute(scheduler="sync"), whole)


def test_a_dry_run_writes_nothing(tmp_path):
    forecast = vnlem.denoise_large(noisy((300, 300)), tmp_path / "out.zarr", 100, method="nlm", dry_run=True)
    assert forecast.units == 1
    assert forecast.seconds > 0
    assert "halo" in str(forecast)
    assert list(tmp_path.iterdir()) == []
