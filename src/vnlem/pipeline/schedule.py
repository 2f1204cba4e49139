"""Which tile may be processed next if an image is processed in several passes.

A tile of one pass needs the result of the previous pass only around it, not the whole image. So no pass waits
until the previous one is done everywhere, and threads always find work.

Tiles are processed in any order. They are *settled*, i.e. their results become part of the image, in reading
order wherever two of them overlap. The image is then the same for any number of threads. Along each axis a
tile has a span, the pixels that it reads or changes. Once a tile is settled, the rectangle from where its
spans begin to where the next ones begin is final for its pass: no later tile of the pass reads it, and the
next pass may.
"""

import heapq
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

Span = tuple[int, int]  # first pixel, and one past the last


class Spans(NamedTuple):
    """Spans of a pass's tiles along the rows and along the columns, by where they begin."""

    rows: Sequence[Span]
    columns: Sequence[Span]


class Step(NamedTuple):
    """A tile of a pass."""

    number: int  # of the pass
    row: int
    column: int


class Schedule:
    """Hands out tiles. Threads `take` one, process it, and settle the tiles that `settling` yields.

    >>> line = [(0, 12), (4, 20), (14, 30)]
    >>> schedule = Schedule([Spans([(0, 9)], line), Spans([(0, 9)], line)])
    >>> for _ in range(len(schedule)):
    ...     step = schedule.take()
    ...     print(step.number, step.column, [settled.column for settled in schedule.settling(step)])
    0 0 [0]
    0 1 [1]
    0 2 [2]
    1 0 [0]
    1 1 [1]
    1 2 [2]
    """

    def __init__(self, passes: Sequence[Spans], order: Callable[[Step], object] | None = None) -> None:
        self._order = order or (lambda step: step)
        self._passes = passes
        # How many tiles of each row are settled, and which are done and wait for that.
        self._settled = [[0] * len(spans.rows) for spans in passes]
        self._waiting: set[Step] = set()
        # The last tile of the row above, or of the same row, that overlaps with one of a column.
        self._overlapping = [_last_begun(spans.columns, spans.columns) for spans in passes]
        self._next_rows = [_waiting_for(one.rows, other.rows) for one, other in pairwise(passes)]
        self._next_columns = [_waiting_for(one.columns, other.columns) for one, other in pairwise(passes)]
        self._changed = threading.Condition()
        self._ready: list[tuple[object, Step]] = []
        self._untaken = len(self)
        if passes:
            for row in range(len(passes[0].rows)):
                for column in range(len(passes[0].columns)):
                    self._push(Step(0, row, column))

    def __len__(self) -> int:
        return sum(len(spans.rows) * len(spans.columns) for spans in self._passes)

    def take(self) -> Step:
        """The next tile to process, the lowest in the order of those ready; IndexError if none is left."""
        with self._changed:
            while not self._ready and self._untaken:
                self._changed.wait()
            if not self._untaken:
                raise IndexError("no tile is left")
            self._untaken -= 1
            if not self._untaken:
                self._changed.notify_all()
            return heapq.heappop(self._ready)[1]

    def stop(self) -> None:
        """Skip what has not started."""
        with self._changed:
            self._untaken = 0
            self._changed.notify_all()

    def settling(self, step: Step) -> Iterator[Step]:
        """After a tile is processed: the tiles that the caller must settle, one after another."""
        with self._changed:
            self._waiting.add(step)
        candidates = [step]
        while candidates:
            number, row, column = one = candidates.pop()
            with self._changed:
                if not self._may_settle(one):
                    continue
                self._waiting.remove(one)
            yield one
            with self._changed:
                self._settled[number][row] = column + 1
                if number + 1 < len(self._passes):
                    for next_row in self._next_rows[number].get(row, ()):
                        for next_column in self._next_columns[number].get(column, ()):
                            self._push(Step(number + 1, next_row, next_column))
                            self._changed.notify()
                candidates.append(Step(number, row, column + 1))
                if row + 1 < len(self._settled[number]):
                    candidates.append(Step(number, row + 1, self._settled[number][row + 1]))

    def _push(self, step: Step) -> None:
        heapq.heappush(self._ready, (self._order(step), step))

    def _may_settle(self, step: Step) -> bool:
        number, row, column = step
        settled = self._settled[number]
        if step not in self._waiting or settled[row] != column:
            return False
        return row == 0 or settled[row - 1] > self._overlapping[number][column]


def _last_begun(spans: Sequence[Span], others: Sequence[Span]) -> list[int]:
    """For each span the last of the others that begins before it ends; the first always does."""
    begins = [begin for begin, _ in others]
    return [max(bisect_left(begins, end) - 1, 0) for _, end in spans]


def _waiting_for(spans: Sequence[Span], later: Sequence[Span]) -> dict[int, list[int]]:
    """For spans of a pass, those of the next pass that wait for them last."""
    found: dict[int, list[int]] = {}
    for index, last in enumerate(_last_begun(later, spans)):
        found.setdefault(last, []).append(index)
    return found
