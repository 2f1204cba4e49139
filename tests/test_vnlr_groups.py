"""VNLR's groups: members that are turned or reflected, and when they are used."""

import numpy as np
import pytest
from vnlr_scene import QUICK, error, noisy_scene, scene

import vnlem
from vnlem.methods.vnlr import resolve


@pytest.mark.parametrize("turn", [lambda a: np.rot90(a), lambda a: a[:, ::-1], lambda a: a.T])
def test_turning_the_image_turns_the_result(turn):
    # A grid of references that the symmetries map to itself: 5 + 3 * 13 = 44 pixels.
    noisy = noisy_scene(height=44, width=44)
    plain = vnlem.denoise_vnlr(noisy, 20.0, **QUICK)
    turned = vnlem.denoise_vnlr(turn(noisy), 20.0, **QUICK)
    np.testing.assert_allclose(turned, turn(plain), atol=0.05)


def test_rotated_groups_help_where_shapes_recur_at_other_angles():
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:64, :64]
    clean = np.zeros((64, 64))
    for centre_y in range(8, 64, 16):
        for centre_x in range(8, 64, 16):
            angle = np.pi / 2 * rng.integers(4)
            inside = (y - centre_y) ** 2 + (x - centre_x) ** 2 <= 36
            clean += 100.0 * (
                inside & ((x - centre_x) * np.cos(angle) + (y - centre_y) * np.sin(angle) > 0.5)
            )
    noisy = clean + 25 * rng.standard_normal(clean.shape)
    shifted = vnlem.denoise_vnlr(noisy, 25.0, group="identity")
    turned, info = vnlem.denoise_vnlr(noisy, 25.0, group="d4", return_info=True)
    assert error(turned, clean) < 0.95 * error(shifted, clean)
    assert all(share > 0.1 for share in info.details["turned_share"])


def test_noise_alone_does_not_choose_transforms():
    halves = np.repeat([[60.0, 140.0]], 32, axis=1).repeat(64, axis=0)
    noisy = halves + 20 * np.random.default_rng(0).standard_normal(halves.shape)
    info = vnlem.denoise_vnlr(noisy, 20.0, return_info=True)[1]
    assert max(info.details["turned_share"]) < 0.02


def test_a_group_has_enough_turned_members_or_none():
    from groups_in_image import groups_in

    noisy = ((noisy_scene(height=64, width=64) - 100) / 40)[None].astype(np.float32)
    rule = dict(patch_size=6, radius=12, n_members=20, factor=1.0, penalty=1.0, variance=6 / 36)
    references = np.stack(np.meshgrid(*[np.arange(0, 59, 4)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    free, transforms = groups_in(noisy, references, group="d4", **rule)
    plain, _ = groups_in(noisy, references, group="identity", **rule)
    turned = (transforms > 0).sum(axis=1)
    assert set(turned) >= {0, 3}
    assert not set(turned) & {1, 2}
    without = turned == 0
    numbers = [np.sort(corners[without] @ [64, 1], axis=1) for corners in (free, plain)]
    np.testing.assert_array_equal(*numbers)


def test_so2_runs_and_uses_turned_members():
    noisy, clean = noisy_scene(height=48, width=52), scene(48, 52)
    result, info = vnlem.denoise_vnlr(noisy, 20.0, group="so2", return_info=True, **QUICK)
    assert error(result, clean) < 0.5 * 20
    assert info.details["turned_share"][1] > 0.05


def test_similarity_looks_farther_in_the_image_and_as_far_in_turned_copies():
    assert resolve(0.5, group="similarity").patch_distance == 3 * resolve(0.5, group="so2").patch_distance
    assert resolve(0.5, group="similarity").copied_distance == resolve(0.5, group="so2").patch_distance
    # With a given distance both are the same.
    noisy = noisy_scene(height=48, width=52)
    results = [vnlem.denoise_vnlr(noisy, 20.0, group=group, **QUICK) for group in ("so2", "similarity")]
    np.testing.assert_array_equal(*results)


@pytest.mark.slow
def test_similarity_gains_where_discs_have_mixed_sizes():
    from vnlem.bench.phantoms import mixed_discs

    clean = mixed_discs(3, 9, 22, 3, seed=1)
    noisy = clean + np.sqrt(0.3) * np.random.default_rng(51).standard_normal(clean.shape)
    errors = [error(vnlem.denoise_vnlr(noisy, 0.3**0.5, group=g), clean) for g in ("so2", "similarity")]
    assert 20 * np.log10(errors[0] / errors[1]) > 0.5
