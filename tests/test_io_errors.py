"""Files are written whole or not at all, and read errors are one sentence."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pictures import GREY, random_array
from PIL import Image

from vnlem import NoiseModel, io
from vnlem.io import Picture

# Whole or not at all


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".npy"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_while_writing_leaves_the_folder_as_it_was(tmp_path, monkeypatch, suffix, error):
    def fail_half_way(path, *args, **kwargs):
        Path(path).write_bytes(b"half")
        if tmp_path in Path(path).parents:  # and not where it is tried out
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
    for write, name in ((NoiseModel.white(3.0).save, "a.json"), (NoiseModel.white(3.0).draw, "a.pdf")):
        with pytest.raises(FileNotFoundError, match=r"there is no folder .*; create it first"):
            write(tmp_path / "no" / name)
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


def test_words_of_other_libraries_are_told_as_the_cause(tmp_path):
    np.save(tmp_path / "a.npy", random_array(GREY))
    data = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(data.replace(b"'fortran_order': False", b"'fortran_order':  f()  "))
    with pytest.raises(ValueError, match=r"cannot read .*: it is damaged \(.*\)$"):
        io.read(tmp_path / "a.npy")


def test_a_place_that_no_file_has_is_told_as_damage(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(22, "Invalid argument")

    io.write(tmp_path / "a.npy", random_array(GREY))
    monkeypatch.setattr("vnlem.io.npy.read", fail)
    with pytest.raises(ValueError, match=r"cannot read .*a\.npy: .*Invalid argument"):
        io.read(tmp_path / "a.npy")


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
    with pytest.raises(ValueError, match=r"not a PNG, JPEG, TIFF, NPY, .* file; convert it"):
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
    with pytest.raises(ValueError, match=r"it holds 2 images \(.*\); save the one"):
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


@pytest.mark.parametrize("options", [(), ("--page-by-page",)])
def test_a_damaged_page_of_a_compressed_stack_is_told(cli, tmp_path, options):
    source = tmp_path / "in.tif"
    stack = np.random.default_rng(0).integers(0, 255, (5, 64, 64), dtype=np.uint8)
    tifffile.imwrite(source, stack, compression="zlib", metadata={"axes": "TYX"}, photometric="minisblack")
    with tifffile.TiffFile(source) as tif:
        start = tif.pages[3].dataoffsets[0]
    content = bytearray(source.read_bytes())
    content[start : start + 40] = b"\x55" * 40
    source.write_bytes(content)
    told_noise = ("--method", "nlm", "--sigma", "9")
    status, _, told = cli("denoise", source, tmp_path / "out.tif", *told_noise, *options)
    assert status == 2
    assert f"cannot read {source}: page 4 of 5 is damaged (" in told
    assert [path.name for path in tmp_path.iterdir()] == ["in.tif"]


def test_the_positions_of_an_ome_file_are_named(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.ome.tif", ome=True) as tif:
        for name in ("left", "right"):
            tif.write(random_array((20, 30)), metadata={"axes": "YX", "Name": name}, photometric="minisblack")
    with pytest.raises(ValueError, match=r"2 images \(left 20x30 uint8, right 20x30 uint8\); save the one"):
        io.read(tmp_path / "a.ome.tif")
