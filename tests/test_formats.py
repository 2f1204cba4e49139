"""The table of formats: by content and suffix, from other packages, compressed, without their readers."""

import gzip
import importlib.metadata
import importlib.util
import sys
import types
from dataclasses import replace

import numpy as np
import pytest
from pictures import GREY, random_array

from vnlem import io
from vnlem.io import formats
from vnlem.io.series import Series


@pytest.fixture
def raster(monkeypatch):
    """A format that another package brings: the word RASTER, height and width, then bytes."""
    from contextlib import contextmanager

    @contextmanager
    def open_file(path, place):
        content = path.read_bytes()
        pixels = np.frombuffer(content, np.uint8, offset=8).reshape(content[6], content[7])
        read = lambda number, rows, columns: pixels[rows, columns]  # noqa: E731
        yield [Series("YX", pixels.shape, pixels.dtype, read, metadata=io.Metadata("raster", axes="YX"))]

    def write(path, picture, *, pages=None):
        path.write_bytes(b"RASTER" + bytes(picture.pixels.shape) + picture.pixels.tobytes())

    module = types.ModuleType("raster_format")
    module.open_file, module.write = open_file, write
    module.RASTER = io.Format(
        "raster",
        (".raster", ".raster.gz"),
        (b"RASTER",),
        ("uint8",),
        "",
        "raster_format:write",
        open="raster_format:open_file",
        compressible=True,
    )
    monkeypatch.setitem(sys.modules, "raster_format", module)
    entry = importlib.metadata.EntryPoint("raster", "raster_format:RASTER", "vnlem.formats")
    real = importlib.metadata.entry_points
    monkeypatch.setattr(
        formats, "entry_points", lambda group: [entry] if group == "vnlem.formats" else real(group=group)
    )
    formats._from_elsewhere.cache_clear()
    yield module
    formats._from_elsewhere.cache_clear()


def test_a_format_of_another_package_is_read_and_written_like_our_own(raster, cli, tmp_path):
    io.write(tmp_path / "a.raster", random_array(GREY))
    np.testing.assert_array_equal(io.read(tmp_path / "a.raster").pixels, random_array(GREY))
    assert cli("denoise", tmp_path / "a.raster", tmp_path / "b.raster", "--method", "halving")[0] == 0
    assert io.read(tmp_path / "b.raster").pixels.std() < 0.6 * random_array(GREY).std()


def test_an_entry_point_that_is_no_format_is_refused(raster, tmp_path):
    raster.RASTER = "raster"
    (tmp_path / "a.raster").write_bytes(b"RASTER")
    with pytest.raises(
        TypeError, match=r"the entry point 'raster' of vnlem\.formats must be a vnlem\.io\.Format"
    ):
        io.read(tmp_path / "a.raster")


def test_compressed_files_are_read_and_written_and_leave_nothing_behind(raster, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    io.write(tmp_path / "a.raster.gz", random_array(GREY))
    assert gzip.decompress((tmp_path / "a.raster.gz").read_bytes()).startswith(b"RASTER")
    np.testing.assert_array_equal(io.read(tmp_path / "a.raster.gz").pixels, random_array(GREY))
    first = (tmp_path / "a.raster.gz").read_bytes()
    io.write(tmp_path / "b.raster.gz", random_array(GREY))
    assert (tmp_path / "b.raster.gz").read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.raster.gz", "b.raster.gz"]


def test_a_compressed_file_that_is_cut_is_damaged(raster, tmp_path):
    io.write(tmp_path / "a.raster.gz", random_array(GREY))
    whole = (tmp_path / "a.raster.gz").read_bytes()
    for end in (5, 12, len(whole) // 2, len(whole) - 4):
        (tmp_path / "a.raster.gz").write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"^cannot read .*a\.raster\.gz: it is damaged \("):
            io.read(tmp_path / "a.raster.gz")


def test_a_format_that_is_never_compressed_says_decompress_it(tmp_path):
    io.write(tmp_path / "a.png", random_array(GREY))
    (tmp_path / "a.png.gz").write_bytes(gzip.compress((tmp_path / "a.png").read_bytes()))
    with pytest.raises(ValueError, match="it is a compressed PNG file; decompress it first"):
        io.read(tmp_path / "a.png.gz")


@pytest.mark.parametrize(
    ("start", "library", "extra"),
    [
        (b"SIMPLE  =" + bytes(500), "astropy", "astro"),
        (bytes(208) + b"MAP " + bytes(900), "mrcfile", "em"),
        (bytes(344) + b"n+1\x00" + bytes(900), "nibabel", "mri"),
        (b"\x70\x00\x00\x00" + bytes(500), "liffile", "microscopes"),
        (b"\xda\xce\xbe\x0a" + bytes(500), "nd2", "microscopes"),
    ],
)
def test_a_missing_reader_names_the_extra(tmp_path, monkeypatch, start, library, extra):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (tmp_path / "a.img").write_bytes(start)
    with pytest.raises(
        ValueError, match=rf"files need the package {library}: pip install 'vnlem\[{extra}\]'$"
    ):
        io.read(tmp_path / "a.img")


def test_a_missing_writer_is_told_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"MRC files need the package mrcfile: pip install 'vnlem\[em\]'"):
        io.check_writable(tmp_path / "a.mrc", io.Picture(random_array(GREY, "uint16")))


@pytest.mark.parametrize(
    ("name", "instead"), [("a.czi", r"\.ome\.tif or \.ome\.zarr"), ("a.mgz", r"\.nii\.gz")]
)
def test_formats_that_are_only_read_say_what_to_write_instead(tmp_path, name, instead):
    with pytest.raises(ValueError, match=f"are read and not written; choose {instead}"):
        io.write(tmp_path / name, random_array(GREY))


def test_an_image_of_a_file_that_holds_one_cannot_be_named(tmp_path):
    io.write(tmp_path / "a.png", random_array(GREY))
    with pytest.raises(ValueError, match=r"a\.png:2 asks for one of several images; .* which holds one"):
        io.read(f"{tmp_path / 'a.png'}:2")


def test_every_suffix_belongs_to_one_format():
    suffixes = [suffix for format_ in formats.FORMATS.values() for suffix in format_.suffixes]
    assert len(suffixes) == len(set(suffixes))


@pytest.mark.parametrize("dtype", ["float32", "uint16", "int16"])
@pytest.mark.parametrize("name", ["a.mrc", "a.nii", "a.fits"])
def test_pixels_of_another_dtype_change_the_header_and_nothing_else(tmp_path, name, dtype):
    pytest.importorskip({"m": "mrcfile", "n": "nibabel", "f": "astropy"}[name[2]])
    metadata = io.Metadata("tiff", axes="ZYX", calibration=io.Calibration({"X": 2.0}, {"X": "millimeter"}))
    io.write(tmp_path / name, io.Picture(random_array((3, 20, 30), "uint16"), metadata=metadata))
    picture = io.read(tmp_path / name)
    changed = replace(picture, pixels=picture.pixels.astype(dtype))
    io.write(tmp_path / f"b{name}", changed)
    again = io.read(tmp_path / f"b{name}")
    assert again.pixels.dtype == dtype
    assert again.metadata.calibration == picture.metadata.calibration
    np.testing.assert_array_equal(again.pixels, changed.pixels)
