"""The demo: every method on an embedded image, figures, times and pictures."""

import json

import numpy as np
import pytest
from command_line import status_of

from vnlem import io, registry
from vnlem.bench.contact_sheet import Entry, contact_sheet, error_image
from vnlem.bench.peers import available_peers
from vnlem.cli.demo import embedded_image, find_denoisers


@pytest.mark.slow
def test_the_demo_denoises_with_every_method_and_writes_every_picture(tmp_path, capsys):
    folder = tmp_path / "deep" / "demo"
    assert status_of("demo", "--size", 64, "--out", folder) == 0
    out = capsys.readouterr().out
    figures = json.loads((folder / "metrics.json").read_text())["methods"]
    assert set(figures) == {"noisy", *find_denoisers()}
    assert set(registry.METHODS) <= set(figures)
    for name in figures:
        assert name in out
    for name in registry.METHODS:
        assert figures[name]["snr"] > figures["noisy"]["snr"] + 2
        assert figures[name]["seconds"] > 0
        assert io.read(folder / f"{name}.png").pixels.shape == (64, 64)
        assert io.read(folder / f"error-{name}.png").pixels.shape == (64, 64)
    assert figures["noisy"]["snr"] == pytest.approx(5.23, abs=0.25)  # variance 0.3, the paper's level
    for name in ("clean", "noisy", "contact-sheet"):
        assert io.read(folder / f"{name}.png").pixels.dtype == np.uint8


@pytest.mark.slow
def test_the_demo_shows_what_rotation_is_worth_on_particles(tmp_path, monkeypatch):
    monkeypatch.setattr("vnlem.cli.demo.find_denoisers", dict)  # the photograph is shown elsewhere
    assert status_of("demo", "--size", 64, "--out", tmp_path) == 0
    figures = json.loads((tmp_path / "particles" / "metrics.json").read_text())["methods"]
    assert figures["vnlr, group d4"]["snr"] > figures["vnlr, group identity"]["snr"] + 0.5
    assert (tmp_path / "particles" / "contact-sheet.png").exists()


def test_a_method_that_is_added_appears_by_itself(monkeypatch):
    monkeypatch.setitem(registry.METHODS, "new", "vnlem.methods.nlm:METHOD")
    assert "new" in find_denoisers()


def test_peers_appear_when_their_packages_are_installed(monkeypatch):
    monkeypatch.setattr("vnlem.bench.peers.find_spec", lambda name: name)
    assert {"skimage-nlm", "bm3d"} <= set(find_denoisers())
    monkeypatch.setattr("vnlem.bench.peers.find_spec", lambda name: None)
    assert "bm3d" not in find_denoisers()


@pytest.mark.parametrize("name", ["skimage-nlm", "bm3d", "opencv-nlm", "skimage-tv", "skimage-wavelet"])
def test_peers_denoise_in_the_units_of_the_image(name):
    if name not in available_peers():
        pytest.skip("needs the extra 'peers'")
    clean = embedded_image(64)
    noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    result = available_peers()[name](noisy, 20.0, 1)
    assert np.std(result - clean) < 0.8 * np.std(noisy - clean)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "8"], "--size must lie between 64 and 512, got 8"),
        (["--noise", "-1"], "--noise must be positive"),
        (["--out", "file"], "is a file"),
    ],
)
def test_bad_input_to_the_demo_is_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert status_of("demo", *arguments) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_error_images_of_one_limit_share_their_scale():
    error = np.array([[-30.0, -15.0, 0.0, 15.0, 30.0]])
    np.testing.assert_array_equal(error_image(error, 30.0), [[0, 64, 128, 191, 255]])
    np.testing.assert_array_equal(error_image(error, 15.0), [[0, 0, 128, 255, 255]])


def test_the_contact_sheet_shows_every_picture_and_label():
    images = [np.full((40, 120), 10 * k) for k in range(1, 8)]
    sheet = contact_sheet("title", [Entry(f"label {k}", "note", image) for k, image in enumerate(images)])
    for image in images:
        assert (sheet == image[0, 0]).sum() >= image.size
    blank = contact_sheet("", [Entry("", "", image) for image in images])
    assert (sheet != blank).sum() > 200  # the text
