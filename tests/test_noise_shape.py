"""Noise of photographs that were compressed, interpolated or developed is found; their texture is kept."""

import numpy as np
import pytest
import saved
from PIL import Image
from skimage import data

import vnlem

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
