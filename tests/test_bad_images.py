"""Images that cannot be denoised: one sentence says what is wrong, what was got and how to cure it."""

import numpy as np
import pytest

import vnlem


def noisy(shape=(48, 48), dtype=np.float64):
    return np.random.default_rng(0).normal(100, 10, shape).astype(dtype)


@pytest.mark.parametrize("method", ["vnlr", "nlm"])
@pytest.mark.parametrize("sigma", [None, 10.0])
@pytest.mark.parametrize("value", [1e30, -3.4e38, 1e12])
def test_one_value_far_beyond_all_others_is_told(value, sigma, method):
    image = noisy()
    image[3, 4] = value
    with pytest.raises(ValueError, match=r"\(1 value of 2304, the first at index \(3, 4\)\).*replace"):
        vnlem.denoise(image, sigma, method=method)


def test_pixels_without_data_are_told_however_many_they_are():
    image = noisy(dtype=np.float32)
    image[:40] = -3.4e38
    with pytest.raises(ValueError, match=r"holds -3.4e\+38 \(1920 values of 2304"):
        vnlem.denoise(image)
    with pytest.raises(ValueError, match=r"page 2 of 3: the image holds -3.4e\+38"):
        vnlem.denoise(np.stack([noisy(dtype=np.float32), image, image]), 10.0, axes="TYX", method="nlm")


def test_pixels_without_data_are_told_where_an_image_is_solved_in_parts(tmp_path):
    pytest.importorskip("zarr", reason="needs the extra 'large'")
    image = noisy(dtype=np.float32)
    image[3, 4] = -3.4e38
    with pytest.raises(ValueError, match=r"the numpy array holds -3.4e\+38"):
        vnlem.denoise_large(image, tmp_path / "out.zarr")
    assert not list(tmp_path.iterdir())


def test_images_that_fade_away_and_bright_spots_on_nothing_are_taken():
    y, x = np.mgrid[:48, :48]
    fading = np.exp(-((y - 24.0) ** 2 + (x - 24.0) ** 2) / 10)
    assert fading.min() < 1e-40
    spot = np.zeros((48, 48))
    spot[20, 20] = 1e9
    for image in (fading, spot):
        assert np.isfinite(vnlem.denoise(image, 0.01, method="nlm", noise_model="gaussian")).all()
