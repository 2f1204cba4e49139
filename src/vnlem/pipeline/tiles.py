"""The fixed grid of tiles every method works on.

The grid is anchored at the origin and depends on the image's size alone. A tile's result depends on its
read region alone, never on its neighbours' results or on the order of work, so any number of workers
gives the same bytes, and memory is bounded by the tiles in flight instead of by the image.
"""

from typing import NamedTuple


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
