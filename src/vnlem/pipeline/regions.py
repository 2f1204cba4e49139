"""Parts of an image that are solved separately and get the same bytes as in the whole.

All grids, of tiles and of reference patches, are anchored at the origin of the WHOLE image, and mean, scale
and noise come from the whole image (`vnlem.pipeline.scale.Scale`). So a part gives the pixels of the whole if
it reads far enough around what it writes; that distance is the method's halo.
"""

from typing import NamedTuple

from vnlem.pipeline.tiles import Tile


class Region(NamedTuple):
    """What is read and what is written, both in the coordinates of the whole image."""

    shape: tuple[int, int]  # of the whole image
    write: Tile
    read: Tile

    @classmethod
    def whole(cls, height: int, width: int) -> "Region":
        """The region that is the image.

        >>> Region.whole(4, 5).read
        Tile(top=0, bottom=4, left=0, right=5)
        """
        tile = Tile(0, height, 0, width)
        return cls((height, width), tile, tile)

    @classmethod
    def around(cls, shape: tuple[int, int], write: Tile, halo: int) -> "Region":
        """The region that writes a rectangle and reads `halo` pixels around it, as far as the image goes.

        >>> Region.around((100, 100), Tile(0, 50, 40, 60), 16).read
        Tile(top=0, bottom=66, left=24, right=76)
        """
        return cls(shape, write, write.grown(halo, shape))

    def is_whole(self) -> bool:
        """Whether everything is read."""
        return self.read == Tile(0, self.shape[0], 0, self.shape[1])

    def written(self) -> tuple[slice, slice]:
        """Rows and columns that are written, in an array of what is read."""
        return self.write.inside(self.read)
