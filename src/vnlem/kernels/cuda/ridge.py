"""Ridge combination of groups of patches on a device (ridge.cu)."""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cuda.engine import Engine
from vnlem.kernels.cuda.patches import Sums
from vnlem.kernels.patch_window import patch_window

Array = Any  # of the engine's library

# A thread holds 4 x 4 numbers of a group's matrix, and a block has at most 1024 threads.
MOST_MEMBERS = 128


class Images(NamedTuple):
    """The images of the groups."""

    pilot: Array  # (channels, rows, stride)
    working: Array
    residual: Array  # (channels, rows - p + 1, stride), see `patches.patch_maps`
    noise: Array | None
    even_noise: float = 0.0  # noise energy of all patches, if `noise` is None
    plane_rows: int = 0  # of a stack: rows from one plane to the next, which lies below it


class Groups(Protocol):
    """The members of groups."""

    @property
    def positions(self) -> Array:
        """int32 (groups, members): where patches lie in the images of a channel."""

    @property
    def transforms(self) -> Array:
        """uint8 (groups, members): how they are turned."""


class Symmetries(NamedTuple):
    """Permutations of the pixels of a patch, int16 (transforms, pixels)."""

    onto: NDArray[np.int16]  # the pixel of a member that lies on a pixel of the reference
    back: NDArray[np.int16]  # the reverse

    @classmethod
    def of(cls, permutations: NDArray[np.int64]) -> "Symmetries":
        """permutations: see `vnlem.neighbours.groups.symmetries`."""
        return cls(permutations.astype(np.int16), np.argsort(permutations, axis=1).astype(np.int16))


class Rule(NamedTuple):
    """How a group is combined."""

    patch_size: int
    tau: float  # share of the noise that the next working image keeps
    boost: float  # factor on the noise energy in the ridge
    extra_load: float | None  # first pass (no pilot): stabilising load in units of the noise energy
    depth: int = 1  # planes of a stack that a patch spans
    colour_boost: float = 1.0  # factor on `boost` in all channels but the first
    window: float = 0.0  # how much less the border of a patch counts than its centre: Kaiser's beta

    def taps(self) -> NDArray[np.float32]:
        """Weights of the rows of a patch, and of its columns, where patches overlap."""
        return patch_window(self.patch_size, self.window)


def empty_sums(
    engine: Engine, shape: tuple[int, int, int], n_members: int, cover: int, largest: float
) -> Sums:
    """Room for what groups put back into (channels, height, width).

    `cover` bounds the members that cover a pixel and `largest` the pixels' absolute values. A change times
    its weight is at most 2 n_members^1.5 times the largest pixel if the noise is even.
    """
    sums, weights = (engine.xp.zeros(size, np.int64) for size in ((*shape, 2), shape))
    return Sums(sums, weights, *units_of_sums(n_members, cover, largest))


def units_of_sums(n_members: int, cover: int, largest: float) -> tuple[float, float, float]:
    """The last three values of `Sums`, see `empty_sums`."""
    most = 2.0**62 / cover
    bound = n_members**1.5
    unit, weight_unit = (2.0 ** math.floor(math.log2(most / size)) for size in (2 * bound * largest, bound))
    return unit, weight_unit, most


def combine(
    engine: Engine, images: Images, members: Groups, symmetries: Symmetries, rule: Rule, sums: Sums
) -> None:
    """Estimate all groups and add them to `sums`."""
    channels, rows, stride = images.pilot.shape
    _, height, width, _ = sums.sums.shape
    count, n_members = members.positions.shape
    n_pixels = rule.depth * rule.patch_size**2
    side = -(-n_members // 4)
    size, length = 4 * side, -(-n_pixels // 4) * 4
    shared = 4 * (max(n_pixels, size) * (size + 4) + size * length)
    if n_members > MOST_MEMBERS or shared > engine.largest_shared - 8192:
        raise ValueError(
            f"groups of {n_members} patches of {n_pixels} pixels are too large "
            f"for this device; pass n_neighbors of at most {MOST_MEMBERS}, smaller patches, or device='cpu'"
        )
    threads = -(-(side**2) // 32) * 32
    engine.launch(
        "ridge",
        (count, channels),
        {
            "pilot": images.pilot,
            "working": images.working,
            "residual": images.residual,
            "noise": images.noise,
            "onto": engine.constant(symmetries.onto),
            "back": engine.constant(symmetries.back),
            "positions": members.positions,
            "chosen": members.transforms,
            "taps": engine.constant(rule.taps()),
            "sums": sums.sums,
            "weights": sums.weights,
            "rows": rows,
            "stride": stride,
            "height": height,
            "width": width,
            "plane_rows": images.plane_rows,
            "without_pilot": rule.extra_load is not None,
            "extra_load": rule.extra_load or 0.0,
            "boost": rule.boost,
            "colour_boost": rule.colour_boost,
            "tau": rule.tau,
            "even_noise": images.even_noise,
            "unit": sums.unit,
            "weight_unit": sums.weight_unit,
            "most": sums.most,
        },
        threads=threads,
        shared=shared,
        P=rule.patch_size,
        DEPTH=rule.depth,
        K=n_members,
        THREADS=threads,
    )
