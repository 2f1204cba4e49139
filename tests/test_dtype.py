"""The dtype of the result: given, kept, and the warning if integers cannot hold it."""

import warnings

import numpy as np
import pytest
import tifffile

import vnlem

QUICK = {"method": "nlm", "patch_distance": 3}


def counts(shape=(64, 64), dtype=np.uint8):
    """Photons: on the left 0.3 per pixel, on the right 0.6."""
    mean = np.where(np.arange(shape[-1]) < shape[-1] // 2, 0.3, 0.6) * np.ones(shape)
    return np.random.default_rng(0).poisson(mean).astype(dtype)


def halves(image):
    middle = image.shape[-1] // 2
    return float(image[..., : middle - 4].mean()), float(image[..., middle + 4 :].mean())


def test_photons_keep_their_means_in_floats():
    image = counts((96, 96))
    result = vnlem.denoise(image, gain=1.0, dtype="float32")
    assert result.dtype == np.float32
    assert halves(result) == pytest.approx((0.3, 0.6), abs=0.06)


def test_integers_that_round_photons_away_are_told_once():
    with pytest.warns(UserWarning, match="rounded away; pass dtype='float32'") as caught:
        result = vnlem.denoise(counts(), gain=1.0)
    assert result.dtype == np.uint8
    assert len(caught) == 1


@pytest.mark.parametrize("told", ["float32", "uint8"])
def test_a_dtype_that_was_told_is_not_warned_of(told):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert vnlem.denoise(counts(), gain=1.0, dtype=told).dtype == told


def test_photographs_are_not_warned_of():
    stripes = 100 + 60 * (np.arange(64) // 16 % 2) * np.ones((64, 1))
    noisy = np.random.default_rng(0).normal(stripes, 2.0).clip(0, 255).astype(np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert vnlem.denoise(noisy, 2.0, **QUICK).dtype == np.uint8
        vnlem.denoise(np.random.default_rng(0).normal(100, 10, (64, 64)).astype(np.uint8), 9.0, **QUICK)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float32", "float64"])
def test_any_dtype_of_images_can_be_told(dtype):
    image = np.random.default_rng(0).normal(100, 20, (32, 32))
    full = vnlem.denoise(image, 15.0, **QUICK)
    result = vnlem.denoise(image, 15.0, dtype=dtype, **QUICK)
    assert result.dtype == dtype
    expected = full.round() if np.dtype(dtype).kind in "iu" else full
    np.testing.assert_array_equal(result, expected.astype(dtype))


def test_floats_lose_nothing_on_the_way():
    image = np.random.default_rng(0).integers(2**30, 2**30 + 100, (32, 32))
    result = vnlem.denoise(image, 20.0, dtype="float64", **QUICK)
    np.testing.assert_array_equal(result, vnlem.denoise(image.astype(np.float64), 20.0, **QUICK))


def test_stacks_and_lists_take_a_dtype():
    stack = np.stack([counts((40, 40))] * 4)
    options = {"sigma": 0.6, "dtype": "float32"}
    movie = vnlem.denoise(stack, axes="TYX", **options, **QUICK)
    assert movie.dtype == np.float32
    np.testing.assert_array_equal(movie, vnlem.denoise(stack.astype(np.float32), 0.6, axes="TYX", **QUICK))
    full = vnlem.denoise(stack.astype(float), 0.6, axes="TYX", **QUICK)
    rounded = vnlem.denoise(stack.astype(float), 0.6, axes="TYX", dtype="uint8", **QUICK)
    np.testing.assert_array_equal(rounded, full.round().astype(np.uint8))
    images = vnlem.denoise([stack[0], stack[1, :30]], **options, **QUICK)
    assert [image.dtype for image in images] == [np.float32] * 2
    single = vnlem.denoise(stack[:1], axes="TYX", **options, **QUICK)
    assert single.dtype == np.float32


def test_a_list_of_images_of_one_size_is_a_set_too():
    images = [counts((40, 40)), counts((40, 40))]
    both = vnlem.denoise(images, 0.6, dtype="float32", **QUICK)
    assert isinstance(both, list)
    array = vnlem.denoise(np.stack(images), 0.6, axes="NYX", dtype="float32", **QUICK)
    np.testing.assert_array_equal(np.stack(both), array)


def test_a_lazy_image_takes_a_dtype():
    da = pytest.importorskip("dask.array", reason="needs the extra 'large'")
    image = counts((64, 80))
    lazy = vnlem.denoise(da.from_array(image, chunks=32), gain=1.0, dtype="float32")
    assert lazy.dtype == np.float32
    np.testing.assert_array_equal(lazy.compute(), vnlem.denoise(image, gain=1.0, dtype="float32"))


@pytest.mark.parametrize("wrong", ["complex64", "bool", "nothing", object, 3])
def test_what_is_no_dtype_of_images_is_told(wrong):
    with pytest.raises(ValueError, match="dtype must be a type of integers or floats such as 'float32', got"):
        vnlem.denoise(counts(), 1.0, dtype=wrong)


@pytest.mark.parametrize("name", ["one.tif", "stack.tif", "one.npy"])
def test_files_take_a_dtype(cli, tmp_path, name):
    image = counts((5, 48, 48)) if name == "stack.tif" else counts((48, 48))
    source, target = tmp_path / name, tmp_path / f"out-{name}"
    if name.endswith("npy"):
        np.save(source, image)
    else:
        tifffile.imwrite(source, image, metadata={"axes": "TYX"[-image.ndim :]})
    status, _, told = cli("denoise", source, target, "--sigma", "0.6", "--dtype", "float32", "--quiet")
    assert status == 0, told
    result = np.load(target) if name.endswith("npy") else tifffile.imread(target)
    axes = {"axes": "TYX"} if image.ndim == 3 else {}
    np.testing.assert_array_equal(result, vnlem.denoise(image, 0.6, dtype="float32", **axes))


def test_a_format_that_cannot_hold_the_dtype_is_told_before_the_work(cli, tmp_path):
    vnlem.io.write(tmp_path / "in.png", counts())
    status, _, told = cli("denoise", tmp_path / "in.png", tmp_path / "out.png", "--dtype", "float32")
    assert status == 2
    assert "cannot hold float32 pixels" in told


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("to", ["out.zarr", "out.tif"])
def test_images_in_parts_take_a_dtype(cli, tmp_path, zarr_format, to):
    zarr = pytest.importorskip("zarr", reason="needs the extra 'large'")
    image = counts((64, 80))
    more = {"shards": (64, 64)} if zarr_format == 3 else {}
    array = zarr.create_array(
        tmp_path / "in.zarr", data=image, chunks=(32, 32), zarr_format=zarr_format, fill_value=7, **more
    )
    assert array.dtype == np.uint8
    status, _, told = cli(
        "denoise", tmp_path / "in.zarr", tmp_path / to, "--gain", "1", "--dtype", "float32", "--quiet"
    )
    assert status == 0, told
    found = tifffile.imread(tmp_path / to) if to.endswith("tif") else zarr.open_array(tmp_path / to)[:]
    np.testing.assert_array_equal(found, vnlem.denoise(image, gain=1.0, dtype="float32"))


def test_a_stack_in_parts_takes_a_dtype(tmp_path):
    zarr = pytest.importorskip("zarr", reason="needs the extra 'large'")
    movie = np.stack([counts((48, 48))] * 4)
    vnlem.denoise_large(movie, tmp_path / "out.zarr", 0.6, axes="tyx", dtype="float32", **QUICK)
    expected = vnlem.denoise(movie, 0.6, axes="TYX", dtype="float32", **QUICK)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out.zarr/0")[:], expected)


@pytest.mark.parametrize("options", [(), ("--memory", "1GB")], ids=["in memory", "in parts"])
def test_ome_metadata_say_the_dtype_of_the_result(cli, tmp_path, options):
    pytest.importorskip("zarr", reason="needs the extra 'large'")
    stack = counts((4, 48, 48))
    about = {"axes": "TYX", "SignificantBits": 8, "PhysicalSizeX": 0.5}
    tifffile.imwrite(tmp_path / "in.ome.tif", stack, metadata=about, photometric="minisblack")
    told = ("--sigma", "0.6", "--method", "nlm", "--quiet", "--dtype", "float32")
    status, _, err = cli("denoise", tmp_path / "in.ome.tif", tmp_path / "out.ome.tif", *told, *options)
    assert status == 0, err
    with tifffile.TiffFile(tmp_path / "out.ome.tif") as tif:
        assert tif.series[0].dtype == np.float32
        assert 'Type="float"' in tif.ome_metadata
        assert "SignificantBits" not in tif.ome_metadata
        assert 'PhysicalSizeX="0.5"' in tif.ome_metadata
