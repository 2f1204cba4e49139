"""The command line: files through a method, one clear line for bad input, no partial output."""

import inspect
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import tifffile
from command_line import Terminal, denoise_halving, halved, noise, prepare
from scipy.ndimage import gaussian_filter

from vnlem import io, registry
from vnlem.cli import main
from vnlem.pipeline.settings import parse_settings, parse_value

# denoise


def test_denoise_writes_the_result_and_says_so_in_one_line(cli, tmp_path):
    image = noise((20, 30))
    io.write(tmp_path / "a.png", image)
    status, out, err = cli(
        "denoise", tmp_path / "a.png", tmp_path / "b.png", "--method", "halving", "--sigma", 9
    )
    assert (status, err) == (0, "")
    assert out.count("\n") == 1
    assert out.startswith("halving, sigma 9 (given), ")
    assert out.endswith(f"s: {tmp_path / 'b.png'}\n")
    assert np.abs(io.read(tmp_path / "b.png").pixels - halved(image)).max() <= 0.51


def test_denoise_estimates_sigma_and_says_so(cli, tmp_path):
    io.write(tmp_path / "a.npy", 100 + 7 * np.random.default_rng(0).standard_normal((128, 128)))
    status, out, _ = cli("denoise", tmp_path / "a.npy", tmp_path / "b.npy", "--method", "halving")
    assert status == 0
    assert "(estimated)" in out
    assert float(out.split("sigma ")[1].split()[0]) == pytest.approx(7, rel=0.1)


def test_denoise_says_that_it_found_no_noise(cli, tmp_path):
    io.write(tmp_path / "a.png", np.full((40, 40), 7, np.uint8))
    arguments = ("denoise", tmp_path / "a.png", tmp_path / "b.png", "--method", "halving", "--overwrite")
    assert cli(*arguments)[1].startswith("halving, no noise found, ")
    assert cli(*arguments, "--sigma", 0)[1].startswith("halving, sigma 0 (given), ")


def test_denoise_says_that_the_rest_may_be_noise(cli, tmp_path):
    rng = np.random.default_rng(5)
    # Like leaves: smooth at fine scales like correlated noise, but of varying strength.
    leaves = gaussian_filter(rng.standard_normal((256, 256)), 1.0)
    strength = np.exp(15 * gaussian_filter(rng.standard_normal((256, 256)), 8))
    io.write(tmp_path / "in.npy", 120 + 150 * leaves * strength / strength.mean())
    call = [
        "denoise",
        str(tmp_path / "in.npy"),
        str(tmp_path / "out.npy"),
        "--profile",
        "fast",
        "--overwrite",
    ]
    assert "--caution strong" in cli(*call)[1]
    assert "--caution" not in cli(*call, "--caution", "safe")[1]
    assert "--caution" not in cli(*call, "--sigma", "3")[1]


def test_quiet_prints_nothing(cli, tmp_path):
    io.write(tmp_path / "a.png", noise((20, 30)))
    arguments = ("denoise", tmp_path / "a.png", tmp_path / "b.png", "--method", "halving", "--quiet")
    assert cli(*arguments) == (0, "", "")
    assert (tmp_path / "b.png").exists()


def test_every_page_is_denoised_on_its_own_and_stays_a_page(cli, tmp_path):
    stack = np.stack([noise((20, 30), "uint16", 100 * k, 100 * k + 90) for k in range(1, 6)])
    tifffile.imwrite(tmp_path / "a.tif", stack, imagej=True, metadata={"axes": "ZYX", "unit": "um"})
    status, out, _ = cli("denoise", tmp_path / "a.tif", tmp_path / "b.tif", "--method", "halving")
    assert status == 0
    assert out.startswith("halving, 5 pages, sigma ")
    with tifffile.TiffFile(tmp_path / "b.tif") as tif:
        result = tif.asarray()
        assert tif.imagej_metadata["unit"] == "um"
    assert result.dtype == np.uint16
    for page, clean in zip(result, stack, strict=True):
        assert np.abs(page - halved(clean)).max() <= 0.51


def test_alpha_and_colour_survive_denoising(cli, tmp_path):
    image = noise((20, 30, 4), "uint16")
    io.write(tmp_path / "a.png", image)
    assert cli("denoise", tmp_path / "a.png", tmp_path / "b.tif", "--method", "halving", "--sigma", 9)[0] == 0
    result = io.read(tmp_path / "b.tif")
    np.testing.assert_array_equal(result.alpha, image[..., 3])
    assert np.abs(result.pixels - halved(image[..., :3])).max() <= 0.51


def test_channels_first_is_colour_when_told_so(cli, tmp_path):
    image = noise((3, 20, 30), "float32")
    io.write(tmp_path / "a.npy", image)
    common = ("denoise", tmp_path / "a.npy", tmp_path / "b.npy", "--method", "halving", "--sigma", 9)
    assert "3 pages" in cli(*common)[1]
    assert "pages" not in cli(*common, "--channels", "first", "--overwrite")[1]
    np.testing.assert_allclose(np.load(tmp_path / "b.npy"), halved(image), rtol=1e-5)


def test_another_file_is_replaced_when_that_is_asked_for(cli, tmp_path):
    io.write(tmp_path / "a.png", noise((20, 30)))
    (tmp_path / "b.png").write_text("old")
    assert (
        cli("denoise", tmp_path / "a.png", tmp_path / "b.png", "--method", "halving", "--overwrite")[0] == 0
    )
    assert io.read(tmp_path / "b.png").page_shape == (20, 30)


def test_warnings_are_single_lines_on_stderr(cli, tmp_path):
    io.write(tmp_path / "a.png", noise((20, 30)))
    io.write(tmp_path / "stack.npy", noise((3, 20, 30)))
    common = ("--method", "halving", "--sigma", "9", "--set", "shape=warn")
    for source, target in (("a.png", "b.png"), ("stack.npy", "c.npy")):
        status, _, err = cli("denoise", tmp_path / source, tmp_path / target, *common)
        assert (status, err) == (0, "vnlem: warning: this is odd\n")


def test_too_large_a_sigma_is_warned_about(cli, tmp_path):
    io.write(tmp_path / "a.png", noise((20, 30)))
    status, _, err = cli(
        "denoise", tmp_path / "a.png", tmp_path / "b.png", "--method", "halving", "--sigma", 900
    )
    assert status == 0
    assert err.count("\n") == 1
    assert err.startswith("vnlem: warning: sigma 900 ")


def test_the_progress_bar_goes_to_a_terminal_on_stderr_and_only_there(cli, tmp_path, monkeypatch):
    io.write(tmp_path / "a.npy", noise((3, 20, 30)))
    monkeypatch.setenv("TERM", "xterm")
    arguments = ("denoise", tmp_path / "a.npy", tmp_path / "b.npy", "--method", "halving", "--overwrite")
    for quiet, shown in (((), True), (("--quiet",), False)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        status, out, _ = cli(*arguments, *quiet)
        assert status == 0
        assert ("denoising a.npy" in terminal.getvalue()) == shown
        assert "%" not in out


def test_progress_over_pages_moves_evenly_from_zero_to_one(halving):
    from vnlem.cli.denoise import denoise_pages

    shares = []
    denoise_pages(io.Picture(noise((3, 20, 30))), 9.0, shares.append, method="halving")
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert max(np.diff([0, *shares])) <= 1 / 12 + 1e-9


# Bad input: one line, status 2, no file


BAD_DENOISE = {
    "missing file": (["no.png", "out.png"], "there is no file"),
    "folder as input": (["folder.png", "out.png"], "is a folder"),
    "truncated": (["cut.png", "out.png"], "it is truncated"),
    "not an image": (["text.png", "out.png"], "not a PNG, JPEG, TIFF, NPY, NIfTI"),
    "1-bit": (["bits.png", "out.png"], "convert it to 8-bit grey"),
    "infinite": (["infinite.npy", "out.npy"], "1 NaN or infinite values, the first at index (3, 4)"),
    "infinite in a page": (["infinite-stack.npy", "out.npy"], "page 2 of 2: the image holds 1 NaN"),
    "complex": (["complex.npy", "out.npy"], "cannot hold complex128 pixels"),
    "empty": (["empty.npy", "out.npy"], "empty"),
    "one dimension": (["line.npy", "out.npy"], "at least 2 dimensions"),
    "smaller than the patch": (["tiny.png", "out.png", "--sigma", "9"], "smaller than the patch"),
    "output folder missing": (["grey.png", "no/out.png"], "there is no folder"),
    "output is a folder": (["grey.png", "folder.png"], "is a folder"),
    "unknown suffix": (["grey.png", "out.bmp"], "choose .png, .jpg"),
    "no suffix": (["grey.png", "out"], "has no suffix"),
    "16 bits in a JPEG": (["deep.png", "out.jpg"], "cannot hold uint16 pixels; choose .png"),
    "floats in a PNG": (["float.npy", "out.png"], "choose .tif, .tiff or .npy"),
    "pages in a PNG": (["stack.npy", "out.png"], "cannot hold 4 pages"),
    "output is input": (["grey.png", "grey.png"], "choose another name"),
    "unknown method": (["grey.png", "out.png", "--method", "median"], "the methods are nlm, nlem"),
    "negative sigma": (["grey.png", "out.png", "--sigma", "-1"], "sigma must be finite and not negative"),
    "infinite sigma": (["grey.png", "out.png", "--sigma", "inf"], "sigma must be finite"),
    "sigma is a word": (["grey.png", "out.png", "--sigma", "big"], "--sigma"),
    "no workers": (["grey.png", "out.png", "--workers", "0"], "workers must be at least 1"),
    "unknown parameter": (
        ["grey.png", "out.png", "--set", "q=3"],
        "no parameter 'q'; it has patch_size, shape",
    ),
    "set without value": (["grey.png", "out.png", "--set", "patch_size"], "--set takes name=value"),
    "no profiles": (["grey.png", "out.png", "--profile", "fast"], "method 'halving' has no profiles"),
    "unknown channels": (["float.npy", "out.npy", "--channels", "red"], "channels must be one of"),
    "unknown option": (["grey.png", "out.png", "--sgima", "3"], "--sgima"),
    "missing argument": (["grey.png"], "OUT"),
}


@pytest.mark.parametrize("case", BAD_DENOISE)
def test_bad_input_to_denoise_is_one_line_and_leaves_no_file(cli, tmp_path, monkeypatch, case):
    arguments, message = BAD_DENOISE[case]
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    method = () if "--method" in arguments else ("--method", "halving")
    status, out, err = cli("denoise", *arguments, *method)
    assert status == 2
    assert out == ""
    assert err.startswith("vnlem: error: ")
    assert err.count("\n") == 1
    assert message in err
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_what_the_output_cannot_hold_is_said_before_the_work(cli, tmp_path, monkeypatch):
    prepare(tmp_path)
    monkeypatch.setattr(sys.modules["command_line"], "solve", lambda job: pytest.fail("worked"))
    assert cli("denoise", tmp_path / "deep.png", tmp_path / "a.jpg", "--method", "halving")[0] == 2


def test_ctrl_c_exits_130_and_leaves_no_file(cli, tmp_path):
    io.write(tmp_path / "a.png", noise((20, 30)))
    arguments = (
        "denoise",
        tmp_path / "a.png",
        tmp_path / "b.png",
        "--method",
        "halving",
        "--set",
        "shape=interrupt",
    )
    status, out, err = cli(*arguments)
    assert (status, out, err.strip()) == (130, "", "vnlem: interrupted")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


SLOW = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # started in the background it would be ignored
from pathlib import Path
from vnlem.cli import main
from vnlem.io import npy
def slow(path, picture):
    Path(path).write_bytes(b"half")
    if not Path(path).name.startswith("."):
        return  # only tried out
    print("writing", flush=True)
    for _ in range(6000):  # short sleeps: one that begins as the signal arrives is not cut short
        time.sleep(0.01)
npy.write = slow
from dataclasses import dataclass
from vnlem import registry
from vnlem.pipeline.method import Method
@dataclass
class Params:
    patch_size: int = 1
def denoise_same(image, sigma=None, *, preset="auto", engine="fast", channel_axis=None): ...
def solve(job):
    return job.pixels
METHOD = Method("same", "__main__:denoise_same", lambda *_, **given: Params(), {"fast": "__main__:solve"})
registry.METHODS["same"] = "__main__:METHOD"
main(["denoise", sys.argv[1], sys.argv[2], "--method", "same"])
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGINT")
def test_a_real_ctrl_c_in_the_middle_of_writing_leaves_nothing(tmp_path):
    io.write(tmp_path / "a.npy", noise((20, 30)))
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, tmp_path / "a.npy", tmp_path / "b.npy"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "writing\n"
    assert len(list(tmp_path.iterdir())) == 2
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err.strip()) == (130, "vnlem: interrupted")
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_a_fault_of_the_program_keeps_its_traceback(cli, tmp_path, monkeypatch):
    io.write(tmp_path / "a.png", noise((20, 30)))
    monkeypatch.setattr(sys.modules["command_line"], "solve", lambda job: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["denoise", str(tmp_path / "a.png"), str(tmp_path / "b.png"), "--method", "halving"])


def test_the_debug_variable_shows_where_an_error_came_from(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("VNLEM_DEBUG", "1")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        main(["denoise", str(tmp_path / "no.png"), str(tmp_path / "b.png"), "--method", "halving"])


# --set


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-3", -3),
        ("0.5", 0.5),
        ("1e-3", 0.001),
        ("true", True),
        ("No", False),
        ("none", None),
        ("disc", "disc"),
    ],
)
def test_set_reads_numbers_truth_values_and_words(text, value):
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


def test_set_refuses_a_name_given_twice():
    with pytest.raises(ValueError, match="twice"):
        parse_settings(["patch_size=3", "patch-size=5"], denoise_halving, "halving")


@pytest.mark.parametrize("method", list(registry.METHODS))
def test_every_method_names_its_parameters(method):
    function = registry.find_function(method)
    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    with pytest.raises(
        ValueError, match=rf"method '{method}' has no parameter 'nonsense'; it has .*patch_size"
    ):
        parse_settings(["nonsense=1"], function, method)


# Real methods


def test_a_16_bit_tiff_stays_one_and_gets_closer_to_the_truth_with_nlem(cli, tmp_path):
    rows, columns = np.mgrid[:48, :56]
    clean = 20_000 + 8_000 * np.sin(rows / 5) * np.cos(columns / 7)
    noisy = clean + np.random.default_rng(0).normal(0, 2_000, clean.shape)
    tifffile.imwrite(
        tmp_path / "noisy.tif", noisy.astype(np.uint16), resolution=(5, 5), metadata={"axes": "YX"}
    )
    status, out, _ = cli("denoise", tmp_path / "noisy.tif", tmp_path / "out.tif", "--method", "nlem")
    assert status == 0
    assert out.startswith("nlem, sigma ")
    result = tifffile.imread(tmp_path / "out.tif")
    assert result.dtype == np.uint16
    assert result.shape == clean.shape
    assert np.std(result - clean) < 0.7 * np.std(noisy - clean)
