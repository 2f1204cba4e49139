"""Upsampling, ring harmonics and their kernels, against their definitions."""

import numpy as np
import pytest

from vnlem.features.patch_space import PatchSpace
from vnlem.features.rings import layout, ring_features
from vnlem.features.upsample import upsample
from vnlem.reference import rings as reference
from vnlem.reference.rotation import upsampled


def features_of(image, angles, rings):
    padded = np.pad(image, rings.halo, mode="symmetric").astype(np.float32)
    return ring_features(padded[None], angles.astype(np.float32), rings)


def test_upsampling_keeps_the_pixels_and_reproduces_parabolas():
    x = np.arange(12.0)
    image = np.add.outer(x**2, 3 * x)
    fine = upsample(image, 2)
    np.testing.assert_array_equal(fine[::2, ::2], image)
    np.testing.assert_allclose(fine[4:20, 4:20], np.add.outer((x := np.arange(2, 10, 0.5)) ** 2, 3 * x))


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_upsampling_agrees_with_the_reference(factor):
    image = np.random.default_rng(0).standard_normal((9, 11))
    np.testing.assert_allclose(upsample(image, factor), upsampled(image, factor), atol=1e-12)


def test_the_design_has_115_coefficients_for_patches_of_13():
    rings = layout(13)
    assert (rings.size, rings.dim) == (115, 128)
    assert rings.dim % 16 == 0


@pytest.mark.parametrize("average_down", [False, True])
@pytest.mark.parametrize("patch_size", [3, 5, 7, 9, 13, 21])
def test_noise_energy_is_what_a_simulation_finds(patch_size, average_down):
    rings = layout(patch_size, average_down=average_down)
    noise = np.random.default_rng(1).standard_normal((100, 100))
    raw, _ = features_of(noise, np.zeros(noise.shape), rings)
    measured = (raw.astype(np.float64) ** 2).sum(axis=-1)
    # 10^4 overlapping patches: about (100 / q)^2 independent ones.
    tolerance = 4 * measured.std() / (100 / patch_size)
    assert abs(measured.mean() - rings.noise_energy) < tolerance


@pytest.mark.parametrize("patch_size", [5, 13])
@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("average_down", [False, True])
def test_the_kernel_computes_the_coefficients_of_the_definition(patch_size, factor, average_down):
    rings = layout(patch_size, factor, average_down=average_down)
    image = np.random.default_rng(2).standard_normal((20, 70))
    raw, _ = features_of(image, np.zeros(image.shape), rings)
    for row, column in [(0, 0), (10, 33), (19, 69), (3, 64)]:
        centre, expected = reference.ring_coefficients(
            image, row, column, rings.samples, rings.orders, factor, average_down
        )
        vector = raw[row, column]
        assert vector[rings.centre_lane] == pytest.approx(centre, abs=1e-5)
        for lane, (ring, order) in enumerate(zip(rings.lane_ring, rings.lane_order, strict=True)):
            if ring > 0:
                got = vector[lane] + 1j * vector[rings.lanes + lane]
                assert got == pytest.approx(expected[ring, order], abs=2e-5)


def test_a_constant_has_the_energy_of_its_disc_in_order_zero_alone():
    rings = layout(13)
    raw, canonical = features_of(np.full((5, 6), 2.0), np.ones((5, 6)), rings)
    np.testing.assert_allclose((raw**2).sum(axis=-1), 4 * np.pi * 6.5**2, rtol=1e-5)
    np.testing.assert_allclose(raw, canonical, atol=1e-4)


def test_the_canonical_frame_undoes_a_quarter_turn():
    rings = layout(13)
    image = np.random.default_rng(3).standard_normal((24, 24))
    raw, _ = features_of(image, np.zeros(image.shape), rings)
    # rot90 turns by -90 degrees when angles go from columns towards rows.
    _, canonical = features_of(np.rot90(image), np.full(image.shape, -np.pi / 2), rings)
    np.testing.assert_allclose(canonical, np.rot90(raw), atol=2e-5)


def test_colour_distances_are_means_over_the_channels():
    rng = np.random.default_rng(4)
    one, three = layout(7), layout(7, 2, 3)
    planes = rng.standard_normal((3, 8 + 2 * one.halo, 9 + 2 * one.halo)).astype(np.float32)
    angles = rng.uniform(-3, 3, (8, 9)).astype(np.float32)
    colour = ring_features(planes, angles, three)[1]
    single = [ring_features(plane[None], angles, one)[1] for plane in planes]
    expected = np.mean([((g[0, 0] - g[5, 7]) ** 2).sum() for g in single])
    assert ((colour[0, 0] - colour[5, 7]) ** 2).sum() == pytest.approx(expected, rel=1e-5)


def test_the_patch_space_reads_the_symmetric_extension():
    image = np.arange(30.0).reshape(5, 6)
    space = PatchSpace(image, 5)
    assert len(space) == 30
    np.testing.assert_array_equal(space[0, 0], np.pad(image, 2, mode="symmetric")[:5, :5])
    np.testing.assert_array_equal(space.vectors()[13].reshape(5, 5), space[2, 1])
    with pytest.raises(ValueError, match="smaller than the patch"):
        PatchSpace(image, 7)
