"""``vnlem denoise FOLDER OUT --pattern``: no partial files, and a damaged one does not affect others."""

import csv

import numpy as np
import pytest
from microscope_files import czi_stack, write_czi
from pictures import random_array

from vnlem import io

HALVING = ("--method", "halving", "--sigma", 5)


@pytest.fixture
def folder(tmp_path):
    """Pictures, one of them damaged, and one in a folder below."""
    source = tmp_path / "in"
    (source / "below").mkdir(parents=True)
    for name in ("a.png", "b.png", "d.png", "below/e.png"):
        io.write(source / name, random_array((20, 30)))
    (source / "c.png").write_bytes((source / "a.png").read_bytes()[:100])
    (source / "notes.txt").write_text("hello")
    return source


def table(out):
    with open(out / "vnlem.csv", newline="", encoding="utf-8") as stream:
        return {row["file"]: row for row in csv.DictReader(stream)}


def names(out):
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())


def test_a_damaged_file_costs_one_line_and_no_other_file(cli, folder, tmp_path):
    out = tmp_path / "out"
    status, said, err = cli("denoise", folder, out, "--pattern", "*.png", *HALVING)
    assert status == 2
    assert names(out) == ["a.png", "b.png", "d.png", "vnlem.csv", "vnlem.json"]
    assert [line.split(":")[0] for line in said.splitlines()] == ["a.png", "b.png", "d.png"]
    failed, summary = err.splitlines()
    assert failed.startswith("vnlem: c.png failed: cannot read ")
    assert summary.startswith("vnlem: error: 1 of 4 images could not be denoised, the others are in ")
    rows = table(out)
    assert [row["status"] for row in rows.values()] == ["done", "done", "failed", "done"]
    assert rows["a.png"]["found"].startswith("halving, sigma 5 (given)")
    assert rows["c.png"]["message"].startswith("cannot read ")
    np.testing.assert_array_equal(io.read(out / "a.png").pixels, io.read(out / "d.png").pixels)
    assert io.read(out / "a.png").pixels.std() < 0.6 * random_array((20, 30)).std()


def test_folders_below_keep_their_place(cli, folder, tmp_path):
    (folder / "c.png").unlink()
    status, said, err = cli("denoise", folder, tmp_path / "out", "--pattern", "**/*.png", *HALVING)
    assert (status, err) == (0, "")
    assert "below/e.png" in names(tmp_path / "out")
    assert said.splitlines()[-1] == f"4 images of 4 files: {tmp_path / 'out' / 'vnlem.csv'}"


def test_out_may_lie_in_the_folder(cli, folder, monkeypatch):
    (folder / "c.png").unlink()
    monkeypatch.chdir(folder)
    for _ in range(2):
        assert cli("denoise", ".", folder / "out", "--pattern", "**/*.png", "--overwrite", *HALVING)[0] == 0
    assert names(folder / "out") == ["a.png", "b.png", "below/e.png", "d.png", "vnlem.csv", "vnlem.json"]


def test_a_run_is_continued_where_it_stopped(cli, folder, tmp_path):
    out = tmp_path / "out"
    assert cli("denoise", folder, out, "--pattern", "*.png", *HALVING)[0] == 2
    before = {name: (out / name).stat().st_mtime_ns for name in ("a.png", "b.png", "d.png")}
    found = table(out)["a.png"]["found"]
    io.write(folder / "c.png", random_array((20, 30)))
    (out / "b.png").unlink()
    status, said, err = cli("denoise", folder, out, "--pattern", "*.png", "--resume", *HALVING)
    assert (status, err) == (0, "")
    assert names(out) == ["a.png", "b.png", "c.png", "d.png", "vnlem.csv", "vnlem.json"]
    after = {name: (out / name).stat().st_mtime_ns for name in before}
    assert [name for name in before if before[name] != after[name]] == ["b.png"]
    assert [row["status"] for row in table(out).values()] == ["done"] * 4
    assert table(out)["a.png"]["found"] == found
    assert len(said.splitlines()) == 5


def test_other_settings_are_not_mixed(cli, folder, tmp_path):
    assert cli("denoise", folder, tmp_path / "out", "--pattern", "a*.png", *HALVING)[0] == 0
    again = ("denoise", folder, tmp_path / "out", "--pattern", "*.png")
    assert "was begun before; continue with --resume" in cli(*again, *HALVING)[2]
    err = cli(*again, "--resume", "--method", "halving", "--sigma", 6)[2]
    assert "was begun with other options (sigma was 5.0 and is 6.0)" in err
    (folder / "c.png").unlink()
    assert cli(*again, "--overwrite", "--method", "halving", "--sigma", 6)[0] == 0
    assert table(tmp_path / "out")["a.png"]["found"].startswith("halving, sigma 6")


def test_an_interrupt_keeps_what_is_done(cli, folder, tmp_path, monkeypatch):
    from vnlem.cli import denoise as module

    real, calls = module.denoise_pages, []

    def stop_at_the_second(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(module, "denoise_pages", stop_at_the_second)
    out = tmp_path / "out"
    assert cli("denoise", folder, out, "--pattern", "*.png", *HALVING)[0] == 130
    assert names(out) == ["a.png", "vnlem.csv", "vnlem.json"]
    assert list(table(out)) == ["a.png"]


def test_every_image_of_a_file_becomes_a_file(cli, tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    blocks = [({"X": 0, "Y": 0, "S": k}, random_array((16 + k, 24))) for k in range(2)]
    write_czi(source / "two.czi", blocks)
    czi_stack(source / "one.czi", random_array((3, 20, 30)), "ZYX")
    status, _, err = cli("denoise", source, tmp_path / "out", "--pattern", "*.czi", *HALVING)
    assert (status, err) == (0, "")
    outputs = ["one.ome.tif", "two.1.ome.tif", "two.2.ome.tif"]
    assert [name for name in names(tmp_path / "out") if name.endswith("tif")] == outputs
    assert io.read(tmp_path / "out" / "two.2.ome.tif").pixels.shape == (17, 24)
    with open(tmp_path / "out" / "vnlem.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["image"], row["shape"], row["axes"]) for row in rows] == [
        ("1", "3x20x30", "ZYX"),
        ("left", "16x24", "YX"),
        ("right", "17x24", "YX"),
    ]


def test_another_suffix_and_two_files_of_one_name(cli, tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    io.write(source / "a.png", random_array((20, 30)))
    io.write(source / "a.jpg", random_array((20, 30)))
    status, _, err = cli("denoise", source, tmp_path / "out", "--pattern", "a.*", "--to", ".tif", *HALVING)
    assert status == 2
    assert "a.png failed: a.jpg is written to a.tif already; choose another suffix with --to" in err
    assert io.read(tmp_path / "out" / "a.tif").metadata.format == "tiff"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("in", "out", "--pattern", "*.tif"), "no file in in matches '*.tif'"),
        (
            ("in/a.png", "out", "--pattern", "*.png"),
            "--pattern is for the files of a folder, and in/a.png is none",
        ),
        (("in", "in", "--pattern", "*.png"), "OUT is IN (in); choose another folder"),
        (("in", "in/a.png", "--pattern", "*.png"), "OUT (in/a.png) must be a folder"),
        (("in", "no/out", "--pattern", "*.png"), "there is no folder no; create it first"),
        (("in", "out", "--pattern", "/x"), "--pattern '/x' is not a valid pattern"),
        (
            ("in", "out", "--pattern", "*.png", "--to", "tif"),
            "--to must be a suffix such as .ome.tif, got 'tif'",
        ),
        (("in", "out", "--pattern", "*.png", "--dry-run"), "--dry-run is for a single file"),
        (("in", "out", "--pattern", "*.png", "--resume", "--overwrite"), "choose one of them"),
        (("in", "out.png"), "in is a folder; name an image file, or denoise its files with --pattern"),
        (("in/a.png", "out.png", "--to", ".tif"), "--to is for the files of a folder"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(cli, folder, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    before = names(tmp_path)
    status, out, err = cli("denoise", *arguments, *HALVING)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
    assert names(tmp_path) == before


def test_zarr_stores_are_continued_too(cli, tmp_path):
    zarr = pytest.importorskip("zarr")
    source = tmp_path / "in"
    source.mkdir()
    for name in ("a.zarr", "b.zarr"):
        zarr.save_array(source / name, random_array((40, 50), "uint16"))
    options = ("--pattern", "*.zarr", "--method", "nlm", "--sigma", 100)
    assert cli("denoise", source, tmp_path / "out", *options)[0] == 0
    status, said, _ = cli("denoise", source, tmp_path / "out", *options, "--resume")
    assert status == 0
    assert "0 of 1 units" in said.splitlines()[0]


def noisy_folder(folder, levels, shape=(96, 96)):
    folder.mkdir()
    ramp = np.tile(np.linspace(50, 200, shape[1]), (shape[0], 1))
    for number, sigma in enumerate(levels):
        noise = np.random.default_rng(number).normal(0, sigma, shape)
        io.write(folder / f"{number}.tif", (ramp + noise).astype(np.float32))


def test_images_of_one_detector_share_a_noise_model(cli, tmp_path):
    noisy_folder(tmp_path / "in", (4.0, 4.0, 16.0))
    io.write(tmp_path / "in" / "other.tif", np.random.default_rng(9).normal(100, 30, (64, 64)))
    out = tmp_path / "out"
    arguments = ("--pattern", "*.tif", "--one-noise-model", "--method", "nlm")
    status, said, err = cli("denoise", tmp_path / "in", out, *arguments)
    assert (status, err) == (0, "")
    assert "noise model: " in said
    assert "of 3 images (vnlem-noise-1.json)" in said
    rows = table(out)
    shared = [rows[f"{number}.tif"]["noise_model"] for number in range(3)]
    assert len(set(shared)) == 1
    assert "of 1 images (vnlem-noise-2.json)" in rows["other.tif"]["noise_model"]
    assert [row["status"] for row in rows.values()] == ["done"] * 4
    before = (out / "vnlem-noise-1.json").read_bytes()
    (out / "1.tif").unlink()
    (tmp_path / "in" / "0.tif").unlink()
    assert cli("denoise", tmp_path / "in", out, *arguments, "--resume")[0] == 0
    assert (out / "vnlem-noise-1.json").read_bytes() == before
    assert table(out)["1.tif"]["status"] == "done"


def test_files_that_say_different_exposures_share_no_noise_model(cli, tmp_path):
    fits = pytest.importorskip("astropy.io.fits")
    (tmp_path / "in").mkdir()
    for number, seconds in enumerate((10, 10, 60)):
        pixels = np.random.default_rng(number).normal(100, 5, (64, 64)).astype(np.float32)
        header = fits.Header({"EXPTIME": seconds})
        fits.PrimaryHDU(pixels, header).writeto(tmp_path / "in" / f"{number}.fits")
    out = tmp_path / "out"
    arguments = ("--pattern", "*.fits", "--one-noise-model", "--method", "nlm")
    assert cli("denoise", tmp_path / "in", out, *arguments)[0] == 0
    rows = table(out)
    assert rows["0.fits"]["noise_model"] == rows["1.fits"]["noise_model"]
    assert "vnlem-noise-1" in rows["1.fits"]["noise_model"]
    assert "vnlem-noise-2" in rows["2.fits"]["noise_model"]


def test_one_noise_model_excludes_noise_that_is_given(cli, tmp_path, folder):
    arguments = ("--pattern", "*.png", "--one-noise-model")
    status, _, err = cli("denoise", folder, tmp_path / "out", *arguments, "--sigma", 5)
    assert status == 2
    assert "--one-noise-model estimates the noise, and --sigma says it" in err
    assert cli("denoise", folder / "a.png", tmp_path / "a.png", "--one-noise-model")[0] == 2


def test_a_damaged_file_costs_one_line_with_one_noise_model(cli, folder, tmp_path):
    status, _, err = cli(
        "denoise", folder, tmp_path / "out", "--pattern", "*.png", "--one-noise-model", "--method", "halving"
    )
    assert status == 2
    assert "vnlem: c.png failed: cannot read " in err
    assert {row["status"] for row in table(tmp_path / "out").values()} == {"done", "failed"}
