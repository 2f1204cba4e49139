"""MRC files: headers, labels and statistics stay right; errors of a header are reported."""

import os
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from pictures import random_array

from vnlem import io

mrcfile = pytest.importorskip("mrcfile")

DATA = Path(os.environ.get("VNLEM_DATA", Path(__file__).parents[2] / "shared" / "data")) / "formats"
REAL = ["EMD-3001.map", "EMD-3197.map", "emd_3197.map.gz", "clean70SRibosome_vol_65p.mrc", "rln_proj_65.mrcs"]
DTYPES = {"int8": 0, "int16": 1, "float32": 2, "uint16": 6, "float16": 12}


def values(shape, dtype="float32"):
    return (random_array(shape, "int32") % 100).astype(dtype)


def volume(path, pixels, **header):
    with mrcfile.new(path, overwrite=True) as mrc:
        mrc.set_data(pixels)
        mrc.set_volume()
        mrc.voxel_size = (1.5, 2.0, 2.5)
        mrc.header.origin = (1, 2, 3)
        mrc.add_label("of a test")
        mrc.set_extended_header(np.arange(320, dtype=np.uint8).view("V1"))
        mrc.header.exttyp = b"AGAR"
        for name, value in header.items():
            mrc.header[name] = value
    return path


def header_of(path):
    with mrcfile.open(path, permissive=True) as mrc:
        return mrc.header.copy(), mrc.extended_header.tobytes(), mrc.data.copy()


def is_valid(path):
    return mrcfile.validate(path, print_file=StringIO())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("suffix", [".mrc", ".map.gz", ".mrc.bz2"])
def test_a_volume_keeps_header_and_extended_header(tmp_path, dtype, suffix):
    source = volume(tmp_path / "a.mrc", values((5, 20, 30), dtype))
    picture = io.read(source)
    assert picture.metadata.axes == "ZYX"
    assert picture.metadata.calibration.sizes == {"X": 1.5, "Y": 2.0, "Z": 2.5}
    io.write(tmp_path / f"b{suffix}", picture)
    before, after = header_of(source), header_of(tmp_path / f"b{suffix}")
    assert after[0].tobytes() == before[0].tobytes()
    assert after[1] == before[1]
    assert after[0].mode == DTYPES[dtype]
    np.testing.assert_array_equal(after[2], before[2])
    if dtype != "float16":  # mrcfile computes their deviation in 16 bits, and finds it infinite
        assert is_valid(tmp_path / f"b{suffix}")


def test_statistics_are_those_of_the_new_pixels_and_a_label_says_what_was_done(cli, tmp_path):
    source = volume(tmp_path / "a.mrc", values((5, 20, 30)))
    code, _, err = cli("denoise", source, tmp_path / "b.mrc", "--method", "halving", "--sigma", 10)
    assert code == 0, err
    header, _, data = header_of(tmp_path / "b.mrc")
    assert data.std() == pytest.approx(values((5, 20, 30)).std() / 2, rel=0.01)
    assert (header.dmin, header.dmax) == (data.min(), data.max())
    assert header.dmean == pytest.approx(data.mean(dtype=float), rel=1e-6)
    assert header.rms == pytest.approx(data.std(dtype=float), rel=1e-5)
    assert header.nlabl == 3
    assert header.label[2].startswith(b"vnlem ")
    assert b"denoise, method halving, sigma 10" in header.label[2]
    assert is_valid(tmp_path / "b.mrc")


@pytest.mark.parametrize(
    ("name", "make", "axes", "shape"),
    [
        ("a.mrc", "set_image_stack", "NYX", (4, 20, 30)),
        ("a.mrcs", "set_volume", "NYX", (4, 20, 30)),
        ("a.mrc", "set_volume", "ZYX", (4, 20, 30)),
    ],
)
def test_stacks_of_particles_are_told_from_volumes(tmp_path, name, make, axes, shape):
    with mrcfile.new(tmp_path / name) as mrc:
        mrc.set_data(values(shape))
        getattr(mrc, make)()
    picture = io.read(tmp_path / name)
    assert (picture.metadata.axes, picture.pixels.shape) == (axes, shape)


def test_stacks_of_volumes_and_single_images_keep_their_kind(tmp_path):
    with mrcfile.new(tmp_path / "a.mrc") as mrc:
        mrc.set_data(values((2, 3, 20, 30)))
    io.write(tmp_path / "b.mrc", io.read(tmp_path / "a.mrc"))
    with mrcfile.open(tmp_path / "b.mrc") as mrc:
        assert mrc.is_volume_stack()
        np.testing.assert_array_equal(mrc.data, values((2, 3, 20, 30)))
    with mrcfile.new(tmp_path / "c.mrc") as mrc:
        mrc.set_data(values((20, 30)))
    assert io.read(tmp_path / "c.mrc").pixels.shape == (20, 30)
    assert is_valid(tmp_path / "b.mrc")


@pytest.mark.parametrize(
    ("axes", "shape", "kind"),
    [
        ("YX", (20, 30), "is_single_image"),
        ("TYX", (4, 20, 30), "is_image_stack"),
        ("ZYX", (4, 20, 30), "is_volume"),
        ("TZYX", (2, 4, 20, 30), "is_volume_stack"),
    ],
)
def test_pictures_of_other_formats_get_a_header(tmp_path, axes, shape, kind):
    calibration = io.Calibration(dict.fromkeys("XYZ", 0.2), dict.fromkeys("XYZ", "nanometer"))
    picture = io.Picture(values(shape), metadata=io.Metadata("tiff", axes=axes, calibration=calibration))
    io.write(tmp_path / "a.mrc", picture)
    with mrcfile.open(tmp_path / "a.mrc") as mrc:
        assert getattr(mrc, kind)()
        assert mrc.voxel_size.x == mrc.voxel_size.y == pytest.approx(2)
        np.testing.assert_array_equal(mrc.data, values(shape))
    assert is_valid(tmp_path / "a.mrc")


def test_unsigned_bytes_of_imod_are_not_taken_for_signed(tmp_path):
    pixels = np.arange(600, dtype=np.uint8).reshape(20, 30)
    extra = bytearray(84)
    extra[40:48] = np.array([1146047817, 0], "<i4").tobytes()
    with mrcfile.new(tmp_path / "a.mrc") as mrc:
        mrc.set_data(pixels.view(np.int8))
        mrc.header.extra2 = np.void(bytes(extra))
    picture = io.read(tmp_path / "a.mrc")
    assert picture.pixels.dtype == np.uint16
    np.testing.assert_array_equal(picture.pixels, pixels)


def test_the_other_byte_order_stays(tmp_path):
    with mrcfile.new(tmp_path / "a.mrc") as mrc:
        mrc.set_data(values((3, 20, 30)).astype(">f4"))
    picture = io.read(tmp_path / "a.mrc")
    np.testing.assert_array_equal(picture.pixels, values((3, 20, 30)))
    io.write(tmp_path / "b.mrc", picture)
    assert (tmp_path / "b.mrc").read_bytes()[212:214] == b"\x11\x11"
    np.testing.assert_array_equal(header_of(tmp_path / "b.mrc")[2], values((3, 20, 30)))
    assert is_valid(tmp_path / "b.mrc")


def change(path, offset, content):
    data = bytearray(path.read_bytes())
    data[offset : offset + len(content)] = content
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-4]), r"its length does not fit its header"),
        (
            lambda path: path.write_bytes(path.read_bytes() + b"0000"),
            r"30x20x5 pixels of mode 2, 13344 bytes",
        ),
        (lambda path: change(path, 0, np.int32(-30).tobytes()), r"says -30x20x5 pixels"),
        (lambda path: change(path, 12, np.int32(4).tobytes()), r"complex numbers \(a Fourier transform\)"),
        (lambda path: change(path, 12, np.int32(77).tobytes()), r"mode"),
        (lambda path: change(path, 92, np.int32(10**9).tobytes()), r"its length does not fit its header"),
    ],
)
def test_headers_that_do_not_fit_are_told(tmp_path, damage, reason):
    path = volume(tmp_path / "a.mrc", values((5, 20, 30)))
    damage(path)
    with pytest.raises(ValueError, match=rf"^cannot read .*a\.mrc: .*{reason}"):
        io.read(path)


def test_eight_bits_without_a_sign_do_not_fit(tmp_path):
    with pytest.raises(ValueError, match=r"a \.mrc file cannot hold uint8 pixels; choose \.png"):
        io.write(tmp_path / "a.mrc", random_array((20, 30)))


def test_pages_stay_on_the_disk(tmp_path):
    volume(tmp_path / "a.mrc", values((5, 20, 30)))
    with io.open_pages(tmp_path / "a.mrc") as opened:
        assert opened.picture.pixels.strides == (0, 0, 0)
        np.testing.assert_array_equal(opened.pages.page(3), values((5, 20, 30))[3])
        io.write_pages(tmp_path / "b.mrc", opened.picture, opened.pages)
    np.testing.assert_array_equal(header_of(tmp_path / "b.mrc")[2], values((5, 20, 30)))


@pytest.mark.parametrize("name", REAL)
@pytest.mark.skipif(not DATA.is_dir(), reason="needs the shared data")
def test_real_files_come_back_as_they_were(tmp_path, name):
    io.write(tmp_path / name, io.read(DATA / name))
    before, after = header_of(DATA / name), header_of(tmp_path / name)
    np.testing.assert_array_equal(after[2], before[2])
    assert after[1] == before[1]
    changed = {"exttyp", "nversion", "dmean", "rms"}  # MRC2014's marks, and the last digit of a mean
    kept = [field for field in before[0].dtype.names if field not in changed]
    assert [field for field in kept if after[0][field].tobytes() != before[0][field].tobytes()] == []
    assert is_valid(tmp_path / name)
