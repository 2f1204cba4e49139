"""Nearest patches of one patch: the figure and the command."""

import sys

import numpy as np
import pytest

from vnlem import io
from vnlem.bench import phantoms
from vnlem.cli import main
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
