"""Files are written as they were read: pixels, dtype, layout and metadata."""

import re
import struct
import zlib

import cv2
import imagecodecs
import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pictures import (
    COLOUR,
    COLOUR_ALPHA,
    FLOATS,
    GREY,
    GREY_ALPHA,
    INTEGERS,
    LAYOUTS,
    random_array,
    rewrite,
    srgb_profile,
)
from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo

from vnlem import io

# Pixels


@LAYOUTS
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_png_keeps_every_bit_and_another_decoder_agrees(tmp_path, shape, dtype):
    array = random_array(shape, dtype)
    io.write(tmp_path / "a.png", array)
    picture = io.read(tmp_path / "a.png")
    assert picture.joined().dtype == dtype
    np.testing.assert_array_equal(picture.joined(), array)
    if shape != GREY_ALPHA:  # OpenCV has no grey+alpha
        other = cv2.imread(str(tmp_path / "a.png"), cv2.IMREAD_UNCHANGED)
        order = [2, 1, 0, 3][: other.shape[-1]] if other.ndim == 3 else ...
        np.testing.assert_array_equal(other[..., order] if other.ndim == 3 else other, array)


@LAYOUTS
@pytest.mark.parametrize("suffix", [".tif", ".tiff", ".npy"])
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_tiff_and_npy_keep_every_dtype_and_layout(tmp_path, shape, suffix, dtype):
    array = random_array(shape, dtype)
    path = tmp_path / f"a{suffix}"
    io.write(path, array)
    picture = io.read(path)
    assert picture.joined().dtype == dtype
    assert (picture.alpha is not None) == (shape in (GREY_ALPHA, COLOUR_ALPHA))
    assert picture.n_pages == 1
    np.testing.assert_array_equal(picture.joined(), array)


@pytest.mark.parametrize("shape", [GREY, COLOUR], ids=["L", "RGB"])
def test_jpeg_keeps_a_smooth_picture_within_its_own_losses(tmp_path, shape):
    ramp = np.broadcast_to(np.linspace(10, 240, 30).astype(np.uint8), (20, 30))
    array = ramp if shape == GREY else np.stack([ramp, ramp[:, ::-1], ramp], axis=-1)
    io.write(tmp_path / "a.jpg", array)
    back = io.read(tmp_path / "a.jpg").pixels
    assert back.dtype == np.uint8
    assert np.abs(back.astype(int) - array).max() <= 4


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    array=hnp.arrays(
        st.sampled_from(["uint8", "int16", "float32", "float64", ">u2", ">f4"]),
        st.tuples(st.integers(1, 4), st.integers(5, 9), st.integers(5, 9)),
        elements=st.integers(0, 100),
    ),
    suffix=st.sampled_from([".tif", ".npy"]),
)
def test_any_stack_comes_back_page_by_page(tmp_path, array, suffix):
    io.write(tmp_path / f"a{suffix}", array)
    picture = io.read(tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(np.stack(list(picture.pages())), array)
    assert picture.pixels.dtype == array.dtype.newbyteorder("=")


def test_a_palette_png_is_expanded(tmp_path):
    image = Image.fromarray(random_array(COLOUR)).quantize(16)
    image.save(tmp_path / "a.png")
    np.testing.assert_array_equal(io.read(tmp_path / "a.png").pixels, np.asarray(image.convert("RGB")))


def test_a_palette_png_with_a_transparent_entry_gets_alpha(tmp_path):
    Image.fromarray(random_array(COLOUR)).quantize(16).save(tmp_path / "a.png", transparency=3)
    expected = np.asarray(Image.open(tmp_path / "a.png").convert("RGBA"))
    np.testing.assert_array_equal(io.read(tmp_path / "a.png").joined(), expected)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_the_transparent_colour_of_a_png_becomes_alpha(tmp_path, dtype):
    array = np.full((4, 5), 7, dtype)
    array[0] = 9
    encoded = imagecodecs.png_encode(array)
    chunk = b"tRNS" + struct.pack(">H", 9)
    chunk = struct.pack(">I", 2) + chunk + struct.pack(">I", zlib.crc32(chunk))
    (tmp_path / "a.png").write_bytes(encoded[:33] + chunk + encoded[33:])
    alpha = io.read(tmp_path / "a.png").alpha
    assert (alpha[0] == 0).all()
    assert (alpha[1:] == np.iinfo(dtype).max).all()


def test_a_palette_tiff_is_expanded(tmp_path):
    indices = random_array((3, *GREY))
    colours = np.random.default_rng(2).integers(0, 2**16, (3, 256)).astype(np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", indices, photometric="palette", colormap=colours)
    before, after = rewrite(tmp_path / "a.tif", tmp_path / "b.tif")
    np.testing.assert_array_equal(before.pixels[..., 1], colours[1, indices] >> 8)
    np.testing.assert_array_equal(after.pixels, before.pixels)
    assert after.n_pages == 3


def test_pixels_are_in_native_byte_order_whatever_the_file(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", random_array(GREY, "uint16"), byteorder=">")
    np.save(tmp_path / "a.npy", random_array(GREY, ">u2"))
    for name in ("a.tif", "a.npy"):
        pixels = io.read(tmp_path / name).pixels
        assert pixels.dtype.isnative
        np.testing.assert_array_equal(pixels, random_array(GREY, "uint16"))


def test_alpha_is_left_alone_when_pixels_change(tmp_path):
    array = random_array(COLOUR_ALPHA, "uint16")
    io.write(tmp_path / "a.png", array)
    _, after = rewrite(tmp_path / "a.png", tmp_path / "b.png", lambda page: page // 2)
    np.testing.assert_array_equal(after.alpha, array[..., 3])
    np.testing.assert_array_equal(after.pixels, array[..., :3] // 2)


# TIFF layouts


@pytest.mark.parametrize(
    ("shape", "options", "channel_axis", "n_pages"),
    [
        ((5, 20, 30), {"photometric": "minisblack"}, None, 5),
        ((2, 3, 20, 30), {"photometric": "minisblack", "metadata": {"axes": "TZYX"}}, None, 6),
        ((4, 20, 30, 3), {"photometric": "rgb"}, -1, 4),
        ((3, 20, 30), {"photometric": "rgb", "planarconfig": "separate"}, -3, 1),
        ((2, 3, 20, 30), {"photometric": "rgb", "planarconfig": "separate"}, -3, 2),
        ((2, 4, 20, 30), {"photometric": "rgb", "planarconfig": "separate", "extrasamples": [2]}, -3, 2),
        ((20, 30, 5), {"photometric": "minisblack", "planarconfig": "contig"}, -1, 1),
        ((20, 30, 4), {"photometric": "separated"}, -1, 1),
        ((20, 30), {"photometric": "miniswhite"}, None, 1),
        ((20, 30), {"bigtiff": True, "byteorder": ">"}, None, 1),
        ((2, 3, 4, 20, 30), {"imagej": True, "metadata": {"axes": "TZCYX"}}, None, 24),
        ((2, 20, 30, 3), {"imagej": True, "metadata": {"axes": "ZYXS"}}, -1, 2),
        ((2, 3, 4, 20, 30), {"ome": True, "metadata": {"axes": "TCZYX"}}, None, 24),
        ((2, 20, 30, 3), {"ome": True, "photometric": "rgb", "metadata": {"axes": "ZYXS"}}, -1, 2),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, tuple | dict) else str(value),
)
def test_tiff_layouts_stay_as_they_are(tmp_path, shape, options, channel_axis, n_pages):
    array = random_array(shape)
    tifffile.imwrite(tmp_path / "a.tif", array, **options)
    before, _ = rewrite(tmp_path / "a.tif", tmp_path / "b.tif")
    assert (before.channel_axis, before.n_pages) == (channel_axis, n_pages)
    np.testing.assert_array_equal(before.joined(), array)
    with tifffile.TiffFile(tmp_path / "a.tif") as a, tifffile.TiffFile(tmp_path / "b.tif") as b:
        assert a.series[0].axes == b.series[0].axes
        assert a.series[0].kind == b.series[0].kind
        assert len(a.pages) == len(b.pages)
        for tag in ("PhotometricInterpretation", "PlanarConfiguration", "ExtraSamples", "BitsPerSample"):
            assert a.pages[0].tags.valueof(tag) == b.pages[0].tags.valueof(tag)
        assert a.is_bigtiff == b.is_bigtiff
        np.testing.assert_array_equal(b.asarray(), array)


@pytest.mark.parametrize("compression", ["lzw", "zlib", "packbits", "zstd", "lzma"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_compressed_tiffs_are_read_and_stay_compressed(tmp_path, compression, dtype):
    array = random_array((40, 50, 3), dtype)
    tifffile.imwrite(
        tmp_path / "a.tif",
        array,
        photometric="rgb",
        compression=compression,
        predictor=compression != "packbits",
        tile=(16, 16),
    )
    _, after = rewrite(tmp_path / "a.tif", tmp_path / "b.tif")
    np.testing.assert_array_equal(after.pixels, array)
    with tifffile.TiffFile(tmp_path / "b.tif") as tif:
        assert tif.pages[0].compression == tifffile.COMPRESSION.ADOBE_DEFLATE


def test_a_jpeg_compressed_tiff_is_read_as_rgb(tmp_path):
    array = np.broadcast_to(np.uint8([200, 100, 50]), (32, 32, 3))
    tifffile.imwrite(tmp_path / "a.tif", array, photometric="rgb", compression="jpeg")
    before, after = rewrite(tmp_path / "a.tif", tmp_path / "b.tif")
    assert np.abs(before.pixels.astype(int) - array).max() <= 4
    np.testing.assert_array_equal(after.pixels, before.pixels)


def test_pages_keep_their_own_tags(tmp_path):
    tags = [
        (315, 2, 0, "Someone", True),
        (33550, 12, 3, (1.0, 2.0, 3.0), True),
        (700, 1, None, b"<x/>", True),
    ]
    with tifffile.TiffWriter(tmp_path / "a.tif") as tif:
        for k in range(3):
            tif.write(
                random_array(GREY, "uint16"),
                metadata=None,
                description=f"page µ {k}".encode(),
                resolution=((1000 + k, 7), (1000 + k, 9)),
                resolutionunit="centimeter",
                software="scope",
                datetime="2020:01:02 03:04:05",
                extratags=[*tags, (285, 2, 0, f"name {k}", True)],
                iccprofile=srgb_profile(),
            )
    rewrite(tmp_path / "a.tif", tmp_path / "b.tif", lambda page: page + 1)
    with tifffile.TiffFile(tmp_path / "a.tif") as a, tifffile.TiffFile(tmp_path / "b.tif") as b:
        for old, new in zip(a.pages, b.pages, strict=True):
            for code in (270, 282, 283, 285, 296, 305, 306, 315, 700, 33550, 34675):
                assert old.tags.valueof(code) == new.tags.valueof(code) is not None


def test_imagej_stacks_keep_calibration_labels_and_tables(tmp_path):
    table = np.arange(3 * 256, dtype=np.uint8).reshape(3, 256)
    tifffile.imwrite(
        tmp_path / "a.tif",
        random_array((3, 2, 20, 30), "uint16"),
        imagej=True,
        resolution=(1 / 0.2, 1 / 0.3),
        metadata={
            "axes": "ZCYX",
            "unit": "um",
            "spacing": 0.5,
            "mode": "composite",
            "Info": "objective 40x",
            "Labels": [f"plane {k}" for k in range(6)],
            "Ranges": (0.0, 100.0, 0.0, 200.0),
            "LUTs": [table, table[::-1]],
        },
    )
    rewrite(tmp_path / "a.tif", tmp_path / "b.tif", lambda page: page + 1)
    with tifffile.TiffFile(tmp_path / "a.tif") as a, tifffile.TiffFile(tmp_path / "b.tif") as b:
        assert str(a.imagej_metadata) == str(b.imagej_metadata)
        assert b.imagej_metadata["unit"] == "um"
        assert a.pages[0].resolution == b.pages[0].resolution


def test_an_imagej_colour_table_stays_a_table_and_its_grey_values_are_denoised(tmp_path):
    indices = random_array((3, *GREY))
    table = np.stack([np.arange(256) * 257, np.zeros(256), np.zeros(256)]).astype(np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", indices, imagej=True, photometric="palette", colormap=table)
    before, _ = rewrite(tmp_path / "a.tif", tmp_path / "b.tif", lambda page: page // 2)
    assert before.channel_axis is None
    with tifffile.TiffFile(tmp_path / "b.tif") as tif:
        np.testing.assert_array_equal(tif.asarray(), indices // 2)
        np.testing.assert_array_equal(tif.pages[0].colormap, table)


def test_both_descriptions_of_a_page_are_kept(tmp_path):
    pages = np.arange(4 * 20 * 30, dtype=np.uint16).reshape(2, 2, 20, 30)
    tifffile.imwrite(tmp_path / "in.tif", pages, description="stained with DAPI")
    io.write(tmp_path / "out.tif", io.read(tmp_path / "in.tif"))
    with tifffile.TiffFile(tmp_path / "out.tif") as tif:
        found = [tag.value for tag in tif.pages[0].tags if tag.code == 270]
        assert tif.series[0].shape == pages.shape
    assert found == ["stained with DAPI", '{"shape": [2, 2, 20, 30]}']


def test_ome_metadata_are_kept_word_for_word(tmp_path):
    details = {
        "axes": "TCZYX",
        "PhysicalSizeX": 0.1,
        "PhysicalSizeXUnit": "µm",
        "Channel": {"Name": ["a", "b"]},
    }
    tifffile.imwrite(tmp_path / "a.ome.tif", random_array((2, 2, 3, 20, 30)), ome=True, metadata=details)
    rewrite(tmp_path / "a.ome.tif", tmp_path / "b.ome.tif", lambda page: page // 2)
    with tifffile.TiffFile(tmp_path / "a.ome.tif") as a, tifffile.TiffFile(tmp_path / "b.ome.tif") as b:
        assert b.ome_metadata == re.sub(r' UUID="[^"]*"', "", a.ome_metadata)
        np.testing.assert_array_equal(a.asarray() // 2, b.asarray())


def test_a_name_ending_in_ome_tif_gives_ome_axes(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", random_array((3, 2, 20, 30)), imagej=True, metadata={"axes": "ZCYX"})
    rewrite(tmp_path / "a.tif", tmp_path / "b.ome.tif")
    with tifffile.TiffFile(tmp_path / "b.ome.tif") as tif:
        assert tif.is_ome
        assert tif.series[0].axes == "ZCYX"


def test_channels_can_be_told_where_the_file_does_not_say(tmp_path):
    np.save(tmp_path / "a.npy", random_array((3, 20, 30), "float32"))
    assert io.read(tmp_path / "a.npy").n_pages == 3
    picture = io.read(tmp_path / "a.npy", channels="first")
    assert (picture.n_pages, picture.n_channels) == (1, 3)
    np.save(tmp_path / "b.npy", random_array((20, 30, 4)))
    assert io.read(tmp_path / "b.npy").alpha is not None
    assert io.read(tmp_path / "b.npy", channels="last").n_channels == 4
    tifffile.imwrite(tmp_path / "c.tif", random_array((2, 20, 30)), imagej=True, metadata={"axes": "CYX"})
    joint = io.read(tmp_path / "c.tif", channels="first")
    io.write(tmp_path / "d.tif", joint)
    assert joint.n_pages == 1
    assert io.read(tmp_path / "d.tif").metadata.axes == "CYX"


# PNG and JPEG metadata


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_profile_resolution_and_exif_are_kept(tmp_path, suffix):
    exif = Image.Exif()
    exif[0x10F] = "Maker"
    Image.fromarray(random_array(COLOUR)).save(
        tmp_path / f"a{suffix}", icc_profile=srgb_profile(), dpi=(300, 150), exif=exif
    )
    rewrite(tmp_path / f"a{suffix}", tmp_path / f"b{suffix}")
    with Image.open(tmp_path / f"a{suffix}") as old, Image.open(tmp_path / f"b{suffix}") as new:
        assert new.info["icc_profile"] == old.info["icc_profile"]
        assert new.info["dpi"] == old.info["dpi"]
        assert new.getexif()[0x10F] == "Maker"


def test_png_text_and_gamma_are_kept(tmp_path):
    info = PngInfo()
    info.add_text("Title", "cells")
    info.add_itxt("Author", "Åsa")
    info.add(b"gAMA", struct.pack(">I", 45455))
    Image.fromarray(random_array(GREY)).save(tmp_path / "a.png", pnginfo=info)
    rewrite(tmp_path / "a.png", tmp_path / "b.png")
    with Image.open(tmp_path / "b.png") as new:
        assert new.info["Title"] == "cells"
        assert new.info["Author"] == "Åsa"
        assert new.info["gamma"] == pytest.approx(0.45455)


@pytest.mark.parametrize("target", [".png", ".jpg", ".tif"])
def test_resolution_and_profile_survive_a_change_of_format(tmp_path, target):
    Image.fromarray(random_array(COLOUR)).save(tmp_path / "a.jpg", icc_profile=srgb_profile(), dpi=(300, 150))
    _, after = rewrite(tmp_path / "a.jpg", tmp_path / f"b{target}")
    assert after.metadata.icc_profile == srgb_profile()
    assert after.metadata.resolution.per("inch") == pytest.approx(
        (300, 150), abs=0.02
    )  # PNG counts whole pixels per metre


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("source", [".jpg", ".png", ".tif"])
@pytest.mark.parametrize("target", [".jpg", ".png", ".tif", ".npy"])
def test_the_orientation_is_neither_lost_nor_applied_twice(tmp_path, orientation, source, target):
    array = np.zeros((16, 24, 3), np.uint8)
    array[:8, :8] = (200, 0, 0)
    array[:8, 16:] = (0, 200, 0)
    old = tmp_path / f"a{source}"
    if source == ".tif":
        tifffile.imwrite(old, array, photometric="rgb", extratags=[(274, 3, 1, orientation, True)])
    else:
        exif = Image.Exif()
        exif[0x112] = orientation
        Image.fromarray(array).save(old, exif=exif, quality=100, subsampling=0)
    new = tmp_path / f"b{target}"
    io.write(new, io.read(old))

    def shown(path):
        if path.suffix == ".npy":
            return np.load(path)
        with Image.open(path) as image:
            return np.asarray(ImageOps.exif_transpose(image))

    assert shown(new).shape == shown(old).shape
    assert np.abs(shown(new).astype(int) - shown(old)).max() < 40
