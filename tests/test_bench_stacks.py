"""`vnlem bench --protocol stack`: movies and volumes, page by page, together, and by peers."""

import json
import shlex
import sys

import numpy as np
import pytest
import tifffile

import vnlem
from vnlem.bench.command_peer import run_command
from vnlem.bench.datasets import Item, read_stack
from vnlem.bench.peers import STACK_PEERS, find_peer
from vnlem.bench.protocols import Case, Scene, measure, scenes
from vnlem.bench.variants import command_variants, parse_variants

pytestmark = pytest.mark.slow


def movie(n_pages=4, size=24):
    x = np.arange(size)
    frames = [100 + 60 * np.sin(np.add.outer(x, 2 * x + t) / 4) for t in range(n_pages)]
    return np.stack(frames).astype(np.uint8)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "stacks"
    place.mkdir()
    for name, axes in (("movie", "TYX"), ("volume", "ZYX")):
        tifffile.imwrite(place / f"{name}.tif", movie(), imagej=True, metadata={"axes": axes})
    tifffile.imwrite(place / "page.tif", movie()[0])
    return place


@pytest.mark.slow
def test_stacks_of_a_folder_are_measured(cli, folder, tmp_path):
    status, out, err = cli(
        "bench", folder, "--out", tmp_path / "out", "--protocol", "stack", "--sigma", "20",
        "--methods", "nlm:pages,nlm,vnlr:fast", "--workers", "1",
    )  # fmt: skip
    assert status == 0
    assert "page.tif: it is not a stack of pages" in " ".join(err.split())
    assert "stacks, sigma 20: means over 2 images" in out
    found = json.loads((tmp_path / "out" / "summary.json").read_text())
    means = {label: row["psnr"]["mean"] for label, row in found["cases"][0]["methods"].items()}
    assert means["noisy"] < means["nlm:pages"] < means["nlm"] < means["vnlr:fast"]
    pictures = list((tmp_path / "out" / "pictures").rglob("*.png"))
    assert len(pictures) == 2 * (2 + 3)
    assert (tmp_path / "out" / "report.html").exists()


def test_a_variant_does_to_a_stack_what_its_name_says():
    noisy = movie() + np.random.default_rng(0).normal(0, 20, (4, 24, 24))
    together, pages, narrow = parse_variants(["nlm", "nlm:pages", "nlm:plane_distance=0"], "stack")
    expected = vnlem.denoise(noisy, 20, axes="TYX", method="nlm", noise_model="gaussian")
    np.testing.assert_array_equal(together.run(noisy, 20, 1, "TYX"), expected)
    alone = np.stack([vnlem.denoise_nlm(page, 20) for page in noisy])
    np.testing.assert_array_equal(pages.run(noisy, 20, 1, "TYX"), alone)
    np.testing.assert_allclose(narrow.run(noisy, 20, 1, "TYX"), alone, atol=0.05)


def test_stacks_are_read_on_one_scale_with_their_axes(folder):
    stack, axes = read_stack(str(folder / "volume.tif"))
    assert axes == "ZYX"
    np.testing.assert_array_equal(stack, movie())
    assert read_stack(str(folder / "movie.tif"))[1] == "TYX"


def test_noise_is_added_with_the_seed_of_the_file(folder):
    item = Item("movie.tif", str(folder / "movie.tif"), "", index=2)
    [(_, scene)] = scenes(item, [Case("stack", 0, 20.0)])
    noise = np.random.default_rng(1002).normal(0, 20, (4, 24, 24))
    np.testing.assert_allclose(scene.noisy - movie(), noise)


def test_measures_of_a_stack_are_of_all_its_pages():
    clean = movie().astype(float)
    result = clean.copy()
    result[0] += 10
    found = measure(Scene(clean, clean + 1, 1.0, None, "TYX"), result)
    assert found["psnr"] == pytest.approx(10 * np.log10(255**2 / 25))
    assert found["rms"] == pytest.approx(5 / 255)
    assert found["fsim"] < 1


@pytest.mark.parametrize("name", STACK_PEERS)
def test_a_peer_denoises_a_stack(name):
    try:
        peer = find_peer(name)
    except ValueError as error:
        pytest.skip(str(error))
    clean = np.tile(movie(1, 40).astype(float), (6, 1, 1))
    noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    result = peer(noisy, 20.0, 1)
    assert result.shape == noisy.shape
    assert np.std(result - clean) < 0.6 * 20


@pytest.mark.parametrize(
    ("methods", "protocol", "sentence"),
    [
        (["bm4d"], "awgn", "bm4d is for stacks; use it with --protocol stack"),
        (["vnlr:pages"], "awgn", "'pages' in 'vnlr:pages' is neither"),
        (["vnlr:plane_distance=1"], "awgn", "has no parameter 'plane_distance'"),
        (["opencv-multi:fast"], "stack", "takes no preset and no parameters"),
    ],
)
def test_what_does_not_fit_is_told(methods, protocol, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse_variants(methods, protocol)


def colour_movie():
    return np.stack([movie(), movie()[:, ::-1], 255 - movie()], axis=-1)


@pytest.fixture
def colours(tmp_path):
    place = tmp_path / "colours"
    place.mkdir()
    tifffile.imwrite(place / "movie.tif", colour_movie(), photometric="rgb")
    return place


def test_a_colour_movie_is_read_with_its_channels_last(colours):
    stack, axes = read_stack(str(colours / "movie.tif"))
    assert axes == "TYXC"
    np.testing.assert_array_equal(stack, colour_movie())


def test_a_variant_on_a_colour_movie():
    noisy = colour_movie() + np.random.default_rng(0).normal(0, 20, (4, 24, 24, 3))
    together, pages, peer = parse_variants(["vnlr:fast", "vnlr:fast:pages", "skimage-tv"], "stack")
    options = {"profile": "fast", "noise_model": "gaussian"}
    expected = vnlem.denoise(noisy, 20, axes="TYXC", **options)
    np.testing.assert_array_equal(together.run(noisy, 20, 1, "TYXC"), expected)
    alone = np.stack([vnlem.denoise_vnlr(page, 20, channel_axis=-1, profile="fast") for page in noisy])
    np.testing.assert_array_equal(pages.run(noisy, 20, 1, "TYXC"), alone)
    assert peer.run(noisy, 20, 1, "TYXC").shape == noisy.shape


def test_measures_of_a_colour_movie_are_of_all_its_channels():
    clean = colour_movie().astype(float)
    result = clean.copy()
    result[..., 1] += 10
    found = measure(Scene(clean, clean + 1, 1.0, None, "TYXC"), result)
    assert found["psnr"] == pytest.approx(10 * np.log10(255**2 / (100 / 3)))


def program(tmp_path, body):
    """A command that runs Python on the file names and sigma."""
    script = tmp_path / "tool with a space.py"
    script.write_text("import sys, tifffile\nsource, target, sigma = sys.argv[1:4]\n" + body)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} {{in}} {{out}} {{sigma}}"


HALVE = "tifffile.imwrite(target, tifffile.imread(source) / float(sigma))"


@pytest.mark.parametrize("axes", ["YX", "TYX", "TYXC"])
def test_a_program_denoises(tmp_path, axes):
    shape = (4, 24, 20, 3)[: len(axes)] if axes != "YX" else (24, 20)
    noisy = np.random.default_rng(0).normal(100, 20, shape)
    result = run_command(program(tmp_path, HALVE), noisy, 20.0, 1, axes)
    np.testing.assert_allclose(result, noisy.astype(np.float32) / 20, rtol=1e-6)


PROGRAMS = {
    "raises": ("raise SystemExit('no licence')", "ended with status 1: no licence"),
    "writes nothing": ("print('done')", "wrote no file to {out}: done"),
    "writes another size": (
        "tifffile.imwrite(target, tifffile.imread(source)[:-1])",
        r"and wrote \(3, 24, 24",
    ),
    "writes no TIFF": ("open(target, 'w').write('text')", "no TIFF file that can be read"),
    "writes NaN": ("tifffile.imwrite(target, tifffile.imread(source) * float('nan'))", "wrote NaN"),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_a_program_that_fails_is_told_of(tmp_path, case):
    body, sentence = PROGRAMS[case]
    with pytest.raises(ValueError, match=sentence):
        run_command(program(tmp_path, body), movie().astype(float), 20.0, 1, "TYX")


def test_a_program_that_is_missing_is_told_of():
    with pytest.raises(ValueError, match="no-such-tool could not be started: No such file"):
        run_command("no-such-tool {in} {out}", movie().astype(float), 20.0, 1, "TYX")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("tool {out}", "lacks {in}"),
        ("tool {in}", "lacks {out}"),
        ("{in} {out}", "lacks {in}"),
        ("", "lacks {in}"),
        ("tool '{in} {out}", "check its quotes"),
    ],
)
def test_a_command_that_cannot_work_is_refused(command, sentence):
    with pytest.raises(ValueError, match=sentence):
        command_variants([command])


def test_programs_of_one_name_are_shown_with_all_their_words():
    first, second, third = command_variants(["a/t {in} {out}", "b/t {in} {out}", "u {in} {out}"])
    assert (first.label, second.label, third.label) == ("a/t {in} {out}", "b/t {in} {out}", "u")
    assert len({first.hash, second.hash, third.hash}) == 3


@pytest.mark.slow
def test_colour_movies_and_programs_are_measured(cli, colours, tmp_path):
    status, _, err = cli(
        "bench", colours, "--out", tmp_path / "out", "--protocol", "stack", "--sigma", "20", "--workers", "1",
        "--methods", "vnlr:fast", "--peer-command", program(tmp_path, HALVE),
        "--peer-command", "no-such-tool {in} {out}",
    )  # fmt: skip
    assert status == 0
    assert "no-such-tool could not be started" in " ".join(err.split())
    found = json.loads((tmp_path / "out" / "summary.json").read_text())
    means = {label: row["psnr"]["mean"] for label, row in found["cases"][0]["methods"].items()}
    assert means["noisy"] < means["vnlr:fast"]
    assert means[PROGRAM_NAME] < means["noisy"]
    assert [failure["method"] for failure in found["failures"]] == ["no-such-tool"]
    assert (tmp_path / "out" / "report.html").exists()
    status, _, err = cli(
        "bench", colours, "--out", tmp_path / "out", "--protocol", "stack", "--peer-command", "tool {in}"
    )
    assert status == 2
    assert "lacks {out}" in " ".join(err.split())


PROGRAM_NAME = sys.executable.rpartition("/")[2]
