"""The experiment from beginning to end: list the work, do it, and write the results."""

import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from vnlem import __version__
from vnlem.bench import protocols, results, summary, tables
from vnlem.bench.datasets import Item, find_images, find_pairs
from vnlem.bench.protocols import Case, seed_of
from vnlem.bench.results import Key, ResultsFile, Row
from vnlem.bench.sources import sources_hash
from vnlem.bench.variants import NOISY, Variant
from vnlem.bench.worker import CannotWrite, Done, Failure, Task, Unreadable
from vnlem.bench.workers import run_tasks
from vnlem.io.atomic import whole_file
from vnlem.pipeline.progress import progress_bar

_PACKAGES = ("numpy", "scipy", "scikit-image", "bm3d", "opencv-python-headless", "PyWavelets")


@dataclass
class Outcome:
    """What a run of the experiment found.

    items: the images that were measured.
    rows: (image, case's name, variant's hash) -> row.
    unreadable: image -> why it could not be read.
    failures: methods that could not denoise an image, and images that were lost with their worker.
    """

    items: list[Item]
    cases: list[Case]
    variants: list[Variant]
    rows: dict[tuple[str, str, str], Row] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)


def run_bench(
    folder: Path,
    out: Path,
    cases: Sequence[Case],
    variants: Sequence[Variant],
    *,
    workers: int | None = None,
    include: str = "*",
    pictures: bool = True,
    fresh: bool = False,
    quiet: bool = True,
) -> Outcome:
    """Denoise and measure every image of a folder; continue where an earlier run stopped.

    folder: searched for images with all its sub-folders.
    out: results.csv grows here as results arrive; pictures for the report go here too.
    cases: of one protocol.
    workers: processes; one for each core when None. They share the cores.
    include: take only images whose names match this pattern.
    pictures: whether to write the pictures that the report's gallery shows.
    fresh: discard earlier results.
    quiet: show no progress bar.

    The outcome has no image if none could be measured.
    """
    items, unreadable = _items(folder, out, cases[0].protocol, include)
    outcome = Outcome(items, list(cases), list(variants), unreadable=unreadable)
    prepare_folder(out)
    cores = os.cpu_count() or 1
    n_workers = max(1, min(workers or cores, len(items)))
    threads = max(1, cores // n_workers)
    begun, started = time.perf_counter(), datetime.now(UTC)
    busy = denoising = measuring = 0.0
    measured = 0
    try:
        with ResultsFile(out / results.NAME, fresh=fresh) as file:
            tasks = [task for item in items if (task := _task(item, outcome, file)) is not None]
            total = sum(task.n_rows for task in tasks)
            title = f"{len(tasks)} images in {min(n_workers, max(1, len(tasks)))} processes"
            with progress_bar(title, quiet=quiet or not tasks, lines=True) as report:
                for event in run_tasks(tasks, n_workers, threads, out if pictures else None):
                    if isinstance(event, Row):
                        file.append(event)
                        _keep(outcome, event)
                        measured += 1
                        denoising += event.seconds or 0.0
                        report(measured / total)
                    elif isinstance(event, Unreadable):
                        outcome.unreadable[event.image] = event.reason
                    elif isinstance(event, Failure):
                        outcome.failures.append(event)
                    elif isinstance(event, Done):
                        busy += event.busy
                        measuring += event.measuring
                    elif isinstance(event, CannotWrite):
                        raise OSError(event.reason)
    except OSError as error:
        raise OSError(
            f"cannot write to {out} ({error.strerror or error}); what was measured is kept: make room or "
            "choose another --out, then run the same command again and it goes on"
        ) from error
    seen = {image for image, _, hash_ in outcome.rows if hash_ != NOISY}
    outcome.items = [item for item in items if item.name in seen]
    outcome.provenance = _provenance(folder, started, n_workers, threads) | {
        "seconds_this_run": round(time.perf_counter() - begun, 2),
        "rows_this_run": measured,
        "worker_seconds_this_run": round(busy, 2),
        "denoising_seconds_this_run": round(denoising, 2),
        "measuring_seconds_this_run": round(measuring, 2),
        "include": include,
        "pictures": pictures,
    }
    return outcome


def write_summary(outcome: Outcome, out: Path) -> dict[str, Any]:
    """summary.json, table.md and table.tex; returns the summary."""
    found: dict[str, Any] = {
        "vnlem": __version__,
        "protocol": outcome.cases[0].protocol,
        "n_images": len(outcome.items),
        "methods": [
            {"label": variant.label, "hash": variant.hash, "parameters": json.loads(variant.parameters)}
            for variant in outcome.variants
        ],
        "cases": [
            summary.summarise_case(outcome.items, case, outcome.variants, outcome.rows)
            for case in outcome.cases
        ],
        "unreadable": [{"image": name, "reason": why} for name, why in sorted(outcome.unreadable.items())],
        "failures": [vars(failure) for failure in outcome.failures],
        "provenance": outcome.provenance,
    }
    write_text(out / "summary.json", json.dumps(found, indent=1) + "\n")
    for name, draw in (("table.md", tables.markdown), ("table.tex", tables.latex)):
        write_text(out / name, "\n".join(draw(case, outcome.variants) for case in found["cases"]))
    return found


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="surrogateescape")


def prepare_folder(out: Path) -> None:
    """Make the folder of results and make sure that it is writable, before any work."""
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"--out {out} is a file; name a folder for the results")
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / f".vnlem-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OSError(f"cannot write to {out} ({error.strerror}); choose another --out") from error


def _items(folder: Path, out: Path, protocol: str, include: str) -> tuple[list[Item], dict[str, str]]:
    items = find_images(folder, include=include, leave_out=out)
    unreadable = {item.name: "its name has a line break" for item in items if "\n" in item.name}
    if protocol == "pairs":
        pairs, alone = find_pairs(items, folder)
        items, unreadable = pairs, unreadable | alone
    return [item for item in items if item.name not in unreadable], unreadable


def _task(item: Item, outcome: Outcome, file: ResultsFile) -> Task | None:
    """What is left to do for an image; rows already in the file go to the outcome."""
    digest = _digest(item) if item.name in file.images else ""
    parts = []
    for case in outcome.cases:
        wanted = {variant.hash: variant for variant in outcome.variants}
        hashes = [NOISY, *wanted]
        missing = []
        for hash_ in hashes:
            row = file.rows.get(Key(item.name, case.name, hash_, seed_of(item, case), digest))
            if row is None:
                missing.append(hash_)
            else:
                _keep(outcome, row)
        if missing:
            variants = tuple(wanted[hash_] for hash_ in missing if hash_ != NOISY)
            parts.append((case, variants, NOISY in missing))
    return Task(item, tuple(parts)) if parts else None


def _digest(item: Item) -> str:
    try:
        return item.digest()
    except OSError:
        return ""  # the worker will say what is wrong with it


def _keep(outcome: Outcome, row: Row) -> None:
    outcome.rows[row.image, row.case.name, row.hash] = row


def _provenance(folder: Path, started: datetime, n_workers: int, threads: int) -> dict[str, Any]:
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "folder": folder.resolve().name,
        "started": started.isoformat(timespec="seconds"),
        "vnlem": __version__,
        "sources": sources_hash(),
        "python": platform.python_version(),
        "packages": packages,
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "worker_processes": n_workers,
        "threads_per_worker": threads,
        "seeds": f"numpy default_rng({protocols.FIRST_SEED} + place of the image in sorted order)",
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
