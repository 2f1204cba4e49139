"""The units on a Dask cluster: one task for each, which reads, solves, writes and marks.

Arrays are never sent: a task is a few kilobytes that say where the data are, its result is a number. The
scheduler holds only enough tasks to keep the workers busy, so its memory does not grow with the image. It
gives the units of lost workers to others.
"""

import logging
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from vnlem.large.errors import StopError, UnitError
from vnlem.large.runner import Runner
from vnlem.large.worker import RunTask, do_unit
from vnlem.pipeline.workers import available_cores

AHEAD = 2  # tasks with the scheduler for each thread of the cluster
RETRIES = 2  # of a unit that failed, e.g. because a file server was away for a moment
_one_at_a_time = threading.Lock()


@contextmanager
def cluster_runner(cluster: Any, workers: int | None) -> Iterator[Runner]:
    """Runs units on a cluster: a scheduler's address, ``local:4`` for four processes here, or a client."""
    from distributed import Client, LocalCluster

    if not isinstance(cluster, str):
        yield _runner(cluster, workers)
        return
    kind, _, count = cluster.partition(":")
    if kind != "local":
        if not re.search(r"://|:\d+$", cluster):
            raise ValueError(f"cluster must be 'local:4' or an address like tcp://host:8786, got {cluster!r}")
        try:
            with Client(cluster, timeout="20s", set_as_default=False) as client:
                yield _runner(client, workers)
        except (OSError, ValueError) as error:
            if isinstance(error, StopError | UnitError):
                raise
            raise ValueError(f"cannot reach the Dask scheduler {cluster}: {error}") from error
        return
    if not count.isdigit() or int(count) < 1:
        raise ValueError(f"cluster must be 'local:N' or the address of a scheduler, got {cluster!r}")
    threads = workers or max(1, available_cores() // int(count))
    with (
        LocalCluster(
            n_workers=int(count),
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=0,
            silence_logs=logging.CRITICAL,  # what matters reaches the user as an error
        ) as local,
        Client(local, set_as_default=False) as client,
    ):
        yield _runner(client, threads)


def _runner(client: Any, workers: int | None) -> Runner:
    from distributed import as_completed

    run_name = secrets.token_hex(4)

    def run(task: RunTask, level: int, numbers: list[int]) -> Iterator[int | UnitError]:
        waiting = iter(numbers)

        def submit(count: int) -> list[Any]:
            return [
                client.submit(
                    do_unit_alone,
                    task,
                    level,
                    number,
                    workers,
                    pure=False,
                    retries=RETRIES,
                    key=f"vnlem-{run_name}-{level}-{number}",
                )
                for number in islice(waiting, count)
            ]

        threads = max(1, sum(client.nthreads().values()))
        pending = as_completed(submit(AHEAD * threads), loop=client.loop)
        for future in pending:
            try:
                outcome: int | UnitError = future.result()
            except UnitError as error:
                outcome = error
            except StopError:
                raise
            except Exception as error:
                raise _lost(error) from error
            finally:
                future.release()
            yield outcome
            for following in submit(1):
                pending.add(following)

    return run


def do_unit_alone(task: RunTask, level: int, number: int, workers: int | None) -> int:
    """A unit on a worker; a worker with several threads uses them all for one unit after another."""
    from distributed import get_worker

    with _one_at_a_time:
        try:
            return do_unit(task, level, number, workers or get_worker().state.nthreads)
        finally:
            task.source.close()


def _lost(error: Exception) -> StopError:
    if type(error).__name__ == "KilledWorker":
        return StopError(
            "a unit killed several workers one after the other, most likely because memory ran out; give "
            "the workers more, or run again with --resume and a smaller --memory"
        )
    return StopError(f"the cluster failed ({type(error).__name__}: {error}); run again with --resume")
