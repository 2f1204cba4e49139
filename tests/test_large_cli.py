"""``vnlem denoise`` with stores and with the options for large images."""

import os

import numpy as np
import pytest
import tifffile

zarr = pytest.importorskip("zarr", reason="needs the extra 'large'")

from large_solver import noise  # noqa: E402
from large_stores import files_of, make_image  # noqa: E402

import vnlem  # noqa: E402
from vnlem import io  # noqa: E402


@pytest.fixture
def image(tmp_path):
    pixels = noise((1, 90, 120))
    return make_image(tmp_path / "in.ome.zarr", pixels, "0.5", "cyx", (1, 32, 32), (1, 64, 64)), pixels


OPTIONS = ("--method", "nlm", "--sigma", "120")


def test_a_store_in_a_store_out(cli, image, tmp_path):
    path, pixels = image
    status, out, err = cli("denoise", path, tmp_path / "out.ome.zarr", *OPTIONS)
    assert (status, err) == (0, "")
    assert out.startswith("nlm, white noise, sigma 120, ")
    wanted = vnlem.denoise(pixels[0], 120, method="nlm")
    assert np.array_equal(zarr.open_array(tmp_path / "out.ome.zarr/0")[0], wanted)


def test_a_region_of_a_tiff_file(cli, tmp_path):
    pixels = noise((80, 100))
    tifffile.imwrite(tmp_path / "in.tif", pixels)
    status, _, _ = cli(
        "denoise", tmp_path / "in.tif", tmp_path / "out.tif", *OPTIONS, "--region", "y=10:50,x=20:"
    )
    assert status == 0
    wanted = vnlem.denoise(pixels, 120, method="nlm")[10:50, 20:]
    assert np.array_equal(tifffile.imread(tmp_path / "out.tif"), wanted)


def test_a_dry_run_prints_the_plan(cli, image, tmp_path):
    status, out, _ = cli("denoise", image[0], tmp_path / "out.ome.zarr", *OPTIONS, "--dry-run")
    assert status == 0
    for word in ("units", "halo", "memory", "time"):
        assert word in out
    assert not (tmp_path / "out.ome.zarr").exists()


def test_parts_and_resume(cli, image, tmp_path):
    path, _ = image
    cli("denoise", path, tmp_path / "whole.ome.zarr", *OPTIONS)
    target = tmp_path / "out.ome.zarr"
    status, _, err = cli("denoise", path, target, *OPTIONS, "--part", "1/1")
    assert status == 0
    assert files_of(target) == files_of(tmp_path / "whole.ome.zarr")
    status, _, err = cli("denoise", path, target, *OPTIONS)
    assert status == 2
    assert "exists; remove it or choose another name" in err
    status, out, _ = cli("denoise", path, target, *OPTIONS, "--resume")
    assert status == 0
    assert "0 of" in out
    status, _, err = cli("denoise", path, target, "--method", "nlm", "--sigma", "90", "--resume")
    assert status == 2
    assert "was begun with other options" in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--region", "y=5:4"), "does not lie in 0:90"),
        (("--region", "x=0:9,x=0:5"), "region names the axis 'x' twice"),
        (("--part", "x"), "part must look like 3/16"),
        (("--part", "1/0"), "part must name at least one part"),
        (("--channels", "first"), "--channels is for files that fit in memory"),
        (("--overwrite",), "--overwrite is for files that fit in memory"),
        (("--memory", "lots"), "memory must be a number of bytes"),
        (("--memory", "1e999"), "memory must be a number of bytes"),
        (("--cluster", "local:none"), "cluster must be 'local:N' or the address of a scheduler"),
    ],
    ids=["region", "region twice", "part", "no part", "channels", "overwrite", "memory", "much", "cluster"],
)
def test_bad_options_are_told_in_one_line(cli, image, tmp_path, arguments, sentence):
    status, _, err = cli("denoise", image[0], tmp_path / "out.ome.zarr", *OPTIONS, *arguments)
    assert status == 2
    assert err.count("\n") == 1
    assert sentence in err


def test_photon_noise_is_taken_as_told(cli, image, tmp_path):
    path, pixels = image
    camera = ("--noise-model", "poisson-gaussian", "--gain", "20", "--offset", "100")
    status, _, _ = cli("denoise", path, tmp_path / "out.ome.zarr", "--method", "nlm", *camera)
    assert status == 0
    wanted = vnlem.denoise(pixels[0], method="nlm", noise_model="poisson-gaussian", gain=20, offset=100)
    assert np.array_equal(zarr.open_array(tmp_path / "out.ome.zarr/0")[0], wanted)


def test_a_store_cannot_become_itself(cli, image):
    status, _, err = cli("denoise", image[0], image[0], *OPTIONS)
    assert status == 2
    assert "the target is the source" in err


def test_a_store_cannot_become_a_png(cli, image, tmp_path):
    status, _, err = cli("denoise", image[0], tmp_path / "out.png", *OPTIONS)
    assert status == 2
    assert "must be a zarr store (.zarr) or a TIFF file (.tif)" in err


@pytest.mark.parametrize("left", [0, 4, 200], ids=["empty", "only its first bytes", "cut in its header"])
@pytest.mark.parametrize("suffix", [".tif", ".npy", ".h5"])
def test_a_damaged_file_is_told_in_one_sentence(cli, tmp_path, suffix, left):
    path = tmp_path / f"in{suffix}"
    if suffix == ".h5":
        h5py = pytest.importorskip("h5py", reason="one of the formats")
        with h5py.File(path, "w") as file:
            file["pixels"] = np.zeros((40, 44), np.uint16)
    else:
        io.write(path, np.zeros((40, 44), np.uint16))
    os.truncate(path, left if suffix != ".npy" else left // 4)
    source = f"{path}:pixels" if suffix == ".h5" else path
    status, _, err = cli("denoise", source, tmp_path / "out.zarr", "--sigma", "5")
    assert status == 2
    assert err.startswith(f"vnlem: error: cannot read {source}")
    assert err.count("\n") == 1
    assert not (tmp_path / "out.zarr").exists()


@pytest.mark.parametrize(
    ("version", "document", "words"),
    [
        ("0.4", '{"zarr_format": 1.5}', "(zarr_format must be 2, got 1.5)"),
        ("0.5", '{"zarr_format": 3, "node_type": 1}', "(node_type is neither group nor array)"),
    ],
)
def test_a_group_of_no_known_kind_is_refused_before_anything_is_written(
    cli, tmp_path, version, document, words
):
    make_image(tmp_path / "in.ome.zarr", noise((1, 40, 44)), version, "cyx", (1, 32, 32))
    (tmp_path / "in.ome.zarr" / {"0.4": ".zgroup", "0.5": "zarr.json"}[version]).write_text(document)
    status, _, err = cli("denoise", tmp_path / "in.ome.zarr", tmp_path / "out.ome.zarr", *OPTIONS)
    assert (status, err.count("\n")) == (2, 1)
    assert f"it is damaged {words}" in err
    assert not (tmp_path / "out.ome.zarr").exists()
