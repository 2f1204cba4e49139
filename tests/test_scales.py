"""Several scales: halving and doubling, the join, and VNLR with them."""

import numpy as np
import pytest

import vnlem
from vnlem.estimate.scales import (
    double,
    double_in_tiles,
    halve,
    halve_in_tiles,
    join,
    join_in_tiles,
    level_around,
)
from vnlem.pipeline.workers import Pool


@pytest.mark.parametrize("shape", [(64, 64), (33, 50), (50, 33), (7, 9), (1, 3)])
def test_halving_and_doubling_keep_size_and_constants(shape):
    planes = np.full((2, *shape), 3.5)
    half = halve(planes)
    assert half.shape == (2, -(-shape[0] // 2), -(-shape[1] // 2))
    np.testing.assert_allclose(half, 3.5)
    np.testing.assert_allclose(double(half, *shape), 3.5)


def test_a_ramp_stays_where_it_is():
    ramp = np.add.outer(np.arange(64.0), 2 * np.arange(64.0))[None]
    inner = (0, slice(16, -16), slice(16, -16))
    np.testing.assert_allclose(double(halve(ramp), 64, 64)[inner], ramp[inner], atol=0.15)


def test_white_noise_stays_nearly_white_at_half_its_strength():
    noise = np.random.default_rng(0).standard_normal((1, 256, 256))
    half = halve(noise)[0]
    assert half.std() == pytest.approx(0.45, abs=0.05)
    assert abs(np.mean(half[:, 1:] * half[:, :-1])) < 0.2 * half.var()


def test_structure_the_coarse_image_has_lost_stays():
    fine = np.zeros((1, 64, 64))
    fine[0, 30:34, 30:34] = 10.0
    joined = join(fine, np.zeros((1, 32, 32)), 1.0)
    assert joined[0, 30:34, 30:34].min() > 9.5


def test_around_sharp_edges_the_fine_image_keeps_its_low_frequencies():
    fine = np.zeros((1, 64, 64))
    fine[0, :, 32:] = 10.0
    coarse = halve(fine) + 0.05
    joined = join(fine, coarse, 1.0) - fine
    assert np.abs(joined[0, :, 30:34]).max() < 0.005
    assert joined[0, :, :8].min() > 0.03


def test_the_brightness_of_an_area_may_always_follow_the_coarse_image():
    fine = np.zeros((1, 64, 64))
    coarse = np.full((1, 32, 32), 5.0)
    assert join(fine, coarse, 1.0).max() < 0.1
    np.testing.assert_allclose(join(fine, coarse, 1.0, level=25), 5.0)


def test_small_differences_follow_the_coarse_image():
    fine = np.random.default_rng(1).normal(0, 0.03, (1, 64, 64))
    assert join(fine, np.zeros((1, 32, 32)), 1.0).std() < 0.9 * fine.std()


def test_flat_areas_are_flatter_with_scales():
    clean = np.zeros((128, 128))
    clean[40:60, 40:60] = 3.0
    noisy = clean + np.random.default_rng(2).standard_normal(clean.shape)
    errors = [
        np.mean((vnlem.denoise_vnlr(noisy, 1.0, profile="fast", scales=scales) - clean) ** 2)
        for scales in (1, 3)
    ]
    assert errors[1] < 0.9 * errors[0]


def test_colour_maps_integers_and_info():
    rng = np.random.default_rng(3)
    clean = np.where(np.arange(101) < 50, 80, 160)[None, :, None]
    image = np.clip(clean + rng.normal(0, 20, (130, 101, 3)), 0, 255).astype(np.uint8)
    sigma = np.full((130, 101), 20.0)
    calls = []
    result, info = vnlem.denoise_vnlr(
        image,
        sigma,
        channel_axis=-1,
        scales=3,
        profile="fast",
        return_info=True,
        progress=lambda done, total: calls.append(done / total),
    )
    assert result.dtype == np.uint8
    assert result.shape == image.shape
    assert np.std(result - clean) < 0.3 * np.std(image - clean)
    assert info.details["scales"] == 2
    assert calls == sorted(calls)
    assert calls[-1] == pytest.approx(1.0)


def test_an_image_too_small_to_be_halved_has_one_scale():
    image = np.arange(200.0) + np.random.default_rng(4).normal(0, 5, (40, 200))
    result, info = vnlem.denoise_vnlr(image, 5, scales=3, profile="fast", return_info=True)
    assert info.details["scales"] == 1
    np.testing.assert_allclose(result, vnlem.denoise_vnlr(image, 5, profile="fast"))


@pytest.mark.parametrize("wrong", [0, -1, 2.5, 100])
def test_wrong_numbers_of_scales_are_refused(wrong):
    with pytest.raises(ValueError, match="scales must be"):
        vnlem.denoise_vnlr(np.ones((64, 64)), 5, scales=wrong)


def test_where_the_fine_result_has_detail_the_coarse_one_counts_for_less():
    rng = np.random.default_rng(5)
    coarse = rng.normal(0, 0.03, (1, 32, 32))
    flat = np.zeros((1, 64, 64))
    detailed = 0.5 * (-1.0) ** np.add.outer(np.arange(64), np.arange(64))[None]
    np.testing.assert_allclose(halve(detailed)[0, 4:-4, 4:-4], 0, atol=1e-12)
    changes = [np.std((join(fine, coarse, 1.0) - fine)[0, 16:-16, 16:-16]) for fine in (flat, detailed)]
    assert changes[1] < 0.3 * changes[0]


def test_the_join_is_that_of_plain_loops():
    # Every pixel separately: its window's energies, and its weight from them.
    rng = np.random.default_rng(6)
    fine, coarse = rng.normal(0, 0.2, (1, 20, 23)), rng.normal(0, 0.2, (1, 10, 12))
    sigma = rng.uniform(0.5, 2.0, (1, 20, 23))
    low = halve(fine)
    change = double(coarse - low, 20, 23)[0]
    detail = fine[0] - double(low, 20, 23)[0]
    expected = np.empty((20, 23))
    for y in range(20):
        for x in range(23):
            energy = 0.0
            for i in range(y - 6, y + 7):
                for j in range(x - 6, x + 7):
                    at = (min(max(i, -1 - i), 39 - i), min(max(j, -1 - j), 45 - j))
                    energy += (change[at] ** 2 + 0.4 * detail[at] ** 2) / 169
            doubt = 0.012 * sigma[0, y, x] ** 2
            expected[y, x] = fine[0, y, x] + change[y, x] * doubt / (energy + doubt)
    np.testing.assert_allclose(join(fine, coarse, sigma)[0], expected, rtol=1e-10)


def test_the_noise_around_a_pixel_is_the_root_mean_square_over_the_window_of_the_join():
    sigma = np.random.default_rng(7).uniform(0.5, 2.0, (2, 20, 23))
    around = np.pad(sigma, ((0, 0), (6, 6), (6, 6)), mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(around, (13, 13), axis=(1, 2))
    np.testing.assert_allclose(level_around(sigma), np.sqrt((windows**2).mean(axis=(3, 4))))


@pytest.mark.parametrize("shape", [(1, 300, 1041), (3, 257, 129), (2, 5, 700), (1, 128, 513)])
@pytest.mark.parametrize("noise", ["a number", "a map", "a map of all channels"])
def test_tiles_have_the_bits_of_the_whole(shape, noise):
    rng = np.random.default_rng(0)
    fine = rng.normal(0, 1, shape)
    coarse = rng.normal(0, 1, (shape[0], -(-shape[1] // 2), -(-shape[2] // 2)))
    maps = {"a map": (1, *shape[1:]), "a map of all channels": shape}
    sigma = rng.uniform(1, 5, maps[noise]) if noise in maps else 3.0
    with Pool(3) as pool:
        np.testing.assert_array_equal(halve_in_tiles(fine, pool), halve(fine))
        np.testing.assert_array_equal(double_in_tiles(coarse, *shape[1:], pool), double(coarse, *shape[1:]))
        for how in ((), (0.03, 25), (0.03, 27)):
            np.testing.assert_array_equal(
                join_in_tiles(fine, coarse, sigma, pool, *how), join(fine, coarse, sigma, *how)
            )


def test_an_image_of_noise_is_told_once_whatever_the_scales_and_channels():
    noise = np.random.default_rng(0).normal(0, 10, (3, 64, 64))
    with pytest.warns(UserWarning, match="accounts for all") as caught:
        vnlem.denoise_vnlr(
            noise, 11.0, channel_axis=0, channels="separate", scales=2, profile="fast", patch_distance=3
        )
    assert len(caught) == 1


def test_a_known_noise_and_an_estimated_one_have_the_same_default():
    noisy = np.random.default_rng(3).normal(100, 20, (128, 96))
    noisy[30:90, 20:70] += 80
    model = vnlem.NoiseModel.white(20.0)
    options = {"profile": "fast", "return_info": True}
    calls = [
        vnlem.denoise(noisy, 20.0, **options),
        vnlem.denoise(noisy, noise_model=model, **options),
        vnlem.denoise_vnlr(noisy, 20.0, **options),
        vnlem.denoise_vnlr(noisy, 20.0, scales=3, **options),
    ]
    for result, info in calls:
        assert info.details["scales"] == 2
        np.testing.assert_array_equal(result, calls[0][0])
