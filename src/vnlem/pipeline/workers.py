"""The threads that process the tiles of an image."""

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import Generic, Protocol, TypeVar

from vnlem.pipeline import checks
from vnlem.pipeline.progress import ProgressCallback

Item = TypeVar("Item")
Given = TypeVar("Given", covariant=True)
Made = TypeVar("Made")
_MANY = 2**20  # more than there are threads


def check_workers(workers: int | None) -> int:
    """The number of threads: all cores for None."""
    if workers is None:
        return available_cores()
    return checks.whole("workers", workers)


def available_cores() -> int:
    """Cores this process may use (respects CPU affinity if the system has it).

    >>> available_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Supply(Protocol[Given]):
    """Items; some wait until others are done."""

    def __len__(self) -> int: ...

    def take(self) -> Given:
        """The next item, as soon as there is one; IndexError if none is left."""

    def stop(self) -> None:
        """No more items."""


class _Listed(Generic[Item]):
    """The items of a sequence, in their order."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = deque(items)
        self.take, self.stop = self._items.popleft, self._items.clear

    def __len__(self) -> int:
        return len(self._items)


class Pool:
    """Threads that are kept for a whole job, for any number of stages.

    Kernels release the GIL, so Python threads run them in parallel.

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

    def results(self, work: Callable[[Item], Made], items: Sequence[Item]) -> list[Made]:
        """``work(item)`` of every item, in their order.

        >>> with Pool(2) as pool:
        ...     pool.results(abs, [-1, 2, -3])
        [1, 2, 3]
        """
        found: dict[int, Made] = {}

        def one(number: int) -> None:
            found[number] = work(items[number])

        self.for_each(one, range(len(items)))
        return [found[number] for number in range(len(items))]

    def for_each(
        self,
        work: Callable[[Item], object],
        items: Sequence[Item] | Supply[Item],
        progress: ProgressCallback | None = None,
    ) -> None:
        """Call ``work(item)`` for every item; ``progress(done, total)`` in this thread.

        Returns when all are done. An exception or Ctrl-C cancels what has not started.
        """
        total = len(items)
        supply: Supply[Item] = _Listed(items) if isinstance(items, Sequence) else items
        if self._threads is None or total == 1:
            for done in range(1, total + 1):
                work(supply.take())
                if progress is not None:
                    progress(done, total)
            return
        # Each thread takes the next item itself: this one sleeps unless progress is requested. Whenever this
        # thread runs, the others wait for Python's lock.
        queue = _Queue(work, supply, None if progress is None else 2 * self.workers)
        threads = [self._threads.submit(queue.work_through) for _ in range(min(self.workers, total))]
        try:
            if progress is not None:
                for done in range(1, total + 1):
                    if not queue.wait_for_one():
                        break
                    progress(done, total)
                    queue.allow_one()
            wait(threads)
        except BaseException:
            queue.stop()
            wait(threads)
            raise
        for thread in threads:
            thread.result()


class _Queue(Generic[Item]):
    """Items that some threads process; `ahead`: how many may start before they are waited for."""

    def __init__(self, work: Callable[[Item], object], items: Supply[Item], ahead: int | None) -> None:
        self._work = work
        self._items = items
        self._permits = None if ahead is None else threading.Semaphore(ahead)
        self._done: SimpleQueue[bool] = SimpleQueue()

    def work_through(self) -> None:
        """Take items until there are none; one that raises is the last for all threads."""
        try:
            while True:
                if self._permits is not None:
                    self._permits.acquire()
                try:
                    item = self._items.take()
                except IndexError:
                    return
                self._work(item)
                if self._permits is not None:
                    self._done.put(True)
        except BaseException:
            self.stop()
            raise

    def wait_for_one(self) -> bool:
        """Wait until one more item is done; False if the work was stopped."""
        return self._done.get()

    def allow_one(self) -> None:
        """Let one more item start."""
        if self._permits is not None:
            self._permits.release()

    def stop(self) -> None:
        """Skip what has not started."""
        self._items.stop()
        self._done.put(False)
        if self._permits is not None:
            self._permits.release(_MANY)


def for_each(
    work: Callable[[Item], object],
    items: Sequence[Item],
    workers: int,
    progress: ProgressCallback | None = None,
) -> None:
    """`Pool.for_each` for work of one stage.

    >>> seen = []
    >>> for_each(seen.append, [1, 2, 3], workers=1, progress=lambda done, total: print(done, total))
    1 3
    2 3
    3 3
    """
    with Pool(min(workers, max(len(items), 1))) as pool:
        pool.for_each(work, items, progress)


def pool_for_pixels(count: int, workers: int | None) -> Pool:
    """Few threads for short steps with some pixels; one if there are so few that starting more takes longer.

    >>> pool_for_pixels(512 * 512, 8).workers, pool_for_pixels(2048 * 2048, 8).workers
    (1, 4)
    """
    return Pool(min(check_workers(workers), 4) if count > 2**20 else 1)
