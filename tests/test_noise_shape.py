"""Noise of photographs that were compressed, interpolated or developed is found; their texture is kept."""

import harm
import numpy as np
import pytest
import saved
from PIL import Image
from scipy import ndimage
from skimage import data

import vnlem
from vnlem.noise.jpeg import compression
from vnlem.noise.odds import TABLES
from vnlem.noise.shape import Evidence

pytestmark = pytest.mark.slow

COLOUR = {name: getattr(data, name)()[:256, :256, :3] for name in ("astronaut", "coffee", "chelsea")}
GREY = {
    "camera": data.camera()[:256, :256],
    "coins": data.coins()[:256, :256],
    "astronaut": np.asarray(Image.fromarray(COLOUR["astronaut"]).convert("L")),
}


def gain(clean, kind):
    """By how many dB the default improves a picture."""
    row = saved.measured_picture(clean.astype(float), "", kind, 7, "fast")
    return row.blind - row.noisy


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("astronaut", "jpeg 75, sigma 20"),
        ("astronaut", "developed, jpeg 85"),
        ("coffee", "jpeg 90, sigma 20"),
        ("chelsea", "jpeg 90, sigma 10"),
    ],
)
def test_noise_of_a_compressed_photograph_is_removed(name, kind):
    assert gain(COLOUR[name], kind) > 2


@pytest.mark.parametrize("name", GREY)
def test_noise_that_is_stronger_in_the_dark_and_slightly_correlated_is_removed(name):
    assert gain(GREY[name], "dark noise") > 2


@pytest.mark.parametrize("quality", [75, 90])
@pytest.mark.parametrize("name", [*COLOUR, "gravel", "brick"])
def test_a_compressed_photograph_without_noise_stays(name, quality):
    clean = COLOUR[name] if name in COLOUR else getattr(data, name)()[:256, :256]
    assert gain(clean, f"jpeg {quality}, sigma 0") > -0.3


def test_the_model_of_a_compressed_photograph_is_correlated():
    noisy = saved.saved(COLOUR["coffee"].astype(float), "jpeg 90, sigma 10", 3)[1]
    model = vnlem.estimate_noise(noisy, channel_axis=-1)
    assert model.is_correlated
    assert "correlated between neighbours in the colours (0." in model.describe()


@pytest.mark.parametrize("corner", [(0, 0), (3, 6)])
def test_compression_is_seen_after_cropping(corner):
    picture = data.camera()[: 256 + corner[0], : 256 + corner[1]].astype(float)
    crop = np.s_[corner[0] :, corner[1] :]
    stored = saved.as_jpeg(saved.as_bytes(picture), 80)[crop]
    assert compression(stored.astype(float)) > 3 * compression(picture[crop])
    assert compression(stored / 255.0) == pytest.approx(compression(stored.astype(float)), rel=0.01)


def test_the_tables_of_odds_are_those_of_the_evidence():
    assert set(TABLES) == set(Evidence._fields)
    for levels, odds in TABLES.values():
        assert len(levels) == len(odds) > 1
        assert np.all(np.diff(levels) > 0)
        assert levels[0] > 0


def test_enlarged_and_blurred_text_is_not_noise():
    page = harm.small_print()
    for changed in (ndimage.gaussian_filter(page, 0.7), ndimage.zoom(page[:256, :256], 1.5, order=1)):
        assert not vnlem.estimate_noise(saved.as_bytes(changed)).is_correlated


@pytest.mark.parametrize("width", [0.7, 1.0, 1.2])
def test_correlated_noise_is_found_on_a_faint_scene(width):
    scene = 110 + 0.1 * (data.camera()[:256, :256] - 128.0)
    noise = ndimage.gaussian_filter(np.random.default_rng(3).standard_normal(scene.shape), width, mode="wrap")
    model = vnlem.estimate_noise(scene + 10 * noise / noise.std())
    assert model.is_correlated


@pytest.mark.parametrize("name", ["camera", "coins", "astronaut"])
def test_noise_before_a_tone_curve_is_stronger_in_the_dark(name):
    noisy = saved.saved(GREY[name].astype(float), "tone curve", 7)[1]
    model = vnlem.estimate_noise(noisy)
    dark, bright = model.variance(np.quantile(noisy, (0.2, 0.9)))
    assert dark > 2 * bright
    assert gain(GREY[name], "tone curve") > 3


@pytest.mark.parametrize("name", ["camera", "coins", "astronaut"])
@pytest.mark.parametrize("sigma", [0, 2, 5, 10])
def test_a_photograph_with_white_noise_has_no_tone_curve(name, sigma):
    model = vnlem.estimate_noise(harm.white(GREY[name].astype(float), sigma, 5)[1])
    assert model.kind == "white"


@pytest.mark.parametrize("name", sorted(COLOUR))
def test_noise_of_an_enlarged_picture_is_removed(name):
    assert gain(COLOUR[name], "enlarged noise") > (3 if name != "chelsea" else -0.1)
