"""Images in parallel: spawned processes that each work on one image at a time; one that dies is replaced."""

import multiprocessing
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from vnlem.bench.worker import Done, Event, Failure, Ready, Task, serve

# Libraries that start their own threads read these when they are loaded.
_THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class _Worker:
    """A process and its end of the pipe."""

    def __init__(self, out: Path | None, threads: int) -> None:
        # Spawned: a forked copy of a process with threads may hang.
        context: Any = multiprocessing.get_context("spawn")
        self.connection: Connection
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, out, threads), daemon=True)
        with _environment(dict.fromkeys(_THREAD_LIMITS, str(threads))):
            self.process.start()
        theirs.close()
        self.ready = False
        self.task: Task | None = None

    def stop(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.join()

    def last_words(self) -> str:
        self.process.join()
        code = self.process.exitcode
        how = f"was killed by signal {-code}" if code < 0 else f"left with status {code}"
        return f"its worker process {how}"


def run_tasks(
    tasks: Iterable[Task], n_workers: int, threads: int, out: Path | None = None
) -> Iterator[Event]:
    """Work on tasks in `n_workers` processes; events come in the order in which they happen.

    A process that dies gives a Failure for the image it had, and another takes its place.

    tasks: taken one by one; it may be long.
    n_workers, threads: processes, and the threads each may use.
    out: folder of the results, for the pictures.
    """
    queue = iter(tasks)
    workers: list[_Worker] = []
    try:
        for task in queue:
            worker = _Worker(out, threads)
            workers.append(worker)
            _give(worker, task)
            if len(workers) == n_workers:
                break
        while workers:
            by_connection = {worker.connection: worker for worker in workers}
            for connection in wait(list(by_connection)):
                worker = by_connection[connection]  # type: ignore[index]
                try:
                    event = worker.connection.recv()
                except (EOFError, ConnectionResetError):
                    yield from _replace(workers, worker, queue, out, threads)
                    continue
                if isinstance(event, Ready):
                    worker.ready = True
                    continue
                if isinstance(event, Done):
                    _next(workers, worker, queue)
                yield event
    finally:
        for worker in workers:
            worker.stop()


def _give(worker: _Worker, task: Task) -> None:
    worker.task = task
    # If it has died, reading from it fails, and the task counts as lost.
    with suppress(BrokenPipeError, ConnectionResetError):
        worker.connection.send(task)


def _next(workers: list[_Worker], worker: _Worker, queue: Iterator[Task]) -> None:
    task = next(queue, None)
    if task is None:
        workers.remove(worker)
        worker.stop()
    else:
        _give(worker, task)


def _replace(
    workers: list[_Worker], worker: _Worker, queue: Iterator[Task], out: Path | None, threads: int
) -> Iterator[Event]:
    workers.remove(worker)
    words = worker.last_words()
    worker.stop()
    if not worker.ready:
        raise RuntimeError(
            f"a worker could not start ({words}); a script that calls this needs its calls below "
            "if __name__ == '__main__':"
        )
    assert worker.task is not None
    yield Failure(worker.task.item.name, "", "", words)
    task = next(queue, None)
    if task is not None:
        successor = _Worker(out, threads)
        workers.append(successor)
        _give(successor, task)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
