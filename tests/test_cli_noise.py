"""``vnlem noise``, the noise options of ``vnlem denoise``, and the check of what was removed."""

import json
import sys

import numpy as np
import pytest
from scipy import ndimage
from skimage import data

import vnlem
from vnlem import io
from vnlem.metrics import residual_check
from vnlem.noise import NoiseModel


@pytest.fixture
def frame(tmp_path):
    """A frame with photon noise as a file, and its clean version."""
    y, x = np.mgrid[:128, :128]
    clean = 60 + 60.0 * x / 128 + 80 * ((y - 64) ** 2 + (x - 64) ** 2 < 800)
    noisy = np.clip(4.0 * np.random.default_rng(0).poisson(clean / 4.0), 0, 65535).astype(np.uint16)
    np.save(tmp_path / "frame.npy", noisy)
    np.save(tmp_path / "clean.npy", clean.astype(np.uint16))
    return tmp_path / "frame.npy"


def test_the_noise_is_said_in_words(cli, frame):
    status, out, _ = cli("noise", frame)
    assert status == 0
    assert "photon noise" in out
    assert "confidence" in out


def test_impulses_count_in_no_line_about_the_noise(cli, tmp_path):
    texture = data.gravel()[:256, :256] + np.random.default_rng(0).normal(0, 4, (256, 256))
    chance = np.random.default_rng(1).random(texture.shape)
    salted = np.where(chance < 0.02, np.where(chance < 0.01, 0.0, 255.0), np.clip(texture, 0, 255))
    path = tmp_path / "salted.npy"
    np.save(path, salted.astype(np.uint8))
    status, out, _ = cli("noise", path)
    assert status == 0
    assert " impulses (" in out
    # With the impulses in it the image would have more noise than the model, and at most sigma 35 of it.
    assert "looks like your image: yes" in out
    assert float(out.partition("as much as ")[2].partition("sigma ")[2].split()[0]) < 30


def test_the_noise_as_json_and_as_a_file(cli, frame):
    model = frame.with_name("model.json")
    status, out, _ = cli("noise", frame, "--json", "--out", model)
    assert status == 0
    assert json.loads(out) == json.loads(model.read_text())
    assert NoiseModel.load(model).gain.gain == pytest.approx(4, rel=0.3)


def test_the_noise_as_a_picture(cli, frame):
    pytest.importorskip("matplotlib")
    picture = frame.with_name("noise.png")
    assert cli("noise", frame, "--out", picture)[0] == 0
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--out", "noise.doc"), "must end in"),
        (("--page", 2), "has 1 pages"),
        (("--kind", "pink"), "kind must be one of"),
        (("--caution", "none"), "caution must be one of"),
    ],
)
def test_wrong_options_of_noise(cli, frame, options, message):
    status, _, err = cli("noise", frame, *options)
    assert status == 2
    assert message in err


def test_noise_says_what_it_may_be_in_doubt(cli, frame, tmp_path):
    assert "large parts of the image show this noise" in cli("noise", frame)[1]
    np.save(tmp_path / "grass.npy", data.grass()[:160, :160])
    status, out, _ = cli("noise", tmp_path / "grass.npy")
    assert status == 0
    assert "(--caution safe), or as much as" in out


def test_denoise_takes_the_caution_it_is_given(cli, tmp_path):
    np.save(tmp_path / "in.npy", data.grass()[:96, :96])
    for caution in ("safe", "strong"):
        target = tmp_path / f"{caution}.npy"
        assert cli("denoise", tmp_path / "in.npy", target, "--caution", caution, "--profile", "fast")[0] == 0
        expected = vnlem.denoise(data.grass()[:96, :96], caution=caution, profile="fast")
        np.testing.assert_array_equal(np.load(target), expected)


def test_denoise_with_a_model_that_was_written(cli, frame):
    model, out = frame.with_name("model.json"), frame.with_name("out.npy")
    cli("noise", frame, "--out", model)
    status, text, _ = cli("denoise", frame, out, "--noise", model, "--profile", "fast")
    assert status == 0
    assert "photon noise" in text
    assert "(given)" in text
    expected = vnlem.denoise(np.load(frame), noise_model=NoiseModel.load(model), profile="fast")
    np.testing.assert_array_equal(np.load(out), expected)


def test_denoise_with_a_camera(cli, frame):
    out = frame.with_name("out.npy")
    status, text, _ = cli("denoise", frame, out, "--gain", 4, "--read-noise", 1, "--profile", "fast")
    assert status == 0
    assert "gain 4" in text
    assert io.read(out).pixels.dtype == np.uint16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--noise-model", "pink"), "noise_model must be one of"),
        (("--gain", -1), "gain must lie"),
        (("--gain", 2, "--sigma", 3), "leave sigma out"),
        (("--noise", "MODEL", "--noise-model", "correlated"), "leave --noise-model"),
    ],
)
def test_wrong_noise_options_of_denoise(cli, frame, options, message):
    model = frame.with_name("model.json")
    NoiseModel.white(3.0).save(model)
    options = [model if option == "MODEL" else option for option in options]
    status, _, err = cli("denoise", frame, frame.with_name("out.npy"), *options)
    assert status == 2
    assert message in err


def test_compare_says_whether_noise_was_removed(cli, frame):
    clean = frame.with_name("clean.npy")
    status, out, _ = cli("compare", clean, clean, frame, "--noisy", frame)
    assert status == 0
    assert "what was removed looks like the noise" in out
    assert "noise was left" in out
    _, out, _ = cli("compare", clean, "--noisy", frame, "--json")
    assert json.loads(out)["residual"][str(clean)]["variance"] == pytest.approx(1, abs=0.2)
    assert cli("compare", clean)[0] == 2


def test_smoothing_is_seen_in_the_residual():
    rng = np.random.default_rng(1)
    clean = 100 + 60 * np.kron(rng.random((16, 16)) > 0.5, np.ones((8, 8)))
    noisy = clean + rng.normal(0, 6, clean.shape)
    model = NoiseModel.white(6.0)
    assert "looks like the noise" in residual_check(noisy, clean, model).verdict
    assert "more than the noise" in residual_check(noisy, ndimage.gaussian_filter(noisy, 2), model).verdict
    assert "noise was left" in residual_check(noisy, 0.7 * noisy + 0.3 * clean, model).verdict
    assert residual_check(noisy, clean, NoiseModel.white(0.0)).verdict.startswith("no noise")


@pytest.fixture(scope="module", params=["white", "photon"])
def noisy_texture(request):
    """A clean photograph, its noisy version, and the noise."""
    clean = data.camera()[100:228, 180:308].astype(float)
    rng = np.random.default_rng(2)
    if request.param == "white":
        return clean, clean + rng.normal(0, 20, clean.shape), NoiseModel.white(20.0)
    return clean, 6.0 * rng.poisson(clean / 6), NoiseModel.camera(gain=6.0)


def test_noise_left_in_a_result_is_not_taken_for_lost_detail(noisy_texture):
    clean, noisy, model = noisy_texture
    for result in (clean, clean + 0.2 * (noisy - clean)):
        assert residual_check(noisy, result, model).verdict == "what was removed looks like the noise"


def test_lost_and_exaggerated_detail_is_seen_in_the_residual(noisy_texture):
    clean, noisy, model = noisy_texture
    blurred = ndimage.gaussian_filter(clean, 0.7)
    assert "weakened" in residual_check(noisy, blurred, model).verdict
    assert "exaggerated" in residual_check(noisy, 1.5 * clean - 0.5 * blurred, model).verdict


def test_images_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match="differ in shape"):
        residual_check(np.zeros((64, 64)), np.zeros((64, 65)))


def test_a_picture_without_matplotlib_is_refused_in_one_sentence(cli, frame, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    status, _, err = cli("noise", frame, "--out", frame.with_name("noise.png"))
    assert (status, err.count("\n")) == (2, 1)
    assert "pip install matplotlib" in err
    assert not frame.with_name("noise.png").exists()


def test_noise_says_whether_it_looks_like_the_image_once_it_is_put_back(cli, frame, tmp_path):
    assert "simulated noise of this kind looks like your image: yes\n" in cli("noise", frame)[1]
    np.save(tmp_path / "constant.npy", np.full((64, 64), 7.0))
    status, out, err = cli("noise", tmp_path / "constant.npy")
    assert (status, err) == (0, "")
    assert "cannot tell whether simulated noise of this kind looks like your image: no noise was found" in out
