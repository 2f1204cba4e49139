"""One file and one line: what a newcomer adds is found by everything that asks the tables."""

import numpy as np
import pytest

import vnlem
from vnlem import io, registry
from vnlem.io import formats
from vnlem.io.picture import Picture
from vnlem.large import sources

METHOD = '''
import numpy as np

from vnlem.call import denoise_with
from vnlem.features.canonical import Extended, whole_region
from vnlem.methods.vnlem_params import PAPER, check_params, make_rule, rings_of, search_of
from vnlem.neighbours.window import find_neighbours
from vnlem.pipeline.method import Method


def denoise_median(image, sigma=None, *, preset="auto", patch_size=5, engine="fast", channel_axis=None,
                   workers=None, progress=False, return_info=False, device=None):
    return denoise_with(METHOD, **locals())


def resolve(noise, ndim, *, preset, engine, patch_size):
    return check_params(**PAPER | {"patch_size": patch_size, "patch_distance": 3, "n_neighbors": 40})


METHOD = Method("median", "newcomers_method:denoise_median", resolve, {"fast": "newcomers_method:solve"})


def solve(job):
    """The median of the central pixels of VNLEM's neighbours."""
    rings = rings_of(job.params, len(job.pixels))
    image = Extended.of(job.pixels, rings, job.params.scale)
    region = whole_region(image, rings, job.params.scale, job.params.arc, job.workers)
    search, rule = search_of(job.params, rings, image.shape), make_rule(job.params, job.sigma, rings)
    found = find_neighbours(region, search, rule, (0, 0), image.shape)
    values = region.pixels.reshape(-1, len(job.pixels))[found.position]
    values[np.arange(search.n_neighbors) >= found.counts[..., None]] = np.nan
    return np.moveaxis(np.nanmedian(values, axis=2), -1, 0).astype(np.float32)
'''

SOURCE = """
import numpy as np

from vnlem.large.sources import Given, plain_source


def open_file(path, axes):
    file, _, name = str(path).rpartition(":")
    return plain_source(str(path), Given(np.load(file)[name]), axes)
"""

FORMAT = """
import numpy as np

from vnlem.io.picture import Metadata, Picture


def read(path):
    return Picture(np.loadtxt(path, skiprows=1), metadata=Metadata("text"))


def write(path, picture):
    np.savetxt(path, picture.pixels, header="TEXT", comments="")
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a newcomer's file and gives its name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        return name

    return write


def test_an_estimator_on_the_neighbours_of_vnlem(module, monkeypatch):
    name = module("newcomers_method", METHOD)
    monkeypatch.setitem(registry.METHODS, "median", f"{name}:METHOD")
    clean = np.where(np.arange(40) < 20, 0.0, 100.0) + np.zeros((36, 1))
    noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    denoised, info = vnlem.denoise(noisy, 20, method="median", return_info=True)
    assert np.std(denoised - clean) < 0.5 * np.std(noisy - clean)
    assert info.method == "median"
    with pytest.raises(ValueError, match="engine must be one of 'fast', got 'printed'"):
        vnlem.denoise(noisy, 20, method="median", engine="printed")
    with pytest.raises(ValueError, match="median does not run on a GPU"):
        registry.find_method("median").solver("fast", "cuda:0")


def test_a_method_of_another_package_is_found_by_its_entry_point(module, tmp_path):
    module("newcomers_method", METHOD)
    told = tmp_path / "newcomer-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: newcomer\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text("[vnlem.methods]\nmedian = newcomers_method:METHOD\n")
    registry._of_other_packages.cache_clear()
    try:
        assert registry.names()[-1] == "median"
        assert vnlem.denoise(np.eye(24) * 9, 1.0, method="median").shape == (24, 24)
    finally:
        registry._of_other_packages.cache_clear()


def test_a_source_of_large_images(module, monkeypatch, tmp_path):
    monkeypatch.setitem(sources.FILES, ".npz", f"{module('newcomers_source', SOURCE)}:open_file")
    pixels = np.arange(30.0).reshape(5, 6)
    np.savez(tmp_path / "scan.npz", cells=pixels)
    opened = sources.open_source(f"{tmp_path / 'scan.npz'}:cells")
    assert opened.axes == ("y", "x")
    np.testing.assert_array_equal(opened.read(((1, 3), (0, 6))), pixels[1:3])
    with pytest.raises(ValueError, match=r"no file with one of the suffixes .*\.npz"):
        sources.open_source(tmp_path / "newcomers_source.py")


def test_a_file_format(module, monkeypatch, tmp_path):
    place = module("newcomers_format", FORMAT)
    text = formats.Format("text", (".txt",), (b"TEXT",), ("float64",), f"{place}:read", f"{place}:write")
    monkeypatch.setitem(formats.FORMATS, "text", text)
    io.write(tmp_path / "image.txt", Picture(np.eye(4)))
    np.testing.assert_array_equal(io.read(tmp_path / "image.txt").pixels, np.eye(4))
