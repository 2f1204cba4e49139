"""Images that cannot be denoised: one sentence says what is wrong, what was passed and how to fix it."""

import json
import warnings
from pathlib import Path

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


NO_IMAGES = {
    "ragged list": ([[1, 2], [3]], ValueError, "the rows of the list have different lengths"),
    "ragged arrays": ([np.zeros(3), np.zeros(4)], ValueError, "the rows of the list have different lengths"),
    "path": (Path("a.png"), TypeError, "got the path or text .*; read a file with vnlem.io.read"),
    "text": ("a.png", TypeError, "got the path or text 'a.png'"),
    "dict": ({"a": 1}, TypeError, "the image must be an array of numbers, got a dict"),
    "generator": ((k for k in range(3)), TypeError, "got a generator"),
    "None": (None, TypeError, "got None"),
    "objects": (np.array([[1, None]], object), TypeError, "got dtype object; convert it with numpy.asarray"),
    "dates": (np.zeros((4, 4), "M8[s]"), TypeError, "got dtype datetime64"),
}


@pytest.mark.parametrize("function", [vnlem.denoise, vnlem.denoise_vnlr, vnlem.estimate_noise])
@pytest.mark.parametrize("case", NO_IMAGES)
def test_what_is_no_image_is_told(case, function):
    image, kind, sentence = NO_IMAGES[case]
    with pytest.raises(kind, match=sentence):
        function(image)


@pytest.mark.parametrize("unit", [1e80, 1e200, 1e-80, 1e-200])
def test_units_whose_squares_are_no_numbers_are_told(unit):
    with pytest.raises(ValueError, match=r"whose squares are too (large|small); (divide|multiply) it"):
        vnlem.denoise(unit * noisy(), 10 * unit if unit > 1 else None, method="nlm")


@pytest.mark.parametrize(
    "options",
    [{"sigma": 1e300}, {"gain": 1e300}, {"gain": 1.0, "read_noise": 1e200}, {"gain": 1.0, "offset": -1e90}],
)
def test_noise_beyond_all_measure_is_told(options):
    with pytest.raises(ValueError, match=r"(sigma|gain|read_noise|offset) must lie in"):
        vnlem.denoise(noisy(), **options)


def test_a_stack_as_a_dask_array_and_unknown_chunks_are_told():
    da = pytest.importorskip("dask.array", reason="needs the extra 'large'")
    lazy = da.from_array(np.stack([noisy()] * 3))
    with pytest.raises(ValueError, match="axes='TYX' names a stack"):
        vnlem.denoise(lazy, axes="TYX")
    with pytest.raises(ValueError, match=r"unknown size .*; call its compute_chunk_sizes\(\) first"):
        vnlem.denoise(lazy[0][lazy[0][:, 0] > 100], 10.0)


def test_parameters_that_do_not_exist_and_steps_that_never_end_are_told():
    with pytest.raises(TypeError, match="denoise_vnlr has no parameter 'plane_distance'; it has group"):
        vnlem.denoise_vnlr(noisy(), 10.0, plane_distance=2)
    with pytest.raises(ValueError, match=r"angle_step must lie in \[0.01, 180\], got 1e-300"):
        vnlem.denoise_vnlem(noisy(), 8.0, angle_step=1e-300)


@pytest.mark.parametrize("size", [16, 24, 40, 64])
@pytest.mark.parametrize("kind", ["random", "halves", "one", "disc"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the noise's estimate
def test_pictures_of_two_values_may_be_called_photon_noise(kind, size):
    y, x = np.mgrid[:size, :size]
    two = {
        "random": np.random.default_rng(0).integers(0, 2, (size, size)),
        "halves": x < size // 2,
        "one": (y == 0) & (x == 5),
        "disc": (y - size / 2) ** 2 + (x - size / 2) ** 2 < size**2 / 9,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        image = 50.0 * two[kind]
        result = vnlem.denoise(image, noise_model="poisson-gaussian", method="nlm")
    assert np.isfinite(result).all()
    assert result.max() <= 51


@pytest.mark.parametrize("bad", ["text", None, 5, ["a"], [["x"]], {"a": 1}, [{"levels": "a"}]])
@pytest.mark.parametrize("name", ["curves", "spectra", "strengths", "confidence"])
def test_a_text_in_a_noise_model_is_told(tmp_path, name, bad):
    values = {**vnlem.NoiseModel.white(2.0).to_dict(), name: bad}
    (tmp_path / "noise.json").write_text(json.dumps(values))
    with pytest.raises((ValueError, TypeError), match=f"model is damaged .'{name}' must|{name} must"):
        vnlem.NoiseModel.load(tmp_path / "noise.json")
