"""Limits of a format or a folder are reported before the work; missing files of a set, when read."""

import errno
import os
import signal
import subprocess
import sys
import time
import types
import zlib

import imagecodecs
import numpy as np
import pytest
import tifffile
from command_line import noise
from pictures import COLOUR, GREY, random_array
from PIL import Image

from vnlem import io
from vnlem.pipeline.progress import progress_bar

# OME-TIFF


def test_pages_without_a_name_become_an_axis_of_ome(tmp_path):
    pages = [Image.fromarray(random_array(GREY)) for _ in range(3)]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    io.write(tmp_path / "a.ome.tif", io.read(tmp_path / "a.tif"))
    with tifffile.TiffFile(tmp_path / "a.ome.tif") as tif:
        assert tif.is_ome
        assert tif.series[0].axes == "ZYX"


@pytest.mark.parametrize("shape", [(2, 20, 30), (2, 3, 20, 30), (2, 3, 4, 20, 30)])
def test_unnamed_axes_of_tiff_files_fit_ome(tmp_path, shape):
    tifffile.imwrite(tmp_path / "a.tif", random_array(shape), photometric="minisblack")
    io.write(tmp_path / "a.ome.tif", io.read(tmp_path / "a.tif", "none"))
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "a.ome.tif").reshape(shape), random_array(shape))


@pytest.mark.parametrize("dtype", ["float16", "int64", "uint64"])
def test_types_that_ome_has_no_name_for_are_refused_before_the_work(cli, tmp_path, dtype):
    io.write(tmp_path / "a.npy", noise(GREY, dtype))
    options = (
        "--method",
        "halving",
        "--sigma",
        10,
        "--set",
        "shape=interrupt",
    )  # the work itself would report it
    code, _, err = cli("denoise", tmp_path / "a.npy", tmp_path / "b.ome.tif", *options)
    assert code == 2
    assert f"a .ome.tif file cannot hold {dtype} pixels; choose .tif, .tiff or .npy" in err


def test_more_axes_than_ome_has_are_refused_before_the_work(tmp_path):
    picture = io.Picture(random_array((2, 1, 2, 2, 20, 30)))
    with pytest.raises(ValueError, match=r"a \.ome\.tif file cannot hold 4 axes of pages; choose \.tif"):
        io.check_writable(tmp_path / "a.ome.tif", picture)


@pytest.mark.parametrize("target", ["b.tif", "b.ome.tif", "b.png", "b.npy"])
def test_a_resolution_of_zero_over_zero_counts_as_none(tmp_path, target):
    tifffile.imwrite(tmp_path / "a.tif", random_array(GREY), resolution=(72, 72))
    with tifffile.TiffFile(tmp_path / "a.tif", mode="r+") as tif:
        for name in ("XResolution", "YResolution"):
            tif.pages[0].tags[name].overwrite((0, 0))
    picture = io.read(tmp_path / "a.tif")
    assert picture.metadata.resolution is None
    io.write(tmp_path / target, picture)
    np.testing.assert_array_equal(io.read(tmp_path / target).pixels, random_array(GREY))


def test_a_rewritten_ome_file_points_at_its_own_pages(tmp_path):
    tifffile.imwrite(tmp_path / "noisy.ome.tif", random_array((3, 20, 30)), metadata={"axes": "ZYX"})
    xml = tifffile.tiffcomment(tmp_path / "noisy.ome.tif")
    own = xml.partition('UUID="')[2].partition('"')[0]
    named = f'IFD="0" PlaneCount="3"><UUID FileName="noisy.ome.tif">{own}</UUID></TiffData>'
    xml = xml.replace('IFD="0" PlaneCount="3"/>', named)
    assert named in xml
    tifffile.tiffcomment(tmp_path / "noisy.ome.tif", xml.encode())
    io.write(tmp_path / "out.ome.tif", io.read(tmp_path / "noisy.ome.tif").map(lambda page: page // 2))
    written = tifffile.tiffcomment(tmp_path / "out.ome.tif")
    assert "UUID" not in written
    assert "noisy.ome.tif" not in written
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "out.ome.tif"), random_array((3, 20, 30)) // 2)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../b.ome.tif", "outside its folder"),
        ("/b.ome.tif", "outside its folder"),
        ("c/../../b.ome.tif", "outside its folder"),
        ("b.ome.tif", "not in its folder"),
    ],
)
def test_sets_that_reach_out_of_their_folder_or_lack_a_member_are_refused(tmp_path, name, reason):
    folder = tmp_path / "set"
    folder.mkdir()
    tifffile.imwrite(tmp_path / "b.ome.tif", random_array((3, 20, 30)), metadata={"axes": "ZYX"})
    tifffile.imwrite(folder / "a.ome.tif", random_array((3, 20, 30)), metadata={"axes": "ZYX"})
    xml = tifffile.tiffcomment(folder / "a.ome.tif")
    other = f'IFD="0" PlaneCount="3"><UUID FileName="{name}">urn:uuid:other</UUID></TiffData>'
    tifffile.tiffcomment(folder / "a.ome.tif", xml.replace('IFD="0" PlaneCount="3"/>', other).encode())
    with pytest.raises(ValueError, match=f"OME metadata name .*{reason}"):
        io.read(folder / "a.ome.tif")


# Other limits


def test_metadata_that_a_format_cannot_take_are_told_before_the_work(tmp_path):
    metadata = io.Metadata("png", exif=b"MM\x00*\x00\x00\x00\x08" + bytes(100_000))
    with pytest.raises(ValueError, match=r"a \.jpg file cannot hold what the image file says about itself"):
        io.check_writable(tmp_path / "a.jpg", io.Picture(random_array(GREY), metadata=metadata))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
@pytest.mark.parametrize("limit", [100, 400])  # an error and a warning of Pillow's
def test_pictures_beyond_pillows_limit_are_read(tmp_path, monkeypatch, suffix, limit):
    io.write(tmp_path / f"a{suffix}", random_array(COLOUR))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    assert io.read(tmp_path / f"a{suffix}").pixels.shape == COLOUR
    assert limit == Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize("name", ["a.npy", "a.tif", "a.png", "a.ome.tif"])
def test_a_full_disk_is_told_in_a_sentence_and_leaves_nothing(tmp_path, name):
    program = (
        "import resource, sys, numpy as np; from vnlem import io\n"
        "image = np.random.default_rng(0).integers(0, 9e4, (300, 300)).astype(np.uint16)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "try: io.write(sys.argv[1], image)\nexcept OSError as error: print(error.errno, error.strerror)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, tmp_path / name], capture_output=True, text=True, check=True
    )
    assert f"cannot write {tmp_path / name} (" in found.stdout, found.stderr
    assert "make room or choose another folder" in found.stdout
    assert int(found.stdout.split()[0]) in (errno.EFBIG, errno.EIO)
    assert list(tmp_path.iterdir()) == []


def test_a_write_protected_file_is_not_replaced(cli, tmp_path):
    io.write(tmp_path / "a.png", noise(GREY))
    io.write(tmp_path / "b.png", noise(GREY))
    (tmp_path / "b.png").chmod(0o444)
    before = (tmp_path / "b.png").read_bytes()
    options = ("--method", "halving", "--sigma", 10, "--overwrite")
    code, _, err = cli("denoise", tmp_path / "a.png", tmp_path / "b.png", *options)
    assert code == 2
    assert "b.png is write-protected" in err
    assert (tmp_path / "b.png").read_bytes() == before


def test_two_pictures_of_a_pattern_are_not_taken_for_in_and_out(cli, tmp_path):
    for name in ("a.png", "b.png"):
        io.write(tmp_path / name, noise(GREY))
    before = (tmp_path / "b.png").read_bytes()
    code, _, err = cli("denoise", tmp_path / "a.png", tmp_path / "b.png", "--method", "halving")
    assert code == 2
    assert "OUT exists" in err
    assert "--overwrite" in err
    assert (tmp_path / "b.png").read_bytes() == before


@pytest.mark.parametrize("damage", ["rows", "stream", "filter"])
def test_what_libpng_thinks_of_a_damaged_file_stays_off_stderr(tmp_path, capfd, damage):
    image = random_array((20, 30, 3), "uint16")
    data = imagecodecs.png_encode(image)
    rows = b"".join(b"\x00" + row.astype(">u2").tobytes() for row in image)
    if damage == "rows":
        packed = zlib.compress(rows[:-500])
    elif damage == "filter":
        packed = zlib.compress(b"\x09" + rows[1:])
    else:
        packed = zlib.compress(rows)[:-300]
    header, end = data[:33], data[-12:]
    chunk = b"IDAT" + packed
    body = len(packed).to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big")
    (tmp_path / "a.png").write_bytes(header + body + end)
    with pytest.raises(ValueError, match="it is damaged"):
        io.read(tmp_path / "a.png")
    assert capfd.readouterr().err == ""


def test_interlaced_files_of_16_bits_are_read(tmp_path):
    image = random_array((21, 13), "uint16")
    _write_interlaced(tmp_path / "a.png", image)
    np.testing.assert_array_equal(io.read(tmp_path / "a.png").pixels, image)


def _write_interlaced(path, image):
    """A 16-bit grey PNG file in Adam7 order."""
    passes = (
        (0, 0, 8, 8),
        (4, 0, 8, 8),
        (0, 4, 4, 8),
        (2, 0, 4, 4),
        (0, 2, 2, 4),
        (1, 0, 2, 2),
        (0, 1, 1, 2),
    )
    rows = b""
    for left, top, step_x, step_y in passes:
        part = image[top::step_y, left::step_x]
        rows += b"".join(b"\x00" + row.astype(">u2").tobytes() for row in part if row.size)
    height, width = image.shape
    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([16, 0, 0, 0, 1])
    content = b"\x89PNG\r\n\x1a\n"
    for name, data in ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
        content += len(data).to_bytes(4, "big") + name + data + zlib.crc32(name + data).to_bytes(4, "big")
    path.write_bytes(content)


# The process ends


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM to catch")
def test_sigterm_leaves_no_temporary_file(tmp_path):
    io.write(tmp_path / "a.npy", noise(GREY))
    program = (
        "import sys, time\nfrom vnlem.cli import main\nfrom vnlem.io import npy\n"
        "def write(path, picture):\n"
        "    path.write_bytes(b'half')\n"
        "    if path.name.startswith('.'):\n        time.sleep(60)\n"
        "npy.write = write\nmain(sys.argv[1:])"
    )
    command = [sys.executable, "-c", program, "denoise", "a.npy", "b.npy", "--sigma", "0", "--quiet"]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not any(path.name.startswith(".") for path in tmp_path.iterdir()):
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 143
    assert err == "vnlem: terminated\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_a_notebook_is_shown_progress_without_a_terminal(monkeypatch, capsys):
    kernel = types.SimpleNamespace(kernel=object())
    shown, updates = [], []
    bar = types.SimpleNamespace(update=updates.append)
    display = types.SimpleNamespace(HTML=str, display=lambda html, display_id: shown.append(html) or bar)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: kernel))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr("vnlem.pipeline.progress._SECONDS_PER_UPDATE", 0.0)
    with progress_bar("vnlr") as report:
        for share in (0.0, 0.25, 1.0):
            report(share)
    assert len(shown) == 1
    assert "vnlr: 25 %" in shown[0]
    assert "vnlr: done in" in updates[-1]
    with progress_bar("vnlr", quiet=True) as report:
        report(0.5)
    assert len(shown) == 1
    assert capsys.readouterr().err == ""


def test_lines_of_progress_are_printed_where_they_are_asked_for(monkeypatch, capsys):
    monkeypatch.setattr("vnlem.pipeline.progress._SECONDS_PER_LINE", 0.0)
    for asked, quiet, expected in ((True, False, 1), (False, False, 0), (True, True, 0)):
        with progress_bar("bench", lines=asked, quiet=quiet) as report:
            report(0.5)
        assert capsys.readouterr().err.count("bench: 50 %, ") == expected
