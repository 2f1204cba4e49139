"""Files that are read plane by plane as large images: parts have the bytes of the whole."""

import numpy as np
import pytest
from microscope_files import czi_stack, write_czi
from pictures import random_array

import vnlem
from vnlem import io
from vnlem.large.sources import open_source

zarr = pytest.importorskip("zarr")


def scene(shape):
    rng = np.random.default_rng(7)
    y, x = np.mgrid[: shape[-2], : shape[-1]]
    return (1000 + 400 * np.sin(y / 9) * np.cos(x / 11) + rng.normal(0, 60, shape)).astype(np.uint16)


def level(path):
    return zarr.open_group(path, mode="r")["0"][:]


@pytest.mark.parametrize("name", ["a.mrc", "a.mrc.gz", "a.nii", "a.fits"])
def test_boxes_of_every_format_are_those_of_the_array(tmp_path, name):
    pytest.importorskip({"m": "mrcfile", "n": "nibabel", "f": "astropy"}[name[2]])
    pixels = random_array((4, 20, 30), "uint16")
    io.write(tmp_path / name, io.Picture(pixels, metadata=io.Metadata("tiff", axes="ZYX")))
    source = open_source(tmp_path / name, None if name != "a.fits" else "zyx")
    assert (source.axes, source.shape, source.dtype) == (("z", "y", "x"), pixels.shape, pixels.dtype)
    np.testing.assert_array_equal(source.read(((1, 3), (5, 17), (2, 29))), pixels[1:3, 5:17, 2:29])
    source.close()
    np.testing.assert_array_equal(source.read(((0, 4), (0, 20), (0, 30))), pixels)
    source.close()


def test_axes_in_another_order_are_put_in_ours(tmp_path):
    pixels = random_array((2, 3, 20, 30), "uint16")
    blocks = [({"X": 0, "Y": 0, "Z": z, "C": c}, pixels[c, z]) for c in range(2) for z in range(3)]
    source = open_source(write_czi(tmp_path / "a.czi", blocks))
    assert source.axes == ("c", "z", "y", "x")
    np.testing.assert_array_equal(source.read(((1, 2), (0, 2), (3, 9), (4, 30))), pixels[1:2, :2, 3:9, 4:])
    source.close()


def test_a_mosaic_is_denoised_as_if_it_were_one_image(tmp_path):
    whole = scene((300, 420))
    corners = [(y, x) for y in (0, 140) for x in (0, 200)]
    blocks = [({"X": x, "Y": y, "M": k}, whole[y : y + 160, x : x + 220]) for k, (y, x) in enumerate(corners)]
    path = write_czi(tmp_path / "a.czi", blocks)
    vnlem.denoise_large(path, tmp_path / "b.ome.zarr", 60, method="nlm", memory="200MB")
    np.testing.assert_array_equal(level(tmp_path / "b.ome.zarr"), vnlem.denoise(whole, 60, method="nlm"))


def test_colours_are_denoised_together(tmp_path):
    pixels = np.stack([scene((60, 80))] * 3, axis=-1) // 8
    path = czi_stack(tmp_path / "a.czi", pixels.astype(np.uint8), "YXS")
    vnlem.denoise_large(path, tmp_path / "b.ome.zarr", 8, method="nlm")
    together = vnlem.denoise(pixels.astype(np.uint8), 8, method="nlm", channel_axis=-1)
    np.testing.assert_array_equal(np.moveaxis(level(tmp_path / "b.ome.zarr"), 0, -1), together)


def test_one_of_several_images_is_named_after_a_colon(tmp_path):
    blocks = [({"X": 0, "Y": 0, "S": k}, scene((40 + k, 50))) for k in range(2)]
    path = write_czi(tmp_path / "a.czi", blocks)
    vnlem.denoise_large(f"{path}:right", tmp_path / "b.ome.zarr", 60, method="nlm")
    assert level(tmp_path / "b.ome.zarr").shape == (41, 50)
    with pytest.raises(ValueError, match=r"cannot read .*a\.czi: it holds 2 images"):
        vnlem.denoise_large(path, tmp_path / "c.ome.zarr", 60, method="nlm")


def test_a_set_of_images_stands_alone_unless_axes_are_named(tmp_path):
    pytest.importorskip("mrcfile")
    io.write(tmp_path / "a.mrcs", io.Picture(scene((3, 40, 50)), metadata=io.Metadata("tiff", axes="NYX")))
    source = open_source(tmp_path / "a.mrcs")
    assert (source.axes, source.guessed) == (("t", "y", "x"), True)
    assert open_source(tmp_path / "a.mrcs", "zyx").axes == ("z", "y", "x")


def test_a_file_of_big_planes_is_done_in_parts(cli, tmp_path, monkeypatch):
    path = czi_stack(tmp_path / "a.czi", scene((120, 150)), "YX")
    options = ("--method", "nlm", "--sigma", 60)
    assert "units" not in cli("denoise", path, tmp_path / "small.ome.tif", *options)[1]
    monkeypatch.setattr("vnlem.cli.large.SHARE_OF_MEMORY", 1e-12)
    assert "units" in cli("denoise", path, tmp_path / "big.ome.tif", *options)[1]
    small, big = (io.read(tmp_path / name) for name in ("small.ome.tif", "big.ome.tif"))
    np.testing.assert_array_equal(small.pixels, big.pixels)
