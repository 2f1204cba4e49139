"""NLM, NLEM, NLPR: the fast engine against the reference, the laws both must obey."""

import importlib

import numpy as np
import pytest

import vnlem
from vnlem.methods import nlm
from vnlem.methods.window import check_params
from vnlem.pipeline.run import Job


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(5)
    y, x = np.mgrid[:40, :48]
    return np.sin(x / 5) + (y > 20) + rng.normal(0, 0.5, (40, 48))


def relative_difference(a, b):
    return np.max(np.abs(a - b)) / np.max(np.abs(b))


@pytest.mark.parametrize(
    ("patch_size", "patch_distance"), [(1, 2), (3, 6), (7, 10)], ids=["pixel", "small", "usual"]
)
def test_fast_nlm_equals_the_reference(noisy, patch_size, patch_distance):
    sizes = {"patch_size": patch_size, "patch_distance": patch_distance}
    fast = vnlem.denoise_nlm(noisy, 0.5, **sizes)
    slow = vnlem.denoise_nlm(noisy, 0.5, engine="reference", **sizes)
    assert relative_difference(fast, slow) < 2e-5


@pytest.mark.parametrize("shape", [(1, 19, 37), (3, 7, 33), (2, 40, 2), (1, 1, 70)], ids=str)
@pytest.mark.parametrize("patch_size", [1, 3, 5, 7, 9, 11, 13, 21, 33])
def test_sums_over_patches_of_any_size_give_the_means_of_the_reference(patch_size, shape):
    image = np.random.default_rng(patch_size).normal(size=shape).astype(np.float32)
    options = {"patch_size": patch_size, "patch_distance": 3, "bandwidth": 2.0 * patch_size}
    ndim = 1 if shape[1] == 1 else 2
    params = check_params(0.5, ndim, **options, gamma=2.0, noise_correction=False)
    job = Job(image, 0.5, params, 1, None)
    assert relative_difference(nlm.solve(job), nlm.solve_plainly(job)) < 2e-5


@pytest.mark.parametrize("gamma", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("seed", [0, 1])
def test_fast_regression_equals_the_reference_on_random_images(gamma, seed):
    image = np.random.default_rng(seed).normal(size=(40, 48))
    fast = vnlem.denoise_nlpr(image, 0.5, gamma=gamma)
    slow = vnlem.denoise_nlpr(image, 0.5, gamma=gamma, engine="reference")
    assert np.linalg.norm(fast - slow) < 1e-4 * np.linalg.norm(slow)


@pytest.mark.slow
def test_fast_nlem_with_the_papers_preset_equals_the_reference(noisy):
    fast = vnlem.denoise_nlem(noisy, 0.5, preset="paper")
    slow = vnlem.denoise_nlem(noisy, 0.5, preset="paper", engine="reference")
    assert np.linalg.norm(fast - slow) < 1e-4 * np.linalg.norm(slow)


def test_the_median_shortcut_agrees_with_plain_irls():
    """gamma = 1 has a special solver; near 1 IRLS runs."""
    image = np.random.default_rng(2).normal(size=(30, 30))
    median = vnlem.denoise_nlpr(image, 0.4, gamma=1.0)
    beside = vnlem.denoise_nlpr(image, 0.4, gamma=0.9999)
    assert np.sqrt(np.mean((median - beside) ** 2)) < 2e-3


def test_power_two_over_the_whole_window_is_the_mean_of_nlm(noisy):
    sizes = {"patch_size": 5, "patch_distance": 4, "bandwidth": 3.0}
    regression = vnlem.denoise_nlpr(noisy, 0.5, gamma=2.0, n_neighbors=81, **sizes)
    mean = vnlem.denoise_nlm(noisy, 0.5, **sizes)
    assert relative_difference(regression, mean) < 2e-5


@pytest.mark.parametrize("method", ["nlm", "nlem", "nlpr"])
def test_the_result_does_not_depend_on_the_number_of_workers(method):
    image = np.random.default_rng(3).normal(size=(150, 140))
    results = [vnlem.denoise(image, 0.8, method=method, workers=n).tobytes() for n in (1, 2, 5)]
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("method", "patch_size"), [("nlm", 3), ("nlm", 7), ("nlm", 11), ("nlem", 5), ("nlem", 13)]
)
def test_the_tiles_change_not_a_bit(method, patch_size, channels):
    module = importlib.import_module(f"vnlem.methods.{method}")
    image = np.random.default_rng(6).normal(size=(channels, 75, 90)).astype(np.float32)
    gamma = {"nlm": 2.0, "nlem": 1.0}[method]
    options = {"patch_size": patch_size, "patch_distance": 5, "gamma": gamma, "noise_correction": True}
    job = Job(image, 0.5, check_params(0.5, 2, **options), 1, None)
    whole = module.solve(job, (128, 128))
    for tile in [(75, 7), (16, 90), (13, 29), (1, 90)]:
        np.testing.assert_array_equal(module.solve(job, tile), whole)


def test_a_window_wider_than_the_image_is_the_image(noisy):
    small = noisy[:13, :17]
    for method in ("nlm", "nlem", "nlpr"):
        wide, image = (
            vnlem.denoise(small, 0.5, method=method, patch_size=3, patch_distance=d, **count)
            for d, count in ((16, {}), (90, {}))
            for count in ([{}] if method == "nlm" else [{"n_neighbors": 100}])
        )
        np.testing.assert_array_equal(wide, image)


@pytest.mark.parametrize("method", ["nlm", "nlem"])
@pytest.mark.parametrize("turns", [1, 2, 3])
def test_turning_the_image_turns_the_result(noisy, method, turns):
    turned = vnlem.denoise(np.rot90(noisy, turns), 0.5, method=method)
    assert relative_difference(turned, np.rot90(vnlem.denoise(noisy, 0.5, method=method), turns)) < 1e-3


@pytest.mark.parametrize("method", ["nlm", "nlem", "nlpr"])
def test_scaling_and_shifting_the_image_scales_and_shifts_the_result(noisy, method):
    plain = vnlem.denoise(noisy, 0.5, method=method)
    scaled = vnlem.denoise(300 * noisy + 1000, 150, method=method)
    assert relative_difference(scaled, 300 * plain + 1000) < 1e-4


@pytest.mark.parametrize("method", ["nlm", "nlem"])
def test_equal_channels_give_the_grey_result_in_every_channel(noisy, method):
    grey = vnlem.denoise(noisy, 0.5, method=method)
    colour = vnlem.denoise(np.stack([noisy] * 4, axis=1), 0.5, method=method, channel_axis=1)
    assert colour.shape == (40, 4, 48)
    assert relative_difference(colour, np.stack([grey] * 4, axis=1)) < 1e-4


def test_fast_colour_nlem_equals_the_reference(noisy):
    colour = np.stack([noisy[:24, :24], noisy[16:, 24:], noisy[:24, 24:]], axis=-1)
    fast = vnlem.denoise_nlem(colour, 0.5, channel_axis=-1)
    slow = vnlem.denoise_nlem(colour, 0.5, channel_axis=-1, engine="reference")
    assert np.linalg.norm(fast - slow) < 1e-4 * np.linalg.norm(slow)


@pytest.mark.parametrize("method", ["nlm", "nlem", "nlpr"])
def test_a_signal_is_denoised_with_patches_of_one_row(method):
    t = np.arange(400)
    clean = np.sign(np.sin(t / 8))
    signal = clean + np.random.default_rng(0).normal(0, 0.3, t.size)
    fast = vnlem.denoise(signal, 0.3, method=method, patch_size=9, patch_distance=60)
    slow = vnlem.denoise(signal, 0.3, method=method, patch_size=9, patch_distance=60, engine="reference")
    assert fast.shape == signal.shape
    # If two patches share nearly all the weight, every point between them is as good a median.
    assert np.linalg.norm(fast - slow) < 5e-3 * np.linalg.norm(slow)
    assert np.median(np.abs(fast - slow)) < 1e-4
    assert np.std(fast - clean) < 0.6 * np.std(signal - clean)


def test_nlm_stays_close_to_scikit_images_nlm():
    """Another implementation of the same mean; its box of pixels and its border differ a little."""
    from skimage import data, restoration

    clean = data.camera()[100:228, 100:228] / 255
    noisy = clean + np.random.default_rng(1).normal(0, 0.1, clean.shape)
    ours, info = vnlem.denoise_nlm(noisy, 0.1, patch_size=7, patch_distance=6, return_info=True)
    scale = info.sigma / np.sqrt(noisy.var() - 0.1**2)
    h = info.parameters["bandwidth"] / 7 / scale * 0.1
    theirs = restoration.denoise_nl_means(noisy, patch_size=7, patch_distance=6, h=h, sigma=0.1)
    assert np.sqrt(np.mean((ours - theirs)[10:-10, 10:-10] ** 2)) < 0.015
    assert np.std(ours - clean) < 1.06 * np.std(theirs - clean)


def test_auto_beats_the_papers_preset_on_a_photograph():
    from skimage import data

    clean = data.camera()[128:320, 128:320].astype(float)
    sigma = np.sqrt(0.3) * clean.std()
    noisy = vnlem.noise.add_gaussian(clean, sigma, seed=0)
    paper = vnlem.denoise_nlem(noisy, sigma, preset="paper")
    auto = vnlem.denoise_nlem(noisy, sigma)
    for measure in ("psnr", "ssim", "fsim"):
        better = getattr(vnlem.metrics.evaluate(clean, auto), measure)
        assert better > getattr(vnlem.metrics.evaluate(clean, paper), measure)
