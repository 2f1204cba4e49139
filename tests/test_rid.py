"""The rotation-invariant distance by ring harmonics and on rotated pixels, and the laws both keep."""

import math

import numpy as np
import pytest
from scipy import ndimage
from skimage import data

import vnlem
from vnlem.reference import rid as reference
from vnlem.reference.rotation import Rotator


@pytest.fixture(scope="module")
def pairs():
    """Natural patches with their surroundings, in pairs close to each other."""
    image = data.camera().astype(float)
    rng = np.random.default_rng(0)
    first = rng.integers(30, 480, (60, 2))
    second = first + rng.integers(-10, 11, (60, 2))
    return [
        tuple(image[y - 16 : y + 17, x - 16 : x + 17] for y, x in (a, b))
        for a, b in zip(first, second, strict=True)
    ]


def rotated(patch, degrees):
    turn = math.radians(degrees)
    middle = len(patch) // 2
    y, x = np.mgrid[: len(patch), : len(patch)] - middle
    source = np.cos(turn) * y - np.sin(turn) * x + middle, np.sin(turn) * y + np.cos(turn) * x + middle
    return ndimage.map_coordinates(patch, source, order=5, mode="reflect")


@pytest.fixture(scope="module")
def smooth():
    return ndimage.gaussian_filter(np.random.default_rng(1).standard_normal((41, 41)), 2)


def by_pixels(a, b, angles, shape="disc"):
    """Squared distances of the patches of 13 pixels in the middle of two arrays, at each angle."""
    rotators = [Rotator(patch[None], 13, shape) for patch in (a, b)]
    middle = len(a) // 2
    turned = rotators[1].patches(np.full(len(angles), middle), np.full(len(angles), middle), angles)
    return ((turned - rotators[0].patches(middle, middle, 0.0)) ** 2).sum(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "least"), [("disc", 0.99), ("square", 0.97)])
def test_ring_distances_are_those_of_rotated_pixels(pairs, shape, least):
    angles = np.radians(np.arange(-180, 180, 5.0))
    fast = np.array([vnlem.rid(a, b, patch_size=13, angles="all") for a, b in pairs[:30]])
    slow = np.sqrt([by_pixels(a, b, angles, shape).min() for a, b in pairs[:30]])
    assert np.corrcoef(fast, slow)[0, 1] > least
    assert 0.9 < np.median(fast / slow) < 1.1


@pytest.mark.slow
def test_rings_and_pixels_find_the_same_angle(pairs):
    # For patches that have little in common many angles are as good as the best; so each patch is paired
    # with a rotated and noisy copy of itself.
    rng = np.random.default_rng(3)
    angles = np.radians(np.arange(-180, 180, 5.0))
    errors = []
    for a, _ in pairs:
        b = rotated(a, rng.uniform(-180, 180)) + rng.normal(0, 5, a.shape)
        confidence = [vnlem.orientation(p, details=True).confidence[16, 16] for p in (a, b)]
        if min(confidence) > 0.1:
            _, fast = vnlem.rid(a, b, patch_size=13, angles="all", return_angle=True)
            slow = angles[by_pixels(a, b, angles).argmin()]
            errors.append(abs(math.degrees(math.remainder(fast - slow, 2 * math.pi))))
    assert len(errors) >= 20
    assert np.mean(np.array(errors) < 5.01) >= 0.9


def test_a_patch_is_close_to_its_own_rotation(smooth):
    turned = rotated(smooth, 37)
    middle = slice(14, 27)
    euclidean = np.linalg.norm(turned[middle, middle] - smooth[middle, middle])
    distance, angle = vnlem.rid(turned, smooth, patch_size=13, angles="all", return_angle=True)
    assert distance < 0.2 * euclidean
    assert abs(math.degrees(angle) - 37) < 5
    angles = np.radians(np.arange(-180, 180, 5.0))
    for shape in ("disc", "square"):
        squared = by_pixels(turned, smooth, angles, shape)
        assert np.sqrt(squared.min()) < 0.2 * euclidean
        assert abs(math.degrees(angles[squared.argmin()]) - 37) < 5


def test_on_discs_the_rid_is_symmetric_and_at_most_the_euclidean_distance(pairs):
    for a, b in pairs[:20]:
        options = {"patch_size": 13, "try_unrotated": True}
        euclidean = vnlem.rid(a, b, angles="sift", angle_range=0, **options)
        distance, back = vnlem.rid(a, b, **options), vnlem.rid(b, a, **options)
        assert distance <= euclidean * (1 + 1e-6)
        assert distance == pytest.approx(back, rel=1e-4, abs=1e-3)


def test_more_angles_never_make_the_distance_larger(pairs):
    for a, b in pairs[:20]:
        narrow = vnlem.rid(a, b, patch_size=13, angle_range=10)
        wide = vnlem.rid(a, b, patch_size=13, angle_range=180)
        assert wide <= narrow * (1 + 1e-6)


def test_patches_at_different_levels_are_as_far_apart_as_squares_of_pixels():
    level = vnlem.rid(np.full((33, 33), 1.5), np.zeros((33, 33)), patch_size=13)
    assert level == pytest.approx(1.5 * 13, rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"angle_range": 181}, "angle_range"),
        ({"angle_step": 0}, "angle_step"),
        ({"upsample": 0}, "upsample"),
        ({"patch_size": 35}, "patch_size"),
        ({"angles": "some"}, "angles"),
    ],
)
def test_bad_values_are_refused(arguments, named):
    patch = np.zeros((33, 33))
    with pytest.raises(ValueError, match=named):
        vnlem.rid(patch, patch, **arguments)


def test_patches_must_be_odd_squares_of_one_size():
    with pytest.raises(ValueError, match="patch_a must be a square array of odd size"):
        vnlem.rid(np.zeros((4, 4)), np.zeros((4, 4)))
    with pytest.raises(ValueError, match="one shape"):
        vnlem.rid(np.zeros((5, 5)), np.zeros((7, 7)))
    with pytest.raises(ValueError, match="NaN"):
        vnlem.rid(np.full((5, 5), np.nan), np.zeros((5, 5)))


def test_constant_patches_are_at_the_distance_of_their_levels():
    assert vnlem.rid(np.zeros((13, 13)), np.zeros((13, 13))) == 0
    scale = vnlem.rid(np.ones((13, 13)), np.zeros((13, 13)))
    assert vnlem.rid(np.full((13, 13), 3.0), np.zeros((13, 13))) == pytest.approx(3 * scale, rel=1e-5)


def test_with_scales_a_patch_is_close_to_its_own_dilation():
    y, x = np.mgrid[-20:21, -20:21]

    def blob(size):
        return np.exp(-(((x + 0.3 * y) / size) ** 2) / 8 - (y / size) ** 2 / 30)

    alone = vnlem.rid(blob(0.6), blob(1.0), patch_size=13)
    distance, factor = vnlem.rid(
        blob(0.6), blob(1.0), patch_size=13, scales=(0.5, 0.6, 0.8, 1.0), return_scale=True
    )
    assert factor == 0.6
    assert distance < 0.05 * alone
    assert vnlem.rid(blob(0.6), blob(1.0), patch_size=13, scales=[1]) == alone


@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ((), "1 to 32 factors, got 0"),
        ((0.5, 0.0), "scales must lie in"),
        ((1.0, -2), "scales must lie in"),
        ((float("nan"),), "scales must lie in"),
        ([1.0] * 33, "1 to 32 factors, got 33"),
        ((1.0, 1e9), "scales must lie in"),
        ((0.3,), "needs arrays of 44 pixels, got 21; pass larger arrays"),
    ],
    ids=str,
)
def test_bad_scales_are_told_in_one_sentence(scales, message):
    with pytest.raises(ValueError, match=message):
        vnlem.rid(np.zeros((21, 21)), np.eye(21), patch_size=13, scales=scales)


@pytest.mark.parametrize("scales", [0.5, "0.5", None], ids=str)
def test_scales_are_a_list(scales):
    with pytest.raises(TypeError, match="must be a list of factors"):
        vnlem.rid(np.zeros((21, 21)), np.eye(21), scales=scales)


@pytest.mark.parametrize("angles", ["sift", "all"])
@pytest.mark.parametrize(
    ("patch_size", "scales"), [(9, (1.0,)), (9, (0.6, 0.84, 1.0, 1.3)), (13, (0.7, 2.0)), (25, (1.0, 1.5))]
)
def test_distance_angle_and_scale_are_those_of_the_plain_search(angles, patch_size, scales):
    rng = np.random.default_rng(patch_size + len(scales))
    for width in (0.8, 2.0):
        a, b = (ndimage.gaussian_filter(rng.normal(10, 30, (25, 25)), width) for _ in range(2))
        options = {"angle_step": 15.0, "scales": scales}
        fast = vnlem.rid(
            a, b, patch_size=patch_size, angles=angles, return_angle=True, return_scale=True, **options
        )
        # The orientation has a separate reference and test.
        directions = [
            float(vnlem.orientation(patch, 1.0, patch_size)[12, 12])
            for patch in (a, *(reference.resized(b, factor) for factor in scales))
        ]
        starts = None if angles == "all" else [directions[0] - other for other in directions[1:]]
        slow = reference.rid(a, b, patch_size, starts=starts, **options)
        assert fast[0] == pytest.approx(slow[0], rel=1e-4)
        assert abs(math.remainder(fast[1] - slow[1], 2 * math.pi)) < 2e-3
        assert fast[2] == slow[2]
