"""Boxes of an array: one (start, stop) for each axis."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

Span = tuple[int, int]
Box = tuple[Span, ...]


def slices(box: Box) -> tuple[slice, ...]:
    """A box as an index.

    >>> slices(((0, 2), (3, 5)))
    (slice(0, 2, None), slice(3, 5, None))
    """
    return tuple(slice(start, stop) for start, stop in box)


def extent(box: Box) -> tuple[int, ...]:
    """The shape of a box.

    >>> extent(((0, 2), (3, 6)))
    (2, 3)
    """
    return tuple(stop - start for start, stop in box)


def volume(box: Box) -> int:
    """How many pixels a box holds.

    >>> volume(((0, 2), (3, 6)))
    6
    """
    return prod(extent(box))


def shifted(box: Box, offset: Sequence[int]) -> Box:
    """A box moved by `offset`.

    >>> shifted(((0, 2), (3, 6)), (10, -3))
    ((10, 12), (0, 3))
    """
    return tuple((start + by, stop + by) for (start, stop), by in zip(box, offset, strict=True))


def grown(box: Box, halo: Sequence[int], shape: Sequence[int]) -> Box:
    """A box with a halo on both sides of each axis, cut off at the end of the array.

    >>> grown(((0, 2), (3, 6)), (1, 2), (10, 7))
    ((0, 3), (1, 7))
    """
    return tuple(
        (max(0, start - by), min(size, stop + by))
        for (start, stop), by, size in zip(box, halo, shape, strict=True)
    )


def inside(box: Box, outer: Box) -> Box:
    """A box in the coordinates of one that contains it.

    >>> inside(((4, 6),), ((3, 9),))
    ((1, 3),)
    """
    return shifted(box, [-start for start, _ in outer])


def pieces(length: int, longest: int) -> list[Span]:
    """An axis cut into as few nearly equal spans as `longest` allows.

    >>> pieces(10, 4)
    [(0, 4), (4, 8), (8, 10)]
    """
    count = -(-length // longest)
    step = -(-length // count)
    return [(start, min(start + step, length)) for start in range(0, length, step)]


def cut_at(box: Box, sides: Sequence[int]) -> Iterator[Box]:
    """The parts of a box between the lines of a grid that begins at the origin.

    >>> list(cut_at(((0, 5), (0, 8)), (4, 8)))
    [((0, 4), (0, 8)), ((4, 5), (0, 8))]
    """
    cuts = [
        [(max(line, start), min(line + side, stop)) for line in range(start // side * side, stop, side)]
        for (start, stop), side in zip(box, sides, strict=True)
    ]
    return product(*cuts)


def describe(box: Box, axes: Sequence[str]) -> str:
    """A box as the command line writes it.

    >>> describe(((0, 2), (3, 6)), "yx")
    'y=0:2,x=3:6'
    """
    return ",".join(f"{name}={start}:{stop}" for name, (start, stop) in zip(axes, box, strict=True))
