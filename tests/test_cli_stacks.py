"""`vnlem denoise` on whole stacks: axes from the file or from --axes."""

import tracemalloc

import numpy as np
import pytest
import tifffile

import vnlem
from vnlem import io


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


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_colour_movie_in_a_file_is_denoised_as_a_movie(cli, tmp_path, in_parts):
    stack = movie()[..., None] * np.array([1.0, 0.7, 0.5])
    stack = np.clip(stack + np.random.default_rng(1).normal(0, 10, stack.shape), 0, 255).astype(np.uint8)
    source, target = tmp_path / "in.tif", tmp_path / "out.tif"
    tifffile.imwrite(source, stack, metadata={"axes": "TYXS"}, photometric="rgb", imagej=True)
    options = ("--memory", "1GB") if in_parts else ()
    arguments = ("--sigma", "15", "--profile", "fast", "--quiet", *options)
    assert cli("denoise", source, target, *arguments) == (0, "", "")
    expected, info = vnlem.denoise(stack, 15, axes="TYXC", profile="fast", return_info=True)
    assert info.details["channels"] == "joint"
    np.testing.assert_array_equal(tifffile.imread(target), expected)
    apart = tmp_path / "apart.tif"
    assert cli("denoise", source, apart, *arguments, "--set", "channels=separate")[0] == 0
    assert not np.array_equal(tifffile.imread(apart), expected)


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


@pytest.mark.parametrize(
    ("axes", "words"), [("TZYX", "names 4 axes, but the array has 3"), ("TYC", "names no X")]
)
def test_axes_that_do_not_fit_end_in_one_line_and_no_file(cli, tmp_path, axes, words):
    np.save(tmp_path / "in.npy", movie())
    status, _, err = cli(
        "denoise", tmp_path / "in.npy", tmp_path / "out.npy", "--axes", axes, "--sigma", "15"
    )
    assert status == 2
    assert words in " ".join(err.split())
    assert not (tmp_path / "out.npy").exists()


def written(path, stack, layout, **options):
    """A stack as a file of one of the layouts that programs write."""
    axes = "TZCYX"[: stack.ndim - 2] + "YX" if stack.ndim > 3 else "TYX"
    flags = {"imagej": layout == "imagej", "ome": layout == "ome"}
    tifffile.imwrite(path, stack, metadata={"axes": axes}, photometric="minisblack", **flags, **options)


LAYOUTS = {
    "imagej": ("imagej", {}),
    "ome": ("ome", {}),
    "plain": ("plain", {}),
    "big-endian": ("plain", {"byteorder": ">"}),
    "compressed": ("ome", {"compression": "zlib", "predictor": True}),
    "tiles": ("plain", {"tile": (16, 16)}),
    "bigtiff": ("plain", {"bigtiff": True}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(5, 40, 30), (3, 2, 2, 30, 20)], ids=["movie", "five axes"])
def test_page_by_page_through_the_disk_gives_the_file_that_memory_gives(tmp_path, layout, shape):
    kind, options = LAYOUTS[layout]
    stack = np.random.default_rng(0).integers(0, 60000, shape).astype(np.uint16)
    written(tmp_path / "in.tif", stack, kind, **options)
    whole = io.read(tmp_path / "in.tif")
    with io.open_pages(tmp_path / "in.tif") as opened:
        assert opened.picture.metadata.axes == whole.metadata.axes
        np.testing.assert_array_equal(np.stack(list(opened.pages)).reshape(shape), stack)
        io.write_pages(tmp_path / "pages.tif", opened.picture, opened.pages)
    io.write(tmp_path / "whole.tif", whole)
    assert (tmp_path / "pages.tif").read_bytes() == (tmp_path / "whole.tif").read_bytes()


def test_files_that_are_no_stack_of_grey_pages_are_read_whole(tmp_path):
    tifffile.imwrite(tmp_path / "one.tif", np.zeros((8, 9), np.uint8))
    tifffile.imwrite(tmp_path / "rgb.tif", np.zeros((4, 8, 9, 3), np.uint8), photometric="rgb")
    io.write(tmp_path / "stack.npy", np.zeros((4, 8, 9), np.uint8))
    for name in ("one.tif", "rgb.tif", "stack.npy"):
        with io.open_pages(tmp_path / name) as opened:
            assert opened is None


@pytest.mark.parametrize("axes", ["TCYX", "TYX", None], ids=["channels", "movie", "pages that stand alone"])
def test_channels_and_frames_of_a_file_come_out_where_they_were(cli, tmp_path, axes):
    stack = movie(6) if axes != "TCYX" else movie(6).reshape(3, 2, 24, 24)
    tifffile.imwrite(
        tmp_path / "in.tif", stack, metadata={"axes": axes} if axes else None, photometric="minisblack"
    )
    cli("denoise", tmp_path / "in.tif", tmp_path / "out.tif", "--sigma", "15", "--profile", "fast")
    if axes:
        expected = vnlem.denoise(stack, 15, axes=axes, profile="fast")
    else:
        expected = np.stack([vnlem.denoise(page, 15, profile="fast") for page in stack])
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "out.tif").reshape(stack.shape), expected)


@pytest.mark.parametrize(
    "sigma", [("--sigma", 15), pytest.param((), marks=pytest.mark.slow)], ids=["given", "estimated"]
)
def test_memory_does_not_grow_with_the_number_of_frames(cli, tmp_path, sigma):
    peaks = []
    for n_frames in (8, 16, 160):
        source, target = tmp_path / f"{n_frames}.tif", tmp_path / f"out{n_frames}.tif"
        tifffile.imwrite(source, np.tile(movie(4, 128), (n_frames // 4, 1, 1)), metadata={"axes": "TYX"})
        if n_frames > 8:  # the first call imports
            tracemalloc.start()
        status, _, err = cli("denoise", source, target, "--method", "halving", *sigma)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (status, err) == (0, "")
    of_the_frames = 144 * 128 * 128
    assert peaks[2] - peaks[1] < of_the_frames / 4


@pytest.mark.parametrize("way", ["cancelled", "a frame of NaN"])
def test_what_ends_early_leaves_nothing(cli, tmp_path, monkeypatch, way):
    stack = movie(6).astype(np.float32)
    if way == "a frame of NaN":
        stack[4] = np.nan
    tifffile.imwrite(tmp_path / "in.tif", stack, metadata={"axes": "TYX"}, photometric="minisblack")
    if way == "cancelled":

        def stop(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(io.ScratchPages, "put", stop)
    status, _, err = cli(
        "denoise", tmp_path / "in.tif", tmp_path / "out.tif", "--sigma", "15", "--profile", "fast"
    )
    assert status == (130 if way == "cancelled" else 2)
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["in.tif"]


def test_a_full_disk_is_told_in_one_sentence(tmp_path, monkeypatch):
    class Full:
        def seek(self, place):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: Full())
    pages = io.ScratchPages(tmp_path / "out.tif", (2, 4, 4), np.dtype("uint8"))
    with pytest.raises(OSError, match=r"No space left.*make room or choose another folder"):
        pages[1, :, :] = np.zeros((4, 4))


def test_only_whole_pages_are_had_from_the_disk(tmp_path):
    pages = io.ScratchPages(tmp_path / "out.tif", (2, 4, 4), np.dtype("uint8"))
    with pages, pytest.raises(IndexError, match="only whole pages"):
        pages[1, :2, :]


def test_pages_that_do_not_fit_in_memory_together_are_told_before_the_work(cli, tmp_path, monkeypatch):
    monkeypatch.setattr("vnlem.large.memory.free_memory", lambda: 2**19)
    tifffile.imwrite(tmp_path / "in.tif", movie(), metadata={"axes": "TYX"}, photometric="minisblack")
    arguments = (tmp_path / "in.tif", tmp_path / "out.tif", "--sigma", "15", "--profile", "fast")
    status, _, err = cli("denoise", *arguments)
    assert status == 2
    assert "24x24 that help each other take about 1.21 MB, and 512 KB are free" in " ".join(err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["in.tif"]
    assert cli("denoise", *arguments, "--page-by-page")[0] == 0


def test_pages_are_counted_along_the_axes_that_are_named(cli, tmp_path):
    np.save(tmp_path / "in.npy", np.random.default_rng(0).normal(100, 10, (20, 22, 5)))
    options = ("--axes", "YXT", "--method", "nlm", "--sigma", "8")
    status, out, _ = cli("denoise", tmp_path / "in.npy", tmp_path / "out.npy", *options)
    assert status == 0
    assert out.startswith("nlm, 5 pages, sigma 8 (given)")


@pytest.mark.slow
def test_impulses_in_one_channel_are_replaced_as_the_library_does(cli, tmp_path):
    rng = np.random.default_rng(0)
    step = np.where(np.arange(64) < 32, 100, 160)
    dim, bright = (step + rng.normal(0, 5, (4, 64, 64)) for _ in range(2))
    dim[:, *rng.integers(1, 63, (2, 40))] = 250
    stack = np.stack([dim, 20 * bright], axis=1).round().astype(np.uint16)
    tifffile.imwrite(tmp_path / "in.ome.tif", stack, metadata={"axes": "TCYX"}, photometric="minisblack")
    assert (
        cli("denoise", tmp_path / "in.ome.tif", tmp_path / "out.ome.tif", "--method", "nlm", "--quiet")[0]
        == 0
    )
    expected, info = vnlem.denoise(stack, axes="TCYX", method="nlm", return_info=True)
    assert info.details["impulses"] > 100
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "out.ome.tif"), expected)
