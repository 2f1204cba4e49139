"""Noise models: their transforms, their files, and bad input."""

import numpy as np
import pytest
from noise_scene import scene, shared

import vnlem
from vnlem.noise import NoiseModel, estimate_noise, strips
from vnlem.noise import blocks as block
from vnlem.noise.correlated import SIDE, Spectrum, check_spectrum
from vnlem.noise.curve import Curve, check_curve
from vnlem.pipeline.workers import Pool

MODELS = {
    "white": NoiseModel.white(4.0),
    "camera": NoiseModel.camera(2.0, 10.0, 3.0),
    "bent": NoiseModel((Curve((0.0, 100.0, 200.0), (9.0, 64.0, 25.0)),)),
    "correlated": NoiseModel(
        (Curve((0.0,), (25.0,)),),
        (Spectrum.of(1 + 20 * np.exp(-np.add.outer(np.arange(16.0), np.arange(16.0)) / 4)),),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_stabilising_is_undone(name):
    planes = scene(96)[None]
    model = MODELS[name]
    back = model.unstabilise(model.stabilise(planes))
    # The inverse is that of the mean, so it differs by a fraction of the noise.
    assert np.abs(back - planes).max() < 0.3 * model.sigma


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("shape", [(200, 70), (64, 130), (1, 90)])
def test_strips_have_the_bytes_of_the_whole(name, shape):
    model = MODELS[name]
    planes = np.random.default_rng(3).uniform(20, 220, (3, *shape))
    stable = model.stabilise(planes)
    with Pool(3) as pool:
        np.testing.assert_array_equal(strips.stabilise(model, planes, pool), stable)
        np.testing.assert_array_equal(strips.unstabilise(model, stable, pool), model.unstabilise(stable))


def test_the_noise_of_a_bent_curve_becomes_one_everywhere():
    curve = MODELS["bent"].curves[0]
    rng = np.random.default_rng(12)
    for level in (30.0, 80.0, 150.0):
        pixels = level + np.sqrt(curve.variance(level)) * rng.standard_normal(200_000)
        stable = curve.stabilise(pixels)
        assert stable.std() == pytest.approx(1, abs=0.08)
        assert curve.unstabilise(stable.mean()) == pytest.approx(level, abs=0.7)


def test_whitened_noise_has_equal_power_where_it_was_strong():
    noise = shared((256, 256), np.random.default_rng(13), 1.0)
    spectrum = estimate_noise(noise).spectra[0]
    white = spectrum.whiten(noise)

    def ratio(plane):
        power = np.mean(block.cosine(block.cut(plane, SIDE, SIDE)) ** 2, axis=-1)
        radius = np.hypot(*np.indices(power.shape))
        return power[(radius > 1) & (radius < 4)].mean() / power[(radius >= 5) & (radius < 7)].mean()

    assert ratio(noise) > 2
    assert ratio(white) == pytest.approx(1, abs=0.3)
    np.testing.assert_allclose(spectrum.colour(white)[16:-16, 16:-16], noise[16:-16, 16:-16], atol=0.1)


def test_a_model_is_written_through_a_link_and_leaves_other_files_alone(tmp_path):
    for name in ("model.json", "noise.json.part"):
        (tmp_path / name).write_text("before")
    (tmp_path / "noise.json").symlink_to(tmp_path / "model.json")
    MODELS["white"].save(tmp_path / "noise.json")
    assert (tmp_path / "noise.json").is_symlink()
    assert NoiseModel.load(tmp_path / "model.json") == MODELS["white"]
    assert (tmp_path / "noise.json.part").read_text() == "before"


@pytest.mark.parametrize("name", MODELS)
def test_a_model_survives_its_file(name, tmp_path):
    model = MODELS[name]
    model.save(tmp_path / "noise.json")
    loaded = NoiseModel.load(tmp_path / "noise.json")
    assert loaded.curves == model.curves
    assert loaded.kind == model.kind
    np.testing.assert_allclose(np.array(loaded.spectra[0].power), np.array(model.spectra[0].power))
    assert [path.name for path in tmp_path.iterdir()] == ["noise.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "something"}, "not a noise model"),
        ({"curves": [{"levels": [0, 1], "variances": [1, -1]}]}, "must be positive"),
        ({"curves": [{"levels": [1, 0], "variances": [1, 1]}]}, "must rise"),
        ({"curves": [{"levels": [0]}]}, "damaged"),
        ({"curves": []}, "empty"),
        ({"spectra": [[[1.0, -1.0], [1.0, 1.0]]]}, "spectrum must be positive"),
        ({"spectra": [[1.0, 2.0]]}, "square table"),
        ({"strengths": [-1.0]}, "strength must lie"),
    ],
)
def test_a_damaged_model_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        NoiseModel.from_dict({**MODELS["camera"].to_dict(), **change})


def test_what_is_no_json_is_refused(tmp_path):
    (tmp_path / "noise.json").write_text("gain 3")
    with pytest.raises(ValueError, match="not JSON"):
        NoiseModel.load(tmp_path / "noise.json")


def test_a_model_for_other_values_is_refused():
    model = NoiseModel((Curve((0.0, 255.0), (4.0, 200.0)),))
    with pytest.raises(ValueError, match="rescaled or stored with another dtype"):
        vnlem.denoise(scene(64) * 257 + 30000, noise_model=model)


def test_a_model_for_other_channels_is_refused():
    model = NoiseModel((Curve((0.0,), (4.0,)), Curve((0.0,), (5.0,))))
    with pytest.raises(ValueError, match="2 curves and the image 1 channels"):
        vnlem.denoise(scene(64), noise_model=model)


@pytest.mark.parametrize("wrong", [-1.0, 0.0, np.nan])
def test_a_wrong_gain_is_refused(wrong):
    with pytest.raises(ValueError, match="gain must lie"):
        NoiseModel.camera(wrong)


def test_tables_of_wrong_shape_are_refused():
    with pytest.raises(ValueError, match="one variance per level"):
        check_curve([1, 2], [1])
    with pytest.raises(ValueError, match="square table"):
        check_spectrum(np.ones((SIDE, 2)))
