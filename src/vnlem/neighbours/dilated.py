"""Nearest neighbours of one patch under rotations and dilations, over the whole image: for figures.

Candidates are found on copies of the image scaled by each factor, whose pixels lie up to half a pixel from
the places they show; the best of them are then compared exactly, each scaled about its own centre.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from vnlem.features.orientation import DEFAULT_ARC, orientation
from vnlem.features.rings import RingCoefficients, layout
from vnlem.neighbours.image import Matches, checked_place
from vnlem.neighbours.resize import LOBES, resized, stretched
from vnlem.neighbours.rid import check_angles, check_scales, rid, search_angles
from vnlem.pipeline.image import to_planes

COMPARED = 6  # candidates for each neighbour that are compared exactly
BAND = 32  # rows whose features are held at a time


def dilated_matches(
    image: ArrayLike,
    at: tuple[int, int],
    count: int = 49,
    *,
    scales: Sequence[float] = (0.7, 1.0, 1.4),
    patch_size: int = 13,
    angle_range: float = 30.0,
    angle_step: float = 5.0,
    scale: float = 1.0,
) -> Matches:
    """The patches of an image nearest to the one at (row, column), over rotations and dilations.

    image, at, count, patch_size, angle_range, angle_step, scale: as in
        :func:`vnlem.neighbours.image.matches`.
    scales: factors by which a patch may be made larger or smaller to agree.

    >>> image = np.add.outer(np.arange(30.0) ** 2, np.arange(30.0))
    >>> found = dilated_matches(image, (15, 15), 3, patch_size=7)
    >>> int(found.row[0]), int(found.column[0]), float(found.factor[0]), bool(found.distance[0] < 1e-3)
    (15, 15, 1.0, True)
    """
    pixels = to_planes(image).data[0]
    row, column, patch_size, count = checked_place(pixels, at, patch_size, count)
    factors = check_scales(scales, patch_size, min(pixels.shape))
    angle_range, angle_step = check_angles(angle_range, angle_step)
    steps = search_angles(angle_range, angle_step)
    angles = np.concatenate([-steps[:0:-1], steps])
    own = _Own.of(pixels, row, column, patch_size, scale)
    nearest = np.min([own.nearly(pixels, factor, angles) for factor in factors], axis=0)
    order = np.argsort(nearest, axis=None, kind="stable")[: COMPARED * count]
    rows, columns = np.divmod(order, pixels.shape[1])
    around = Surroundings.of(pixels, patch_size, min(factors))
    patch = around.at(row, column)
    found = [
        rid(
            patch,
            around.at(y, x),
            patch_size=patch_size,
            angle_range=angle_range,
            angle_step=angle_step,
            scale=scale,
            scales=factors,
            return_angle=True,
            return_scale=True,
        )
        for y, x in zip(rows, columns, strict=True)
    ]
    distance, angle, factor = (np.array(values) for values in zip(*found, strict=True))
    best = np.argsort(distance, kind="stable")[:count]
    return Matches(rows[best], columns[best], distance[best], angle[best], factor[best])


class Surroundings:
    """The surroundings of the pixels of an image, wide enough to be scaled, mirrored at its border."""

    def __init__(self, padded: NDArray[np.float64], reach: int) -> None:
        self._padded, self._side = padded, 2 * reach + 1

    @classmethod
    def of(cls, pixels: NDArray[np.float64], patch_size: int, smallest: float) -> "Surroundings":
        """For patches scaled by factors down to `smallest`."""
        reach = math.ceil((patch_size / 2 + LOBES + 2) / min(smallest, 1.0))
        return cls(np.pad(pixels, reach, mode="symmetric"), reach)

    def at(self, row: int, column: int) -> NDArray[np.float64]:
        """A square with the pixel in its middle."""
        return self._padded[row : row + self._side, column : column + self._side]


class _Own:
    """The patch whose neighbours are searched for."""

    def __init__(self, coefficients: RingCoefficients, direction: float, scale: float) -> None:
        self._coefficients, self._direction, self._scale = coefficients, direction, scale

    @classmethod
    def of(cls, pixels: NDArray[np.float64], row: int, column: int, size: int, scale: float) -> "_Own":
        rings = layout(size)
        padded = np.pad(pixels, rings.halo, mode="symmetric")
        cut = padded[row : row + 2 * rings.halo + 1, column : column + 2 * rings.halo + 1]
        coefficients = RingCoefficients.of(cut, rings, pixels.mean())[rings.halo, rings.halo]
        return cls(coefficients, float(_directions(pixels, size, scale)[row, column]), scale)

    def nearly(
        self, pixels: NDArray[np.float64], factor: float, angles: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Squared distances (H, W) to all patches scaled by a factor, up to half a pixel of the copy."""
        rings = self._coefficients.rings
        copy = pixels if factor == 1 else stretched(pixels, factor)
        starts = self._direction - _directions(copy, rings.patch_size, self._scale)
        squared = np.empty(copy.shape)
        for top in range(0, len(copy), BAND):
            first, last = max(top - rings.halo, 0), top + BAND + rings.halo
            own = np.s_[top - first : top - first + min(BAND, len(copy) - top)]
            band = RingCoefficients.of(copy[first:last], rings, pixels.mean())[own]
            squared[top : top + BAND] = self._over_angles(band, starts[top : top + BAND], angles)
        shown = [
            np.rint((count - 1) / 2 + (np.arange(full) - (full - 1) / 2) * factor).astype(np.int64)
            for count, full in zip(copy.shape, pixels.shape, strict=True)
        ]
        return squared[np.ix_(*(np.clip(s, 0, n - 1) for s, n in zip(shown, copy.shape, strict=True)))]

    def _over_angles(
        self, band: RingCoefficients, starts: NDArray[np.float64], angles: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The smallest over angles around each patch's own start, and without rotation."""
        own, orders = self._coefficients, np.arange(band.rings.highest_order + 1)
        # Coefficients of equal order are added up first: an angle then costs one product per order.
        same_order = (band.rings.lane_order[:, None] == orders).astype(np.float64)
        sums = (np.conj(own.values) * band.values) @ same_order
        inner = np.real(sums.sum(axis=-1))
        for angle in angles:
            phases = np.exp(-1j * (starts + angle)[..., None] * orders)
            inner = np.maximum(inner, np.real((sums * phases).sum(axis=-1)))
        lengths = sum((np.abs(each.values) ** 2).sum(axis=-1) for each in (own, band))
        return np.asarray(lengths - 2 * inner)


def _directions(pixels: NDArray[np.float64], size: int, scale: float) -> NDArray[np.float64]:
    found = orientation(pixels, scale, size, arc=DEFAULT_ARC)
    assert isinstance(found, np.ndarray)
    return found.astype(np.float64)


def aligned_patches(image: NDArray[np.float64], found: Matches, patch_size: int) -> NDArray[np.float64]:
    """The square patches of matches, each scaled by its factor and turned: (matches, size, size).

    >>> image = np.add.outer(np.arange(30.0) ** 2, np.arange(30.0))
    >>> patches = aligned_patches(image, dilated_matches(image, (15, 15), 3, patch_size=7), 3)
    >>> bool(np.allclose(patches[0], image[14:17, 14:17]))
    True
    """
    half = patch_size // 2
    y, x = np.mgrid[-half : half + 1, -half : half + 1]
    around = Surroundings.of(image, math.ceil(1.5 * patch_size), float(found.factor.min()))
    patches = np.empty((len(found.row), patch_size, patch_size))
    for number, patch in enumerate(patches):
        cut = around.at(found.row[number], found.column[number])
        factor, angle = float(found.factor[number]), float(found.angle[number])
        moved = cut if factor == 1 else resized(cut, factor)
        middle, cos, sin = len(cut) // 2, math.cos(angle), math.sin(angle)
        places = [middle + cos * y - sin * x, middle + sin * y + cos * x]
        patch[:] = ndimage.map_coordinates(moved, places, order=3, mode="reflect")
    return patches
