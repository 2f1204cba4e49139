"""Groups of patches over the planes in flight: frames of a movie, slices of a volume, images of a set."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.match import NOTHING_OUTSIDE, Field, match_tile, measure_patches
from vnlem.neighbours.groups import Members, positions_in_part, symmetries
from vnlem.neighbours.patches import blank_planes, drop_first, patch_sums
from vnlem.neighbours.sheets import TILE
from vnlem.neighbours.sites import Sites
from vnlem.pipeline.stack_task import Part


def symmetries_of_block(group: str, patch_size: int, depth: int, *, reflect_depth: bool) -> NDArray[np.int64]:
    """The aligning permutations of a patch over several planes, the identity first.

    The symmetries of the square move all planes alike; with `reflect_depth` the planes may also come in
    reverse order. Depth is never turned into the plane: its sampling is different.

    >>> symmetries_of_block("identity", 1, 3, reflect_depth=True)
    array([[0, 1, 2], [2, 1, 0]])
    """
    if group == "c4" and reflect_depth:
        # These would be eight transforms, which matching takes for those of the square (`candidates`).
        raise ValueError("planes in reverse order exist for the groups identity and d4, got c4; use d4")
    plane = symmetries(group, patch_size)
    pixels = patch_size**2
    orders = [range(depth), range(depth - 1, -1, -1)] if reflect_depth and depth > 1 else [range(depth)]
    return np.concatenate([np.concatenate([plane + k * pixels for k in order], axis=1) for order in orders])


def reference_tiles(
    height: int, width: int, patch_size: int, step: int, part: Part | None = None
) -> list[NDArray[np.int64]]:
    """Top left corners (r, 2) of the reference patches of one plane, tile by tile.

    Tiles and patches of a part lie where the whole has them.
    """
    rows, columns = reference_lines((height, width), patch_size, step, part)
    top, left = (0, 0) if part is None else part.first[1:]
    return [
        np.stack(np.meshgrid(y, x, indexing="ij"), axis=-1).reshape(-1, 2)
        for y in _by_tile(rows, top)
        for x in _by_tile(columns, left)
    ]


def reference_lines(
    size: tuple[int, int], patch_size: int, step: int, part: Part | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the reference patches of a plane, which may be a part of a larger one."""
    first, whole = ((0, 0), size) if part is None else (part.first[1:], part.whole[1:])
    rows, columns = (
        positions_in_part(length - patch_size + 1, step, begin, all_of_it - patch_size + 1)
        for length, begin, all_of_it in zip(size, first, whole, strict=True)
    )
    return rows, columns


def _by_tile(positions: NDArray[np.int64], first: int) -> list[NDArray[np.int64]]:
    """Rising positions in a part of an image that begins at `first`, tile by tile."""
    return np.split(positions, np.flatnonzero(np.diff((positions + first) // TILE)) + 1)


@dataclass(frozen=True)
class Search:
    """How members are searched for."""

    patch_size: int
    depth: int  # planes a patch spans
    radius: int  # of the window in every plane
    n_members: int
    group: str
    reflect_depth: bool
    factor: float  # a member that is turned or reflected ranks with factor * d^2 + penalty * noise energy
    penalty: float
    flat_energy: float | None  # patches with less energy about their mean, in noise energies, only shift


def noise_of_patch(search: Search, sigma: float, weights: NDArray[np.float32]) -> float:
    """Noise energy of a patch whose channels have these weights.

    >>> search = Search(2, 3, 1, 8, "d4", False, 1.0, 0.0, None)
    >>> noise_of_patch(search, 0.5, np.ones(2, np.float32))
    6.0
    """
    return search.patch_size**2 * search.depth * float(np.sum(weights.astype(np.float64) ** 2)) * sigma**2


def brightness(plane: NDArray[np.float32]) -> NDArray[np.float32]:
    """The channel of a plane (channels, H, W) that shows where things are; it has the noise of one channel.

    With three channels it is the first: they are opponent colours.

    >>> brightness(np.ones((4, 1, 1), np.float32)).item(), brightness(np.ones((3, 1, 1), np.float32)).item()
    (2.0, 1.0)
    """
    several = len(plane) not in (1, 3)
    found: NDArray[np.float32] = plane.sum(axis=0) / np.float32(len(plane) ** 0.5) if several else plane[0]
    return found


class PlaneMatcher:
    """Finds the groups of patches in the planes in flight, which arrive and leave one by one.

    shape: the most planes in flight, and the size of the largest.
    sigma: standard deviation of the noise, the same in all channels.
    weights: of each channel in comparisons; channels without any are not looked at.
    sites: where to look beyond a patch's own plane.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        search: Search,
        sigma: float,
        weights: NDArray[np.float32],
        sites: Sites,
    ) -> None:
        self._search, self._sites = search, sites
        self._noise = noise_of_patch(search, sigma, weights)
        # Noise energies of the patches at their corners, for planes with a map of the noise variance.
        self._noises: list[NDArray[np.float64]] = []
        self._shares = float(np.sum(weights.astype(np.float64) ** 2))
        self._compared = np.flatnonzero(weights)
        self._weights = weights[self._compared, None, None]
        planes, height, width = shape
        blank = blank_planes(planes, height, width)
        self._image = np.zeros((planes, len(self._compared), *blank.shape[1:]), np.float32)
        self._measures = np.zeros((3, *blank.shape), np.float32)
        self._sizes = np.zeros((planes, 2), np.int64)
        self._count = 0  # planes in flight
        transforms = symmetries_of_block(
            search.group, search.patch_size, search.depth, reflect_depth=search.reflect_depth
        )
        self._field = Field(
            image=self._image,
            measures=self._measures,
            transforms=len(transforms),
            patch_size=search.patch_size,
            depth=search.depth,
            radius=search.radius,
            n_full=0,  # see `match`
            n_copied=0,
            factor=search.factor,
            penalty=search.penalty,
            flat_energy=search.flat_energy or 0.0,
        )

    def push(self, plane: NDArray[np.float32], variance: NDArray[np.float32] | None = None) -> None:
        """Add a plane (channels, H, W) at the end; variance (H, W): of its noise, if it varies."""
        search, index = self._search, self._count
        if variance is not None:
            self._noises.append(self._shares * patch_sums(variance[None], search.patch_size)[0])
        self._count += 1
        height, width = plane.shape[1:]
        self._sites.push(brightness(plane))
        self._image[index, :, :height, :width] = self._weights * plane[self._compared]
        self._sizes[index] = height, width
        first = index - search.depth + 1
        if first >= 0:
            measure_patches(
                self._image, search.patch_size, search.depth, first, NOTHING_OUTSIDE, self._measures
            )

    def pop(self) -> None:
        """Remove the first plane."""
        self._sites.pop()
        self._count -= 1
        del self._noises[:1]
        for kept in (self._image, self._sizes, *self._measures):
            drop_first(kept)

    def match(self, plane: int, corners: NDArray[np.int64]) -> Members:
        """The members of the patches at `corners` (r, 2) of one plane, the patches themselves first."""
        search = self._search
        n_planes = self._count - search.depth + 1
        centres = self._sites.centres(plane, corners, n_planes, search.patch_size)
        windows = self._windows(centres)
        n_members = min(search.n_members, int(windows[0, 0, 1] * windows[0, 0, 2]))
        shape = (len(corners), n_members)
        members = Members(np.empty(shape, np.int32), np.empty(shape, np.uint8))
        rows, columns = corners.T
        noise = np.full(len(corners), self._noise)
        if self._noises:
            spanned = self._noises[plane : plane + search.depth]
            noise = np.sum([one[rows, columns] for one in spanned], axis=0)
        _, _, height, stride = self._image.shape
        own = (plane * height + rows) * stride + columns
        # All members are put back.
        field = self._field._replace(n_full=windows.shape[1])
        match_tile(field, own, windows, noise, members.positions, members.transforms)
        return members

    def _windows(self, centres: NDArray[np.int64]) -> NDArray[np.int64]:
        """Windows (r, s, 4) around centres (r, s, 3), see `match_tile`; at a border they move inwards."""
        planes, corners = centres[..., 0], centres[..., 1:]
        _, _, height, stride = self._image.shape
        counts = self._sizes[planes] - self._search.patch_size + 1
        sides = np.minimum(counts, 2 * self._search.radius + 1)
        firsts = np.clip(corners - self._search.radius, 0, counts - sides)
        windows = np.zeros((*planes.shape, 4), np.int64)
        windows[..., 0] = (planes * height + firsts[..., 0]) * stride + firsts[..., 1]
        windows[..., 1:3] = sides
        windows[planes < 0] = 0
        return windows
