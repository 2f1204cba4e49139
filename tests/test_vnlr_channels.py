"""VNLR with several channels, and with noise that differs from pixel to pixel."""

import warnings

import numpy as np
import pytest
from vnlr_scene import QUICK, error, noisy_scene, scene

import vnlem
from vnlem.bench import phantoms
from vnlem.features import channels as of_channels


def test_a_sigma_map_of_one_value_is_the_scalar():
    noisy = noisy_scene()
    mapped = vnlem.denoise_vnlr(noisy, np.full(noisy.shape, 20.0), **QUICK)
    np.testing.assert_allclose(mapped, vnlem.denoise_vnlr(noisy, 20.0, **QUICK), atol=1e-4)


def test_a_sigma_map_beats_the_mean_sigma_where_the_noise_varies():
    clean = scene(64, 64)
    sigma = np.where(np.arange(64)[None, :] < 32, 5.0, 30.0) * np.ones((64, 1))
    noisy = clean + sigma * np.random.default_rng(5).standard_normal(clean.shape)
    mapped = vnlem.denoise_vnlr(noisy, sigma)
    plain = vnlem.denoise_vnlr(noisy, float(np.sqrt(np.mean(sigma**2))))
    assert error(mapped, clean) < error(plain, clean)


def test_one_sigma_per_channel_is_accepted():
    clean = np.stack([scene(24, 24)] * 3, axis=-1)
    noisy = clean + np.array([5.0, 10.0, 20.0]) * np.random.default_rng(2).standard_normal(clean.shape)
    result = vnlem.denoise_vnlr(noisy, [5.0, 10.0, 20.0], channel_axis=-1, **QUICK)
    assert error(result, clean) < 0.6 * error(noisy, clean)


def test_independent_channels_are_denoised_as_well_as_one_by_one():
    y, x = np.mgrid[:64, :64]
    shapes = [(y - 20) ** 2 + (x - 20) ** 2 < 150, (x // 8) % 2 == 0, (y + x) // 11 % 2 == 0]
    clean = np.stack([100.0 * shape for shape in shapes], axis=-1)
    noisy = clean + 25 * np.random.default_rng(0).standard_normal(clean.shape)
    found = vnlem.denoise_vnlr(noisy, 25.0, channel_axis=-1, profile="fast")
    alone = [vnlem.denoise_vnlr(noisy[..., c], 25.0, profile="fast") for c in range(3)]
    np.testing.assert_array_equal(found, np.stack(alone, axis=-1))
    joint = vnlem.denoise_vnlr(noisy, 25.0, channel_axis=-1, profile="fast", channels="joint")
    assert error(found, clean) < error(joint, clean)


def test_colours_of_a_photograph_are_denoised_jointly():
    clean = np.stack([scene(64, 64), 0.8 * scene(64, 64) + 10, 0.5 * scene(64, 64)], axis=-1)
    noisy = clean + 20 * np.random.default_rng(0).standard_normal(clean.shape)
    found = vnlem.denoise_vnlr(noisy, 20.0, channel_axis=-1, profile="fast")
    apart = vnlem.denoise_vnlr(noisy, 20.0, channel_axis=-1, profile="fast", channels="separate")
    assert error(found, clean) < error(apart, clean)


@pytest.mark.parametrize("options", [{"sigma": 20.0}, {}, {"gain": 3.0}], ids=["given", "auto", "photons"])
@pytest.mark.parametrize("value", [0, 255])
def test_a_constant_channel_stays_and_leaves_the_others_alone(value, options):
    clean = np.stack([scene(96, 96), 0.8 * scene(96, 96) + 10, 0.5 * scene(96, 96)], axis=-1)
    noisy = np.clip(clean + 20 * np.random.default_rng(0).standard_normal(clean.shape), 0, 255).astype(
        np.uint8
    )
    for count in (2, 3):
        others = noisy[..., :count]
        image = np.dstack([others, np.full(others.shape[:2], value, np.uint8)])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = vnlem.denoise(image, channel_axis=-1, profile="fast", **options)
        expected = vnlem.denoise(others, channel_axis=-1, profile="fast", **options)
        np.testing.assert_array_equal(result[..., :count], expected)
        assert (result[..., count] == value).all()


def test_a_constant_channel_does_not_lower_the_estimate_of_the_noise():
    noisy = np.stack([noisy_scene(), np.zeros_like(noisy_scene())], axis=-1)
    assert vnlem.estimate_sigma(noisy, channel_axis=-1) == vnlem.estimate_sigma(noisy[..., 0])
    assert vnlem.estimate_noise(noisy, -1).sigma == vnlem.estimate_noise(noisy[..., 0]).sigma


def test_a_constant_channel_does_not_change_the_noise_of_a_stack():
    clean = np.stack([scene(64, 64), 0.8 * scene(64, 64)], axis=-1)
    others = clean + np.random.default_rng(3).normal(0, 20, (3, *clean.shape))
    image = np.concatenate([others, np.zeros((3, 64, 64, 1))], axis=-1)
    found, expected = (
        vnlem.denoise(array, axes="TYXC", profile="fast", return_info=True)[1] for array in (image, others)
    )
    assert found.sigma == pytest.approx(expected.sigma, rel=0.01)


def test_a_grey_picture_stored_as_colour_is_denoised_as_grey():
    noisy = np.clip(noisy_scene(height=64, width=64), 0, 255).round().astype(np.uint8)
    grey = vnlem.denoise_vnlr(noisy, 20.0, profile="fast")
    colour = vnlem.denoise_vnlr(np.stack([noisy] * 3, axis=-1), 20.0, channel_axis=-1, profile="fast")
    np.testing.assert_array_equal(colour, np.stack([grey] * 3, axis=-1))


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_any_number_of_channels_is_accepted(channels):
    clean = np.stack([scene(24, 24)] * channels)
    noisy = clean + 20 * np.random.default_rng(2).standard_normal(clean.shape)
    result = vnlem.denoise_vnlr(noisy, 20.0, channel_axis=0, **QUICK)
    assert error(result, clean) < 0.6 * 20


def test_channels_whose_shapes_lie_near_each_other_and_differ_are_denoised_one_by_one():
    clean = np.stack([phantoms.discs(5, 18, 3, seed=seed, size=96) for seed in range(3)])
    noisy = clean + np.random.default_rng(0).normal(0, 0.5, clean.shape)
    together = vnlem.denoise_vnlr(noisy, 0.5, channel_axis=0, profile="fast")
    alone = np.stack([vnlem.denoise_vnlr(plane, 0.5, profile="fast") for plane in noisy])
    assert np.std(together - clean) < 1.02 * np.std(alone - clean)


def test_a_channel_without_noise_beside_noisy_ones_has_no_say_in_the_details():
    noisy = np.random.default_rng(0).normal(100, 20, (3, 24, 24))
    _, info = vnlem.denoise_vnlr(
        noisy, [10, 1e-160, 10], channel_axis=0, channels="separate", return_info=True
    )
    assert len(info.details["turned_share"]) == info.parameters["passes"] + 1


def handling(planes, noise):
    return of_channels.handling("auto", len(planes), lambda: (planes, np.full(len(planes), noise)))


def related(contrast, sigma, shape=(128, 128)):
    """A colour picture: the same edges in all channels, of different strength."""
    clean = contrast * np.stack([scene(*shape), 0.7 * scene(*shape), 0.4 * scene(*shape)]) / 100
    return clean + np.random.default_rng(1).normal(0, sigma, clean.shape)


@pytest.mark.parametrize("contrast", [100, 30, 10, 3])
def test_colours_stay_together_however_strong_the_noise(contrast):
    noisy = related(contrast, 20.0)
    assert handling(noisy, 20.0) == "joint"


@pytest.mark.parametrize("told", [0.3, 0.7, 1.3])
def test_noise_that_is_told_wrongly_does_not_part_colours(told):
    noisy = related(60, 20.0)
    assert handling(noisy, told * 20.0) == "joint"


def test_a_list_of_images_is_told_when_channels_has_no_such_choice():
    with pytest.raises(ValueError, match="channels must be one of"):
        vnlem.denoise([np.zeros((16, 16)), np.zeros((20, 16))], 5.0, channels="jiont")


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1e12, 1e200])
def test_the_units_of_channels_do_not_matter(scale):
    apart = np.random.default_rng(0).normal(size=(3, 64, 64)).cumsum(axis=1).cumsum(axis=2)
    assert handling(scale * apart, scale) == "separate"
    assert handling(scale * related(100, 5.0), 5.0 * scale) == "joint"


@pytest.mark.parametrize("noise", [{"sigma": 15.0}, {}, {"gain": 2.0}, {"noise_model": "correlated"}])
def test_how_channels_are_handled_is_decided_once_on_the_whole_image(monkeypatch, noise):
    seen = []
    relation = of_channels.relation
    monkeypatch.setattr(
        of_channels, "relation", lambda planes, level: seen.append(planes.shape) or relation(planes, level)
    )
    noisy = np.maximum(related(100, 15.0, (96, 96)) + 60, 1.0)
    vnlem.denoise(noisy, channel_axis=0, scales=2, **QUICK, **noise)
    # Where the noise is correlated the channels share it, and there is nothing to decide.
    assert seen in ([(3, 96, 96)], []) if "noise_model" in noise else seen == [(3, 96, 96)]
