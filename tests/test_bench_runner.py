"""The experiment end to end on small images: resuming, crashes, bad folders, what it leaves behind."""

import csv
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import status_of

from vnlem import io, registry
from vnlem.bench import runner
from vnlem.bench.protocols import Case
from vnlem.bench.variants import parse_variants
from vnlem.bench.worker import Failure, Task, Unreadable
from vnlem.bench.workers import run_tasks
from vnlem.cli.bench import make_cases

pytestmark = pytest.mark.slow

AWGN = [Case("awgn", 0, 20.0)]
DATA = Path(__file__).parents[1].parent / "shared" / "data"

METHODS_OF_THE_TEST = '''
import os

from vnlem.pipeline.method import Method

def denoise_crash(image, sigma=None, *, preset="auto", workers=None):
    """Takes its process down where the image is bright; the warm-up sees only a corner."""
    if image.shape[0] > 48 and image.mean() > 200:
        os._exit(7)
    return image / 2

def denoise_refuse(image, sigma=None, *, preset="auto", workers=None):
    if image.mean() > 200:
        raise ValueError("too bright for me")
    return image / 2

CRASH = Method("crash", "methods_of_the_test:denoise_crash", None, {})
REFUSE = Method("refuse", "methods_of_the_test:denoise_refuse", None, {})
'''


def save(folder, name, side=24, level=100, seed=0):
    pixels = level + 30 * np.sin(np.add.outer(np.arange(side), 2 * np.arange(side)) / (3 + seed))
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    io.write(path, pixels.astype(np.uint8))


def rows_of(out):
    with open(out / "results.csv", encoding="utf-8", newline="") as stream:
        next(stream)
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run over embedded images of scikit-image, with an unreadable file among them."""
    from skimage import data

    base = tmp_path_factory.mktemp("bench")
    images = base / "my images"
    for category, names in {"people": ["camera", "astronaut"], "things": ["coins", "coffee", "moon"]}.items():
        (images / category).mkdir(parents=True)
        for name in names:
            io.write(images / category / f"{name} ü.png", getattr(data, name)()[:200, :260])
    (images / "things" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    (images / "people" / "photo.webp").write_bytes(b"RIFF")
    out = base / "out"
    command = ("bench", images, "--out", out, "--methods", "nlm,nlm:patch_size=3", "--resolutions", "48,64")
    assert status_of(*command, "--workers", 2, "--quiet") == 0
    return images, out, command


def test_every_image_method_and_size_has_its_row_and_unreadable_files_have_none(finished):
    _, out, _ = finished
    rows = rows_of(out)
    assert len(rows) == 5 * 2 * 3
    assert {row["method"] for row in rows} == {"noisy", "nlm", "nlm:patch_size=3"}
    assert not any("broken" in row["image"] for row in rows)
    assert {row["seed"] for row in rows if row["image"] == "people/camera ü.png"} == {"1001"}
    for row in rows:
        assert float(row["snr"]) > 4
        assert (row["seconds"] == "") is (row["method"] == "noisy")
    noisy = [float(row["snr"]) for row in rows if row["method"] == "noisy"]
    assert np.mean(noisy) == pytest.approx(5.23, abs=0.15)


def test_the_summary_holds_statistics_unreadable_files_and_provenance(finished):
    _, out, _ = finished
    found = json.loads((out / "summary.json").read_text())
    assert [entry["image"] for entry in found["unreadable"]] == ["people/photo.webp", "things/broken.png"]
    assert [case["name"] for case in found["cases"]] == ["paper-48-0.3", "paper-64-0.3"]
    case = found["cases"][0]
    assert case["n_images"] == 5
    assert set(case["categories"]) == {"people", "things"}
    assert {row["measure"] for row in case["comparisons"]} == set(case["measures"])
    assert found["provenance"]["threads_per_worker"] == max(1, (os.cpu_count() or 1) // 2)
    assert "SNR dB" in (out / "table.md").read_text()
    assert r"\begin{tabular}" in (out / "table.tex").read_text()


def test_the_report_has_everything_it_names_beside_it(finished):
    _, out, _ = finished
    text = (out / "report" / "data.js").read_text()
    data = json.loads(text.removeprefix("window.VNLEM_BENCH=").rstrip(";\n"))
    assert data["images"]["name"][0] == "people/astronaut ü.png"
    page = (out / "report.html").read_text()
    for part in page.split('src="')[1:]:
        assert (out / part.split('"')[0]).is_file()
    assert "http" not in page
    for key in data["images"]["key"]:
        assert (out / "pictures" / key / "thumbnail.jpg").is_file()
        for method in data["methods"]:
            picture = io.read(out / "pictures" / key / f"paper-64-0.3-{method['file']}.png")
            assert picture.pixels.shape == (64, 64)
    assert set(data["figures"]) >= {"figures/example-median-gain.png", "figures/resolution.png"}
    assert all((out / path).is_file() for path in data["figures"])


def test_the_same_command_again_measures_nothing_and_a_new_method_only_itself(finished):
    _, out, command = finished
    before = (out / "results.csv").read_bytes()
    assert status_of(*command, "--quiet") == 0
    assert (out / "results.csv").read_bytes() == before
    more = [text if text != "nlm,nlm:patch_size=3" else "nlm,nlm:patch_size=5" for text in command]
    assert status_of(*more, "--quiet") == 0
    after = (out / "results.csv").read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") - before.count(b"\n") == 5 * 2


def test_the_results_do_not_depend_on_the_number_of_workers(finished, tmp_path):
    _, out, command = finished
    again = [tmp_path / "again" if part == out else part for part in command]
    assert status_of(*again, "--workers", 1, "--quiet", "--no-pictures") == 0
    costs = ("seconds", "peak_memory_mib")
    ordered = [
        sorted(tuple(v for k, v in row.items() if k not in costs) for row in rows_of(folder))
        for folder in (tmp_path / "again", out)
    ]
    assert set(ordered[0]) <= set(ordered[1])
    assert not (tmp_path / "again" / "pictures").exists()


def test_a_changed_image_is_measured_again(tmp_path):
    save(tmp_path / "in", "a.png")
    save(tmp_path / "in", "b.png")
    variants = parse_variants(["nlm"], "awgn")
    runner.run_bench(tmp_path / "in", tmp_path / "out", AWGN, variants, workers=1, pictures=False)
    save(tmp_path / "in", "b.png", seed=3)
    outcome = runner.run_bench(tmp_path / "in", tmp_path / "out", AWGN, variants, workers=1, pictures=False)
    assert outcome.provenance["rows_this_run"] == 2
    assert {row.image for row in outcome.rows.values()} == {"a.png", "b.png"}


@pytest.fixture
def methods_of_the_test(tmp_path, monkeypatch):
    """Methods that crash and refuse, which a spawned process also finds."""
    (tmp_path / "methods_of_the_test.py").write_text(METHODS_OF_THE_TEST)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("crash", "refuse"):
        monkeypatch.setitem(registry.METHODS, name, f"methods_of_the_test:{name.upper()}")


@pytest.mark.usefixtures("methods_of_the_test")
def test_a_worker_that_dies_loses_one_image_and_a_method_that_refuses_one_row(tmp_path, capsys):
    for name, level in (("a", 100), ("b", 220), ("c", 100), ("d", 100)):
        save(tmp_path / "in", f"{name}.png", side=56, level=level)
    out = tmp_path / "out"
    command = ("bench", tmp_path / "in", "--out", out, "--protocol", "awgn", "--sigma", 20, "--workers", 2)
    assert status_of(*command, "--methods", "nlm,crash", "--quiet") == 0
    found = json.loads((out / "summary.json").read_text())
    (failure,) = found["failures"]
    assert failure["image"] == "b.png"
    assert "left with status 7" in failure["reason"]
    assert {row["image"] for row in rows_of(out) if row["method"] == "crash"} == {"a.png", "c.png", "d.png"}
    # Finished results of the lost image are kept.
    assert any(row["image"] == "b.png" and row["method"] == "nlm" for row in rows_of(out))
    assert "1 results are missing" in capsys.readouterr().err
    assert status_of(*command, "--methods", "nlm,refuse", "--quiet") == 0
    (failure,) = json.loads((out / "summary.json").read_text())["failures"]
    assert (failure["image"], failure["method"], failure["reason"]) == (
        "b.png",
        "refuse",
        "too bright for me",
    )


def test_a_worker_killed_from_outside_is_replaced(tmp_path):
    for k in range(6):
        save(tmp_path, f"{k}.png")
    variants = tuple(parse_variants(["nlm"], "awgn"))
    items = runner.find_images(tmp_path)
    tasks = [Task(item, ((AWGN[0], variants, True),)) for item in items]
    killed = False
    events = []
    for event in run_tasks(tasks, n_workers=1, threads=1):
        events.append(event)
        if not killed:
            (process,) = multiprocessing.active_children()
            os.kill(process.pid, signal.SIGKILL)
            killed = True
    failures = [event for event in events if isinstance(event, Failure)]
    assert len(failures) <= 1  # the rows may have been sent already
    done = {event.image for event in events if getattr(event, "method", None) == "nlm"}
    assert len(done) >= 5
    assert multiprocessing.active_children() == []


def test_a_run_killed_in_the_middle_goes_on_where_it_stopped(tmp_path):
    for k in range(40):
        save(tmp_path / "in", f"{k:02d}.png", seed=k)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "vnlem.cli", "bench", str(tmp_path / "in"), "--out", str(out)]
    command += ["--protocol", "awgn", "--sigma", "20", "--methods", "nlm", "--workers", "1", "--quiet"]
    process = subprocess.Popen(command)
    results = out / "results.csv"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (results.exists() and results.read_bytes().count(b"\n") > 6):
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = results.read_bytes()
    with open(results, "ab") as stream:
        stream.write(b"07.png,torn")
    assert 6 < kept.count(b"\n") < 82
    outcome = runner.run_bench(tmp_path / "in", out, AWGN, parse_variants(["nlm"], "awgn"), workers=1)
    assert results.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    assert len(rows_of(out)) == len({(row["image"], row["method"]) for row in rows_of(out)}) == 80
    assert outcome.provenance["rows_this_run"] == 80 - (kept.count(b"\n") - 2)


def test_mixed_sizes_depths_and_colours_and_an_image_smaller_than_the_patch(tmp_path):
    folder = tmp_path / "in"
    save(folder, "grey.png", side=40)
    rng = np.random.default_rng(0)
    io.write(folder / "colour.png", rng.integers(0, 255, (30, 50, 3)).astype(np.uint8))
    io.write(folder / "deep.tif", rng.integers(0, 4000, (50, 30)).astype(np.uint16))
    io.write(folder / "tiny.png", np.array([[0, 200], [90, 255]], np.uint8))
    assert (
        status_of(
            "bench",
            folder,
            "--out",
            tmp_path / "out",
            "--protocol",
            "awgn",
            "--sigma",
            10,
            "--methods",
            "nlm",
            "--quiet",
            "--workers",
            1,
        )
        == 0
    )
    sizes = {row["image"]: (row["height"], row["width"]) for row in rows_of(tmp_path / "out")}
    assert sizes["colour.png"] == ("30", "50")
    found = json.loads((tmp_path / "out" / "summary.json").read_text())
    accounted = {row["image"] for row in rows_of(tmp_path / "out") if row["method"] == "nlm"}
    accounted |= {entry["image"] for entry in found["unreadable"] + found["failures"]}
    assert accounted == {"grey.png", "colour.png", "deep.tif", "tiny.png"}


def test_real_images_without_a_reference_get_residuals_and_the_cytometry_figure(tmp_path):
    noisy = 120 + np.random.default_rng(0).normal(0, 15, (48, 48))
    io.write(tmp_path / "in.png", np.clip(noisy, 0, 255).astype(np.uint8))
    out = tmp_path / "out"
    assert (
        status_of("bench", tmp_path, "--out", out, "--protocol", "real", "--methods", "nlm", "--quiet") == 0
    )
    row = next(row for row in rows_of(out) if row["method"] == "nlm")
    assert float(row["residual_std"]) == pytest.approx(15, rel=0.15)
    assert row["snr"] == row["fsim"] == ""
    assert 0 < float(row["fsim_input"]) < 1
    assert (out / "figures" / "cytometry-median-gain.png").is_file()


@pytest.mark.skipif(not (DATA / "microscopy").is_dir(), reason="the shared images are not here")
def test_pairs_of_real_images_are_compared_with_their_scaled_reference(tmp_path):
    out = tmp_path / "out"
    arguments = (
        "--protocol",
        "pairs",
        "--include",
        "fmd_bpae_R1*",
        "--sigma",
        6,
        "--methods",
        "nlm",
        "--quiet",
        "--no-pictures",
    )
    assert status_of("bench", DATA / "microscopy", "--out", out, *arguments) == 0
    noisy, nlm = rows_of(out)
    # What PAIRS.csv says about this pair after the affine change.
    assert float(noisy["psnr"]) == pytest.approx(32.351, abs=0.01)
    assert float(nlm["psnr"]) > 33.5


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (lambda folder: None, (), "was measured: it has no matching PNG"),
        (lambda folder: (folder / "a.png").write_bytes(b""), (), "1 could not be used, the first a.png"),
        (lambda folder: save(folder, "a.png"), ("--methods", "none"), "unknown method 'none'"),
        (lambda folder: save(folder, "a.png"), ("--protocol", "x"), "--protocol"),
        (
            lambda folder: save(folder, "a.png"),
            ("--sigma", "20"),
            "--sigma does not go with --protocol paper",
        ),
        (lambda folder: save(folder, "a.png"), ("--protocol", "awgn", "--sigma", "a"), "numbers separated"),
        (lambda folder: save(folder, "a.png"), ("--size", "4"), "--size must be at least 16"),
        (lambda folder: save(folder, "a.png"), ("--workers", "0"), "--workers must be at least 1"),
    ],
    ids=["empty", "unreadable", "method", "protocol", "sigma", "number", "size", "workers"],
)
def test_bad_input_is_one_line_and_status_2(tmp_path, capsys, make, arguments, message):
    folder = tmp_path / "in"
    folder.mkdir()
    make(folder)
    arguments = arguments or ("--methods", "nlm")
    assert status_of("bench", folder, "--out", tmp_path / "out", "--quiet", *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_results_that_cannot_be_written_are_reported_with_a_cure(tmp_path, monkeypatch):
    save(tmp_path / "in", "a.png")
    (tmp_path / "file").write_text("")
    variants = parse_variants(["nlm"], "awgn")
    with pytest.raises(NotADirectoryError, match="is a file"):
        runner.run_bench(tmp_path / "in", tmp_path / "file", AWGN, variants)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runner.ResultsFile, "append", full)
    with pytest.raises(OSError, match=r"No space left on device.*goes on"):
        runner.run_bench(tmp_path / "in", tmp_path / "out", AWGN, variants, workers=1)
    assert multiprocessing.active_children() == []


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_reported_before_any_work(tmp_path):
    save(tmp_path / "in", "a.png")
    (tmp_path / "out").mkdir(mode=0o500)
    with pytest.raises(OSError, match="choose another --out"):
        runner.run_bench(tmp_path / "in", tmp_path / "out", AWGN, parse_variants(["nlm"], "awgn"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_disk_under_the_pictures_stops_the_run(tmp_path, capsys):
    save(tmp_path / "in", "a.png")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "pictures").symlink_to("/dev/full")
    arguments = ("--protocol", "awgn", "--sigma", 20, "--methods", "nlm", "--quiet")
    assert status_of("bench", tmp_path / "in", "--out", tmp_path / "out", *arguments) == 2
    assert "cannot write to" in capsys.readouterr().err


def test_an_unreadable_file_is_an_event_and_not_a_row(tmp_path):
    (tmp_path / "a.png").write_bytes(b"nothing")
    (item,) = runner.find_images(tmp_path)
    tasks = [Task(item, ((AWGN[0], (), True),))]
    first, _ = run_tasks(tasks, 1, 1)
    assert isinstance(first, Unreadable)
    assert first.reason.startswith("it is not a PNG, JPEG, TIFF, NPY, NIfTI")


def test_sizes_given_twice_are_measured_once():
    assert [case.size for case in make_cases("paper", 512, "200,512,200", None)] == [200, 512]
