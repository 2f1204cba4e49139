"""The channels of a stack: together where they belong together, else one by one."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from stack_scene import SMALL, colours, drifting, error

import vnlem


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "channels"), [("T", 3), ("Z", 3), ("N", 3), ("T", 2)])
def test_channels_together_agree_with_the_reference(kind, channels):
    _, noisy = drifting(4, size=12)
    mixed = noisy[..., None] * np.linspace(1, 0.4, channels)
    mixed += np.random.default_rng(3).normal(0, 25, mixed.shape)
    options = {**SMALL, "axes": f"{kind}YXC", "channels": "joint", "noise_model": "gaussian"}
    options |= {} if kind == "N" else {"patch_depth": 2}
    fast = vnlem.denoise(mixed, 30, **options)
    plain = vnlem.denoise(mixed, 30, engine="reference", **options)
    assert np.abs(fast - plain).max() < 0.02
    assert np.abs(fast - mixed).max() > 10


def test_channels_have_a_noise_of_their_own():
    _, noisy = drifting(4)
    both = np.stack([noisy, 10 * noisy], axis=1)
    options = {"axes": "TCYX", "profile": "fast", "channels": "separate"}
    result, info = vnlem.denoise(both, return_info=True, **options)
    first, second = info.details["sigma_per_channel"]
    assert second == pytest.approx(10 * first)
    np.testing.assert_array_equal(result[:, 0], vnlem.denoise(noisy, first, axes="TYX", profile="fast"))
    np.testing.assert_array_equal(vnlem.denoise(both, [first, second], **options), result)
    _, info = vnlem.denoise(both, axes="TCYX", profile="fast", return_info=True)
    assert info.details["sigma_per_channel"] == pytest.approx([first, second])


@pytest.mark.parametrize("kind", "TZN")
def test_colours_gain_over_channels_one_by_one(kind):
    clean, noisy = colours()
    options = {"axes": f"{kind}YXC", "profile": "fast", "return_info": True}
    joint, info = vnlem.denoise(noisy, 25, **options)
    assert info.details["channels"] == "joint"
    apart, info = vnlem.denoise(noisy, 25, channels="separate", **options)
    assert info.details["channels"] == "separate"
    assert error(joint, clean) < 0.9 * error(apart, clean)


def test_colours_may_lie_along_any_axis():
    _, noisy = colours()
    options = {"sigma": 25, "profile": "fast"}
    straight = vnlem.denoise(noisy, axes="TYXC", **options)
    for axes in ("TCYX", "CTYX", "XYCT"):
        order = ["TYXC".index(letter) for letter in axes]
        found = vnlem.denoise(noisy.transpose(order), axes=axes, **options)
        np.testing.assert_array_equal(found, straight.transpose(order))


def test_colours_do_not_depend_on_the_workers():
    _, noisy = colours(4, 72)
    one, three = (vnlem.denoise(noisy, 25, axes="TYXC", profile="fast", workers=n) for n in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_channels_that_do_not_belong_together_are_denoised_one_by_one():
    rng = np.random.default_rng(9)
    stains = [100 * (gaussian_filter(rng.normal(size=(80, 80)), 3) > 0.05) for _ in range(2)]
    noisy = np.stack([stains] * 4) + rng.normal(0, 20, (4, 2, 80, 80))
    result, info = vnlem.denoise(noisy, 20, axes="TCYX", profile="fast", return_info=True)
    assert info.details["channels"] == "separate"
    alone = vnlem.denoise(noisy[:, 1], 20, axes="TYX", profile="fast")
    np.testing.assert_array_equal(result[:, 1], alone)


def test_a_grey_movie_stored_in_three_channels_gets_the_grey_result():
    _, noisy = drifting(4)
    result, info = vnlem.denoise(
        np.repeat(noisy[..., None], 3, axis=3), 25, axes="TYXC", profile="fast", return_info=True
    )
    assert info.details["channels"] == "same"
    grey = vnlem.denoise(noisy, 25, axes="TYX", profile="fast")
    np.testing.assert_allclose(result, np.repeat(grey[..., None], 3, axis=3), rtol=0, atol=1e-3)


@pytest.mark.parametrize("axes", ["CYX", "YXC", "TYXC", "NCXY"])
def test_channels_without_other_pages_are_an_image(axes):
    page = colours(1)[1][0]  # rows, columns, channels
    expected = vnlem.denoise(page, 25, channel_axis=-1)
    order = [letter for letter in axes if letter in "CYX"]
    given = page.transpose(["YXC".index(letter) for letter in order])
    shape = [1 if letter not in "CYX" else given.shape[order.index(letter)] for letter in axes]
    found = vnlem.denoise(given.reshape(shape), 25, axes=axes).reshape(given.shape)
    np.testing.assert_array_equal(found.transpose([order.index(letter) for letter in "YXC"]), expected)


def test_channels_of_different_noise_maps_are_denoised_one_by_one():
    _, noisy = colours()
    level = np.full(noisy.shape, 25.0) * [1, 0.9, 0.8]
    result, info = vnlem.denoise(noisy, level, axes="TYXC", profile="fast", return_info=True)
    assert info.details["channels"] == "separate"
    second = vnlem.denoise(noisy[..., 1], level[..., 1], axes="TYX", profile="fast")
    np.testing.assert_array_equal(result[..., 1], second)
