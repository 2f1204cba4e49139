"""``vnlem theory`` as a user sees it."""

import json

import pytest
import typer
from typer.testing import CliRunner

from vnlem.cli.theory import command, parse_sizes

app = typer.Typer(pretty_exceptions_enable=False)
app.command("theory")(command)


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_the_table_shows_bounds_balance_and_where_the_theorem_ends():
    result = run("--q", "3:21", "--sigma", "0.5477", "--epsilon", "11")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert any(line.lstrip().startswith("13 ") and "the smaller bound is largest" in line for line in lines)
    assert any(line.lstrip().startswith("21 ") and "outside the theorem" in line for line in lines)
    assert "fixed rotation" in result.stdout


@pytest.mark.slow
def test_the_check_marks_the_printed_gradient_variance_and_nothing_else():
    result = run("--check", "--q", "5")
    assert result.exit_code == 0
    marked = [line for line in result.stdout.splitlines() if "disagrees" in line]
    assert len(marked) == 1
    assert marked[0].startswith("gradient variance as printed")
    assert "known slip" in marked[0]
    assert "VIOLATED" not in result.stdout


@pytest.mark.parametrize("colour", [False, True])
def test_an_image_gets_advice_for_its_noise(tmp_path, colour):
    import numpy as np

    from vnlem import theory

    rng = np.random.default_rng(0)
    clean = np.repeat(theory.random_image(64, seed=3)[..., None], 3, axis=2)
    noisy = clean + 0.9 * rng.standard_normal(clean.shape)
    np.save(tmp_path / "noisy.npy", noisy if colour else noisy[..., 0])
    arguments = ("--image", str(tmp_path / "noisy.npy"), "--sigma", "0.9", "--q", "3:7")
    assert "<- suggested" in run(*arguments).stdout
    report = json.loads(run(*arguments, "--json").stdout)
    assert report["sizes"] == [3, 5, 7]
    assert report["suggested_q"] == report["sizes"][np.argmin(report["risk"])]
    assert report["sigma"] == pytest.approx(0.9 / np.sqrt(3) if colour else 0.9)


def test_json_holds_the_same_numbers():
    from vnlem import theory

    report = json.loads(run("--json", "--q", "7", "--sigma", "0.1", "--epsilon", "1").stdout)
    bounds = theory.neighbor_bounds(7, 0.1, 1.0, overlap=False)
    assert report["rows"][0]["close"] == pytest.approx(bounds.close)
    assert report["rows"][0]["far"] == pytest.approx(bounds.far)
    rows = json.loads(run("--json", "--check", "--q", "3", "--trials", "500").stdout)
    assert {"name", "formula", "simulated", "standard_error", "agrees"} <= set(rows[0])


def test_a_plot_is_written(tmp_path):
    pytest.importorskip("matplotlib")
    target = tmp_path / "curves.png"
    result = run("--plot", str(target))
    assert result.exit_code == 0
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--q", "4"), "must be odd"),
        (("--q", "9:3"), "at least 9"),
        (("--q", "three"), "such as 7"),
        (("--sigma=-1",), "not negative"),
        (("--epsilon", "0.1"), "theorem says nothing"),
        (("--check", "--trials", "0"), "n_trials"),
        (("--image", "x.npy", "--check"), "neither --check"),
    ],
)
def test_bad_input_is_one_clear_sentence(arguments, message):
    result = run(*arguments)
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)


def test_sizes_are_odd_and_in_order():
    assert parse_sizes("5") == [5]
    assert parse_sizes("3:9") == [3, 5, 7, 9]
