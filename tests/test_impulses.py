"""Impulses: which pixels count as one, and how they are replaced."""

import re

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

import vnlem
from vnlem.noise.impulses import REACH, USUAL, ImpulseRule, find_rule
from vnlem.noise.model import NoiseModel

SIGMA = 10.0
FAST = {"profile": "fast", "workers": 1}


def scene(height=128, width=128):
    """Discs, stripes and a slope: a picture of more than points."""
    y, x = np.mgrid[:height, :width]
    disc = (y - 50) ** 2 + (x - 60) ** 2 < 900
    return 60.0 + 0.4 * x + 60.0 * disc + 30.0 * ((x + y) // 16 % 2) * (y > 90)


def noisy(seed=0, sigma=SIGMA):
    return scene() + np.random.default_rng(seed).normal(0, sigma, (128, 128))


def salted(image, share=0.01, seed=1):
    chance = np.random.default_rng(seed).random(image.shape)
    return np.where(chance < share, np.where(chance < share / 2, 0.0, 255.0), image), chance < share


def psnr(image, clean):
    return float(10 * np.log10(255**2 / np.mean((image - clean) ** 2)))


def called(image, asked="auto"):
    rule = find_rule(image[None], vnlem.estimate_noise(image), asked)
    return np.zeros(image.shape, bool) if rule is None else rule.find(image[None])[0]


def stars(count=300, width=0.8, sigma=5.0, seed=0, side=160):
    """A field of stars of many magnitudes."""
    rng = np.random.default_rng(seed)
    rows, columns = np.indices((side, side))
    image = np.full((side, side), 100.0)
    for y, x, bright in zip(*rng.uniform(0, side, (2, count)), 30 * rng.pareto(1.2, count) + 20, strict=True):
        image += bright * np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / (2 * width**2))
    return image + rng.normal(0, sigma, image.shape)


def test_salt_and_pepper_are_found_and_replaced():
    image, true = salted(noisy())
    found = called(image)
    plain = true & (np.abs(image - noisy()) > 8 * SIGMA)
    assert found[plain].mean() > 0.9
    assert (found & ~true).mean() < 1e-3
    result, info = vnlem.denoise(image, return_info=True, **FAST)
    whole = vnlem.denoise(noisy(), **FAST)
    assert psnr(result, scene()) > psnr(whole, scene()) - 0.5
    assert psnr(result, scene()) > psnr(vnlem.denoise(image, impulses=False, **FAST), scene()) + 3
    assert info.details["impulses"] > 0.5 * true.sum()
    assert abs(info.noise.sigma / SIGMA - 1) < 0.12


@pytest.mark.parametrize("sigma", [0.0, SIGMA], ids=["clean", "noisy"])
def test_hot_and_dead_pixels_are_found(sigma):
    hot = np.random.default_rng(2).random((128, 128)) < 0.003
    for change in (90.0, -60.0):
        found = called(noisy(sigma=sigma) + change * hot * (1 if sigma == 0 or change > 0 else 1.5))
        assert found[hot].mean() > 0.7
        assert (found & ~hot).mean() < 1e-3


@pytest.mark.parametrize("sigma", [0.0, 3.0, 25.0])
def test_a_picture_without_impulses_has_none(sigma):
    assert not called(noisy(3, sigma)).any()


@pytest.mark.parametrize("seed", [3, 4])
def test_black_letters_on_paper_of_few_photons_are_no_impulses(seed):
    page, rng = Image.new("L", (192, 192)), np.random.default_rng(seed)
    for y in range(0, 192, 15):
        letters = "".join(rng.choice(list("abcdefghijklmnop ABC 0123,."), 60))
        ImageDraw.Draw(page).text((2, y), letters, fill=28, font=ImageFont.load_default(12))
    photons = np.where(np.asarray(page) > 14, 0.0, 28.0)
    assert not called(np.random.default_rng(3).poisson(photons).astype(float)).any()


@pytest.mark.parametrize("width", [0.4, 0.5, 0.8, 1.5])
@pytest.mark.parametrize("sigma", [1.0, 8.0])
def test_stars_are_no_impulses(width, sigma):
    assert not called(stars(width=width, sigma=sigma)).any()


def test_beads_of_one_pixel_that_recur_are_no_impulses():
    rng = np.random.default_rng(4)
    image = np.tile(100 + 0.1 * np.arange(128), (128, 1)) + rng.normal(0, 3, (128, 128))
    image[rng.random(image.shape) < 0.005] += 120
    assert not called(image).any()
    assert called(image, True).any()  # if the user knows better


def test_a_star_beside_hot_pixels_stays():
    """Even if impulses are plain, points with a point spread are not impulses."""
    image, true = salted(noisy(5, 3.0))
    rows, columns = np.indices(image.shape)
    star = 120 * np.exp(-((rows - 20) ** 2 + (columns - 100) ** 2) / (2 * 0.9**2))
    found = called(image + star)
    assert found.any()
    assert not found[20, 100] or true[20, 100]


def test_a_line_of_one_pixel_is_no_impulse():
    image, _ = salted(noisy(6))
    image[100, 10:110] = 250
    assert called(image)[100, 12:108].mean() < 0.1


def test_the_decision_needs_no_more_than_its_reach():
    image, _ = salted(noisy(7))
    rule = ImpulseRule(NoiseModel.camera(1.0, read_noise=SIGMA), 200.0, USUAL, (255.0,))
    whole = rule.find(image[None])
    part = rule.find(image[None, 30 - REACH : 80 + REACH, 40 - REACH :])
    np.testing.assert_array_equal(part[:, REACH:-REACH, REACH:], whole[:, 30:80, 40:])


def test_ordinary_calls_do_not_change():
    image = noisy(8)
    np.testing.assert_array_equal(vnlem.denoise(image, **FAST), vnlem.denoise(image, impulses=False, **FAST))


def test_a_map_of_sigma_says_which_pixels_are_noisy_by_right():
    rng = np.random.default_rng(14)
    level = np.broadcast_to(np.linspace(5, 20, 128), (128, 128))
    image = scene() + level * rng.normal(size=level.shape)
    hot = rng.random(image.shape) < 0.004
    _, info = vnlem.denoise(np.where(hot, 255.0, image), level, return_info=True, **FAST)
    assert info.details["impulses"] > 0.9 * hot.sum()
    wild = np.where(rng.random(image.shape) < 0.01, 80.0, 8.0)
    _, info = vnlem.denoise(scene() + wild * rng.normal(size=wild.shape), wild, return_info=True, **FAST)
    assert "impulses" not in info.details


@pytest.mark.slow
def test_the_noise_command_counts_them(cli, tmp_path):
    image, _ = salted(noisy(15))
    vnlem.io.write(tmp_path / "salt.tif", vnlem.io.Picture(image.astype(np.float32)))
    status, out, _ = cli("noise", tmp_path / "salt.tif")
    assert status == 0
    assert re.search(r"^1\d\d impulses \(hot, dead or stuck pixels", out, re.M)
    assert "white noise, sigma 9." in out or "white noise, sigma 10" in out


@pytest.mark.slow
def test_impulses_in_parts_are_those_of_the_whole():
    dask = pytest.importorskip("dask.array")
    image, _ = salted(noisy(9))
    expected = vnlem.denoise(image, method="nlm", workers=1)
    assert not np.array_equal(expected, vnlem.denoise(image, method="nlm", workers=1, impulses=False))
    lazy = vnlem.denoise(dask.from_array(image, chunks=32), method="nlm", workers=1)
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), expected)


class TestMovies:
    @pytest.mark.slow
    def test_a_pixel_that_is_broken_in_all_frames_is_found_by_time(self):
        """Too weak to be seen in one frame."""
        rng = np.random.default_rng(10)
        hot = np.random.default_rng(11).random((128, 128)) < 0.002
        movie = np.stack([np.roll(scene(), 3 * k, axis=1) for k in range(12)])
        given = movie + rng.normal(0, SIGMA, movie.shape) + 35.0 * hot
        _, info = vnlem.denoise(given, axes="TYX", return_info=True, passes=1, **FAST)
        assert info.details["impulses"] > 0.6 * 12 * hot.sum()

    @pytest.mark.slow
    def test_a_cosmic_ray_is_in_one_frame(self):
        movie = np.stack([noisy(20 + k) for k in range(4)])
        given = movie.copy()
        rays = np.random.default_rng(12).random((128, 128)) < 0.003
        given[1][rays] += 130
        result = vnlem.denoise(given, SIGMA, axes="TYX", **FAST)
        whole = vnlem.denoise(movie, SIGMA, axes="TYX", **FAST)
        np.testing.assert_array_equal(vnlem.denoise(movie, SIGMA, axes="TYX", impulses=False, **FAST), whole)
        assert psnr(result[1], scene()) > psnr(whole[1], scene()) - 0.5

    @pytest.mark.slow
    def test_the_command_line_finds_them_in_a_file(self, cli, tmp_path):
        movie = np.stack([noisy(30 + k) for k in range(3)]).clip(0, 255)
        movie[:, np.random.default_rng(13).random((128, 128)) < 0.003] = 250
        movie = movie.astype(np.uint8)
        vnlem.io.write(tmp_path / "movie.tif", vnlem.io.Picture(movie))
        options = ("--axes", "TYX", "--method", "nlm", "--sigma", SIGMA)
        status, _, err = cli("denoise", tmp_path / "movie.tif", tmp_path / "out.tif", *options)
        assert status == 0, err
        expected = vnlem.denoise(movie, SIGMA, axes="TYX", method="nlm")
        assert not np.array_equal(
            expected, vnlem.denoise(movie, SIGMA, axes="TYX", method="nlm", impulses=False)
        )
        np.testing.assert_array_equal(vnlem.io.read(tmp_path / "out.tif").pixels, expected)


def test_a_defect_map_from_dark_frames():
    rng = np.random.default_rng(13)
    true = rng.random((64, 64)) < 0.01
    dark = 100 + rng.normal(0, 2, (8, 64, 64)) + 40 * true
    found = vnlem.noise.defect_map(dark)
    np.testing.assert_array_equal(found, true)
    clean = scene(64, 64)
    image = clean + rng.normal(0, SIGMA, clean.shape)
    broken = np.where(true, 255.0, image)
    whole, mended = vnlem.denoise(image, SIGMA, **FAST), vnlem.denoise(broken, SIGMA, defects=found, **FAST)
    assert psnr(mended, clean) > psnr(whole, clean) - 0.3
    # Defects are filled even if missing pixels stay.
    kept = vnlem.denoise(broken, SIGMA, defects=found, fill=False, **FAST)
    np.testing.assert_array_equal(kept, mended)
    with pytest.raises(ValueError, match="dark frame must be"):
        vnlem.noise.defect_map(np.zeros(5))


def test_a_broken_column_does_not_hide_other_impulses():
    rng = np.random.default_rng(2)
    image = noisy()
    hot = tuple(rng.integers(2, 126, (2, 30)))
    image[hot] = 255
    image[40:60, 77] = 255
    result = vnlem.denoise(image, SIGMA, **FAST)
    assert np.median(np.abs(result - scene())[hot]) < 10
    untouched = vnlem.denoise(image, SIGMA, impulses=False, **FAST)
    assert np.median(np.abs(untouched - scene())[hot]) > 50
