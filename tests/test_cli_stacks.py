"""`vnlem denoise` on whole stacks: axes from the file or from --axes."""

import numpy as np
import pytest
import tifffile

import vnlem


def movie(n_frames=4, size=24):
    rng = np.random.default_rng(0)
    x = np.arange(size)[None, :]
    frames = [100 + 50 * np.sin((x + t) / 3) + rng.normal(0, 15, (size, size)) for t in range(n_frames)]
    return np.clip(frames, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("layout", ["imagej", "ome", "plain"])
def test_a_movie_in_a_file_is_denoised_as_a_movie(cli, tmp_path, layout):
    stack = movie()
    source, target = tmp_path / "in.tif", tmp_path / ("out.ome.tif" if layout == "ome" else "out.tif")
    options = {"imagej": layout == "imagej", "ome": layout == "ome"}
    tifffile.imwrite(source, stack, metadata={"axes": "TYX"}, photometric="minisblack", **options)
    cli("denoise", source, target, "--sigma", "15", "--profile", "fast", "--quiet")
    expected = vnlem.denoise(stack, 15, axes="TYX", profile="fast")
    np.testing.assert_array_equal(tifffile.imread(target), expected)


def test_axes_can_be_named_on_the_command_line(cli, tmp_path):
    stack = movie()
    np.save(tmp_path / "in.npy", stack)
    arguments = (
        "--axes",
        "ZYX",
        "--sigma",
        "15",
        "--profile",
        "fast",
        "--set",
        "plane_distance=1",
        "--quiet",
    )
    cli("denoise", tmp_path / "in.npy", tmp_path / "out.npy", *arguments)
    expected = vnlem.denoise(stack, 15, axes="ZYX", profile="fast", plane_distance=1)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


def test_axes_that_do_not_fit_end_in_one_line_and_no_file(cli, tmp_path):
    np.save(tmp_path / "in.npy", movie())
    status, _, err = cli(
        "denoise", tmp_path / "in.npy", tmp_path / "out.npy", "--axes", "TZYX", "--sigma", "15"
    )
    assert status == 2
    assert "names 4 axes, but the array has 3" in " ".join(err.split())
    assert not (tmp_path / "out.npy").exists()
