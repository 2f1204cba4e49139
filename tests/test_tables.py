"""Extensions are found by everything that uses the tables: docs/example_package, and a source."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import vnlem
from vnlem import io, registry
from vnlem.io import formats
from vnlem.io.picture import Picture
from vnlem.large import sources

SOURCE = """
import numpy as np

from vnlem.large.sources import Given, plain_source


def open_file(path, axes):
    file, _, name = str(path).rpartition(":")
    return plain_source(str(path), Given(np.load(file)[name]), axes)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that pip has installed docs/example_package into."""
    source, target = tmp_path_factory.mktemp("source") / "example", tmp_path_factory.mktemp("site")
    shutil.copytree(Path(__file__).parents[1] / "docs" / "example_package", source)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
    ]
    subprocess.run([*pip, "--target", target, source], check=True)
    return target


@pytest.fixture
def example(installed, monkeypatch):
    """The example package can be imported, and its entry points are found."""
    monkeypatch.syspath_prepend(installed)
    caches = (registry._of_other_packages, formats._from_elsewhere)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def test_a_method_of_another_package_is_found_by_its_entry_point(example):
    assert registry.names()[-1] == "median"
    clean = np.where(np.arange(40) < 20, 0.0, 100.0) + np.zeros((36, 1))
    noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    denoised, info = vnlem.denoise(noisy, 20, method="median", return_info=True)
    assert np.std(denoised - clean) < 0.5 * np.std(noisy - clean)
    assert info.method == "median"
    with pytest.raises(ValueError, match="engine must be one of 'fast', got 'printed'"):
        vnlem.denoise(noisy, 20, method="median", engine="printed")
    with pytest.raises(ValueError, match="median does not run on a GPU"):
        registry.find_method("median").solver("fast", "cuda:0")


def test_a_format_of_another_package_is_read_and_written(example, tmp_path):
    io.write(tmp_path / "image.txt", Picture(np.eye(4)))
    np.testing.assert_array_equal(io.read(tmp_path / "image.txt").pixels, np.eye(4))


def test_the_command_line_has_both(example, cli, tmp_path):
    noisy = np.random.default_rng(0).normal(100, 20, (24, 24))
    io.write(tmp_path / "noisy.txt", Picture(noisy))
    options = ("--method", "median", "--sigma", "20", "--set", "patch_size=3")
    assert cli("denoise", tmp_path / "noisy.txt", tmp_path / "out.txt", *options)[0] == 0
    assert io.read(tmp_path / "out.txt").pixels.std() < 0.6 * noisy.std()


def test_a_source_of_large_images(monkeypatch, tmp_path):
    (tmp_path / "newcomers_source.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sources.FILES, ".npz", "newcomers_source:open_file")
    pixels = np.arange(30.0).reshape(5, 6)
    np.savez(tmp_path / "scan.npz", cells=pixels)
    opened = sources.open_source(f"{tmp_path / 'scan.npz'}:cells")
    assert opened.axes == ("y", "x")
    np.testing.assert_array_equal(opened.read(((1, 3), (0, 6))), pixels[1:3])
    with pytest.raises(ValueError, match=r"nor a file with one of the suffixes .*\.npz"):
        sources.open_source(tmp_path / "newcomers_source.py")
