"""Groups of similar patches: where the reference patches lie, and which patches belong to each of them.

A member is a patch at another place that agrees with the reference after a symmetry of the square, or, for
the group "so2", a patch cut from a copy of the image turned by an angle between 0 and 90 degrees. Turned
copies stand below the image in one tall array, so that a member is one number whatever it was cut from.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.aggregate import padded, patch_sums
from vnlem.kernels.numba.match import PADDING, Field, match_tile
from vnlem.kernels.numba.panel import COLUMNS
from vnlem.neighbours.turned import TurnedCopies
from vnlem.pipeline.tiles import grid

TILE = 64  # pixels; reference patches are worked through in tiles of this size
MOST_TURNED = 0.4  # of a group may come from turned copies, which are not put back
GROUPS = ("identity", "c4", "d4", "so2")


def symmetries(group: str, patch_size: int) -> NDArray[np.int64]:
    """The aligning permutations of a patch's pixels, the identity first.

    Entry [g, u] is the pixel of a member that lies on pixel u of the reference.

    Examples
    --------
    >>> symmetries("c4", 2)
    array([[0, 1, 2, 3], [1, 3, 0, 2], [3, 2, 1, 0], [2, 0, 3, 1]])
    """
    pixels = np.arange(patch_size**2).reshape(patch_size, patch_size)
    turned = [np.rot90(pixels, quarter) for quarter in range(4)]
    elements = {"identity": turned[:1], "c4": turned}.get(group, turned + [np.fliplr(p) for p in turned])
    return np.stack([element.ravel() for element in elements]).astype(np.int64)


def grid_positions(count: int, step: int) -> NDArray[np.int64]:
    """Every `step`-th of `count` positions, and always the last one.

    Examples
    --------
    >>> grid_positions(8, 3)
    array([0, 3, 6, 7])
    """
    positions = np.arange(0, count, step)
    return positions if positions[-1] == count - 1 else np.append(positions, count - 1)


def reference_tiles(height: int, width: int, patch_size: int, step: int) -> list[NDArray[np.int64]]:
    """Top left corners (r, 2) of the reference patches, tile by tile."""
    rows = grid_positions(height - patch_size + 1, step)
    columns = grid_positions(width - patch_size + 1, step)
    found = []
    for tile in grid(height, width, TILE, TILE):
        y = rows[(rows >= tile.top) & (rows < tile.bottom)]
        x = columns[(columns >= tile.left) & (columns < tile.right)]
        if y.size and x.size:
            found.append(np.stack(np.meshgrid(y, x, indexing="ij"), axis=-1).reshape(-1, 2))
    return found


@dataclass(frozen=True)
class Members:
    """The groups of one tile."""

    positions: NDArray[np.int32]  # (references, members): row * stride + column in the tall array
    transforms: NDArray[np.uint8]  # (references, members): index into `symmetries`


class Matcher:
    """Finds the groups of each tile on one image.

    Parameters
    ----------
    image : ndarray
        (channels, H, W), what patches are compared on.
    copies : TurnedCopies or None
        Turned copies to search beside the image itself.
    patch_size, radius, n_members, group
        Size of the patches, of the search window, of the groups; the symmetries allowed.
    factor : float
    penalty : ndarray
        A patch that is not simply shifted ranks with factor * d^2 + penalty, (H - p + 1, W - p + 1). A group
        where such patches would be fewer than one in eight has none.
    """

    def __init__(
        self,
        image: NDArray[np.float32],
        copies: TurnedCopies | None,
        *,
        patch_size: int,
        radius: int,
        n_members: int,
        group: str,
        factor: float,
        penalty: NDArray[np.floating],
    ) -> None:
        _, height, width = image.shape
        self._copies = copies
        radius = min(radius, max(height, width) - patch_size)
        self._patch_size, self._radius, self._factor = patch_size, radius, factor
        self._penalty = penalty
        self._transforms = symmetries(group, patch_size)
        self._image = padded(image if copies is None else copies.stack(image))
        if self._image[0].size > np.iinfo(np.int32).max:
            raise ValueError(
                f"the image is too large for VNLR, {height} x {width} pixels"
                + (" with its turned copies" if copies is not None else "")
                + "; denoise it in parts"
            )
        energy = self._patch_energy()
        self._energy = np.full((len(energy), self._image.shape[2]), np.inf, np.float32)
        self._energy[:, : energy.shape[1]] = energy
        self._invariants = self._patch_invariants(energy)
        self._sheets = [(0, height, width)] if copies is None else copies.sheets()
        candidates = min(2 * radius + 1, height - patch_size + 1) * min(
            2 * radius + 1, width - patch_size + 1
        )
        self.n_members = min(n_members, candidates)

    def _patch_energy(self) -> NDArray[np.float64]:
        """Squared norm of every patch; infinite where a patch leaves its sheet."""
        p = self._patch_size
        squares = np.sum(self._image[:, :, :-PADDING].astype(np.float64) ** 2, axis=0)
        energy = patch_sums(squares, p)
        if self._copies is not None:
            energy[patch_sums(self._copies.outside().astype(float), p) > 0] = np.inf
        return energy

    def _patch_invariants(self, energy: NDArray[np.float64]) -> NDArray[np.float32]:
        """Every patch's part along a constant patch and the length of the rest: all symmetries keep them."""
        p = self._patch_size
        values = np.sum(self._image[:, :, :-PADDING].astype(np.float64), axis=0)
        level = patch_sums(values, p) / (p * np.sqrt(len(self._image)))
        # Whole blocks of candidates are read, also where the image is narrower than the window.
        columns = max(self._image.shape[2], 2 * self._radius + COLUMNS)
        result = np.zeros((2, len(level), columns), np.float32)
        result[0, :, : level.shape[1]] = level
        result[1, :, : level.shape[1]] = np.sqrt(np.maximum(energy - level**2, 0))
        return result

    def match(self, references: NDArray[np.int64]) -> Members:
        """The members of every reference patch, the reference itself first."""
        shape = (len(references), self.n_members)
        members = Members(np.empty(shape, np.int32), np.empty(shape, np.uint8))
        sheets = np.array(self._sheets, np.int64)
        centres = np.empty((len(references), len(sheets), 2), np.int64)
        centres[:, 0] = references
        if self._copies is not None:
            centres[:, 1:] = self._copies.centres(references, self._patch_size)
        field = Field(
            self._image,
            self._energy,
            self._invariants,
            self._transforms,
            sheets,
            self._patch_size,
            self._radius,
            np.float32(self._factor),
            max(1, int(MOST_TURNED * self.n_members)),
        )
        penalties = self._penalty[references[:, 0], references[:, 1]].astype(np.float32)
        match_tile(field, references, centres, penalties, members.positions, members.transforms)
        return members
