"""Phantoms: standardised, repeatable, and as described."""

import numpy as np
import pytest

from vnlem.bench import phantoms


@pytest.mark.parametrize(
    "image",
    [
        phantoms.discs(5, 18, 3, 1),
        phantoms.half_discs(6, 16, 2, 1),
        phantoms.rings(128),
        phantoms.mixed_discs(3, 9, 22, 3, 1),
        phantoms.floor_of_discs(1),
        phantoms.budding_discs(1),
    ],
    ids=["discs", "half discs", "rings", "mixed discs", "floor of discs", "budding discs"],
)
def test_phantoms_are_standardised(image):
    assert image.shape == (128, 128)
    assert image.dtype == np.float64
    assert abs(image.mean()) < 1e-12
    assert image.std() == pytest.approx(1)


def test_the_seed_decides_the_positions():
    np.testing.assert_array_equal(phantoms.discs(5, 18, 3, 7), phantoms.discs(5, 18, 3, 7))
    assert not np.array_equal(phantoms.discs(5, 18, 3, 7), phantoms.discs(5, 18, 3, 8))


def test_discs_cover_the_area_of_their_circles():
    image = phantoms.discs(5, 18, 0, 1, size=126)
    share = (image - image.min()).mean() / (image.max() - image.min())
    assert share == pytest.approx(49 * np.pi * 25 / 126**2, rel=0.01)


def test_half_discs_cover_half_of_it():
    image = phantoms.half_discs(6, 16, 0, 1)
    share = (image - image.min()).mean() / (image.max() - image.min())
    assert share == pytest.approx(64 * np.pi * 18 / 128**2, rel=0.03)


def test_rings_are_symmetric_about_the_centre():
    image = phantoms.rings(64)
    np.testing.assert_allclose(image, np.rot90(image), atol=1e-9)


def test_bad_values_are_refused():
    with pytest.raises(ValueError, match="radius"):
        phantoms.discs(0, 18, 3, 1)
    with pytest.raises(ValueError, match="size"):
        phantoms.rings(1)
    with pytest.raises(ValueError, match="constant"):
        phantoms.rings(16, frequency=0.0)
