"""The threads that work through the tiles of an image."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from vnlem.pipeline import checks
from vnlem.pipeline.progress import ProgressCallback

Item = TypeVar("Item")


def check_workers(workers: int | None) -> int:
    """The number of threads: all cores for None."""
    if workers is None:
        return available_cores()
    return checks.whole("workers", workers)


def available_cores() -> int:
    """Cores this process may use (respects CPU affinity where the system has it).

    Examples
    --------
    >>> available_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Pool:
    """Threads that are kept for a whole job, however many stages it has.

    Kernels release the GIL, so Python threads run them side by side without Numba's own thread pool (whose
    simplest layer aborts when two callers meet).

    Examples
    --------
    >>> seen = []
    >>> with Pool(1) as pool:
    ...     pool.for_each(seen.append, [1, 2])
    ...     pool.for_each(seen.append, [3])
    >>> seen
    [1, 2, 3]
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._threads = ThreadPoolExecutor(workers) if workers > 1 else None

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)

    def for_each(
        self,
        work: Callable[[Item], object],
        items: Sequence[Item],
        progress: ProgressCallback | None = None,
    ) -> None:
        """Call ``work(item)`` for every item; ``progress(done, total)`` in this thread.

        Returns when all is done. An exception or Ctrl-C cancels what has not begun.
        """
        total = len(items)
        if self._threads is None or total == 1:
            for done, item in enumerate(items, 1):
                work(item)
                if progress is not None:
                    progress(done, total)
            return
        queue = iter(items)
        done = 0
        pending = {self._threads.submit(work, item) for item in _take(queue, 2 * self.workers)}
        try:
            while pending:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in finished:
                    _finish(future)
                    done += 1
                    if progress is not None:
                        progress(done, total)
                pending |= {self._threads.submit(work, item) for item in _take(queue, len(finished))}
        except BaseException:
            for future in pending:
                future.cancel()
            wait(pending)
            raise


def for_each(
    work: Callable[[Item], object],
    items: Sequence[Item],
    workers: int,
    progress: ProgressCallback | None = None,
) -> None:
    """`Pool.for_each` for work of one stage.

    Examples
    --------
    >>> seen = []
    >>> for_each(seen.append, [1, 2, 3], workers=1, progress=lambda done, total: print(done, total))
    1 3
    2 3
    3 3
    """
    with Pool(min(workers, max(len(items), 1))) as pool:
        pool.for_each(work, items, progress)


def _take(queue: Iterator[Item], count: int) -> Iterator[Item]:
    for _, item in zip(range(count), queue, strict=False):
        yield item


def _finish(future: "Future[object]") -> None:
    future.result()
