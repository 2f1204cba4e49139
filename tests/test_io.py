"""Files come back as they went in: pixels, dtype, layout and what the file says about itself."""

import os
import stat
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import cv2
import imagecodecs
import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image, ImageCms, ImageOps
from PIL.PngImagePlugin import PngInfo

from vnlem import io
from vnlem.io import Picture

GREY, GREY_ALPHA, COLOUR, COLOUR_ALPHA = (20, 30), (20, 30, 2), (20, 30, 3), (20, 30, 4)
LAYOUTS = pytest.mark.parametrize(
    "shape", [GREY, GREY_ALPHA, COLOUR, COLOUR_ALPHA], ids=["L", "LA", "RGB", "RGBA"]
)
INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "float32", "float64"]


def random_array(shape, dtype="uint8"):
    values = np.random.default_rng(1).integers(0, 60_000, shape)
    return (values % 256 if np.dtype(dtype).itemsize == 1 else values).astype(dtype)


def rewrite(source, target, change=None):
    """Read, perhaps change the pixels, write, read again: the two pictures."""
    before = io.read(source)
    io.write(target, before if change is None else before.map(change))
    return before, io.read(target)


def srgb_profile():
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


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
        assert a.ome_metadata == b.ome_metadata
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


# Whole or not at all


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".npy"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_while_writing_leaves_the_folder_as_it_was(tmp_path, monkeypatch, suffix, error):
    def fail_half_way(path, *args, **kwargs):
        Path(path).write_bytes(b"half")
        raise error

    from vnlem.io import jpeg, npy, png, tiff_writer

    for module in (jpeg, npy, png, tiff_writer):
        monkeypatch.setattr(module, "write", fail_half_way)
    (tmp_path / f"old{suffix}").write_bytes(b"old content")
    for name in ("new", "old"):
        with pytest.raises(error):
            io.write(tmp_path / f"{name}{suffix}", random_array(GREY))
    assert [path.name for path in tmp_path.iterdir()] == [f"old{suffix}"]
    assert (tmp_path / f"old{suffix}").read_bytes() == b"old content"


def test_a_failed_rename_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        io.write(tmp_path / "a.png", random_array(GREY))
    assert list(tmp_path.iterdir()) == []


def test_new_files_follow_the_umask_and_old_ones_keep_their_mode(tmp_path):
    previous = os.umask(0o027)
    try:
        io.write(tmp_path / "a.png", random_array(GREY))
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "a.png").stat().st_mode) == 0o640
    (tmp_path / "a.png").chmod(0o600)
    io.write(tmp_path / "a.png", random_array(GREY))
    assert stat.S_IMODE((tmp_path / "a.png").stat().st_mode) == 0o600


def test_writing_through_a_link_replaces_the_file_it_points_to(tmp_path):
    (tmp_path / "b.png").symlink_to(tmp_path / "a.png")
    io.write(tmp_path / "b.png", random_array(GREY))
    assert (tmp_path / "b.png").is_symlink()
    assert io.read(tmp_path / "a.png").page_shape == GREY


# Bad input


@pytest.mark.parametrize(
    ("name", "picture", "message"),
    [
        (
            "a.jpg",
            Picture(np.zeros(GREY, "uint16")),
            "a .jpg file cannot hold uint16 pixels; choose .png, .tif",
        ),
        (
            "a.jpeg",
            Picture(np.zeros(GREY, "float32")),
            "cannot hold float32 pixels; choose .tif, .tiff or .npy",
        ),
        (
            "a.png",
            Picture(np.zeros(GREY, "float64")),
            "cannot hold float64 pixels; choose .tif, .tiff or .npy",
        ),
        ("a.png", Picture(np.zeros((5, *GREY), "uint8")), "cannot hold 5 pages; choose .tif, .tiff or .npy"),
        ("a.png", Picture(np.zeros((20, 30, 5), "uint8"), -1), "cannot hold 5 colour channels"),
        (
            "a.jpg",
            Picture(np.zeros(GREY, "uint8"), None, np.zeros(GREY, "uint8")),
            "alpha channel; choose .png",
        ),
        ("a.bmp", Picture(np.zeros(GREY, "uint8")), "'.bmp', which names no format; choose .png, .jpg"),
        ("a", Picture(np.zeros(GREY, "uint8")), "has no suffix"),
        ("a.tif", Picture(np.zeros(GREY, "complex64")), "cannot hold complex64 pixels; convert"),
    ],
)
def test_what_a_format_cannot_hold_is_said_with_the_formats_that_can(tmp_path, name, picture, message):
    for function in (io.check_writable, io.write):
        with pytest.raises(ValueError, match=message.replace(".", r"\.")):
            function(tmp_path / name, picture)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_a_folder_and_a_device_are_refused(tmp_path):
    picture = Picture(np.zeros(GREY, "uint8"))
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*; create it first"):
        io.write(tmp_path / "no" / "a.png", picture)
    (tmp_path / "b.png").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        io.write(tmp_path / "b.png", picture)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        io.read(tmp_path / "none.png")
    with pytest.raises(IsADirectoryError, match="is a folder; name an image file"):
        io.read(tmp_path)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".npy"])
@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.3, 0.6, 0.9, 0.995])
def test_a_truncated_file_is_a_clear_error(tmp_path, suffix, fraction):
    io.write(tmp_path / f"a{suffix}", random_array((64, 64)))
    data = (tmp_path / f"a{suffix}").read_bytes()
    (tmp_path / f"b{suffix}").write_bytes(data[: int(fraction * len(data))])
    with pytest.raises(ValueError, match=r"cannot read .*b"):
        io.read(tmp_path / f"b{suffix}")


@pytest.mark.parametrize("options", [{}, {"compression": "zlib"}, {"imagej": True}], ids=str)
def test_a_truncated_stack_is_not_read_as_fewer_pages(tmp_path, options):
    tifffile.imwrite(tmp_path / "a.tif", random_array((6, 40, 40)), photometric="minisblack", **options)
    data = (tmp_path / "a.tif").read_bytes()
    for fraction in (0.2, 0.5, 0.8, 0.99):
        (tmp_path / "b.tif").write_bytes(data[: int(fraction * len(data))])
        with pytest.raises(ValueError, match="cannot read"):
            io.read(tmp_path / "b.tif")


def test_a_damaged_png_is_a_clear_error(tmp_path):
    io.write(tmp_path / "a.png", random_array((64, 64)))
    data = bytearray((tmp_path / "a.png").read_bytes())
    data[len(data) // 2] ^= 255
    (tmp_path / "a.png").write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        io.read(tmp_path / "a.png")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.integers(0, 10_000), value=st.integers(0, 255), suffix=st.sampled_from([".png", ".tif", ".npy"])
)
def test_a_changed_byte_gives_a_picture_or_a_clear_error(tmp_path, place, value, suffix):
    path = tmp_path / f"a{suffix}"
    io.write(path, random_array((12, 14)))
    data = bytearray(path.read_bytes())
    data[place % len(data)] = value
    path.write_bytes(data)
    try:
        io.read(path)
    except ValueError as error:
        message = str(error)
    else:
        return
    assert str(path) in message


@pytest.mark.parametrize("suffix", [".png", ".tif", ".npy"])
def test_black_and_white_images_are_refused_with_a_cure(tmp_path, suffix):
    bits = random_array(GREY) > 100
    path = tmp_path / f"a{suffix}"
    np.save(path, bits) if suffix == ".npy" else Image.fromarray(bits).save(path)
    with pytest.raises(ValueError, match=r"1-bit .* convert it to 8-bit grey first"):
        io.read(path)


def test_other_contents_are_refused_with_a_sentence(tmp_path):
    (tmp_path / "a.png").write_text("not an image")
    with pytest.raises(ValueError, match="not a PNG, JPEG, TIFF or NPY file"):
        io.read(tmp_path / "a.png")
    np.save(tmp_path / "a.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="cannot read"):
        io.read(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", np.zeros(5))
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        io.read(tmp_path / "b.npy")
    Image.new("CMYK", (20, 20)).save(tmp_path / "c.jpg")
    with pytest.raises(ValueError, match="its colours are CMYK; convert it to RGB"):
        io.read(tmp_path / "c.jpg")
    io.write(tmp_path / "d.png", random_array(GREY))
    with pytest.raises(ValueError, match="is for TIFF and NPY files"):
        io.read(tmp_path / "d.png", channels="first")


def test_a_tiff_of_different_images_is_refused(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as tif:
        tif.write(random_array((20, 30)), metadata=None)
        tif.write(random_array((50, 15)), metadata=None)
    with pytest.raises(ValueError, match="2 images of different shape or type"):
        io.read(tmp_path / "a.tif")


def test_a_tiff_with_smaller_copies_says_that_they_are_not_kept(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as tif:
        tif.write(random_array((64, 64)), metadata=None, subifds=1)
        tif.write(random_array((32, 32)), metadata=None, subfiletype=1)
    with pytest.warns(UserWarning, match="smaller copies"):
        picture = io.read(tmp_path / "a.tif")
    io.write(tmp_path / "b.tif", picture)
    np.testing.assert_array_equal(io.read(tmp_path / "b.tif").pixels, random_array((64, 64)))


def test_the_content_decides_the_format_not_the_name(tmp_path):
    io.write(tmp_path / "a.png", random_array(GREY))
    (tmp_path / "a.png").rename(tmp_path / "a.tif")
    assert io.read(tmp_path / "a.tif").metadata.format == "png"


def test_a_picture_with_other_pixels_can_be_written_under_the_old_metadata(tmp_path):
    tifffile.imwrite(
        tmp_path / "a.tif", random_array((3, 20, 30)), photometric="minisblack", resolution=(5, 5)
    )
    picture = io.read(tmp_path / "a.tif")
    io.write(tmp_path / "b.tif", replace(picture, pixels=np.zeros((20, 30), np.float32)))
    after = io.read(tmp_path / "b.tif")
    assert after.pixels.dtype == np.float32
    assert after.page_shape == (20, 30)
