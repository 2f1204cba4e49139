"""Pages that arrive one by one, of a series whose end is unknown, and pages with several consumers."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from numpy.typing import NDArray

# Number of pages of an endless series: more than are ever in flight.
ENDLESS = 1000


class Incoming:
    """Pages that were put in and not taken out yet.

    page_shape: height and width of every page.

    >>> pages = Incoming((2, 3))
    >>> pages.put("page")
    >>> pages.end()
    >>> list(pages)
    ['page']
    """

    def __init__(self, page_shape: tuple[int, ...]) -> None:
        self.page_shape = page_shape
        self._waiting: deque[NDArray[Any]] = deque()
        self._ended = False

    def put(self, page: Any) -> None:
        """Add a page."""
        self._waiting.append(page)

    def end(self) -> None:
        """No more pages will come."""
        self._ended = True

    def __iter__(self) -> Iterator[NDArray[Any]]:
        while self._waiting or not self._ended:
            if not self._waiting:
                raise RuntimeError("a page was requested before it arrived; this is a bug in vnlem")
            yield self._waiting.popleft()


def shared(pages: Iterable[Any], count: int) -> list[Iterator[Any]]:
    """The same pages for several consumers at different times; a page is freed when all have taken it.

    `itertools.tee` would hold about fifty pages longer.

    >>> first, second = shared("ab", 2)
    >>> next(first), list(second), list(first)
    ('a', ['a', 'b'], ['b'])
    """
    source = iter(pages)
    waiting: list[deque[Any]] = [deque() for _ in range(count)]

    def take(own: deque[Any]) -> Iterator[Any]:
        while True:
            if not own:
                try:
                    page = next(source)
                except StopIteration:
                    return
                for others in waiting:
                    others.append(page)
                del page
            yield own.popleft()

    return [take(own) for own in waiting]
