"""Pages that come one by one, of a series whose end is not known."""

from collections import deque
from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

# Pages that stand for those of a series without an end: more than are ever in flight.
ENDLESS = 1000


class Incoming:
    """Pages that were put in and not yet taken out.

    Parameters
    ----------
    page_shape : tuple of int
        Height and width of every page.

    Examples
    --------
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
        """One page more."""
        self._waiting.append(page)

    def end(self) -> None:
        """No more pages will come."""
        self._ended = True

    def __iter__(self) -> Iterator[NDArray[Any]]:
        while self._waiting or not self._ended:
            if not self._waiting:
                raise RuntimeError("a page was asked for before it came; this is a fault of vnlem")
            yield self._waiting.popleft()
