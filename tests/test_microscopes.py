"""CZI, ND2 and LIF files: scenes, positions and series are images; their calibration reaches OME-TIFF."""

import os
import struct
from pathlib import Path

import numpy as np
import pytest
import tifffile
from microscope_files import (
    JPEG_XR,
    LZW,
    RAW,
    ZSTD,
    ZSTD_APART,
    ZSTD_HEAD,
    czi_stack,
    write_czi,
    write_lif,
    write_nd2,
)
from pictures import random_array

from vnlem import io

DATA = Path(os.environ.get("VNLEM_DATA", Path(__file__).parents[2] / "shared" / "data")) / "formats"
STACK = (3, 2, 4, 20, 30)
PACKERS = {
    "raw": RAW,
    "lzw": LZW,
    "jpeg-xr": JPEG_XR,
    "zstd": ZSTD,
    "zstd head": ZSTD_HEAD,
    "zstd apart": ZSTD_APART,
}


def xml_of(path):
    return tifffile.tiffcomment(path)


# CZI


@pytest.mark.parametrize("compression", PACKERS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_a_czi_stack_is_read_whatever_its_compression(tmp_path, compression, dtype):
    if dtype == "float32" and compression in ("jpeg-xr", "zstd apart"):
        pytest.skip("it is for 8 and 16 bits")
    pixels = random_array(STACK, dtype)
    picture = io.read(czi_stack(tmp_path / "a.czi", pixels, "TCZYX", PACKERS[compression]))
    assert (picture.metadata.axes, picture.pixels.dtype) == ("TCZYX", dtype)
    np.testing.assert_array_equal(picture.pixels, pixels)


@pytest.mark.parametrize("compression", ["raw", "lzw", "jpeg-xr", "zstd head", "zstd apart"])
def test_colours_of_a_czi_file_come_red_first(tmp_path, compression):
    pixels = random_array((20, 30, 3), "uint16" if compression == "zstd apart" else "uint8")
    picture = io.read(czi_stack(tmp_path / "a.czi", pixels, "YXS", PACKERS[compression]))
    assert picture.channel_axis == -1
    np.testing.assert_array_equal(picture.pixels, pixels)


def test_czifile_reads_the_same(tmp_path):
    czifile = pytest.importorskip("czifile")
    pixels = random_array(STACK, "uint16")
    path = czi_stack(tmp_path / "a.czi", pixels, "TCZYX")
    np.testing.assert_array_equal(czifile.imread(path).squeeze(), io.read(path).pixels)


def test_scenes_of_a_czi_file_are_images_of_their_own(tmp_path):
    left, right = random_array((20, 30), "uint16"), random_array((16, 24), "uint16")
    blocks = [({"X": 0, "Y": 0, "S": 0}, left), ({"X": 500, "Y": 80, "S": 1}, right)]
    path = write_czi(tmp_path / "a.czi", blocks)
    with pytest.raises(
        ValueError, match=r"holds 2 images: 1 \(left, 20x30\), 2 \(right, 16x24\); .* a\.czi:1"
    ):
        io.read(path)
    for key in ("2", "right"):
        np.testing.assert_array_equal(io.read(f"{path}:{key}").pixels, right)
    np.testing.assert_array_equal(io.read(f"{path}:left").pixels, left)


def test_tiles_of_a_mosaic_are_put_together_and_copies_for_a_quick_look_are_not(tmp_path):
    whole = random_array((40, 60), "uint16")
    blocks = [
        ({"X": 100, "Y": -20, "C": 0, "M": 0}, whole[:25, :35]),
        ({"X": 130, "Y": -20, "C": 0, "M": 1}, whole[:25, 30:]),
        ({"X": 100, "Y": 0, "C": 0, "M": 2}, whole[20:, :35]),
        ({"X": 130, "Y": 0, "C": 0, "M": 3}, whole[20:, 30:]),
        ({"X": 100, "Y": -20, "C": 0}, np.zeros((20, 30), "uint16"), 2),
    ]
    path = write_czi(tmp_path / "a.czi", blocks)
    np.testing.assert_array_equal(io.read(path).pixels, whole)
    with io.open_series(path) as (series,):
        np.testing.assert_array_equal(series.page(0, slice(10, 33), slice(28, 41)), whole[10:33, 28:41])


def test_a_plane_without_pixels_is_told(tmp_path):
    blocks = [({"X": 0, "Y": 0, "C": c, "T": t}, random_array((20, 30))) for t, c in ((0, 0), (0, 1), (1, 0))]
    path = write_czi(tmp_path / "a.czi", blocks)
    with pytest.raises(ValueError, match=r"it has no pixels for T 2, C 2: the recording is not complete"):
        io.read(path)


def test_blocks_that_only_zen_reads_are_told(tmp_path):
    path = czi_stack(tmp_path / "a.czi", random_array((20, 30)), "YX")
    content = bytearray(path.read_bytes())
    for place in [k for k in range(len(content)) if content.startswith(b"DV", k)]:
        struct.pack_into("<i", content, place + 18, 108)
    path.write_bytes(content.replace(struct.pack("<q", 600), struct.pack("<q", 599)))
    with pytest.raises(ValueError, match=r"compression 108, which only ZEN reads; save it in ZEN with zstd"):
        io.read(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_czi_file_that_is_cut_is_told(tmp_path, share):
    path = czi_stack(tmp_path / "a.czi", random_array(STACK), "TCZYX")
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(ValueError, match=r"^cannot read .*a\.czi: it is (truncated|damaged)"):
        io.read(path)


def test_calibration_and_channels_of_a_czi_file_reach_ome(cli, tmp_path):
    path = czi_stack(tmp_path / "a.czi", random_array(STACK, "uint16"), "TCZYX")
    code, _, err = cli("denoise", path, tmp_path / "b.ome.tif", "--method", "halving", "--sigma", 5)
    assert code == 0, err
    xml = xml_of(tmp_path / "b.ome.tif")
    for text in (
        'Name="DAPI"',
        'Name="GFP"',
        'PhysicalSizeY="0.25"',
        'PhysicalSizeYUnit="µm"',
        'TimeIncrement="1.5"',
    ):
        assert text in xml
    with tifffile.TiffFile(tmp_path / "b.ome.tif") as tif:
        assert (tif.series[0].axes, tif.series[0].shape) == ("TCZYX", STACK)
        assert tif.asarray().std() == pytest.approx(random_array(STACK, "uint16").std() / 2, rel=0.05)


def test_a_czi_file_becomes_ome_zarr_in_parts(cli, tmp_path):
    zarr = pytest.importorskip("zarr")
    path = czi_stack(tmp_path / "a.czi", random_array(STACK, "uint16"), "TCZYX")
    options = ("--method", "nlm", "--sigma", 5, "--page-by-page")
    code, _, err = cli("denoise", path, tmp_path / "b.ome.zarr", *options)
    assert code == 0, err
    group = zarr.open_group(tmp_path / "b.ome.zarr", mode="r")
    assert group["0"].shape == STACK
    image = group.attrs["ome"]["multiscales"][0]
    assert [axis["name"] for axis in image["axes"]] == ["t", "c", "z", "y", "x"]
    scale = image["datasets"][0]["coordinateTransformations"][0]["scale"]
    np.testing.assert_allclose(scale, [1.5, 1, 1, 0.25, 0.2])
    assert [channel["label"] for channel in group.attrs["ome"]["omero"]["channels"]] == ["DAPI", "GFP"]


# ND2


def test_positions_of_an_nd2_file_are_images_of_their_own(tmp_path):
    pytest.importorskip("nd2")
    pixels = random_array((3, 2, 4, 2, 20, 30), "uint16")
    path = write_nd2(tmp_path / "a.nd2", pixels, "TPZCYX")
    with io.open_series(path) as found:
        assert [(series.key, series.axes, series.shape) for series in found] == [
            ("1", "TZCYX", (3, 4, 2, 20, 30)),
            ("2", "TZCYX", (3, 4, 2, 20, 30)),
        ]
        calibration = found[0].metadata.calibration
    assert calibration.sizes == {"X": 0.25, "Y": 0.25, "Z": 2.0, "T": 0.5}
    assert calibration.channels == ("DAPI", "GFP")
    np.testing.assert_array_equal(io.read(f"{path}:2").pixels, pixels[:, 1])


@pytest.mark.parametrize(
    ("axes", "shape"), [("YX", (20, 30)), ("CYX", (2, 20, 30)), ("YXS", (20, 30, 3)), ("ZYX", (4, 20, 30))]
)
def test_nd2_files_of_every_layout_agree_with_the_library(tmp_path, axes, shape):
    nd2 = pytest.importorskip("nd2")
    pixels = random_array(shape, "uint16")
    path = write_nd2(tmp_path / "a.nd2", pixels, axes)
    picture = io.read(path)
    assert (picture.metadata.axes, picture.channel_axis) == (axes, -1 if "S" in axes else None)
    np.testing.assert_array_equal(picture.pixels, pixels)
    np.testing.assert_array_equal(picture.pixels, nd2.imread(path))


def test_a_frame_that_an_nd2_file_lacks_is_not_black(tmp_path):
    pytest.importorskip("nd2")
    path = write_nd2(tmp_path / "a.nd2", random_array((4, 20, 30), "uint16"), "TYX")
    path.write_bytes(path.read_bytes().replace(b"ImageDataSeq|2!", b"ImageDataSeq|9!"))
    with pytest.raises(ValueError, match=r"it is truncated: frame 3 is missing"):
        io.read(path)


# LIF


def test_series_of_a_lif_file_are_had_by_name_and_number(tmp_path):
    pytest.importorskip("liffile")
    movie, cells = random_array((3, 4, 20, 30), "uint16"), random_array((2, 20, 30))
    path = write_lif(tmp_path / "a.lif", {"movie": (movie, "TZYX"), "cells": (cells, "CYX")})
    np.testing.assert_array_equal(io.read(f"{path}:movie").pixels, movie)
    np.testing.assert_array_equal(io.read(f"{path}:2").pixels, cells)
    picture = io.read(f"{path}:cells")
    assert picture.metadata.axes == "CYX"
    assert picture.metadata.calibration.channels == ("Green", "Red")
    assert picture.metadata.calibration.sizes["X"] == pytest.approx(0.2)
    assert io.read(f"{path}:movie").metadata.calibration.sizes["T"] == pytest.approx(0.5)


def test_a_lif_file_that_is_cut_is_told(tmp_path):
    pytest.importorskip("liffile")
    path = write_lif(tmp_path / "a.lif", {"cells": (random_array((2, 20, 30)), "CYX")})
    for size in (len(path.read_bytes()) - 1, 2000, 300):
        path.write_bytes(path.read_bytes()[:size])
        with pytest.raises(ValueError, match=r"^cannot read .*a\.lif: "):
            io.read(path)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the shared data")
def test_a_real_lif_file_is_read_as_its_library_reads_it(tmp_path):
    liffile = pytest.importorskip("liffile")
    path = DATA / "LeicaLASX_wavelength-sweep_example.lif"
    with liffile.LifFile(path) as opened:
        for number, image in enumerate(opened.images, start=1):
            np.testing.assert_array_equal(io.read(f"{path}:{number}").pixels, image.asarray())
    picture = io.read(f"{path}:x_y_z_t_lambdaEmi")
    assert picture.metadata.axes == "TCZYX"
    io.write(tmp_path / "a.ome.tif", picture)
    assert 'PhysicalSizeZ="0.5002027"' in xml_of(tmp_path / "a.ome.tif")
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "a.ome.tif"), picture.pixels)
