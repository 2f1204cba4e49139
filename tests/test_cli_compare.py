"""`vnlem compare`: the figures it prints, and what it refuses."""

import json

import numpy as np
import pytest
from command_line import noise, prepare
from PIL import Image

from vnlem import io


def test_compare_prints_a_row_per_image_with_known_figures(cli, tmp_path):
    clean = noise((40, 50))
    io.write(tmp_path / "clean.png", clean)
    io.write(tmp_path / "other.png", clean + 10)
    io.write(tmp_path / "same.png", clean)
    status, out, err = cli("compare", tmp_path / "clean.png", tmp_path / "other.png", tmp_path / "same.png")
    assert (status, err) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[2:]}
    assert "SNR dB" in out.splitlines()[1]
    assert float(rows[str(tmp_path / "other.png")][1]) == pytest.approx(20 * np.log10(255 / 10), abs=0.006)
    assert "inf" in rows[str(tmp_path / "same.png")]


def test_compare_json_is_json_alone_and_follows_the_dtype(cli, tmp_path):
    clean = noise((40, 50), "uint16")
    io.write(tmp_path / "clean.tif", clean)
    io.write(tmp_path / "other.tif", clean + 100)
    arguments = ("compare", tmp_path / "clean.tif", tmp_path / "other.tif", tmp_path / "clean.tif", "--json")
    status, out, err = cli(*arguments)
    assert (status, err) == (0, "")
    found = json.loads(out, parse_constant=lambda name: pytest.fail(name))
    assert found["data_range"] == 65535
    figures = found["metrics"][str(tmp_path / "other.tif")]
    assert figures["rms"] == pytest.approx(100 / 65535)
    assert figures["emd"] is None
    assert found["metrics"][str(tmp_path / "clean.tif")]["snr"] is None


def test_compare_takes_the_noisy_image_for_the_emd(cli, tmp_path):
    clean = noise((40, 50), "float64")
    noisy = clean + np.random.default_rng(0).normal(0, 5, clean.shape)
    for name, image in (("clean", clean), ("noisy", noisy), ("other", clean + 1)):
        io.write(tmp_path / f"{name}.npy", image)
    _, out, _ = cli(
        *("compare", tmp_path / "clean.npy", tmp_path / "other.npy", "--noisy", tmp_path / "noisy.npy"),
        *("--data-range", 100, "--json"),
    )
    assert json.loads(out)["metrics"][str(tmp_path / "other.npy")]["emd"] == pytest.approx(0.01)


def test_compare_takes_the_mean_over_pages(cli, tmp_path):
    stack = noise((2, 40, 50), "float64")
    other = stack + np.array([1.0, 3.0])[:, None, None]
    io.write(tmp_path / "a.tif", stack)
    io.write(tmp_path / "b.tif", other)
    _, out, _ = cli("compare", tmp_path / "a.tif", tmp_path / "b.tif", "--data-range", 1, "--json")
    assert json.loads(out)["metrics"][str(tmp_path / "b.tif")]["rms"] == pytest.approx(2)


def test_compare_shows_turned_photographs_upright(cli, tmp_path):
    image = np.broadcast_to(np.linspace(0, 250, 40).astype(np.uint8)[:, None], (40, 32)).copy()
    exif = Image.Exif()
    exif[0x112] = 6
    Image.fromarray(image).save(tmp_path / "a.jpg", exif=exif, quality=98)
    io.write(tmp_path / "b.png", io.read(tmp_path / "a.jpg"))
    status, out, _ = cli("compare", tmp_path / "a.jpg", tmp_path / "b.png", "--json")
    assert status == 0
    assert json.loads(out)["metrics"][str(tmp_path / "b.png")]["rms"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["grey.png", "tiny.png"],
            "tiny.png is 2x2 (grey) but grey.png is 20x30 (grey); only images of the same size",
        ),
        (["grey.png", "no.png"], "there is no file no.png"),
        (["grey.png"], "OTHER"),
        (["float.npy", "float.npy", "--data-range", "0"], "data range must be positive"),
    ],
)
def test_bad_input_to_compare_is_one_line(cli, tmp_path, monkeypatch, arguments, message):
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    status, out, err = cli("compare", *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_compare_warns_when_integer_types_differ(cli, tmp_path):
    io.write(tmp_path / "a.png", noise((40, 50)))
    io.write(tmp_path / "b.png", noise((40, 50), "uint16"))
    status, _, err = cli("compare", tmp_path / "a.png", tmp_path / "b.png")
    assert status == 0
    assert err.count("\n") == 1
    assert "values are compared as they are" in err
