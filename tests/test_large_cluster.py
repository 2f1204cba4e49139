"""Units on Dask workers in separate processes, one of which is killed in the middle."""

import numpy as np
import pytest

zarr = pytest.importorskip("zarr", reason="needs the extra 'large'")
distributed = pytest.importorskip("distributed", reason="needs the extra 'large'")

from large_solver import Roughness, noise, run  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets that the cluster closes late
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def stored(tmp_path):
    """An array in a zarr store, and where the result goes."""
    pixels = noise((400, 500))
    array = zarr.create_array(tmp_path / "in.zarr", shape=pixels.shape, chunks=(64, 64), dtype=pixels.dtype)
    array[:] = pixels
    return tmp_path / "in.zarr", pixels, tmp_path / "out.zarr"


def test_two_processes_do_what_one_does(stored):
    source, pixels, target = stored
    solver = Roughness()
    summary = run(source, target, solver, memory=800_000, cluster="local:2", workers=1)
    assert summary.complete
    assert summary.units_done == summary.units > 8
    assert np.array_equal(zarr.open_array(target)[:], solver.whole(pixels))


def test_a_killed_worker_costs_its_units_only(stored, tmp_path):
    source, pixels, target = stored
    bomb = tmp_path / "bomb"
    bomb.touch()
    solver = Roughness(seconds=0.05, die_once=bomb)
    summary = run(source, target, solver, memory=800_000, cluster="local:2", workers=1)
    assert not bomb.exists()
    assert summary.complete
    assert np.array_equal(zarr.open_array(target)[:], solver.whole(pixels))


def test_what_is_no_address_is_told_before_a_client_is_made(stored):
    source, _, target = stored
    with pytest.raises(ValueError, match="an address like tcp://host:8786, got 'foo'"):
        run(source, target, memory=800_000, cluster="foo", workers=1)


def test_a_cluster_that_cannot_be_reached_leaves_no_begun_target(stored, monkeypatch):
    def refuse(*_, **__):
        raise OSError("Timed out trying to connect")

    monkeypatch.setattr(distributed, "Client", refuse)
    source, _, target = stored
    with pytest.raises(ValueError, match=r"cannot reach the Dask scheduler tcp://127\.0\.0\.1:1: Timed out"):
        run(source, target, memory=800_000, cluster="tcp://127.0.0.1:1", workers=1)
    assert sorted(path.name for path in target.parent.iterdir()) == ["in.zarr"]
