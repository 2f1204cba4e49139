"""Several estimates of one image, weighted in every neighbourhood by their estimated error there.

Patches of different kinds need different parameters (a small bandwidth in texture, a large one in flat
areas), and their kinds are unknown. By Stein's formula the expected squared error of an estimate F of an
image with Gaussian noise is |F - y|^2 + 2 sigma^2 div F - n sigma^2, in which everything is known. The
divergence comes from a second estimate, of the image with a little more noise (Ramani, Blu, Unser 2008). The
combination with the least expected error solves a small linear system (SURE-LET; Blu, Luisier 2007): here one
for each block of pixels, from sums over the blocks around it.

Everything is computed element by element, so it runs on arrays of any library, and a part of an image gets
the same bytes as in the whole: blocks have the same places as in the whole image.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from vnlem.pipeline.device import namespace
from vnlem.pipeline.workers import for_each

Array = Any  # of NumPy or CuPy

BLOCK = 8  # pixels
WIDTH = 2.0  # of the Gaussian over blocks, in blocks
RADIUS = 6  # blocks; the Gaussian ends there
RIDGE = 0.02  # in units of the noise's energy: pulls the result towards the anchor
OWN = 0.3  # factor on the noisy image's difference from the anchor
PUSH = 0.1  # the added noise, in units of the noise
# A result lies no farther outside of the estimates and the noisy image than this, in units of the noise.
# With almost no noise, random errors of the divergences would dominate.
BEYOND = 1.0
STRIP = 8  # blocks of rows per task
STRIP_ON_GPU = 128  # the same on a device, which needs large pieces

# How far around a pixel its combination reads.
REACH = BLOCK * (RADIUS + 2)


class Estimates(NamedTuple):
    """Of an image (channels, height, width), and of the image pushed by `push_of`."""

    plain: Sequence[Array]
    pushed: Sequence[Array]
    anchor: tuple[int, ...]  # the anchor is the mean of these


def push_of(shape: tuple[int, int, int], origin: tuple[int, int], xp: Any = np) -> Array:
    """Pseudo-random signs +-1 (channels, height, width); a pixel of the whole image always has the same.

    origin: of the array in the whole image.

    >>> whole, part = push_of((1, 40, 40), (0, 0)), push_of((1, 8, 9), (5, 21))
    >>> bool(np.array_equal(part, whole[:, 5:13, 21:30])), bool(abs(whole.mean()) < 0.1)
    (True, True)
    """
    channel, row, column = (xp.arange(length, dtype=np.uint32) for length in shape)
    row, column = row + np.uint32(origin[0]), column + np.uint32(origin[1])
    key = (channel[:, None, None] * np.uint32(0xC2B2AE3D)) ^ (row[:, None] * np.uint32(0x9E3779B1))
    key = key ^ (column * np.uint32(0x85EBCA77))
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        key = (key ^ (key >> np.uint32(shift))) * np.uint32(factor)
    return ((key >> np.uint32(31)).astype(np.float32) - np.float32(0.5)) * np.float32(2)


def combine(
    noisy: Array, estimates: Estimates, sigma: float, origin: tuple[int, int] = (0, 0), workers: int = 1
) -> Array:
    """The combination of the estimates and the noisy image (channels, height, width) of least expected error.

    noisy: the image, with white noise.
    estimates: of it, and of it + PUSH * sigma * push_of(...).
    sigma: standard deviation of the noise.
    origin: where the arrays begin in the whole image.
    workers: threads; the result does not depend on them.

    >>> rng = np.random.default_rng(0)
    >>> clean = np.zeros((1, 64, 64)); clean[..., 32:] = rng.normal(0, 3, (64, 32))
    >>> noisy = clean + rng.normal(0, 1, clean.shape)
    >>> pushed = noisy + PUSH * push_of(noisy.shape, (0, 0))
    >>> given = Estimates((0.5 * noisy, 0 * noisy), (0.5 * pushed, 0 * pushed), anchor=(0,))
    >>> found = combine(noisy, given, 1.0)
    >>> mean = lambda estimate: round(float(np.mean((estimate - clean) ** 2)), 1)
    >>> mean(noisy), mean(0.5 * noisy), mean(found)
    (1.0, 1.3, 0.6)
    """
    on_host = namespace(noisy) is np
    grid = Grid.of(noisy.shape[1:], origin, STRIP if on_host else STRIP_ON_GPU)
    # A device runs one kernel after another, from any thread.
    workers = workers if on_host else 1
    directions = _Directions(noisy, estimates, sigma, origin)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        sums = _sums(directions, grid, workers)
        shares = _shares(sums, directions.count, sigma)
        return _apply(directions, shares, grid, workers)


class Grid(NamedTuple):
    """Blocks of the whole image that an array touches."""

    height: int
    width: int
    top: int  # rows of the first block above the array
    left: int
    rows: int  # blocks
    columns: int
    at_once: int  # blocks of rows

    @classmethod
    def of(cls, shape: tuple[int, int], origin: tuple[int, int], at_once: int) -> "Grid":
        """The blocks of an array of a shape that begins at `origin` of the whole image."""
        top, left = (at % BLOCK for at in origin)
        height, width = shape
        rows, columns = -(-(top + height) // BLOCK), -(-(left + width) // BLOCK)
        return cls(height, width, top, left, rows, columns, at_once)

    def strip(self, first: int) -> tuple[slice, int]:
        """Rows of the array in the blocks from `first` on that one task takes; and how many blocks."""
        last = min(first + self.at_once, self.rows)
        rows = slice(max(first * BLOCK - self.top, 0), min(last * BLOCK - self.top, self.height))
        return rows, last - first

    def strips(self) -> range:
        """The first blocks of all strips."""
        return range(0, self.rows, self.at_once)


class _Directions:
    """What may be added to the anchor: differences of the other estimates, and of the noisy image."""

    def __init__(self, noisy: Array, estimates: Estimates, sigma: float, origin: tuple[int, int]) -> None:
        self.xp = namespace(noisy)
        self.noisy, self.estimates, self.sigma, self.origin = noisy, estimates, sigma, origin
        # The last estimate of the anchor is minus the sum of the others.
        self.others = [e for e in range(len(estimates.plain)) if e != estimates.anchor[-1]]
        self.count = len(self.others) + 1

    def anchor(self, rows: slice) -> Array:
        return self._mean(self.estimates.plain, rows)

    def _mean(self, estimates: Sequence[Array], rows: slice) -> Array:
        anchor = self.estimates.anchor
        total = sum(estimates[e][:, rows].astype(np.float64) for e in anchor)
        return total / len(anchor)

    def of(self, rows: slice, anchor: Array) -> list[Array]:
        """Each (channels, rows, width)."""
        found = [self.estimates.plain[e][:, rows] - anchor for e in self.others]
        return [*found, OWN * (self.noisy[:, rows] - anchor)]

    def limits(self, rows: slice) -> tuple[Array, Array]:
        """The range of a result."""
        low = high = self.noisy[:, rows]
        for estimate in self.estimates.plain:
            low, high = self.xp.minimum(low, estimate[:, rows]), self.xp.maximum(high, estimate[:, rows])
        return low - BEYOND * self.sigma, high + BEYOND * self.sigma

    def divergences(self, rows: slice, anchor: Array) -> list[Array]:
        """The divergence of the directions at every pixel: random, with the right mean."""
        channels, _, width = self.noisy.shape
        first, last = rows.start, rows.stop
        signs = push_of(
            (channels, last - first, width), (self.origin[0] + first, self.origin[1]), self.xp
        ).astype(np.float64) / (PUSH * self.sigma)
        moved = self._mean(self.estimates.pushed, rows) - anchor
        found = []
        for e in self.others:
            step = self.estimates.pushed[e][:, rows] - self.estimates.plain[e][:, rows].astype(np.float64)
            found.append(signs * (step - moved))
        return [*found, OWN * (1 - signs * moved)]


def _sums(directions: _Directions, grid: Grid, workers: int) -> Array:
    """Sums over blocks: products of two directions, the terms of Stein's formula, numbers of pixels."""
    xp, n = directions.xp, directions.count
    sums = xp.zeros((n * (n + 1) // 2 + n + 1, grid.rows, grid.columns))

    def work(first: int) -> None:
        rows, blocks = grid.strip(first)
        anchor = directions.anchor(rows)
        some = directions.of(rows, anchor)
        left = directions.noisy[:, rows] - anchor
        turns = directions.divergences(rows, anchor)

        def maps() -> Iterator[Array]:
            yield from (some[i] * some[j] for i in range(n) for j in range(i + 1))
            yield from (some[i] * left - directions.sigma**2 * turns[i] for i in range(n))
            yield xp.ones_like(anchor)

        for total, values in zip(sums, maps(), strict=True):
            total[first : first + blocks] = _over_blocks(values, grid, rows, first, blocks)

    for_each(work, grid.strips(), workers)
    return sums


def _over_blocks(values: Array, grid: Grid, rows: slice, first: int, blocks: int) -> Array:
    """Sums (blocks, columns) of values (channels, rows, width), in a fixed order."""
    plane = values[0]
    for channel in values[1:]:
        plane = plane + channel
    padded = namespace(plane).zeros((blocks * BLOCK, grid.columns * BLOCK))
    above = rows.start + grid.top - first * BLOCK
    padded[above : above + len(plane), grid.left : grid.left + grid.width] = plane
    tall = padded.reshape(blocks, BLOCK, -1)
    lines = _in_order([tall[:, k] for k in range(BLOCK)]).reshape(blocks, grid.columns, BLOCK)
    return _in_order([lines[..., k] for k in range(BLOCK)])


def _in_order(terms: list[Array]) -> Array:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _shares(sums: Array, n: int, sigma: float) -> list[Array]:
    """How much of each direction a block adds to the anchor, each (rows, columns) of blocks."""
    around = _spread(sums)
    means = list(around[:-1] / around[-1])
    products, wanted = means[: n * (n + 1) // 2], means[n * (n + 1) // 2 :]
    matrix = {(i, j): products[i * (i + 1) // 2 + j] for i in range(n) for j in range(i + 1)}
    for i in range(n):
        matrix[i, i] = matrix[i, i] + RIDGE * sigma**2
    return _solve(matrix, wanted)


def _spread(sums: Array) -> Array:
    """Sums (kinds, rows, columns) under a Gaussian over the blocks around; zero beyond the border."""
    taps = [float(np.exp(-0.5 * (k / WIDTH) ** 2)) for k in range(-RADIUS, RADIUS + 1)]
    for _ in range(2):
        padded = namespace(sums).pad(sums, ((0, 0), (RADIUS, RADIUS), (0, 0)))
        length = sums.shape[1]
        sums = _in_order([tap * padded[:, k : k + length] for k, tap in enumerate(taps)]).transpose(0, 2, 1)
    return sums


def _solve(matrix: dict[tuple[int, int], Array], wanted: list[Array]) -> list[Array]:
    """Solve many small symmetric systems at once by Cholesky factors."""
    n = len(wanted)
    factor: dict[tuple[int, int], Array] = {}
    for j in range(n):
        for i in range(j, n):
            rest = matrix[i, j]
            for k in range(j):
                rest = rest - factor[i, k] * factor[j, k]
            factor[i, j] = rest**0.5 if i == j else rest / factor[j, j]
    solution = list(wanted)
    for i in range(n):
        for k in range(i):
            solution[i] = solution[i] - factor[i, k] * solution[k]
        solution[i] = solution[i] / factor[i, i]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            solution[i] = solution[i] - factor[k, i] * solution[k]
        solution[i] = solution[i] / factor[i, i]
    return solution


def _apply(directions: _Directions, shares: list[Array], grid: Grid, workers: int) -> Array:
    """The anchor plus each direction times its share, which is interpolated between the centres of blocks."""
    xp = directions.xp
    out = xp.empty_like(directions.noisy)
    across = _between(xp, grid.width, grid.left, grid.columns)

    def work(first: int) -> None:
        rows, _ = grid.strip(first)
        anchor = directions.anchor(rows)
        down = _between(xp, rows.stop - rows.start, grid.top + rows.start, grid.rows)
        total = anchor
        for share, direction in zip(shares, directions.of(rows, anchor), strict=True):
            lines = share[down.low] * (1 - down.part)[:, None] + share[down.high] * down.part[:, None]
            total = (
                total
                + (lines[:, across.low] * (1 - across.part) + lines[:, across.high] * across.part) * direction
            )
        out[:, rows] = xp.clip(total, *directions.limits(rows))

    for_each(work, grid.strips(), workers)
    return out


class _Between(NamedTuple):
    low: Array  # block whose middle is before a pixel
    high: Array
    part: Array  # how far it is towards the higher one


def _between(xp: Any, length: int, start: int, blocks: int) -> _Between:
    """Where pixels lie between the middles of blocks; the first one is `start` pixels into a block."""
    at = (xp.arange(length) + (start + 0.5)) / BLOCK - 0.5
    low = xp.floor(at)
    part = at - low
    low = low.astype(np.int64)
    return _Between(xp.clip(low, 0, blocks - 1), xp.clip(low + 1, 0, blocks - 1), part)
