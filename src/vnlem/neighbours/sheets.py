"""Sheets: images in which the members of a tile's groups may be found.

A tile of reference patches searches some sheets. The first shows the tile's surroundings in the image itself.
Others may follow: turned copies (group "so2"), or any other image that :class:`Copies` turn into sheets.
Every sheet is cut to what the tile can reach and placed below the previous one in the tile's tall arrays
(`vnlem.kernels.cpu.sheets.Tall`). The kernels know nothing else: a member is a row and a column of the tall
arrays.

A sheet specifies

- how large its part of the tall arrays is (`height`, `width`), and how many candidates a search window has
  in it (`candidates`, rows and columns);
- where the search window of each reference patch begins in it (`corners`): how positions of the image map
  into the sheet;
- what its pixels are (`fill`): pilot, working image, what is compared, how far the working image is from the
  noisy one, and the noise variance of every pixel, so a sheet may have its own noise;
- whether members found there are put back (`put_back`), as those of the image itself are: their estimates are
  added to the sheet's rows of the tile's sums. Such sheets come first. Members of the others contribute to
  estimates, count as noisier, are limited in number, and pay the penalty of a turned patch;
- whether its noise is that of the image (`same_noise`), as in a copy. There the reference patch itself, and
  what lies on it, is not a member: it would agree with the reference's noise.

Movies, volumes and sets of images are searched in the planes themselves, which arrive and leave one by one
(`vnlem.neighbours.planes`).
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.declare import packed
from vnlem.kernels.cpu.sheets import PADDING, CutPlace, Images, Sums, Tall, cut
from vnlem.pipeline.regions import Region
from vnlem.pipeline.tiles import Tile

Whole = NDArray[np.int64]

TILE = 64  # pixels; reference patches are processed in tiles of this size
# Images of at least this many pixels have larger tiles: there are enough of them for any number of threads,
# fewer pixels around tiles are read twice, and less work is done in Python under its lock.
MANY_PIXELS, LARGE_TILE = 2**18, 128


class Sheet(Protocol):
    """One image in which members may be found, as one tile sees it."""

    height: int
    width: int
    candidates: tuple[int, int]
    put_back: bool
    same_noise: bool

    def corners(self, references: Whole) -> Whole:
        """Top left corners (r, 2) of the search windows, in the sheet, for reference patches (r, 2)."""

    def fill(self, images: Images, weights: NDArray[np.float32], tall: Tall, first: int) -> None:
        """Write the sheet to the tall arrays from row `first` on."""


class Copies(Protocol):
    """A kind of sheets in addition to the image: a module, or an object, with these two functions."""

    def reach(self, radius: int, patch_size: int) -> int:
        """How far from a reference patch the image is read to make its copies."""

    def sheets(self, reach: "Reach", tile: Tile, least_variance: float) -> list[Sheet]:
        """The copies of the surroundings of a tile; the noise in them has at least this variance."""


class Reach(NamedTuple):
    """What a tile's reference patches read in the image."""

    patch_size: int
    radius: int
    region: Region

    def sides(self) -> tuple[int, int]:
        """Rows and columns of candidates in a search window: fewer if the image is smaller."""
        height, width = self.region.shape
        return (
            min(2 * self.radius + 1, height - self.patch_size + 1),
            min(2 * self.radius + 1, width - self.patch_size + 1),
        )

    def starts(self, positions: Whole, axis: int) -> Whole:
        """First candidate in the window of each reference position; at a border windows move inwards."""
        last = self.region.shape[axis] - self.patch_size + 1 - self.sides()[axis]
        return np.minimum(np.maximum(positions - self.radius, 0), last)

    def span(self, positions: Whole, axis: int) -> tuple[int, int]:
        """Pixels that the windows of some positions cover along an axis: first, and one past the last."""
        starts = self.starts(positions[[0, -1]], axis)
        return int(starts[0]), int(starts[1]) + self.sides()[axis] + self.patch_size - 1


class ImageSheet:
    """The surroundings of the tile in the image itself: `area`, in the coordinates of the whole image."""

    put_back, same_noise = True, True

    def __init__(self, reach: Reach, area: Tile) -> None:
        self._reach, self.area = reach, area
        self.height, self.width = area.shape
        self.candidates = reach.sides()

    def corners(self, references: Whole) -> Whole:
        """Windows around the references, in the sheet."""
        rows = self._reach.starts(references[:, 0], 0) - self.area.top
        columns = self._reach.starts(references[:, 1], 1) - self.area.left
        return np.stack([rows, columns], axis=1)

    def fill(self, images: Images, weights: NDArray[np.float32], tall: Tall, first: int) -> None:
        """Copy the area."""
        top, left = self.home()
        cut(images, weights, CutPlace(top, left, self.height, self.width, first), tall)

    def home(self) -> tuple[int, int]:
        """Where the sheet begins in the arrays of the region."""
        read = self._reach.region.read
        return self.area.top - read.top, self.area.left - read.left


class Layout(NamedTuple):
    """The sheets of a tile in its tall arrays."""

    sheets: Sequence[Sheet]
    firsts: tuple[int, ...]  # first row of each
    rows: int
    stride: int
    own_rows: int  # rows of the sheets that are put back

    @classmethod
    def of(cls, sheets: Sequence[Sheet]) -> "Layout":
        """One below another."""
        firsts, row, own = [], 0, 0
        for sheet in sheets:
            firsts.append(row)
            row += sheet.height
            own = row if sheet.put_back else own
        stride = max(sheet.width for sheet in sheets) + PADDING
        return cls(sheets, tuple(firsts), row, stride, own)

    def windows(self, references: Whole) -> Whole:
        """Search windows (r, s, 4) of reference patches in the tall arrays, see `match_tile`."""
        found = np.empty((len(references), len(self.sheets), 4), np.int64)
        for i, (sheet, first) in enumerate(zip(self.sheets, self.firsts, strict=True)):
            corners = sheet.corners(references)
            found[:, i, 0] = (corners[:, 0] + first) * self.stride + corners[:, 1]
            found[:, i, 1:] = (*sheet.candidates, sheet.same_noise and not sheet.put_back)
        return found

    def tall(
        self, images: Images, weights: NDArray[np.float32], memory: NDArray[np.float32] | None = None
    ) -> Tall:
        """The tall arrays, filled; memory: for `tall_numbers` numbers, if sheets fill all of it."""
        channels = len(images.noisy)
        if memory is None:
            memory = np.zeros(self.tall_numbers(channels), np.float32)
        compared, pilot, working, change, variance = memory.reshape(5, channels, self.rows, self.stride)
        outside = np.zeros((self.rows, self.stride), np.uint8)
        tall = packed(Tall(compared, pilot, working, change, variance, outside))
        for sheet, first in zip(self.sheets, self.firsts, strict=True):
            sheet.fill(images, weights, tall, first)
        return tall

    def tall_numbers(self, channels: int) -> int:
        """How many numbers the tall arrays have."""
        return 5 * channels * self.rows * self.stride

    def sums(self, channels: int) -> Sums:
        """Empty accumulators for the rows that are put back."""
        return packed(
            Sums(
                np.zeros((channels, self.own_rows, self.stride, 2), np.float32),
                np.zeros((channels, self.own_rows, self.stride), np.float32),
            )
        )
