"""NIfTI files: header, affine, scaling and dtype stay; MGH files are read."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from pictures import random_array

from vnlem import io

nibabel = pytest.importorskip("nibabel")

DATA = Path(os.environ.get("VNLEM_DATA", Path(__file__).parents[2] / "shared" / "data")) / "formats"
AFFINE = np.array([[-2.0, 0, 0.1, 90], [0, 2, 0, -126], [0, 0.2, 3, -72], [0, 0, 0, 1]])
SHAPE = (30, 20, 6)  # X, Y, Z, as nibabel has it


def brain(path, pixels, version=nibabel.Nifti1Image, units=("mm", "sec"), **header):
    image = version(pixels, AFFINE)
    image.header.set_xyzt_units(*units)
    image.header["descrip"] = b"of a test"
    for name, value in header.items():
        image.header[name] = value
    image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"an extension"))
    nibabel.save(image, path)
    return path


def content(path):
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
@pytest.mark.parametrize("version", [nibabel.Nifti1Image, nibabel.Nifti2Image])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "float32", "float64", ">i2", ">f4"])
def test_what_is_written_again_has_the_same_bytes(tmp_path, name, version, dtype):
    pixels = (random_array(SHAPE, "int32") % 250).astype(dtype)
    header = nibabel.Nifti1Header(endianness=">") if dtype.startswith(">") else None
    if header is None:
        brain(tmp_path / name, pixels, version)
    else:
        header.set_data_dtype(dtype)
        nibabel.save(nibabel.Nifti1Image(pixels, AFFINE, header), tmp_path / name)
    picture = io.read(tmp_path / name)
    assert picture.metadata.axes == "ZYX"
    assert picture.pixels.dtype == np.dtype(dtype).newbyteorder("=")
    np.testing.assert_array_equal(picture.pixels, pixels.T)
    io.write(tmp_path / f"b{name}", picture)
    assert content(tmp_path / f"b{name}") == content(tmp_path / name)


def test_voxels_are_values_and_are_stored_with_the_slope_they_had(cli, tmp_path):
    values = 1000 + random_array(SHAPE, "int32") % 2000 * 0.25
    image = nibabel.Nifti1Image(values, AFFINE)
    image.set_data_dtype(np.int16)
    nibabel.save(image, tmp_path / "a.nii")
    picture = io.read(tmp_path / "a.nii")
    np.testing.assert_allclose(picture.pixels, nibabel.load(tmp_path / "a.nii").get_fdata().T, rtol=1e-6)
    io.write(tmp_path / "b.nii", picture)
    assert (tmp_path / "b.nii").read_bytes() == (tmp_path / "a.nii").read_bytes()
    assert cli("denoise", tmp_path / "a.nii", tmp_path / "c.nii", "--method", "halving", "--sigma", 5)[0] == 0
    before, after = nibabel.load(tmp_path / "a.nii"), nibabel.load(tmp_path / "c.nii")
    assert after.get_data_dtype() == np.int16
    assert (after.dataobj.slope, after.dataobj.inter) == (before.dataobj.slope, before.dataobj.inter)
    assert after.get_fdata().std() == pytest.approx(before.get_fdata().std() / 2, rel=0.01)
    np.testing.assert_array_equal(after.affine, before.affine)


@pytest.mark.parametrize(
    ("units", "table", "axes"),
    [(("mm", "sec"), None, "TZYX"), (("mm", "unknown"), None, "NZYX"), (("mm", "sec"), "a.bval", "NZYX")],
)
def test_the_fourth_axis_is_time_or_directions_of_diffusion(tmp_path, units, table, axes):
    path = brain(tmp_path / "a.nii.gz", random_array((*SHAPE, 4), "int16"), units=units)
    if table:
        (tmp_path / table).write_text("0 1000 1000 1000\n")
    picture = io.read(path)
    assert (picture.metadata.axes, picture.pixels.shape) == (axes, (4, *SHAPE[::-1]))


def test_sizes_of_voxels_reach_other_formats(tmp_path):
    import tifffile

    path = brain(tmp_path / "a.nii", random_array(SHAPE, "int16"))
    picture = io.read(path)
    assert picture.metadata.calibration.sizes["X"] == pytest.approx(2)
    io.write(tmp_path / "a.ome.tif", picture)
    xml = tifffile.tiffcomment(tmp_path / "a.ome.tif")
    assert 'PhysicalSizeX="2.0"' in xml
    assert 'PhysicalSizeXUnit="mm"' in xml


def test_pictures_of_other_formats_get_a_header(tmp_path):
    calibration = io.Calibration({"X": 500.0, "Y": 500.0, "Z": 1000.0}, dict.fromkeys("XYZ", "micrometer"))
    metadata = io.Metadata("tiff", axes="ZYX", calibration=calibration)
    io.write(tmp_path / "a.nii.gz", io.Picture(random_array(SHAPE[::-1], "uint16"), metadata=metadata))
    image = nibabel.load(tmp_path / "a.nii.gz")
    assert image.shape == SHAPE
    np.testing.assert_allclose(image.header.get_zooms(), (0.5, 0.5, 1))
    np.testing.assert_array_equal(np.asarray(image.dataobj).T, random_array(SHAPE[::-1], "uint16"))
    io.write(tmp_path / "b.nii", random_array((20, 30)))
    assert nibabel.load(tmp_path / "b.nii").shape == (30, 20)


@pytest.mark.parametrize("name", ["a.mgh", "a.mgz"])
def test_mgh_files_are_read_and_become_nifti(tmp_path, name):
    pixels = random_array(SHAPE, "int16")
    nibabel.save(nibabel.MGHImage(pixels, AFFINE), tmp_path / name)
    picture = io.read(tmp_path / name)
    np.testing.assert_array_equal(picture.pixels, pixels.T)
    io.write(tmp_path / "b.nii.gz", picture)
    image = nibabel.load(tmp_path / "b.nii.gz")
    np.testing.assert_allclose(image.affine, nibabel.MGHImage(pixels, AFFINE).affine, atol=1e-4)
    np.testing.assert_array_equal(np.asarray(image.dataobj), pixels)


def change(path, offset, number):
    data = bytearray(path.read_bytes())
    data[offset : offset + 2] = np.int16(number).tobytes()
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (
            lambda path: path.write_bytes(path.read_bytes()[:-1]),
            "its length does not fit its header, which says",
        ),
        (lambda path: change(path, 42, 29), "29x20x6 voxels of int16"),
        (lambda path: change(path, 42, 0), r"it has .* voxels|damaged"),
        (lambda path: change(path, 70, 128), "colours"),
        (lambda path: change(path, 70, 32), "complex"),
        (lambda path: change(path, 70, 9999), "data"),
        (lambda path: path.write_bytes(path.read_bytes()[:400].replace(b"n+1\0", b"ni1\0")), "pair of files"),
    ],
)
def test_headers_that_do_not_fit_are_told(tmp_path, damage, reason):
    path = brain(tmp_path / "a.nii", random_array(SHAPE, "int16"))
    damage(path)
    with pytest.raises(ValueError, match=rf"^cannot read .*a\.nii: .*({reason})"):
        io.read(path)


def test_five_axes_are_refused(tmp_path):
    brain(tmp_path / "a.nii", random_array((6, 5, 4, 3, 2), "int16"))
    with pytest.raises(ValueError, match="6x5x4x3x2 voxels; images of two to four axes"):
        io.read(tmp_path / "a.nii")


def test_colours_do_not_fit(tmp_path):
    with pytest.raises(ValueError, match=r"a \.nii file cannot hold colours; choose \.png"):
        io.write(tmp_path / "a.nii", random_array((20, 30, 3)))


@pytest.mark.parametrize("name", ["S0_10slices.nii.gz", "anatomical.nii", "example_nifti2.nii.gz"])
@pytest.mark.skipif(not DATA.is_dir(), reason="needs the shared data")
def test_real_files_come_back_byte_for_byte(tmp_path, name):
    io.write(tmp_path / name, io.read(DATA / name))
    assert content(tmp_path / name) == content(DATA / name)


def masked_scan(folder, shape):
    """A noisy ball in X, Y, Z, or three of them as a series, and a mask in the middle, as files."""
    x, y, _ = np.mgrid[:32, :28, :5]
    ball = 20 + 180 * ((x - 16) ** 2 + (y - 14) ** 2 < 64)
    voxels = np.repeat(ball[..., None], 3, axis=3) if len(shape) == 4 else ball
    noisy = voxels + np.random.default_rng(0).normal(0, 10, voxels.shape)
    mask = np.zeros(ball.shape, np.uint8)
    mask[14:18, 12:16, 1:3] = 1
    brain(folder / "scan.nii.gz", noisy.astype(np.float32))
    brain(folder / "mask.nii.gz", mask)
    return noisy.astype(np.float32), mask > 0


@pytest.mark.parametrize("pages", [[], ["--page-by-page"]], ids=["volume", "page by page"])
@pytest.mark.parametrize("shape", [(32, 28, 5), (32, 28, 5, 3)], ids=["3-D", "4-D"])
def test_a_mask_file_names_missing_voxels(cli, tmp_path, shape, pages):
    noisy, mask = masked_scan(tmp_path, shape)
    junk = noisy.copy()
    junk[mask] = 900
    brain(tmp_path / "junk.nii.gz", junk)
    options = ["--mask", tmp_path / "mask.nii.gz", "--sigma", 10, "--profile", "fast", *pages]
    for name in ("scan", "junk"):
        assert cli("denoise", tmp_path / f"{name}.nii.gz", tmp_path / f"{name}-out.nii.gz", *options)[0] == 0
    found, other = (nibabel.load(tmp_path / f"{name}-out.nii.gz").get_fdata() for name in ("scan", "junk"))
    assert found.shape == shape
    np.testing.assert_array_equal(found, other)
    assert np.abs(found[mask] - 200).max() < 15


@pytest.mark.parametrize("shape", [(32, 28, 5), (32, 28, 5, 3)], ids=["3-D", "4-D"])
def test_a_brain_mask_says_what_to_denoise(cli, tmp_path, shape):
    noisy, mask = masked_scan(tmp_path, shape)
    options = ["--only", tmp_path / "mask.nii.gz", "--sigma", 10, "--profile", "fast"]
    assert cli("denoise", tmp_path / "scan.nii.gz", tmp_path / "out.nii.gz", *options)[0] == 0
    found = nibabel.load(tmp_path / "out.nii.gz").get_fdata()
    np.testing.assert_array_equal(found[~mask], noisy[~mask])
    assert np.abs(found[mask] - 200).mean() < 0.5 * np.abs(noisy[mask] - 200).mean()


def test_a_brain_mask_that_is_given_as_missing_voxels_is_told(cli, tmp_path):
    noisy, _ = masked_scan(tmp_path, (32, 28, 5))
    brain(tmp_path / "brain.nii.gz", (noisy > 110).astype(np.uint8))
    given = [tmp_path / "scan.nii.gz", tmp_path / "out.nii.gz", "--sigma", 10, "--profile", "fast"]
    status, _, said = cli("denoise", *given, "--mask", tmp_path / "brain.nii.gz")
    assert status == 0
    assert "--mask marks 22% of the voxels as missing" in said
    assert "goes to --only" in said
    assert "missing" not in cli("denoise", *given, "--overwrite", "--mask", tmp_path / "mask.nii.gz")[2]


def test_a_mask_of_another_scan_is_refused(cli, tmp_path):
    masked_scan(tmp_path, (32, 28, 5))
    brain(tmp_path / "other.nii.gz", np.zeros((9, 9, 5), np.uint8))
    for pages in ([], ["--page-by-page"]):
        given = [tmp_path / "scan.nii.gz", tmp_path / "out.nii.gz", *pages]
        status, _, said = cli("denoise", *given, "--mask", tmp_path / "other.nii.gz")
        assert status == 2
        assert "mask must have the shape of the image" in said
