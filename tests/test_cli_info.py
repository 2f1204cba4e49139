"""``vnlem info``: what a file holds, and what denoise would do with it."""

import json

import numpy as np
import pytest
import tifffile
from microscope_files import czi_stack, write_czi
from pictures import random_array
from raw_files import write_dng

import vnlem
from vnlem import io
from vnlem.kernels.cpu import library


def images(cli, path, *options):
    status, out, err = cli("info", path, "--json", *options)
    assert status == 0, err
    return json.loads(out)["images"]


def test_a_stack_with_channels_is_described(cli, tmp_path):
    path = czi_stack(tmp_path / "a.czi", random_array((3, 2, 4, 20, 30), "uint16"), "TCZYX")
    status, out, _ = cli("info", path)
    assert status == 0
    assert out.splitlines()[0] == f"{path}: CZI"
    for line in (
        "  shape     3x2x4x20x30 (TCZYX)",
        "  dtype     uint16",
        "  pixel     X 0.2 µm, Y 0.25 µm, Z 1 µm, T 1.5 s",
        "  channels  DAPI, GFP",
    ):
        assert line in out.splitlines()
    assert (
        "help each other, for each of 2 channels and" in out
        or "for each of 3 time points and 2 channels" in out
    )


def test_all_images_of_a_file_are_listed_and_one_can_be_named(cli, tmp_path):
    blocks = [({"X": 0, "Y": 0, "S": k}, random_array((16 + k, 24))) for k in range(2)]
    path = write_czi(tmp_path / "a.czi", blocks)
    status, out, _ = cli("info", path)
    assert status == 0
    assert out.splitlines()[0].endswith(": CZI, 2 images")
    assert "image 1 (left)" in out
    assert "image 2 (right)" in out
    assert [image["shape"] for image in images(cli, f"{path}:right")] == [[17, 24]]


def test_the_image_that_is_taken_without_a_name_is_marked(cli, tmp_path):
    fits = pytest.importorskip("astropy.io.fits")
    extensions = [fits.ImageHDU(random_array((20, 30), "float32"), name=name) for name in ("SCI", "VAR")]
    fits.HDUList([fits.PrimaryHDU(), *extensions]).writeto(tmp_path / "a.fits")
    out = cli("info", tmp_path / "a.fits")[1]
    assert "image 1 (SCI) (default)\n" in out
    assert "image 2 (VAR)\n" in out


@pytest.mark.parametrize(
    ("name", "shape", "axes", "plan"),
    [
        ("a.png", (20, 30), None, "the image"),
        ("a.png", (20, 30, 3), None, "the colours of the image together"),
        ("a.tif", (5, 20, 30), "ZYX", "5 slices (Z) help each other"),
        ("a.tif", (5, 20, 30), "TYX", "5 frames (T) help each other"),
        ("a.tif", (5, 20, 30), "CYX", "each of 5 channels by itself"),
        ("a.tif", (4, 20, 30, 3), None, "4 slices (Z) help each other, with their colours"),
        ("a.npy", (5, 20, 30), None, "each page of 5 by itself; pass --axes, e.g. TYX or ZYX"),
    ],
)
def test_what_denoise_would_do(cli, tmp_path, name, shape, axes, plan):
    if axes is None:
        io.write(tmp_path / name, random_array(shape))
    else:
        tifffile.imwrite(
            tmp_path / name, random_array(shape), photometric="minisblack", metadata={"axes": axes}
        )
    (image,) = images(cli, tmp_path / name)
    assert image["denoise"].startswith(plan)
    assert image["shape"] == list(shape)


def test_the_noise_is_estimated_for_every_channel(cli, tmp_path):
    rng = np.random.default_rng(0)
    pixels = np.stack([rng.normal(1000, sigma, (96, 96)) for sigma in (20, 80)]).astype("uint16")
    path = czi_stack(tmp_path / "a.czi", pixels, "CYX")
    (image,) = images(cli, path, "--noise")
    assert list(image["noise"]) == ["DAPI", "GFP"]
    for text, sigma in zip(image["noise"].values(), (20, 80), strict=True):
        assert float(text.partition("sigma ")[2].split(";")[0].split(",")[0]) == pytest.approx(sigma, rel=0.1)


def test_colours_of_a_file_that_is_read_plane_by_plane(cli, tmp_path):
    path = czi_stack(tmp_path / "a.czi", random_array((40, 50, 3)), "YXS")
    (image,) = images(cli, path, "--noise")
    assert image["denoise"] == "the colours of the image together"
    assert "sigma" in image["noise"][""] or "noise" in image["noise"][""]


def test_a_zarr_store_is_described(cli, tmp_path):
    pytest.importorskip("zarr")
    path = czi_stack(tmp_path / "a.czi", random_array((2, 4, 20, 30), "uint16"), "CZYX")
    assert (
        cli("denoise", path, tmp_path / "b.ome.zarr", "--method", "nlm", "--sigma", 5, "--page-by-page")[0]
        == 0
    )
    (image,) = images(cli, tmp_path / "b.ome.zarr")
    assert (image["axes"], image["shape"], image["channels"]) == ("CZYX", [2, 4, 20, 30], ["DAPI", "GFP"])
    assert image["pixel_sizes"] == {"Z": 1.0, "Y": 0.25, "X": pytest.approx(0.2)}
    assert image["denoise"] == "4 slices (Z) help each other, for each of 2 channels"


def test_the_images_of_a_tiff_file_that_denoise_refuses_are_listed(cli, tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as tif:
        for shape in ((20, 30), (16, 18)):
            tif.write(random_array(shape, "uint16"), photometric="minisblack")
    found = images(cli, tmp_path / "a.tif", "--noise")
    assert [(image["shape"], image["axes"], image["dtype"]) for image in found] == [
        ([20, 30], "YX", "uint16"),
        ([16, 18], "YX", "uint16"),
    ]
    assert all("save this one in a separate file" in image["denoise"] for image in found)


def test_the_data_sets_of_an_hdf5_file_are_listed(cli, tmp_path):
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("zarr")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["movie"] = random_array((4, 20, 30))
        file["more/image"] = random_array((16, 18), "float32")
        file["table"] = np.arange(5)
    found = images(cli, tmp_path / "a.h5")
    assert [(image["key"], image["shape"]) for image in found] == [
        ("more/image", [16, 18]),
        ("movie", [4, 20, 30]),
    ]
    assert images(cli, f"{tmp_path / 'a.h5'}:movie")[0]["denoise"].startswith("each page of 4 by itself")
    (tmp_path / "b.h5").write_bytes(b"no HDF5")
    status, _, said = cli("info", tmp_path / "b.h5")
    assert status == 2
    assert "b.h5" in said


def test_imagej_says_the_time_step(cli, tmp_path):
    about = {"axes": "TCYX", "unit": "um", "finterval": 2.5}
    pixels = random_array((3, 2, 20, 30))
    tifffile.imwrite(tmp_path / "a.tif", pixels, imagej=True, resolution=(5, 5), metadata=about)
    out = cli("info", tmp_path / "a.tif")[1]
    assert "  pixel     X 0.2 µm, Y 0.2 µm, T 2.5 s\n" in out
    assert "  channels  2, without names\n" in out


def test_the_pixels_of_a_telescope_have_an_angle(cli, tmp_path):
    fits = pytest.importorskip("astropy.io.fits")
    hdu = fits.PrimaryHDU(random_array((20, 30), "float32"))
    hdu.header["CTYPE1"], hdu.header["CTYPE2"] = "RA---TAN", "DEC--TAN"
    for name, value in (("CD1_1", -0.3), ("CD1_2", 0.4), ("CD2_1", 0.4), ("CD2_2", 0.3)):
        hdu.header[name] = value / 3600
    hdu.writeto(tmp_path / "a.fits")
    assert "  pixel     X 0.5 arcsec, Y 0.5 arcsec\n" in cli("info", tmp_path / "a.fits")[1]


@pytest.mark.parametrize("noise", [None, (1e-4, 1e-6)], ids=["estimated", "from the file"])
def test_a_mosaic_is_described(cli, tmp_path, noise):
    pytest.importorskip("rawpy")
    mosaic = 64 + np.random.default_rng(0).poisson(400, (96, 128)).astype(np.uint16)
    write_dng(tmp_path / "a.dng", mosaic, ("RG", "GB"), noise=noise)
    (image,) = images(cli, tmp_path / "a.dng", "--noise")
    assert image["denoise"].startswith("the mosaic RG/GB")
    assert "black level 64, white level 4095" in image["denoise"]
    assert list(image["noise"]) == ["R", "G", "B"]
    assert all(text.endswith("(from the file)") == (noise is not None) for text in image["noise"].values())


def test_without_a_file_it_says_what_runs_here(cli):
    status, out, err = cli("info")
    assert (status, err) == (0, "")
    rows = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert rows["vnlem"] == vnlem.__version__
    assert rows["numpy"] == np.__version__
    assert rows["library"] == str(library.path_of(rows["instructions"]))
    assert int(rows["cores"]) >= 1
    assert set(rows) == {"vnlem", "python", "numpy", "system", "library", "instructions", "cores", "gpu"}
    assert json.loads(cli("info", "--json")[1]) == rows


def test_an_installation_without_its_library_is_described(cli, monkeypatch, tmp_path):
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    for function in (library.instruction_set, library.load):
        monkeypatch.setattr(library, function.__name__, function.__wrapped__)
    status, out, _ = cli("info")
    assert status == 0
    assert "are missing in" in out
    assert "\ninstructions none\n" in out


def test_noise_needs_a_file(cli):
    assert cli("info", "--noise")[::2] == (
        2,
        "vnlem: error: --noise needs a FILE: vnlem info FILE --noise\n",
    )


def test_what_is_no_image_is_one_line(cli, tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    status, _, err = cli("info", tmp_path / "a.txt")
    assert status == 2
    assert err.count("\n") == 1
    assert (
        cli("info", tmp_path / "missing.png")[2]
        == f"vnlem: error: there is no file {tmp_path / 'missing.png'}\n"
    )
