"""FITS files: the image is chosen or named, its header stays, other extensions are copied."""

import os
from pathlib import Path

import numpy as np
import photometry
import pytest
from pictures import random_array

from vnlem import io

fits = pytest.importorskip("astropy.io.fits")

DATA = Path(os.environ.get("VNLEM_DATA", Path(__file__).parents[2] / "shared" / "data")) / "formats"
SHAPE = (20, 30)
DTYPES = ["uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]


def observation(path, pixels, **header):
    hdu = fits.PrimaryHDU(pixels)
    hdu.header["OBJECT"] = ("M31", "what it shows")
    hdu.header["HIERARCH ESO DET GAIN"] = 1.2
    hdu.header["CTYPE1"], hdu.header["CTYPE2"] = "RA---TAN", "DEC--TAN"
    hdu.header.add_comment("of a test")
    for name, value in header.items():
        hdu.header[name] = value
    hdu.writeto(path, checksum=True)
    return path


@pytest.mark.parametrize("suffix", [".fits", ".fits.gz", ".fit.bz2"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_pixels_and_header_come_back(tmp_path, dtype, suffix):
    pixels = (random_array((3, *SHAPE), "int32") % 120).astype(dtype)
    observation(tmp_path / f"a{suffix}", pixels)
    picture = io.read(tmp_path / f"a{suffix}")
    assert picture.pixels.dtype == dtype
    np.testing.assert_array_equal(picture.pixels, pixels)
    io.write(tmp_path / f"b{suffix}", picture)
    with fits.open(tmp_path / f"a{suffix}") as before, fits.open(tmp_path / f"b{suffix}") as after:
        after.verify("exception")
        cards = {card.keyword: card.value for card in before[0].header.cards if "SUM" not in card.keyword}
        assert {card.keyword: card.value for card in after[0].header.cards} == cards
        assert after[0].data.dtype == before[0].data.dtype
        np.testing.assert_array_equal(after[0].data, pixels)


def test_a_line_of_history_says_what_was_done(cli, tmp_path):
    observation(tmp_path / "a.fits", random_array(SHAPE, "float32"))
    assert (
        cli("denoise", tmp_path / "a.fits", tmp_path / "b.fits", "--method", "halving", "--sigma", 9)[0] == 0
    )
    with fits.open(tmp_path / "b.fits") as after:
        assert "denoise, method halving, sigma 9" in str(after[0].header["HISTORY"])
        assert after[0].header["OBJECT"] == "M31"
        assert after[0].data.std() == pytest.approx(random_array(SHAPE, "float32").std() / 2, rel=0.01)


def test_bscale_and_bzero_are_applied_and_kept(tmp_path):
    hdu = fits.PrimaryHDU(random_array(SHAPE, "float32") / 100 + 3)
    hdu.scale("int16", bscale=0.05, bzero=100)
    hdu.writeto(tmp_path / "a.fits")
    picture = io.read(tmp_path / "a.fits")
    np.testing.assert_allclose(picture.pixels, fits.getdata(tmp_path / "a.fits"), rtol=1e-6)
    io.write(tmp_path / "b.fits", picture)
    with fits.open(tmp_path / "b.fits", do_not_scale_image_data=True) as after:
        assert (after[0].header["BITPIX"], after[0].header["BSCALE"], after[0].header["BZERO"]) == (
            16,
            0.05,
            100,
        )
        with fits.open(tmp_path / "a.fits", do_not_scale_image_data=True) as before:
            np.testing.assert_array_equal(after[0].data, before[0].data)


@pytest.mark.parametrize("kind", ["blank", "nan"])
def test_missing_pixels_are_filled(cli, tmp_path, kind):
    pixels = random_array(SHAPE, "int16" if kind == "blank" else "float32")
    pixels[3, 4] = -999 if kind == "blank" else np.nan
    observation(tmp_path / "a.fits", pixels, **({"BLANK": -999} if kind == "blank" else {}))
    code, _, _ = cli("denoise", tmp_path / "a.fits", tmp_path / "b.fits", "--method", "halving")
    assert code == 0
    assert np.isfinite(io.read(tmp_path / "b.fits").pixels).all()


def survey(path):
    """Extensions as telescopes write them: science, variance, a table."""
    table = fits.BinTableHDU.from_columns([fits.Column("flux", "E", array=np.arange(5.0))], name="CAT")
    images = [
        fits.ImageHDU(random_array(SHAPE, "float32") + k, name=name) for k, name in enumerate(("SCI", "VAR"))
    ]
    images[0].header["EXPTIME"] = 300.0
    fits.HDUList([fits.PrimaryHDU(), images[0], table, images[1]]).writeto(path)
    return path


def test_the_science_image_is_chosen_and_all_else_is_copied(tmp_path):
    path = survey(tmp_path / "a.fits")
    picture = io.read(path)
    np.testing.assert_array_equal(picture.pixels, random_array(SHAPE, "float32"))
    io.write(tmp_path / "b.fits", picture)
    assert (tmp_path / "b.fits").read_bytes() == path.read_bytes()
    io.write(tmp_path / "c.fits", picture.map(lambda page: page * 2))
    with fits.open(tmp_path / "c.fits") as after:
        after.verify("exception")
        assert [hdu.name for hdu in after] == ["PRIMARY", "SCI", "CAT", "VAR"]
        assert after["SCI"].header["EXPTIME"] == 300
        np.testing.assert_array_equal(after["SCI"].data, 2 * random_array(SHAPE, "float32"))
        np.testing.assert_array_equal(after["VAR"].data, random_array(SHAPE, "float32") + 1)
        np.testing.assert_array_equal(after["CAT"].data["flux"], np.arange(5.0))


@pytest.mark.parametrize("key", ["VAR", "3", "var"])
def test_an_extension_is_had_by_name_or_number(tmp_path, key):
    path = survey(tmp_path / "a.fits")
    if key == "var":
        with pytest.raises(
            ValueError, match=r"no image 'var', but 2 images: 1 \(SCI, 20x30\), 3 \(VAR, 20x30\)"
        ):
            io.read(f"{path}:{key}")
        return
    np.testing.assert_array_equal(io.read(f"{path}:{key}").pixels, random_array(SHAPE, "float32") + 1)


def test_images_that_fpack_compressed_are_read(tmp_path):
    pixels = random_array(SHAPE, "int16")
    images = [fits.PrimaryHDU(), fits.CompImageHDU(pixels, name="CHIP", compression_type="RICE_1")]
    images[1].header["GAIN"] = 1.5
    fits.HDUList(images).writeto(tmp_path / "a.fits.fz")
    picture = io.read(tmp_path / "a.fits.fz")
    np.testing.assert_array_equal(picture.pixels, pixels)
    io.write(tmp_path / "b.fits", picture)
    with fits.open(tmp_path / "b.fits") as after:
        after.verify("exception")
        assert isinstance(after[1], fits.ImageHDU)
        assert (after[1].name, after[1].header["GAIN"]) == ("CHIP", 1.5)
        np.testing.assert_array_equal(after[1].data, pixels)


def test_a_file_without_an_image_is_told(tmp_path):
    fits.BinTableHDU.from_columns([fits.Column("flux", "E", array=np.arange(5.0))]).writeto(
        tmp_path / "a.fits"
    )
    with pytest.raises(ValueError, match=r"a\.fits: it holds no image, only tables"):
        io.read(tmp_path / "a.fits")


@pytest.mark.parametrize("end", [2880, 3000, -2880, 100])
def test_a_file_that_is_cut_is_told(tmp_path, end):
    path = observation(tmp_path / "a.fits", random_array((3, *SHAPE), "float32"))
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(
        ValueError, match=r"^cannot read .*a\.fits: (it is truncated|it is damaged .Empty or corrupt)"
    ):
        io.read(path)


@pytest.mark.parametrize(
    ("kind", "axes"), [("TIME", "TYX"), ("FREQ-LSR", "CYX"), ("STOKES", "CYX"), ("", "QYX")]
)
def test_the_header_names_the_third_axis(tmp_path, kind, axes):
    observation(
        tmp_path / "a.fits", random_array((3, *SHAPE), "float32"), **({"CTYPE3": kind} if kind else {})
    )
    assert io.read(tmp_path / "a.fits").metadata.axes == axes


def test_pictures_of_other_formats_get_a_header(tmp_path):
    io.write(tmp_path / "a.fits", random_array((2, *SHAPE), "uint16"))
    with fits.open(tmp_path / "a.fits") as opened:
        opened.verify("exception")
        assert opened[0].data.dtype == np.uint16
        np.testing.assert_array_equal(opened[0].data, random_array((2, *SHAPE), "uint16"))


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the shared data")
def test_a_real_file_comes_back_byte_for_byte(tmp_path):
    io.write(tmp_path / "a.fits", io.read(DATA / "gmos.fits"))
    assert (tmp_path / "a.fits").read_bytes() == (DATA / "gmos.fits").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("fwhm", [2.0, 3.0, 4.0])
def test_aperture_photometry_is_unchanged(fwhm):
    """Stars of SNR 20, whose fluxes have an error of 5 %, lose less than 0.5 %."""
    for factor, (before, after) in photometry.errors(fwhm, 20.0, 16, aim="flux").items():
        assert before.std() == pytest.approx(0.05 if factor == 1.5 else 0.095, rel=0.2)
        assert abs(photometry.bias_of(before, after)) < 0.005
        assert after.std() < before.std()
