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


def for_each(
    work: Callable[[Item], object],
    items: Sequence[Item],
    workers: int,
    progress: ProgressCallback | None = None,
) -> None:
    """Call ``work(item)`` for every item on ``workers`` threads; ``progress(done, total)`` in this thread.

    Kernels release the GIL, so Python threads run them side by side without Numba's own thread pool (whose
    simplest layer aborts when two callers meet). An exception or Ctrl-C cancels what has not begun.

    Examples
    --------
    >>> seen = []
    >>> for_each(seen.append, [1, 2, 3], workers=1, progress=lambda done, total: print(done, total))
    1 3
    2 3
    3 3
    """
    total = len(items)
    if workers == 1 or total == 1:
        for done, item in enumerate(items, 1):
            work(item)
            if progress is not None:
                progress(done, total)
        return
    queue = iter(items)
    done = 0
    with ThreadPoolExecutor(min(workers, total)) as pool:
        pending = {pool.submit(work, item) for item in _take(queue, 2 * workers)}
        try:
            while pending:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in finished:
                    _finish(future)
                    done += 1
                    if progress is not None:
                        progress(done, total)
                pending |= {pool.submit(work, item) for item in _take(queue, len(finished))}
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _take(queue: Iterator[Item], count: int) -> Iterator[Item]:
    for _, item in zip(range(count), queue, strict=False):
        yield item


def _finish(future: "Future[object]") -> None:
    future.result()
