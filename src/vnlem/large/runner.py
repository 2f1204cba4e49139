"""A run from start to finish: the remaining units, level by level, who does them, and the final steps."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from vnlem.large.blocks import BlockSolver
from vnlem.large.boxes import Box
from vnlem.large.errors import UnitError
from vnlem.large.sources import Source
from vnlem.large.stores import measure_box, open_level
from vnlem.large.target import begin, finish, refuse_existing
from vnlem.large.worker import RunTask, do_unit
from vnlem.pipeline.progress import Progress, reporting

Report = Callable[[int, int], object]  # (units done, units in all)


class Runner(Protocol):
    """Does units of one level, in any order, and yields each when it ends: its number, or its error."""

    def __call__(self, task: RunTask, level: int, numbers: list[int]) -> Iterator[int | UnitError]: ...


@dataclass(frozen=True)
class RunOptions:
    """How to run; the result does not depend on it."""

    memory: int
    resume: bool = False
    part: tuple[int, int] = (1, 1)
    cluster: Any = None
    workers: int | None = None
    progress: Progress = False


@dataclass(frozen=True)
class Summary:
    """What a run did.

    target: what was written.
    complete: whether all of it is done; False after one part of several.
    units: all units of work, including those of the coarser levels.
    units_done: units that this run did.
    halo_overhead: work that the halo adds, as a share of the rest.
    seconds: time this run took.
    settings: what the result depends on: version, source, method, parameters, noise.
    """

    target: Path
    complete: bool
    units: int
    units_done: int
    halo_overhead: float
    seconds: float
    settings: dict[str, Any]


def denoise_source(
    source: Source, solver: BlockSolver, box: Box, target: Path, digest: str, options: RunOptions
) -> Summary:
    """Do the remaining units of a run."""
    begun = time.perf_counter()
    join = options.part[1] > 1
    memory = memory_of_one(options)
    if not options.resume and not join:
        refuse_existing(target)
    # The cluster comes first: if it cannot be reached, nothing is started.
    with _runner(source, options) as runner:
        job = begin(source, solver, box, target, digest, memory, resume=options.resume, join=join)
        complete, count = job.complete, 0
        if not complete:
            with reporting(options.progress, f"denoising {source.name}") as report:
                complete, count = work_through(job.task, runner, options.part, report)
            if complete:
                finish(job)
    plans = job.task.plans
    return Summary(
        target=target,
        complete=complete,
        units=sum(len(plan) for plan in plans),
        units_done=count,
        halo_overhead=plans[0].overhead(),
        seconds=time.perf_counter() - begun,
        settings=job.run["settings"],
    )


def memory_of_one(options: RunOptions) -> int:
    """Memory of one process: processes on this machine share it.

    >>> memory_of_one(RunOptions(1000, cluster="local:4")), memory_of_one(RunOptions(1000, cluster="tcp://host:8786"))
    (250, 1000)
    """
    kind, _, count = options.cluster.partition(":") if isinstance(options.cluster, str) else ("", "", "")
    return options.memory // max(1, int(count)) if kind == "local" and count.isdigit() else options.memory


@contextmanager
def _runner(source: Source, options: RunOptions) -> Iterator[Runner]:
    if options.cluster is None:
        yield run_here(options.workers)
        return
    if not source.travels:
        raise ValueError(
            "an array in memory would have to be sent to every worker; write it to a file that all of "
            "them can read, and pass its name"
        )
    from vnlem.large.cluster import cluster_runner

    with cluster_runner(options.cluster, options.workers) as runner:
        yield runner


def left_over(task: RunTask, level: int) -> list[int]:
    """The units of a level that have no marker, or whose files differ from the marker."""
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
    """One unit after another; each uses all threads."""

    def run(task: RunTask, level: int, numbers: list[int]) -> Iterator[int | UnitError]:
        for number in numbers:
            try:
                yield do_unit(task, level, number, workers)
            except UnitError as error:
                yield error

    return run


def work_through(
    task: RunTask, runner: Runner, part: tuple[int, int], report: Report | None
) -> tuple[bool, int]:
    """Do all remaining units, or one part of them.

    runner: does the units.
    part: number of this part, from 1, and how many there are: part k of n takes the units k, k + n, ... of
        the finest level. The part that finds the finest level complete makes the coarser ones.

    Returns whether nothing is left, and how many units were done here.
    """
    number, parts = part
    total = sum(len(plan) for plan in task.plans)
    done = count = 0
    for level, plan in enumerate(task.plans):
        left = left_over(task, level)
        mine = [unit for unit in left if level > 0 or unit % parts == number - 1]
        done += len(plan) - len(left)
        failures: list[UnitError] = []
        for outcome in runner(task, level, mine):
            if isinstance(outcome, UnitError):
                failures.append(outcome)
                continue
            done, count = done + 1, count + 1
            if report is not None:
                report(done, total)
        if failures:
            raise _failed(failures, len(mine))
        if level == 0 and parts > 1 and left_over(task, 0):
            return False, count
    return True, count


def _failed(failures: list[UnitError], tried: int) -> Exception:
    if len(failures) == 1 and tried == 1:
        return failures[0]
    return UnitError(
        f"{len(failures)} of {tried} units failed, the others are done; the first: {failures[0]} "
        "(then run again with --resume)"
    )
