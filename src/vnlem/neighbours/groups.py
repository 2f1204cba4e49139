"""Groups of similar patches: where the reference patches lie, and which patches belong to each of them.

A member is a patch at another place that agrees with the reference after a symmetry of the square, or, in a
sheet other than the image, after the transform that made the sheet (see `vnlem.neighbours.sheets`).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.match import ANY_MOVE, Field, match_tile, measure_patches
from vnlem.kernels.cpu.sheets import Tall
from vnlem.neighbours import turned
from vnlem.neighbours.patches import patch_sums
from vnlem.neighbours.sheets import LARGE_TILE, MANY_PIXELS, TILE, Copies, ImageSheet, Layout, Reach, Sheet
from vnlem.pipeline.choices import Group
from vnlem.pipeline.tiles import Tile

MOST_COPIED = 0.4  # largest share of a group from sheets that are not put back
GROUPS: tuple[str, ...] = get_args(Group)
# Groups that also search copies of the image, and which kinds. A new kind is a module with `reach` and
# `sheets`, and an entry here.
COPIES: dict[str, tuple[Copies, ...]] = {"so2": (turned,), "similarity": (turned,)}


def symmetries(group: str, patch_size: int) -> NDArray[np.int64]:
    """The aligning permutations of a patch's pixels, the identity first.

    Entry [g, u] is the pixel of a member that lies on pixel u of the reference.

    >>> symmetries("c4", 2)
    array([[0, 1, 2, 3], [1, 3, 0, 2], [3, 2, 1, 0], [2, 0, 3, 1]])
    """
    pixels = np.arange(patch_size**2).reshape(patch_size, patch_size)
    turned = [np.rot90(pixels, quarter) for quarter in range(4)]
    elements = {"identity": turned[:1], "c4": turned}.get(group, turned + [np.fliplr(p) for p in turned])
    return np.stack([element.ravel() for element in elements]).astype(np.int64)


def allowed_moves(pattern: tuple[str, ...], transforms: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Which moves of a patch of a mosaic put every pixel on one of the same colour.

    Entry [place, shift] has a bit for each of the `symmetries`. Places of the reference's corner, and shifts
    of the member from there, are counted row by row in a cell of the pattern.

    >>> allowed_moves(("RG", "GB"), symmetries("d4", 1))[0]
    array([255,   0,   0,   0], dtype=uint8)
    >>> allowed_moves(("RG", "GB"), symmetries("d4", 3))[:2, 0]
    array([255,  85], dtype=uint8)
    """
    cell, size = len(pattern), int(np.sqrt(transforms.shape[1]))
    colours = np.array([list(row) for row in pattern])
    here = np.arange(size) % cell
    patches = np.stack(
        [
            colours[np.ix_((here + y) % cell, (here + x) % cell)].ravel()
            for y in range(cell)
            for x in range(cell)
        ]
    )
    moves = np.zeros((cell**2, cell**2), np.uint8)
    for place in range(cell**2):
        for shift in range(cell**2):
            y, x = place // cell + shift // cell, place % cell + shift % cell
            member = patches[y % cell * cell + x % cell]
            same = (member[transforms] == patches[place]).all(axis=1)
            moves[place, shift] = np.packbits(same, bitorder="little")[0]
    return moves


def grid_positions(count: int, step: int) -> NDArray[np.int64]:
    """Every `step`-th of `count` positions, and always the last one.

    >>> grid_positions(8, 3)
    array([0, 3, 6, 7])
    """
    positions = np.arange(0, count, step)
    return positions if positions[-1] == count - 1 else np.append(positions, count - 1)


def positions_in_part(count: int, step: int, first: int, whole: int) -> NDArray[np.int64]:
    """The grid positions of a whole that lie in a part of it, counted from the part's first.

    The part's own first and last are among them, to cover every pixel of it.

    >>> positions_in_part(8, 3, 0, 8), positions_in_part(5, 3, 2, 8)
    (array([0, 3, 6, 7]), array([0, 1, 4]))
    """
    grid = grid_positions(whole, step) - first
    return np.unique([0, *grid[(grid >= 0) & (grid < count)], count - 1])


class TileGroups(NamedTuple):
    """The reference patches of one tile, and the pixels they read."""

    tile: Tile
    references: NDArray[np.int64]  # (r, 2) top left corners in the whole image
    area: Tile  # the pixels of the image in their search windows


class Line(NamedTuple):
    """The tiles of one row or of one column, along the other axis."""

    begin: int  # first pixel of the tiles
    positions: NDArray[np.int64]  # of the reference patches
    span: tuple[int, int]  # the pixels they read
    source: int = -1  # index of the same line in the original grid
    chosen: NDArray[np.bool_] | None = None  # which of its positions are left; None for all


@dataclass(frozen=True)
class TileGrid:
    """The tiles of a pass, and their reference patches."""

    reach: Reach
    side: int  # of a tile
    rows: list[Line]
    columns: list[Line]

    @classmethod
    def of(cls, reach: Reach, step: int, needed: Tile, side: int = TILE) -> "TileGrid":
        """The reference patches whose groups may reach a needed pixel."""
        rows = _lines_of_tiles(reach, step, side, 0, (needed.top, needed.bottom))
        columns = _lines_of_tiles(reach, step, side, 1, (needed.left, needed.right))
        return cls(reach, side, rows, columns)

    def needing(self, needed: Tile) -> "TileGrid":
        """The part of this grid whose groups may reach a needed pixel, for groups found already."""
        rows = _left_over(self.reach, self.rows, 0, (needed.top, needed.bottom))
        columns = _left_over(self.reach, self.columns, 1, (needed.left, needed.right))
        return TileGrid(self.reach, self.side, rows, columns)

    def groups(self, row: int, column: int) -> TileGroups:
        """One tile."""
        height, width = self.reach.region.shape
        top, y, over = self.rows[row][:3]
        left, x, across = self.columns[column][:3]
        corners = np.empty((len(y), len(x), 2), np.int64)
        corners[:, :, 0] = y[:, None]
        corners[:, :, 1] = x
        tile = Tile(top, min(top + self.side, height), left, min(left + self.side, width))
        return TileGroups(tile, corners.reshape(-1, 2), Tile(*over, *across))

    def known(self, found: dict[tuple[int, int], "Members"], row: int, column: int) -> "Members":
        """Take the groups of a tile from those of the original grid, which drops them."""
        over, across = self.rows[row], self.columns[column]
        members = found.pop((over.source, across.source))
        if over.chosen is None and across.chosen is None:
            return members
        masks = [
            np.ones(len(line.positions), np.bool_) if line.chosen is None else line.chosen
            for line in (over, across)
        ]
        return members.of(np.logical_and.outer(*masks).ravel())

    def reads(self, copied: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The pixels that the tiles of each row, and of each column, read; copied: reach of turned copies."""
        rows, columns = (
            [
                (
                    min(line.span[0], int(line.positions[0]) - copied),
                    max(line.span[1], int(line.positions[-1]) + self.reach.patch_size + copied),
                )
                for line in lines
            ]
            for lines in (self.rows, self.columns)
        )
        return rows, columns


def _left_over(reach: Reach, lines: list[Line], axis: int, needed: tuple[int, int]) -> list[Line]:
    """The lines that matter if only some pixels are needed. Spans stay: members are places in them."""
    left = []
    for number, line in enumerate(lines):
        chosen = _needing(reach, line.positions, axis, needed)
        if chosen.all():
            left.append(line._replace(source=number, chosen=None))
        elif chosen.any():
            positions = line.positions[chosen]
            left.append(line._replace(positions=positions, source=number, chosen=chosen))
    return left


def _needing(
    reach: Reach, positions: NDArray[np.int64], axis: int, needed: tuple[int, int]
) -> NDArray[np.bool_]:
    """Which reference positions have groups that may reach the needed pixels first..last."""
    first, last = needed
    starts = reach.starts(positions, axis)
    ends = starts + reach.sides()[axis] + reach.patch_size - 1
    needing: NDArray[np.bool_] = (starts < last) & (ends > first)
    return needing


def needed_positions(reach: Reach, step: int, axis: int, needed: tuple[int, int]) -> NDArray[np.int64]:
    """The reference positions along an axis whose groups may reach the needed pixels first..last."""
    positions = grid_positions(reach.region.shape[axis] - reach.patch_size + 1, step)
    return positions[_needing(reach, positions, axis, needed)]


def _lines_of_tiles(reach: Reach, step: int, side: int, axis: int, needed: tuple[int, int]) -> list[Line]:
    """Along one axis: where each tile begins, the reference positions in it, and the pixels they read."""
    positions = needed_positions(reach, step, axis, needed)
    lines = []
    for begin in range(0, reach.region.shape[axis], side):
        own = positions[(positions >= begin) & (positions < begin + side)]
        if own.size:
            lines.append(Line(begin, own, reach.span(own, axis)))
    return lines


def needed_before(reach: Reach, step: int, needed: Tile, copied: int = 0) -> Tile:
    """The pixels a pass must know for the needed part of its result; copied: reach of turned copies."""
    spans = []
    for axis, ends in enumerate(((needed.top, needed.bottom), (needed.left, needed.right))):
        used = needed_positions(reach, step, axis, ends)
        begin, end = reach.span(used, axis)
        if copied:
            begin = min(begin, max(int(used[0]) - copied, 0))
            end = max(end, min(int(used[-1]) + reach.patch_size + copied, reach.region.shape[axis]))
        spans.append((begin, end))
    return Tile(*spans[0], *spans[1])


def reach_of_copies(copies: tuple[Copies, ...], radius: int, patch_size: int) -> int:
    """How far from a reference patch copies are read; 0 without copies.

    >>> [reach_of_copies(COPIES.get(group, ()), 20, 7) for group in ("d4", "so2")]
    [0, 63]
    """
    return max((kind.reach(radius, patch_size) for kind in copies), default=0)


@dataclass(frozen=True)
class Members:
    """The groups of one tile."""

    positions: NDArray[np.int32]  # (references, members): row * stride + column in the tall arrays
    transforms: NDArray[np.uint8]  # (references, members): index into `symmetries`

    def of(self, chosen: NDArray[np.bool_]) -> "Members":
        """Those of some of the references."""
        return Members(self.positions[chosen], self.transforms[chosen])


@dataclass(frozen=True)
class Matching:
    """How the groups of a pass are found.

    A patch that is not simply shifted ranks with factor * d^2 + penalty * (the noise energy of the
    reference); not at all if the reference has less than flat_energy * its noise about its mean. A group with
    fewer than one such patch in eight uses none.
    """

    reach: Reach
    group: str
    n_members: int
    weights: NDArray[np.float32]  # (channels): of each channel in comparisons
    factor: float
    penalty: float
    flat_energy: float = 0.0
    least_variance: float = 0.0  # of the noise in turned copies
    copies: tuple[Copies, ...] = ()  # searched in addition to the image
    copied_radius: int | None = None  # of the search windows in copies; as in the image when None
    pattern: tuple[str, ...] = ()  # colours of the pixels of a cell, row by row; one colour when empty

    @cached_property
    def transforms(self) -> NDArray[np.int64]:
        """The aligning permutations of a patch's pixels."""
        return symmetries(self.group, self.reach.patch_size)

    @cached_property
    def _moves(self) -> NDArray[np.uint8]:
        return allowed_moves(self.pattern, self.transforms)

    def moves(self, area: Tile) -> NDArray[np.uint8]:
        """`allowed_moves` for places counted from the first pixel of an area."""
        if not self.pattern:
            return ANY_MOVE
        cell = len(self.pattern)
        by_place = self._moves.reshape(cell, cell, -1)
        return np.roll(by_place, (-area.top, -area.left), (0, 1)).reshape(self._moves.shape)

    def layout(self, groups: TileGroups) -> Layout:
        """The sheets of a tile."""
        sheets: list[Sheet] = [ImageSheet(self.reach, groups.area)]
        for kind in self.copies:
            sheets += kind.sheets(self.copied_reach(), groups.tile, self.least_variance)
        return Layout.of(sheets)

    def group_size(self) -> int:
        """Members of a group, fewer if a window is small."""
        rows, columns = self.reach.sides()
        if not self.pattern:
            return min(self.n_members, rows * columns)
        cell = len(self.pattern)
        in_cell = int(np.count_nonzero(self._moves[0] & 1))
        return min(self.n_members, max(rows // cell * (columns // cell) * in_cell, 1))

    def tile_side(self) -> int:
        """Side of the tiles of a pass; copies need tiles of one fixed size."""
        height, width = self.reach.region.shape
        return LARGE_TILE if height * width >= MANY_PIXELS and not self.copies else TILE

    def reach_of_copies(self) -> int:
        """How far from a reference patch copies are read; 0 without copies."""
        return reach_of_copies(self.copies, self.copied_reach().radius, self.reach.patch_size)

    def copied_reach(self) -> Reach:
        """What reference patches read in copies."""
        radius = self.reach.radius
        return self.reach._replace(radius=min(self.copied_radius or radius, radius))

    def match(self, references: NDArray[np.int64], layout: Layout, tall: Tall) -> Members:
        """The members of every reference patch, the reference itself first."""
        count, size = self.group_size(), self.reach.patch_size
        members = Members(
            np.empty((len(references), count), np.int32), np.empty((len(references), count), np.uint8)
        )
        first = layout.sheets[0]
        assert isinstance(first, ImageSheet)
        image = tall.compared[None]
        measures = np.empty((3, 1, *image.shape[2:]), np.float32)
        measure_patches(image, size, 1, 0, tall.outside, measures)
        field = Field(
            image=image,
            measures=measures,
            transforms=len(self.transforms),
            patch_size=size,
            depth=1,
            radius=self.reach.radius,
            n_full=sum(sheet.put_back for sheet in layout.sheets),
            n_copied=max(1, int(MOST_COPIED * count)),
            factor=self.factor,
            penalty=self.penalty,
            flat_energy=self.flat_energy,
            moves=self.moves(first.area),
        )
        rows, columns = (references - np.array([first.area.top, first.area.left])).T
        variance = patch_sums(tall.variance[:, : first.height], size)[:, rows, columns]
        noise = np.square(self.weights.astype(np.float64)) @ variance
        own = rows * layout.stride + columns
        match_tile(field, own, layout.windows(references), noise, members.positions, members.transforms)
        return members
