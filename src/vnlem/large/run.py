"""The order of the work on one machine: what is left, level by level, and what to do when all is done."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from vnlem.large.errors import UnitError
from vnlem.large.nodes import PARTIAL
from vnlem.large.stores import measure_box, open_level
from vnlem.large.work import Task, do_unit

Report = Callable[[int, int], object]  # (units done, units in all)


class Runner(Protocol):
    """Does units of one level, in any order, and yields each as it ends: its number, or what went wrong."""

    def __call__(self, task: Task, level: int, numbers: list[int]) -> Iterator[int | UnitError]: ...


def left_over(task: Task, level: int) -> list[int]:
    """The units of a level that have no marker, or whose files are not what the marker says."""
    array = open_level(task.root, task.levels[level])
    plan = task.plans[level]
    done = set()
    for number, values in task.markers.done(level):
        if number < len(plan) and values.get("fingerprint") == task.fingerprint:
            found = measure_box(array, task.root, task.levels[level], plan.box(number))
            if found == (values.get("files"), values.get("bytes")):
                done.add(number)
    return [number for number in range(len(plan)) if number not in done]


def run_here(workers: int | None) -> Runner:
    """One unit after the other; each uses all threads."""

    def run(task: Task, level: int, numbers: list[int]) -> Iterator[int | UnitError]:
        for number in numbers:
            try:
                yield do_unit(task, level, number, workers)
            except UnitError as error:
                yield error

    return run


def work_through(task: Task, runner: Runner, part: tuple[int, int], report: Report | None) -> bool:
    """Do everything that is left, or one part of it; returns whether the whole is complete.

    Parameters
    ----------
    task : Task
    runner : Runner
        Who does the units.
    part : (int, int)
        Number of this part, from 1, and how many there are: it takes every so many-th unit of the finest
        level. The coarser levels are made by the part that finds the finest complete.
    report : callable(done, total), optional
    """
    number, parts = part
    total = sum(len(plan) for plan in task.plans)
    done = 0
    for level, plan in enumerate(task.plans):
        left = left_over(task, level)
        mine = [unit for unit in left if level > 0 or unit % parts == number - 1]
        done += len(plan) - len(left)
        failures: list[UnitError] = []
        for outcome in runner(task, level, mine):
            if isinstance(outcome, UnitError):
                failures.append(outcome)
                continue
            done += 1
            if report is not None:
                report(done, total)
        if failures:
            raise _failed(failures, len(mine))
        if level == 0 and parts > 1 and left_over(task, 0):
            return False
    return True


def _failed(failures: list[UnitError], tried: int) -> Exception:
    if len(failures) == 1 and tried == 1:
        return failures[0]
    return UnitError(
        f"{len(failures)} of {tried} units failed, the others are done; the first: {failures[0]} "
        "(then run again with --resume)"
    )


def sweep(folders: Iterable[Path]) -> None:
    """Remove what writers that were killed left behind, once nobody writes any more."""
    for folder in folders:
        for path in folder.rglob(f"*{PARTIAL}"):
            with suppress(FileNotFoundError):
                path.unlink()


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder file by file; what is there already and as long stays."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            copy = target / path.relative_to(source)
            if not copy.exists() or copy.stat().st_size != path.stat().st_size:
                copy.parent.mkdir(parents=True, exist_ok=True)
                partial = copy.with_name(copy.name + PARTIAL)
                shutil.copyfile(path, partial)
                partial.replace(copy)
