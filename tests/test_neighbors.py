"""Nearest patches of one patch: the figure and the command."""

import sys

import numpy as np
import pytest
from scipy import ndimage

import vnlem
from vnlem import io
from vnlem.bench import phantoms
from vnlem.cli import main
from vnlem.neighbours.dilated import Surroundings, aligned_patches, dilated_matches
from vnlem.neighbours.image import matches


@pytest.fixture(scope="module")
def half_discs():
    return phantoms.half_discs(6, 16, 0, 1, size=64)


def test_rotation_finds_half_discs_at_other_angles(half_discs):
    by_rid = matches(half_discs, (24, 24), 12, angle_range=30)
    by_euclid = matches(half_discs, (24, 24), 12, rotated=False)
    assert (by_rid.row[0], by_rid.column[0], by_rid.distance[0]) == (24, 24, 0)
    assert by_rid.distance[-1] < 0.7 * by_euclid.distance[-1]
    assert not by_euclid.angle.any()
    assert np.ptp(np.abs(by_rid.angle)) > 0.5


def test_distances_are_in_the_units_of_the_image(half_discs):
    one, ten = matches(half_discs, (20, 20), 5), matches(10 * half_discs + 3, (20, 20), 5)
    np.testing.assert_allclose(ten.distance, 10 * one.distance, rtol=1e-3, atol=1e-2)


def blobs(places, size):
    """Bent blobs: (row, column, size, angle) each, on one image."""
    y, x = np.mgrid[:size, :size].astype(float)
    image = np.zeros((size, size))
    for row, column, factor, angle in places:
        v, h = (y - row) / factor, (x - column) / factor
        u, w = np.cos(angle) * h + np.sin(angle) * v, np.cos(angle) * v - np.sin(angle) * h
        image += np.exp(-((u / 5) ** 2) - ((w - u**2 / 8) / 2) ** 2)
    return image


@pytest.mark.slow
def test_dilation_finds_larger_and_smaller_copies():
    places = [(20, 20, 1.0, 0.0), (20, 60, 0.7, 0.5), (60, 24, 1.4, -0.4), (62, 62, 1.0, 1.0)]
    image = blobs(places, 84)
    scales = (0.7, 1.0, 1 / 0.7)
    found = dilated_matches(image, (20, 20), 12, scales=scales, patch_size=13, angle_step=2.5)
    assert (found.row[0], found.column[0], found.distance[0], found.factor[0]) == (20, 20, 0, 1)
    assert (np.diff(found.distance) >= 0).all()
    for row, column, size, angle in places[1:]:
        here = (np.abs(found.row - row) <= 1) & (np.abs(found.column - column) <= 1)
        assert here.any()
        assert found.factor[here][0] == pytest.approx(1 / size, rel=0.03)
        # Back from the angle of the copy to that of the first.
        assert abs(found.angle[here][0] + angle) < 0.15
    first, *others = aligned_patches(image, found, 9)[:3]
    for other in others:
        assert np.abs(other - first).max() < 0.15


@pytest.mark.slow
def test_dilated_matches_are_the_nearest_of_all_by_the_distance_itself():
    image = ndimage.gaussian_filter(np.random.default_rng(0).normal(0, 1, (14, 15)), 1.2)
    options = {"patch_size": 5, "scales": (0.8, 1.0, 1.3)}
    found = dilated_matches(image, (6, 7), 6, **options)
    around = Surroundings.of(image, 5, 0.8)
    every = [
        vnlem.rid(around.at(6, 7), around.at(row, column), **options)
        for row in range(14)
        for column in range(15)
    ]
    np.testing.assert_allclose(found.distance, np.sort(every)[:6], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("scales", "message"),
    [("0.7,x", "factors like"), ("0,1", "scales must lie in"), ("0.1,1", "needs arrays of")],
)
def test_bad_scales_are_one_clear_line(half_discs, tmp_path, capsys, scales, message):
    source = tmp_path / "in.npy"
    np.save(source, half_discs)
    given = ["--at", "24,24", "--out", str(tmp_path / "out.png"), "--scales", scales]
    with pytest.raises(SystemExit) as left:
        main(["neighbors", str(source), *given])
    assert left.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_the_figure_has_a_panel_for_sizes(half_discs, tmp_path):
    out = tmp_path / "out.png"
    figure = vnlem.figures.neighbors(half_discs, (24, 24), out, count=4, patch_size=9, scales=(0.8, 1.0))
    assert len(figure.axes) == 1 + 3 * 4
    assert out.stat().st_size > 10_000


@pytest.mark.slow
def test_the_command_writes_the_figure(half_discs, tmp_path, capsys):
    source, out = tmp_path / "in.png", tmp_path / "out.png"
    scaled = (half_discs - half_discs.min()) / np.ptp(half_discs) * 255
    io.write(source, scaled.astype(np.uint8))
    with pytest.raises(SystemExit) as left:
        main(["neighbors", str(source), "--at", "24,24", "--out", str(out), "--count", "9"])
    assert left.value.code == 0
    assert out.stat().st_size > 10_000
    assert "9 nearest patches" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("at", "named"), [("24", "two whole numbers"), ("24,99", "64x64"), ("x,y", "two whole numbers")]
)
def test_a_bad_position_is_one_clear_line(half_discs, tmp_path, capsys, at, named):
    source = tmp_path / "in.npy"
    np.save(source, half_discs)
    with pytest.raises(SystemExit) as left:
        main(["neighbors", str(source), "--at", at, "--out", str(tmp_path / "out.png")])
    assert left.value.code == 2
    assert named in capsys.readouterr().err


def test_matplotlib_missing_is_one_clear_line(half_discs, tmp_path, capsys, monkeypatch):
    source = tmp_path / "in.npy"
    np.save(source, half_discs)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SystemExit) as left:
        main(["neighbors", str(source), "--at", "24,24", "--out", str(tmp_path / "out.png")])
    assert left.value.code == 2
    assert "vnlem[bench]" in capsys.readouterr().err
