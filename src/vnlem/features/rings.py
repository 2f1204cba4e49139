"""Ring harmonics: the disc around a pixel as angular Fourier coefficients; rotation becomes a phase.

The disc is sampled on rings of radius 1, 2, ... from the upsampled image; each ring keeps its angular Fourier
coefficients up to the order its circumference supports, weighted so that the squared length of the feature
vector is the integral of the squared patch over the disc. With ``average_down`` the upsampled image is first
averaged down to the original resolution, which takes noise, and a little detail, out of the distances.
Rotating the patch by theta multiplies the coefficient of order k by exp(-i k theta). In the canonical frame
every patch is turned by minus its own orientation, and the distance of two patches aligned by their
orientations is a plain distance of vectors.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.features.ring_sampling import filters_of, fine_phases, quarter_dft, taps
from vnlem.features.upsample import REACH
from vnlem.kernels.cpu import rings as kernels
from vnlem.kernels.cpu.rings import Sampling

# Angular orders are kept below this share of pi * radius: beyond it a ring of that radius on the pixel grid
# holds more interpolation error than image.
ORDER_PER_RADIUS = 0.9
HIGHEST_ORDER = 14
# Finer grids only cost memory.
LARGEST_UPSAMPLING = 16
# The number of coefficients is padded to a multiple of this: vectorised loops have no remainder.
LANES = 16
# Lanes of a row: what the kernels add up at once.
ROW = 8


@dataclass(frozen=True)
class RingLayout:
    """The place of each coefficient in a feature vector, and its noise.

    A vector is [real parts | imaginary parts], each with the lanes of all channels in turn. Lanes come in
    rows of eight; rows that hold the same eight orders of several rings come first, because rotation treats
    them alike and they can be added up row by row; then come the other coefficients, then padding.

    orders, samples: highest angular order and number of samples of ring 1, 2, ...
    lane_ring, lane_order: (lanes,), ring (0 for the central pixel, -1 for padding) and angular order of
        each lane.
    folds: first lanes of the rows with equal orders, one entry for each set of eight orders.
    noise_energy: expected squared length of the features of white noise of variance 1 (the E of the docs).
    average_down: whether the upsampled image is averaged down before it is sampled.
    """

    patch_size: int
    upsample: int
    channels: int
    orders: tuple[int, ...]
    samples: tuple[int, ...]
    lane_ring: NDArray[np.int64]
    lane_order: NDArray[np.int64]
    folds: tuple[tuple[int, ...], ...]
    noise_energy: float
    average_down: bool

    @property
    def n_rings(self) -> int:
        return len(self.orders)

    @property
    def highest_order(self) -> int:
        return max(self.orders, default=0)

    @property
    def lanes(self) -> int:
        return len(self.lane_order)

    @property
    def dim(self) -> int:
        """Length of a feature vector, padding included."""
        return 2 * self.channels * self.lanes

    @property
    def size(self) -> int:
        """Number of coefficients of one channel, padding left out."""
        return 1 + sum(2 * order + 1 for order in self.orders)

    @property
    def halo(self) -> int:
        """The support radius of a feature vector."""
        return self.n_rings + 2 * REACH + 1

    @property
    def distance_scale(self) -> float:
        """Factor that turns squared distances of features into those of square patches.

        By area (4 / pi). Averaged down, features hold much less noise than pixels: there it is q^2 / E, to
        make noise count as much in a distance as in a square patch.
        """
        return self.patch_size**2 / self.noise_energy if self.average_down else 4 / math.pi

    @property
    def centre_lane(self) -> int:
        """Lane of the central pixel."""
        return int(np.flatnonzero(self.lane_ring == 0)[0])

    def lane_of(self) -> NDArray[np.int64]:
        """Lane of the coefficient of a ring (row 0 is ring 1) and an order; -1 where there is none."""
        table = np.full((self.n_rings, self.highest_order + 1), -1, dtype=np.int64)
        for lane, (ring, order) in enumerate(zip(self.lane_ring, self.lane_order, strict=True)):
            if ring > 0:
                table[ring - 1, order] = lane
        return table

    def turns(self, angles: NDArray[np.floating]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Cosine and sine of order * angle, for every angle and lane of all channels: (angles, C * lanes).

        >>> cos, sin = layout(13).turns(np.array([0.0, np.pi]))
        >>> cos.shape, bool((cos[0] == 1).all()), bool((sin[0] == 0).all())
        ((2, 64), True, True)
        """
        phase = np.outer(angles, np.tile(self.lane_order, self.channels))
        return np.cos(phase).astype(np.float32), np.sin(phase).astype(np.float32)


@dataclass(frozen=True)
class RingCoefficients:
    """Patches as complex ring coefficients, (..., lanes), for distances at any angle.

    For single patches and small sets; the kernels do the same sums for whole images.
    """

    values: NDArray[np.complex128]
    rings: RingLayout

    @classmethod
    def of(
        cls, image: NDArray[np.floating], rings: RingLayout, level: float | None = None
    ) -> "RingCoefficients":
        """The coefficients of every pixel of an image (height, width) that is large compared with the patch.

        They belong to the image minus `level`, its mean when None; only those of one level can be compared.

        >>> x = np.add.outer(np.zeros(31), np.arange(31.0))
        >>> edges = RingCoefficients.of(np.stack([x, x.T]).reshape(62, 31), layout(5))
        >>> flat, steep = edges[15, 15], edges[46, 15]
        >>> distances = flat.squared_distances(steep, np.radians([-90.0, 0.0, 90.0]))
        >>> bool(distances[0] < 1e-3), bool(distances[1] > 10)
        (True, True)
        """
        # A common shift does not change distances, and keeps float32 free of large offsets.
        level = float(image.mean()) if level is None else level
        padded = np.pad(image - level, rings.halo, mode="symmetric").astype(np.float32)
        raw, _ = ring_features(padded[None], np.zeros(image.shape, dtype=np.float32), rings)
        return cls(raw[..., : rings.lanes] + 1j * raw[..., rings.lanes :].astype(np.float64), rings)

    def __getitem__(self, at: Any) -> "RingCoefficients":
        return RingCoefficients(self.values[at], self.rings)

    def squared_distances(
        self, other: "RingCoefficients", angles: NDArray[np.floating]
    ) -> NDArray[np.float64]:
        """Squared distances to `other` turned by each angle: (..., angles), in units of square patches."""
        products = np.conj(self.values) * other.values
        inner = np.real(products @ np.exp(-1j * np.outer(self.rings.lane_order, angles)))
        lengths = sum((np.abs(each) ** 2).sum(axis=-1) for each in (self.values, other.values))
        squared: NDArray[np.float64] = np.maximum(lengths[..., None] - 2 * inner, 0)
        return squared * self.rings.distance_scale


@lru_cache(maxsize=32)
def layout(patch_size: int, upsample: int = 2, channels: int = 1, average_down: bool = False) -> RingLayout:
    """The layout for a patch size; cached.

    >>> rings = layout(13)
    >>> rings.size, rings.dim, rings.highest_order
    (115, 128, 14)
    """
    n_rings = patch_size // 2
    orders = tuple(min(HIGHEST_ORDER, int(ORDER_PER_RADIUS * math.pi * r)) for r in range(1, n_rings + 1))
    # A multiple of four keeps quarter turns exact; a few samples more than the orders need avoid aliasing
    # from above the highest order.
    samples = tuple(8 * math.ceil((2 * order + 6) / 8) for order in orders)
    table, folds = _arrange(orders)
    energy = sum(float(np.sum(filters**2)) for filters in filters_of(orders, samples, upsample, average_down))
    return RingLayout(
        patch_size=patch_size,
        upsample=upsample,
        channels=channels,
        orders=orders,
        samples=samples,
        lane_ring=np.ascontiguousarray(table[:, 0]),
        lane_order=np.ascontiguousarray(table[:, 1]),
        folds=folds,
        noise_energy=energy,
        average_down=average_down,
    )


def _arrange(orders: tuple[int, ...]) -> tuple[NDArray[np.int64], tuple[tuple[int, ...], ...]]:
    """Ring and order of every lane, and the rows of lanes that hold equal orders (see RingLayout).

    Eight orders of a ring make a row, even if one or two of them are missing; columns missing in all rows of
    the same eight orders take single coefficients, one order per column. The rest fills separate rows.
    """
    padding = (-1, 0)
    single = [(0, 0)]
    families = []
    for first in range(0, max(orders, default=0) + 1, ROW):
        rows = []
        for ring, order in enumerate(orders, 1):
            row = [(ring, k) for k in range(first, min(order + 1, first + ROW))]
            if len(row) >= ROW - 2:
                rows.append(row + [padding] * (ROW - len(row)))
            else:
                single += row
        families.append(rows)
    for rows in families:
        for column in range(ROW):
            if single and rows and all(row[column] == padding for row in rows):
                wanted = single[0][1]
                for row in rows:
                    alike = [coefficient for coefficient in single if coefficient[1] == wanted]
                    if alike:
                        row[column] = alike[0]
                        single.remove(alike[0])
    rest = [single[k : k + ROW] for k in range(0, len(single), ROW)]
    families += [[row + [padding] * (ROW - len(row))] for row in rest]
    lanes: list[tuple[int, int]] = []
    folds = []
    for rows in families:
        if rows:
            folds.append(tuple(len(lanes) + ROW * n for n in range(len(rows))))
            lanes += itertools.chain.from_iterable(rows)
    lanes += [padding] * (-len(lanes) % LANES)
    return np.array(lanes, dtype=np.int64), tuple(folds)


def ring_features(
    padded: NDArray[np.float32],
    angles: NDArray[np.float32],
    rings: RingLayout,
    out: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Feature vectors of a region: in the image's frame, and each turned by minus its angle.

    padded: (channels, height + 2 halo, width + 2 halo), the region with a border of ``rings.halo`` pixels.
    angles: (height, width), radians, from the column axis towards the row axis.
    out: two arrays (height, at least width, rings.dim) where the vectors are written; new ones when None. The
        first may have no rows: then it is left out.

    Returns raw, canonical: (height, width, rings.dim), channels are scaled by 1/sqrt(channels), so squared
    distances are means over channels.

    >>> rings = layout(5)
    >>> flat = np.ones((1, 3 + 2 * rings.halo, 4 + 2 * rings.halo), dtype=np.float32)
    >>> raw, canonical = ring_features(flat, np.zeros((3, 4), dtype=np.float32), rings)
    >>> raw.shape, bool(np.isclose((raw[0, 0] ** 2).sum(), np.pi * 2.5**2))
    ((3, 4, 32), True)
    """
    planes = np.stack([fine_phases(channel, rings.upsample, rings.average_down) for channel in padded])
    height, width = angles.shape
    raw, canonical = out or (
        aligned((height, width, rings.dim)),
        aligned((height, width, rings.dim)),
    )
    kernels.ring_features(
        planes,
        np.ascontiguousarray(angles, dtype=np.float32),
        rings.halo,
        sampling_of(rings, quarter_dft),
        raw,
        canonical,
    )
    return raw, canonical


def sampling_of(rings: RingLayout, transform: Callable[..., Any]) -> Sampling:
    """Where the rings lie, and the transform of their samples: `dft` or `quarter_dft`.

    >>> sampling_of(layout(5), quarter_dft).where.shape[1:]
    (4, 4)
    """
    where, weights = taps(rings.samples, rings.upsample)
    starts, real, imag, centre = transform(rings.orders, rings.samples, rings.channels)
    return Sampling(where, weights, starts, real, imag, centre, rings.lane_of(), rings.centre_lane)


def aligned(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """An array aligned to a cache line: kernels read vectors of eight, and one across two lines costs two."""
    line = 64
    memory = np.empty(4 * math.prod(shape) + line, dtype=np.uint8)
    first = -memory.ctypes.data % line
    return memory[first : first + 4 * math.prod(shape)].view(np.float32).reshape(shape)
