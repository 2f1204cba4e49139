"""The fixed grid of tiles every method works on, and the threads that work through it.

The grid is anchored at the origin and depends on the image's size alone. A tile's result depends on its
read region alone, never on its neighbours' results or on the order of work, so any number of workers
gives the same bytes, and memory is bounded by the tiles in flight instead of by the image.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import NamedTuple, TypeVar

ProgressCallback = Callable[[int, int], object]
Item = TypeVar("Item")


class Tile(NamedTuple):
    """A rectangle of the image that one task writes: rows top..bottom, columns left..right (exclusive)."""

    top: int
    bottom: int
    left: int
    right: int


def grid(height: int, width: int, tile_height: int, tile_width: int) -> list[Tile]:
    """Cut an image into tiles anchored at the origin, in reading order.

    Examples
    --------
    >>> grid(3, 5, 2, 4)
    [Tile(top=0, bottom=2, left=0, right=4), Tile(top=0, bottom=2, left=4, right=5),
     Tile(top=2, bottom=3, left=0, right=4), Tile(top=2, bottom=3, left=4, right=5)]
    """
    return [
        Tile(top, min(top + tile_height, height), left, min(left + tile_width, width))
        for top in range(0, height, tile_height)
        for left in range(0, width, tile_width)
    ]


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
