"""The fixed grid of tiles every method works on.

The grid is anchored at the origin and depends only on the image's size. A tile's result depends only on its
read region, never on its neighbours' results or on the order of work. So any number of workers gives the same
bytes, and memory is bounded by the tiles in flight, not by the image.
"""

from typing import NamedTuple


class Tile(NamedTuple):
    """A rectangle of the image that one task writes: rows top..bottom, columns left..right (exclusive)."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def shape(self) -> tuple[int, int]:
        """Its height and width."""
        return self.bottom - self.top, self.right - self.left

    @property
    def area(self) -> int:
        """How many pixels it has."""
        return self.shape[0] * self.shape[1]

    def grown(self, by: int, shape: tuple[int, int]) -> "Tile":
        """With `by` pixels more on every side, as far as an image of this shape goes.

        >>> Tile(0, 50, 40, 60).grown(16, (100, 100))
        Tile(top=0, bottom=66, left=24, right=76)
        """
        return Tile(
            max(self.top - by, 0),
            min(self.bottom + by, shape[0]),
            max(self.left - by, 0),
            min(self.right + by, shape[1]),
        )

    def halved(self) -> "Tile":
        """The pixels of an image at half its size that this one touches."""
        return Tile(self.top // 2, -(-self.bottom // 2), self.left // 2, -(-self.right // 2))

    def doubled(self, shape: tuple[int, int]) -> "Tile":
        """The pixels under this one in an image of twice the size, which has this shape."""
        return Tile(*(2 * edge for edge in self)).grown(0, shape)

    def contains(self, other: "Tile") -> bool:
        """Whether another lies in this one.

        >>> Tile(0, 9, 0, 9).contains(Tile(2, 9, 0, 3)), Tile(0, 9, 0, 9).contains(Tile(2, 10, 0, 3))
        (True, False)
        """
        rows = self.top <= other.top and other.bottom <= self.bottom
        return rows and self.left <= other.left and other.right <= self.right

    @property
    def slices(self) -> tuple[slice, slice]:
        """Its rows and columns in an array of the whole image."""
        return slice(self.top, self.bottom), slice(self.left, self.right)

    def inside(self, outer: "Tile") -> tuple[slice, slice]:
        """Its rows and columns in an array of the pixels of `outer`."""
        return (
            slice(self.top - outer.top, self.bottom - outer.top),
            slice(self.left - outer.left, self.right - outer.left),
        )


def grid(height: int, width: int, tile_height: int, tile_width: int) -> list[Tile]:
    """Cut an image into tiles anchored at the origin, in reading order.

    >>> grid(3, 5, 2, 4)
    [Tile(top=0, bottom=2, left=0, right=4), Tile(top=0, bottom=2, left=4, right=5),
     Tile(top=2, bottom=3, left=0, right=4), Tile(top=2, bottom=3, left=4, right=5)]
    """
    return [
        Tile(top, min(top + tile_height, height), left, min(left + tile_width, width))
        for top in range(0, height, tile_height)
        for left in range(0, width, tile_width)
    ]
