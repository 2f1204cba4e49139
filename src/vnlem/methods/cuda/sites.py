"""The strategies of `vnlem.neighbours.sites` on a device: where to search beyond a patch's own plane."""

from typing import Any, Protocol

import numpy as np

from vnlem.kernels.cuda.alike import nearest_places
from vnlem.kernels.cuda.engine import Engine
from vnlem.kernels.cuda.filters import correlate_lines
from vnlem.kernels.cuda.match import References
from vnlem.kernels.cuda.motion import block_motion, follow, smooth_frame
from vnlem.methods.cuda.rolling import Rolling
from vnlem.methods.vnlr_stack_params import StackParams
from vnlem.neighbours.alike import PER_IMAGE, SCALES, STEP, derivative_taps
from vnlem.neighbours.motion import CELL, HALF_BLOCK, LONGEST, cost_of_shift

Array = Any  # of the engine's library

_BLOCKS = {"CELL": CELL, "HALF": HALF_BLOCK, "LONGEST": LONGEST}


class Sites(Protocol):
    """What a pass needs from a strategy. Planes are counted from the first one in flight."""

    def push(self, frame: Array, size: tuple[int, int]) -> None:
        """Add a plane (H, stride) at the end; size: its rows and columns that hold pixels."""

    def pop(self) -> None:
        """Remove the first plane."""

    def centres(self, plane: int, references: References, n_planes: int, patch_size: int) -> Array:
        """Plane and centre (r, s, 3) of the windows of patches in one plane, their own first."""


def sites_of(
    engine: Engine, params: StackParams, shape: tuple[int, int, int], total: int, *, noisy: bool, sigma: float
) -> Sites:
    """The strategy of a kind of stack.

    shape: the most planes in flight, and the size of the largest; total: how many planes there are; noisy:
    whether they still hold their noise.
    """
    if params.kind == "T":
        return Motion(engine, shape, total, np.float32(cost_of_shift(noisy, sigma)), noisy=noisy)
    if params.kind == "Z":
        return SamePlace(engine)
    return Alike(engine, params.reach, noisy=noisy)


class SamePlace:
    """The same place in every plane in flight: slices of a volume."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def push(self, frame: Array, size: tuple[int, int]) -> None:
        """The pixels are not used."""

    def pop(self) -> None:
        """Nothing is kept."""

    def centres(self, plane: int, references: References, n_planes: int, patch_size: int) -> Array:
        """The same centre in all planes."""
        return follow(self._engine, references, (plane, n_planes), patch_size, _BLOCKS, None)


class Motion:
    """Windows that follow what they show from frame to frame."""

    def __init__(
        self, engine: Engine, shape: tuple[int, int, int], total: int, cost: np.float32, *, noisy: bool
    ) -> None:
        in_flight, height, width = shape
        self._engine, self._noisy, self._cost = engine, noisy, float(cost)
        cells = (-(-height // CELL), -(-width // CELL), 2)
        self._onward, self._back = (Rolling(engine.xp, in_flight, total, cells, np.int32) for _ in range(2))
        self._seen: Array = None
        self._n_frames = 0

    def push(self, frame: Array, size: tuple[int, int]) -> None:
        """Add a frame at the end."""
        seen = smooth_frame(self._engine, frame, _BLOCKS) if self._noisy else frame.copy()
        if self._n_frames > 0:
            moves = (self._onward.push(), self._back.push())
            block_motion(self._engine, self._seen, seen, self._cost, _BLOCKS, moves)
        self._seen = seen
        self._n_frames += 1

    def pop(self) -> None:
        """Remove the first frame."""
        self._n_frames -= 1
        if self._onward.count > 0:
            self._onward.pop()
            self._back.pop()

    def centres(self, plane: int, references: References, n_planes: int, patch_size: int) -> Array:
        """Where the blocks of the patches lie in all frames."""
        moves = (self._onward.planes, self._back.planes) if n_planes > 1 else None
        return follow(self._engine, references, (plane, n_planes), patch_size, _BLOCKS, moves)


class Alike:
    """For each patch the images of a set most like it, one window in each."""

    def __init__(self, engine: Engine, n_images: int, *, noisy: bool) -> None:
        self._engine, self._n_images, self._scales = engine, n_images, SCALES[noisy]
        self._features: list[Array] = []
        self._index: tuple[Array, Array, Array] | None = None

    def push(self, frame: Array, size: tuple[int, int]) -> None:
        """Add an image."""
        image = frame[: size[0], : size[1]]
        self._features.append(invariants(self._engine, image, self._scales))
        self._index = None

    def pop(self) -> None:
        """A set is kept as a whole until its end."""

    def _places(self) -> tuple[Array, Array, Array]:
        """Vectors of all ranked places, where they lie, and where those of each image begin."""
        if self._index is None:
            xp = self._engine.xp
            vectors, places, firsts = [], [], [0]
            for plane, features in enumerate(self._features):
                some = features[:, ::STEP, ::STEP]
                vectors.append(some.reshape(len(some), -1).T)
                rows, columns = np.mgrid[: some.shape[1], : some.shape[2]].reshape(2, -1) * STEP
                places.append(np.column_stack([np.full(len(rows), plane), rows, columns]).astype(np.int32))
                firsts.append(firsts[-1] + len(rows))
            self._index = (
                xp.ascontiguousarray(xp.concatenate(vectors)),
                xp.asarray(np.concatenate(places)),
                xp.asarray(np.array(firsts, np.int32)),
            )
        return self._index

    def centres(self, plane: int, references: References, n_planes: int, patch_size: int) -> Array:
        """Windows around the nearest places of other images."""
        xp, middle = self._engine.xp, patch_size // 2
        vectors, places, firsts = self._places()
        wanted = min(self._n_images, n_planes - 1)
        found = xp.full((references.n, 1 + wanted, 3), -1, np.int32)
        n_columns = len(references.columns)
        found[:, 0, 0] = plane
        found[:, 0, 1] = xp.repeat(references.rows, n_columns)
        found[:, 0, 2] = xp.tile(references.columns, len(references.rows))
        if wanted == 0:
            return found
        own = self._features[plane][:, found[:, 0, 1] + middle, found[:, 0, 2] + middle].T
        nearest = nearest_places(
            self._engine, own, (vectors, firsts), plane, wanted, min(PER_IMAGE * (wanted + 1), len(vectors))
        )
        there = places[xp.maximum(nearest, 0)]
        there[..., 1:] -= middle
        there[nearest < 0] = -1
        found[:, 1:] = there
        return found


def invariants(engine: Engine, image: Array, scales: tuple[float, ...]) -> Array:
    """Level, slope and two measures of curvature, (features, H, W): `vnlem.neighbours.alike.invariants`."""
    xp = engine.xp
    found = []
    for scale in scales:
        down = {y: _along(engine, image.astype(np.float64)[None], scale, y, 1) for y in range(3)}

        def derivative(y: int, x: int, scale: float = scale, down: dict[int, Array] = down) -> Array:
            return scale ** (y + x) * _along(engine, down[y], scale, x, 2)[0]

        yy, xx, xy = derivative(2, 0), derivative(0, 2), derivative(1, 1)
        slope = xp.hypot(derivative(1, 0), derivative(0, 1))
        found += [derivative(0, 0), slope, yy + xx, xp.hypot(yy - xx, 2 * xy)]
    return xp.stack(found).astype(np.float32)


def _along(engine: Engine, planes: Array, scale: float, order: int, axis: int) -> Array:
    return correlate_lines(engine, planes, derivative_taps(scale, order), axis)
