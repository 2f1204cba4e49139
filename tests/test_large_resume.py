"""Interrupted runs: killed at any moment and resumed they give the same bytes; everything else is refused."""

import errno
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

zarr = pytest.importorskip("zarr", reason="needs the extra 'large'")

from large_solver import Roughness, noise, run  # noqa: E402
from large_stores import files_of, make_image  # noqa: E402

from vnlem.large import target as targets  # noqa: E402
from vnlem.large import worker  # noqa: E402
from vnlem.large.runner import RunOptions, denoise_source  # noqa: E402
from vnlem.large.sources import open_source  # noqa: E402

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("VNLEM_KILLS", "3"))


@pytest.fixture
def image(tmp_path):
    pixels = noise((3, 200, 300))
    return make_image(tmp_path / "in.ome.zarr", pixels, "0.5", "zyx", (1, 32, 32), (1, 64, 64)), pixels


def test_killed_at_random_moments_and_resumed_it_has_the_same_bytes(image, tmp_path):
    path, _ = image
    run(path, tmp_path / "whole.ome.zarr")
    wanted = files_of(tmp_path / "whole.ome.zarr")
    target = tmp_path / "out.ome.zarr"
    script = Path(__file__).with_name("large_run.py")
    command = [sys.executable, str(script), str(path), str(target), "0.1"]
    moments = random.Random(0)
    kills = 0
    while kills < KILLS:
        process = subprocess.Popen(command)
        deadline = time.monotonic() + 60
        while not target.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(moments.uniform(0, 2))
        if process.poll() is None:
            process.kill()
            process.wait()
            kills += 1
        else:  # it finished: the next one starts from scratch
            assert process.returncode == 0
            assert files_of(target) == wanted
            shutil.rmtree(target)
    run(path, target, resume=True)
    assert files_of(target) == wanted
    assert sorted(entry.name for entry in (tmp_path / "out.ome.zarr.vnlem").iterdir()) == ["run.json"]


def run_until(count, monkeypatch, *arguments, **settings):
    """A run that is interrupted after a number of units."""
    done = []
    original = worker.write_box

    def write(*given):
        if len(done) == count:
            raise KeyboardInterrupt
        done.append(1)
        return original(*given)

    with monkeypatch.context() as patch:
        patch.setattr(worker, "write_box", write)
        with pytest.raises(KeyboardInterrupt):
            run(*arguments, **settings)


def test_resume_does_only_what_is_left(image, tmp_path, monkeypatch):
    path, pixels = image
    target = tmp_path / "out.ome.zarr"
    run_until(7, monkeypatch, path, target)
    with pytest.raises(FileExistsError, match="was begun and is not complete; continue with --resume"):
        run(path, target)
    summary = run(path, target, resume=True)
    assert summary.units_done == summary.units - 7
    assert np.array_equal(zarr.open_array(target / "0")[:], Roughness().whole(pixels))
    assert run(path, target, resume=True).units_done == 0
    with pytest.raises(FileExistsError, match="exists; remove it or choose another name"):
        run(path, target)


def test_torn_files_are_replaced(image, tmp_path, monkeypatch):
    path, pixels = image
    target = tmp_path / "out.ome.zarr"
    run_until(7, monkeypatch, path, target)
    written = sorted(path for path in (target / "0/c").rglob("*") if path.is_file())
    written[0].write_bytes(written[0].read_bytes()[:100])  # a marker says that it is longer
    torn = target / "0/c/2/0/0"
    torn.parent.mkdir(parents=True, exist_ok=True)
    torn.write_bytes(b"torn")  # without a marker
    summary = run(path, target, resume=True)
    assert summary.units_done == summary.units - 6
    assert np.array_equal(zarr.open_array(target / "0")[:], Roughness().whole(pixels))


def test_a_resume_with_other_parameters_is_refused(image, tmp_path, monkeypatch):
    path, _ = image
    target = tmp_path / "out.ome.zarr"
    run_until(3, monkeypatch, path, target)
    with pytest.raises(
        ValueError, match=r"begun with other options \(radius was 3 and is 5\); repeat the options"
    ):
        run(path, target, Roughness(5), resume=True)
    array = zarr.open_array(path / "0", mode="r+")
    array[0, :10, :10] = 7
    with pytest.raises(ValueError, match=r"begun with other options \(source.sample was"):
        run(path, target, resume=True)


def test_a_target_of_somebody_else_is_never_continued(image, tmp_path):
    path, _ = image
    zarr.create_group(tmp_path / "out.ome.zarr")
    for resume in (False, True):
        with pytest.raises((FileExistsError, ValueError), match="exists"):
            run(path, tmp_path / "out.ome.zarr", resume=resume)


def test_parts_together_are_the_whole(image, tmp_path):
    path, _ = image
    run(path, tmp_path / "whole.ome.zarr")
    target = tmp_path / "out.ome.zarr"
    summaries = [run(path, target, part=(number, 3)) for number in (2, 1, 3)]
    assert [summary.complete for summary in summaries] == [False, False, True]
    assert sum(summary.units_done for summary in summaries) == summaries[0].units
    assert files_of(target) == files_of(tmp_path / "whole.ome.zarr")


def test_less_memory_on_resume_changes_the_blocks_and_not_the_bytes(image, tmp_path, monkeypatch):
    path, pixels = image
    target = tmp_path / "out.ome.zarr"
    run_until(2, monkeypatch, path, target, memory=4_000_000)
    run(path, target, resume=True, memory=200_000)
    assert np.array_equal(zarr.open_array(target / "0")[:], Roughness().whole(pixels))


def test_damaged_input_costs_its_units_only(image, tmp_path):
    path, pixels = image
    damaged = path / "0/c/1/1/2"
    good = damaged.read_bytes()
    damaged.write_bytes(good[: len(good) // 2])
    target = tmp_path / "out.ome.zarr"
    source = open_source(path)
    box = tuple((0, size) for size in source.shape)
    with pytest.raises(
        ValueError,
        match=r"units failed, the others are done; the first: cannot read .* at z=1:2,y=.*; replace",
    ):
        denoise_source(source, Roughness(), box, target, "digest", RunOptions(400_000))
    damaged.write_bytes(good)
    summary = denoise_source(source, Roughness(), box, target, "digest", RunOptions(400_000, resume=True))
    assert 0 < summary.units_done < summary.units
    assert np.array_equal(zarr.open_array(target / "0")[:], Roughness().whole(pixels))


def test_damaged_files_are_counted_and_the_first_is_named(tmp_path):
    pixels = noise((90, 120))
    array = zarr.create_array(
        tmp_path / "in.zarr", shape=pixels.shape, chunks=(16, 16), shards=(32, 32), dtype=pixels.dtype
    )
    array[:] = pixels
    for name in ("1/2", "2/3"):
        file = tmp_path / "in.zarr/c" / name
        file.write_bytes(file.read_bytes()[:-1])
    source = open_source(tmp_path / "in.zarr")
    with pytest.raises(
        ValueError, match=r"cannot read .*: 2 of 12 files are damaged, the first at y=32:64,x=64:96 \("
    ):
        source.read(((0, 90), (0, 120)))
    with pytest.raises(ValueError, match=r"cannot read .*zarr at y=64:70,x=96:110 \("):
        source.read(((60, 70), (96, 110)))
    np.testing.assert_array_equal(source.read(((0, 32), (0, 120))), pixels[:32])


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "is full; free some space and run again"),
        (OSError(errno.EROFS, "Read-only file system"), "no permission to write"),
        (MemoryError(), "out of memory; run again with --resume and a smaller --memory"),
    ],
    ids=["full disk", "read-only", "memory"],
)
def test_what_stops_the_run_is_said_in_one_sentence(image, tmp_path, monkeypatch, error, sentence):
    path, pixels = image
    target = tmp_path / "out.ome.zarr"
    with monkeypatch.context() as patch:
        original, count = worker.write_box, []

        def write(*arguments):
            count.append(1)
            if len(count) == 3:
                raise error
            return original(*arguments)

        patch.setattr(worker, "write_box", write)
        with pytest.raises(OSError, match=sentence):
            run(path, target)
    assert run(path, target, resume=True).complete
    assert np.array_equal(zarr.open_array(target / "0")[:], Roughness().whole(pixels))


def test_a_target_that_cannot_be_written_is_refused_at_once(image):
    path, _ = image
    if not Path("/sys").is_dir():
        pytest.skip("no folder that nobody may write in")
    with pytest.raises(OSError, match=r"no permission to write|cannot write"):
        run(path, Path("/sys/out.ome.zarr"))


@pytest.mark.parametrize("left_over", [False, True], ids=["new", "of a target that was removed"])
def test_of_two_processes_that_begin_one_target_one_is_refused(image, tmp_path, monkeypatch, left_over):
    path, pixels = image
    target = tmp_path / "out.zarr"
    if left_over:
        run(path, target)
        shutil.rmtree(target)
    began, store_of = [], targets.target_store

    def other_begins_first(*arguments):
        if not began:
            began.append(True)
            run(path, target)
        return store_of(*arguments)

    monkeypatch.setattr(targets, "target_store", other_begins_first)
    with pytest.raises(FileExistsError, match=r"out.zarr (exists|was begun)"):
        run(path, target)
    np.testing.assert_array_equal(zarr.open_array(target / "0")[:], Roughness().whole(pixels))
    assert not list(tmp_path.glob("*.partial"))


def test_a_process_that_comes_too_late_to_begin_is_refused(image, tmp_path, monkeypatch):
    monkeypatch.setattr(targets.Markers, "claim_run", lambda self, values: False)
    with pytest.raises(FileExistsError, match="was begun by another process at the same time"):
        run(image[0], tmp_path / "out.zarr")


def test_a_full_disk_is_one_sentence_and_nothing_more(tmp_path):
    resource = pytest.importorskip("resource")
    pixels = np.random.default_rng(0).integers(0, 60000, (256, 256), dtype=np.uint16)
    zarr.create_array(tmp_path / "in.zarr", data=pixels, chunks=(32, 32))
    code = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({1500}, {resource.RLIM_INFINITY}))\n"
        "from vnlem.cli import main\n"
        "main(['denoise', sys.argv[1], sys.argv[2], '--sigma', '18000', '--method', 'nlm', '--quiet'])\n"
    )
    command = [sys.executable, "-c", code, tmp_path / "in.zarr", tmp_path / "out.zarr"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    told = [line for line in done.stderr.splitlines() if "warning" not in line]
    assert len(told) == 1
    assert "cannot write" in told[0]
