"""A run from beginning to end, for any engine."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vnlem.large.boxes import Box
from vnlem.large.engine import Engine
from vnlem.large.finish import finish
from vnlem.large.prepare import prepare, refuse_existing
from vnlem.large.run import Runner, run_here, work_through
from vnlem.large.sources import Source
from vnlem.pipeline.progress import Progress, reporting


@dataclass(frozen=True)
class Wishes:
    """How a run is to be done; the result does not depend on it."""

    memory: int
    resume: bool = False
    part: tuple[int, int] = (1, 1)
    cluster: Any = None
    workers: int | None = None
    progress: Progress = False


@dataclass(frozen=True)
class Summary:
    """What a run did.

    Attributes
    ----------
    target : Path
        What was written.
    complete : bool
        Whether all of it is done; False after one part of several.
    units : int
        Units of work in all, those of the coarser levels included.
    units_done : int
        Units that this run did.
    halo_overhead : float
        Work that the halo adds, as a share of the rest.
    seconds : float
        Time this run took.
    settings : dict
        What the result depends on: version, source, method, parameters, noise.
    """

    target: Path
    complete: bool
    units: int
    units_done: int
    halo_overhead: float
    seconds: float
    settings: dict[str, Any]


def execute(source: Source, engine: Engine, box: Box, target: Path, digest: str, wishes: Wishes) -> Summary:
    """Do what is left of a run."""
    begun = time.perf_counter()
    join = wishes.part[1] > 1
    memory = memory_of_one(wishes)
    counted = 0

    def count(task_runner: Runner) -> Runner:
        def run(task: Any, level: int, numbers: list[int]) -> Iterator[Any]:
            nonlocal counted
            for outcome in task_runner(task, level, numbers):
                counted += isinstance(outcome, int)
                yield outcome

        return run

    if not wishes.resume and not join:
        refuse_existing(target)
    # The cluster comes first: where it cannot be reached nothing is begun.
    with _runner(source, wishes) as runner:
        job = prepare(source, engine, box, target, digest, memory, resume=wishes.resume, join=join)
        complete = job.complete
        if not complete:
            with reporting(wishes.progress, f"denoising {source.name}") as report:
                complete = work_through(job.task, count(runner), wishes.part, report)
            if complete:
                finish(job)
    plans = job.task.plans
    return Summary(
        target=target,
        complete=complete,
        units=sum(len(plan) for plan in plans),
        units_done=counted,
        halo_overhead=plans[0].overhead(),
        seconds=time.perf_counter() - begun,
        settings=job.run["settings"],
    )


def memory_of_one(wishes: Wishes) -> int:
    """Memory of one process: processes on this machine share it.

    Examples
    --------
    >>> memory_of_one(Wishes(1000, cluster="local:4")), memory_of_one(Wishes(1000, cluster="tcp://host:8786"))
    (250, 1000)
    """
    kind, _, count = wishes.cluster.partition(":") if isinstance(wishes.cluster, str) else ("", "", "")
    return wishes.memory // max(1, int(count)) if kind == "local" and count.isdigit() else wishes.memory


@contextmanager
def _runner(source: Source, wishes: Wishes) -> Iterator[Runner]:
    if wishes.cluster is None:
        yield run_here(wishes.workers)
        return
    if not source.travels:
        raise ValueError(
            "an array in memory would have to be sent to every worker; write it to a file that all of "
            "them can read, and pass its name"
        )
    from vnlem.large.cluster import cluster_runner

    with cluster_runner(wishes.cluster, wishes.workers) as runner:
        yield runner
