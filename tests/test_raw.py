"""Camera raw: groups that keep the phase of a mosaic, denoising, files."""

from dataclasses import replace

import numpy as np
import pytest
from cuda_on_cpu import COMPILER, Emulator

from vnlem.methods.cuda import vnlr as cuda_vnlr
from vnlem.methods.vnlr_params import resolve
from vnlem.methods.vnlr_passes import halo, solve, solve_plainly
from vnlem.neighbours.groups import allowed_moves, symmetries
from vnlem.pipeline.regions import Region
from vnlem.pipeline.run import Job
from vnlem.pipeline.tiles import Tile

BAYER = ("RG", "GB")
XTRANS = ("GBGGRG", "RGRBGB", "GBGGRG", "GRGGBG", "BGBRGR", "GRGGBG")


def scene(shape, pattern, seed=0):
    """A mosaic with a level for each colour, edges, and noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    level = {"R": 0.3, "G": 0.0, "B": -0.4}
    cell = np.array([[level[colour] for colour in row] for row in pattern])
    offsets = cell[y % len(cell), x % len(cell)]
    return (np.sin(y / 5) * np.cos(x / 7) + offsets + rng.normal(0, 0.3, shape)).astype(np.float32)[None]


def job_of(mosaic, pattern, group="d4", **options):
    params = resolve(0.3, "fast", group, patch_distance=9, passes=2, **options)
    return Job(mosaic, 0.3, replace(params, pattern=pattern), 1, None)


@pytest.mark.parametrize("group", ["identity", "d4"])
@pytest.mark.parametrize("pattern", [BAYER, XTRANS], ids=["Bayer", "X-Trans"])
def test_groups_of_a_mosaic_are_those_of_the_reference(pattern, group):
    mosaic = scene((31, 27), pattern)
    options = {"patch_size": 5, "n_neighbors": 8, "step": 3}
    fast = solve(job_of(mosaic, pattern, group, **options))
    plain = solve_plainly(job_of(mosaic, pattern, group, **options))
    np.testing.assert_allclose(fast, plain, atol=2e-3)
    assert np.abs(fast - solve(job_of(mosaic, (), group, **options))).max() > 0.05


def test_every_allowed_move_lays_colours_on_their_like():
    for pattern in (BAYER, XTRANS):
        cell = len(pattern)
        colours = np.array([list(row) for row in pattern])
        tall = np.tile(colours, (6, 6))
        for size in (4, 5, 7):
            turns = symmetries("d4", size)
            moves = allowed_moves(pattern, turns)
            for place, shift in np.random.default_rng(0).integers(0, cell**2, (20, 2)):
                y, x = divmod(place, cell)
                down, across = divmod(shift, cell)
                own = tall[y : y + size, x : x + size].ravel()
                there = tall[y + down : y + down + size, x + across : x + across + size].ravel()
                same = [bool((there[turn] == own).all()) for turn in turns]
                assert same == [bool(moves[place, shift] >> g & 1) for g in range(8)]


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("pattern", [BAYER, XTRANS], ids=["Bayer", "X-Trans"])
def test_groups_of_a_mosaic_on_a_gpu(pattern):
    mosaic = scene((37, 33), pattern)
    options = {"patch_size": 5, "n_neighbors": 8, "step": 3}
    expected = solve(job_of(mosaic, pattern, **options))
    found = cuda_vnlr.solve(job_of(mosaic, pattern, **options), Emulator())
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_a_part_of_a_mosaic_has_the_bytes_of_the_whole():
    mosaic = scene((151, 141), BAYER)
    options = {"patch_size": 5, "n_neighbors": 8, "step": 3}
    whole = solve(job_of(mosaic, BAYER, **options))
    part = job_of(mosaic, BAYER, **options)
    part.region = Region.around((151, 141), Tile(120, 151, 114, 141), halo(part.params))
    read = part.region.read
    assert read.top % 2 or read.left % 2
    part.pixels = np.ascontiguousarray(mosaic[:, read.top : read.bottom, read.left : read.right])
    rows, columns = part.region.written()
    assert (solve(part)[:, rows, columns] == whole[:, 120:, 114:]).all()
