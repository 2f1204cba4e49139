"""Results are finite, or one sentence says why there is none: parameters and images at their limits."""

import numpy as np
import pytest

import vnlem

METHODS = ("nlm", "nlem", "nlpr", "vnlem", "vnlem-dd")
PRESETS = [(method, "auto") for method in METHODS] + [(m, "paper") for m in ("nlem", "vnlem", "vnlem-dd")]


@pytest.fixture(scope="module")
def pure_noise():
    return np.random.default_rng(0).normal(100, 20, (32, 34))


@pytest.mark.filterwarnings("ignore:.*nothing but noise")
@pytest.mark.parametrize(("method", "preset"), PRESETS)
def test_pure_noise_gives_finite_results_near_its_mean(pure_noise, method, preset):
    result = vnlem.denoise(pure_noise, 20, method=method, preset=preset)
    assert np.isfinite(result).all()
    assert abs(result.mean() - pure_noise.mean()) < 2
    assert np.abs(result - 100).max() <= np.abs(pure_noise - 100).max() + 1


@pytest.mark.filterwarnings("ignore:.*nothing but noise")
@pytest.mark.parametrize("bandwidth", [1e-200, 1e-20, 1e-6, 1.0, 1e6, 1e200])
@pytest.mark.parametrize(("method", "preset"), PRESETS)
def test_any_bandwidth_gives_finite_results(pure_noise, method, preset, bandwidth):
    result = vnlem.denoise(pure_noise[:20, :20], 20, method=method, preset=preset, bandwidth=bandwidth)
    assert np.isfinite(result).all()


@pytest.mark.filterwarnings("ignore:.*nothing but noise")
@pytest.mark.parametrize("options", [{"local_bandwidth": False}, {"graph_bandwidth": 1e-3}, {"gamma": 1e-3}])
@pytest.mark.parametrize("sigma", [20, 1e6])
def test_a_graph_without_edges_gives_finite_results(pure_noise, options, sigma):
    assert np.isfinite(vnlem.denoise_vnlem_dd(pure_noise, sigma, **options)).all()


@pytest.mark.filterwarnings("ignore:.*nothing but noise")
@pytest.mark.parametrize("sigma", [50.0, 5e3, 1e5])
def test_a_hot_pixel_in_four_channels_and_far_too_much_noise(sigma):
    image = np.random.default_rng(1).normal(0, 1, (64, 13, 4))
    image[20, 5, 1] = 1e4
    for preset in ("paper", "auto"):
        result = vnlem.denoise_vnlem_dd(image, sigma, preset=preset, channel_axis=-1)
        assert np.isfinite(result).all()


@pytest.mark.filterwarnings("ignore:.*nothing but noise")
@pytest.mark.parametrize("method", METHODS)
def test_a_constant_stays_what_it_is(method):
    result = vnlem.denoise(np.full((24, 20), 7.0), 1.0, method=method)
    np.testing.assert_allclose(result, 7, atol=1e-4)


@pytest.mark.filterwarnings("ignore:.*nothing but noise")
@pytest.mark.parametrize("name", ["patch_size", "patch_distance", "n_neighbors", "upsample", "embedding_dim"])
@pytest.mark.parametrize("value", [10**4 + 1, 10**9 + 1, 10**30 + 1])
@pytest.mark.parametrize("method", METHODS)
def test_whole_numbers_have_upper_limits(pure_noise, method, name, value):
    function = getattr(vnlem, f"denoise_{method.replace('-', '_')}")
    if name not in function.__kwdefaults__:
        pytest.skip(f"{method} has no {name}")
    with pytest.raises(ValueError, match=name):
        function(pure_noise, 20, **{name: value})


@pytest.mark.parametrize("method", ["vnlem", "vnlem-dd"])
def test_a_window_wider_than_the_image_is_the_image(method):
    image = np.random.default_rng(2).normal(0, 1, (15, 17)) + np.arange(17)
    options = {"method": method, "n_neighbors": 60, "coarse_patch_size": 0, "patch_size": 5}
    wide, wider = (vnlem.denoise(image, 1.0, patch_distance=d, **options) for d in (17, 100))
    np.testing.assert_array_equal(wide, wider)
