"""The dense SIFT orientation: its laws, and its kernel against the definition."""

import numpy as np
import pytest
from scipy import ndimage

import vnlem
from vnlem.reference import orientation as reference


@pytest.fixture(scope="module")
def smooth():
    return ndimage.gaussian_filter(np.random.default_rng(0).standard_normal((96, 96)), 3, mode="wrap")


def difference(a, b):
    """Absolute angle between directions, in degrees."""
    return np.degrees(np.abs(np.angle(np.exp(1j * (np.asarray(a, dtype=float) - b)))))


def test_a_quarter_turn_of_the_image_turns_the_field_by_90_degrees(smooth):
    before = vnlem.orientation(smooth, details=True)
    after = vnlem.orientation(np.rot90(smooth), details=True)
    # If two arcs tie, rounding decides; confidence does not show ties of overlapping arcs.
    clear = np.rot90(before.confidence) > 1e-3
    error = difference(after.angle, np.rot90(before.angle) - np.pi / 2)
    assert clear.mean() > 0.95
    assert np.mean(error[clear] < 0.01) > 0.999


@pytest.mark.parametrize("degrees", [5, 20, 37])
def test_rotating_a_smooth_image_shifts_the_field_by_that_angle(smooth, degrees):
    turn = np.radians(degrees)
    centre = 47.5
    y, x = np.mgrid[:96, :96] - centre
    source = np.cos(turn) * y - np.sin(turn) * x + centre, np.sin(turn) * y + np.cos(turn) * x + centre
    turned = ndimage.map_coordinates(smooth, source, order=5, mode="reflect")
    before = vnlem.orientation(smooth, details=True)
    after = vnlem.orientation(turned, details=True)
    direction = [ndimage.map_coordinates(part(before.angle), source, order=1) for part in (np.sin, np.cos)]
    confidence = ndimage.map_coordinates(before.confidence, source, order=1, mode="nearest")
    confident = (np.minimum(after.confidence, confidence) > 0.1) & (np.hypot(y, x) < 35)
    error = difference(after.angle, np.arctan2(*direction) + turn)[confident]
    assert confident.sum() > 300
    assert np.median(error) < 1
    assert np.percentile(error, 95) < 5


def test_adding_a_constant_or_scaling_changes_nothing(smooth):
    before = vnlem.orientation(smooth, details=True)
    after = vnlem.orientation(1000 * smooth + 50, details=True)
    clear = before.confidence > 1e-3
    assert difference(after.angle, before.angle)[clear].max() < 0.05


def test_a_constant_image_has_no_orientation_and_no_nan():
    found = vnlem.orientation(np.full((20, 30), 0.1), details=True)
    assert all(np.isfinite(field).all() for field in found)
    assert not found.angle.any()
    assert not found.confidence.any()
    assert not found.has_second.any()


def test_the_kernel_agrees_with_the_definition(smooth):
    image = (smooth[:32, :32] - smooth.mean()) / smooth.std()
    fast = vnlem.orientation(image, details=True)
    slow = reference.orientation(image, arc=30.0, taper=True)
    confident = fast.confidence > 0.05
    error = difference(fast.angle, slow)[confident]
    assert np.median(error) < 1
    assert np.percentile(error, 98) < 5


def test_the_tapered_arc_finds_the_orientation_of_the_sharp_arc(smooth):
    image = (smooth[:32, :32] - smooth.mean()) / smooth.std()
    fast = vnlem.orientation(image, details=True)
    printed = reference.orientation(image, arc=15.0)
    error = difference(fast.angle, printed)[fast.confidence > 0.1]
    assert np.median(error) < 5
    assert np.mean(error < 20) > 0.95


def test_a_corner_has_two_orientations():
    image = np.zeros((41, 41))
    image[20:, 20:] = 1
    found = vnlem.orientation(image, details=True)
    assert found.has_second[20, 20]
    pair = sorted(np.degrees([found.angle[20, 20], found.second[20, 20]]))
    np.testing.assert_allclose(pair, [0, 90], atol=3)
    assert not found.has_second[35, 20]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"scale": 0}, "scale"),
        ({"patch_size": 4}, "patch_size"),
        ({"arc": 120}, "arc"),
    ],
    ids=["scale", "even patch", "wide arc"],
)
def test_bad_values_are_refused(arguments, named):
    with pytest.raises(ValueError, match=named):
        vnlem.orientation(np.eye(20), **arguments)
