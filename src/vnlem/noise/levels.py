"""Levels of noise: what the flattest blocks of an image show, everywhere and at each brightness.

Noise is everywhere, structure only in places. So blocks of 8x8 pixels are ranked by the energy of some of
their coefficients, and the noise of the flattest is measured in other coefficients, at high and at middle
frequencies. White noise has the same power at both. Texture has more at middle frequencies, and a part of
that leaks into the high ones. So both together bound the noise from below and from above.
"""

from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.blocks import measure_blocks
from vnlem.kernels.cpu.small import largest_eigenpairs
from vnlem.noise import blocks as block
from vnlem.noise.jpeg import compression
from vnlem.noise.median import median
from vnlem.noise.squares import least_peak
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

SIDE = 8
SMALLEST = 2 * SIDE  # least side in pixels of an image with levels
# With fewer blocks that can hold noise, in number or as a share, an image has no visible noise.
FEWEST, LEAST_SHARE, LEAST_SHARE_OF_COUNTS = 40, 0.05, 0.01
# If this share of blocks holds only the smallest value, or counts are so low that this share of pixels has
# it, that value has no noise.
LEAST_EMPTY, LEAST_EMPTY_PIXELS = 0.05, 0.3
MOST_COUNTED = 3.0  # photons: with more, a pixel without a count is rare
OVERLAP = 0.25  # of the information of a block is independent if blocks overlap by half in both directions

CLASSES = 24  # of equal numbers of blocks, by brightness
FLAT_SHARE = 0.12  # of the blocks of a class are read
FEWEST_IN_CLASS = 24
# Ranks of flatness that are measured together, as shares of all blocks: from the flattest to textured ones.
RANKS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
FEWEST_IN_RANK = 60
# Directions of the cosine transform's half in which the flattest blocks vary the least.
QUIET_DIRECTIONS, QUIET_SHARE, QUIET_BLOCKS = 8, 0.02, 200
# Texture with energy E above the noise at middle frequencies has at most the first share of E at high ones;
# in photographs usually the second, give or take the third.
MOST_LEAK, USUAL_LEAK, LEAK_SPREAD = 0.35, 0.15, 0.1
LEAKS = 33  # candidates
# The energies of blocks of noise scatter like a chi-squared variable: by a factor of about one. Texture
# scatters more, a repeating pattern less.
EVEN = (0.6, 1.4)
# If the flattest blocks scatter more than this they hold texture; then at most this share of their energy
# counts as noise.
TEXTURED, MOST_OF_TEXTURED = 1.3, 0.3
MOST_COMPRESSED = 1.4  # logarithm: pages of text have up to 1.3, photographs of much noise more
MOST_BLUE = 0.8  # times the power at high frequencies: noise with less at middle ones is not white


def _parts() -> tuple[list[NDArray[np.bool_]], list[NDArray[np.bool_]], Float]:
    """High and middle coefficients of both halves of a chess board, and the weights of the ranking."""
    rows, columns = np.indices((SIDE, SIDE))
    frequency = block.frequency(SIDE)
    odd = (rows + columns) % 2 == 1
    high = (rows >= SIDE // 2) & (columns >= SIDE // 2)
    middle = (frequency >= 0.25) & (frequency < 0.5) & ~high
    # Slow changes of the brightness tell nothing about texture at high frequencies.
    return [high & ~odd, high & odd], [middle & ~odd, middle & odd], frequency**2


HIGH, MIDDLE, _WEIGHTS = _parts()
# Both halves of the chess board without the mean: one chooses blocks, the other shows directions.
_HALVES = [np.add.outer(np.arange(SIDE), np.arange(SIDE)) % 2 == parity for parity in (0, 1)]
_HALVES[0][0, 0] = False
_MEASURED = np.count_nonzero(HIGH[0])  # coefficients at high frequencies, in each half
# Sums of energies that describe a block: two of each kind, in this order.
SUMS = np.array(
    [part / np.count_nonzero(part) for part in (*HIGH, *MIDDLE)]
    + [np.where(high | middle, 0.0, _WEIGHTS) for high, middle in zip(HIGH, MIDDLE, strict=True)]
    + _HALVES,
).reshape(-1, SIDE**2)


class Differences(NamedTuple):
    """Planes (H, W) that show the noise of a stack: of neighbouring pages, in which structure cancels."""

    noise: Float  # with the variance of a page
    brightness: Float  # of the pages at the same place
    clipped: NDArray[np.int8]  # -1 and 1 where a page has its smallest or largest value, else 0


@dataclass(frozen=True)
class Levels:
    """Variances that sets of flat blocks show, one number per set."""

    brightness: Float
    high: Float  # mean energy of a coefficient at high frequencies
    middle: Float  # the same at middle frequencies
    unevenness: Float  # scatter of the blocks' energies over that of noise
    error: Float  # standard error of the energies, relative

    def some(self, chosen: NDArray[Any]) -> "Levels":
        """Some of the sets."""
        return Levels(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def least(self, leak: float = MOST_LEAK) -> Float:
        """Variance of white noise at high frequencies after subtracting the leak of texture.

        >>> Levels(*np.array([[0.0], [4.0], [8.0], [1.0], [0.1]])).least(0.2)
        array([3.])
        """
        excess = np.maximum(self.middle - self.high, 0.0) * leak / (1 - leak)
        return np.asarray(np.maximum(np.minimum(self.high, self.middle) - excess, 0.0))

    def most(self) -> Float:
        """Variance that white noise cannot exceed."""
        return np.minimum(self.high, self.middle)

    def like_noise(self) -> NDArray[np.bool_]:
        """Sets that look like white noise, with at most a little texture."""
        even = (self.unevenness > EVEN[0]) & (self.unevenness < EVEN[1])
        white = (self.least() > 0.3 * self.high) & (
            self.middle > MOST_BLUE * self.high * (1 - 2 * self.error)
        )
        return np.asarray(even & white)


@dataclass(frozen=True)
class Blocks:
    """The blocks of a plane that can hold noise: neither painted nor clipped."""

    pixels: Float  # (SIDE, SIDE, down, across), all blocks of the plane
    scale: Float  # (n,), by which coefficients are divided
    sums: Float  # (len(SUMS), n), of the energies of coefficients
    brightness: Float  # (n,)
    row: NDArray[np.intp]  # (n,), of the grid of blocks
    column: NDArray[np.intp]  # (n,)
    grid: tuple[int, ...]  # rows and columns
    dark: float | None  # the smallest value, if whole areas have it and so no noise: zero counts
    plane: Float | None  # all pixels, if the noise has one strength
    limits: tuple[float, float]  # the smallest and the largest pixel

    @property
    def count(self) -> int:
        """How many there are."""
        return self.brightness.size

    @cached_property
    def ranked(self) -> list[NDArray[np.intp]]:
        """From flat blocks to textured ones, without the measured coefficients of one half."""
        return [block.order(scores) for scores in self.sums[4:6]]

    def coefficients(self, chosen: NDArray[np.intp]) -> Float:
        """(SIDE, SIDE, chosen), of some of the blocks."""
        pixels = self.pixels[:, :, self.row[chosen], self.column[chosen]]
        return block.cosine(pixels) / self.scale[chosen]

    def divided(self, sigma: Float) -> "Blocks":
        """Blocks divided by the strength (n,) of the noise in each: then it is one in all."""
        return replace(self, scale=self.scale * sigma, sums=self.sums / sigma**2, plane=None)


def cut(
    plane: Float, of: "Differences | None" = None, pool: Pool | None = None, limits: Float | None = None
) -> Blocks | None:
    """The blocks of a plane (H, W) that can hold noise; None if there are almost none.

    plane: both sides at least SMALLEST.
    of: the pages whose noise the plane is: their brightness, and which pixels were clipped.
    pool: the threads to use; they do not change the result.
    limits: the smallest and the largest value of the plane, if known.

    >>> cut(np.random.default_rng(0).normal(size=(32, 32))).count
    625
    >>> cut(np.zeros((32, 32))) is None
    True
    """
    low, high = map(float, (plane.min(), plane.max()) if limits is None else limits)
    step = cache(partial(block.lattice, plane))  # takes long, and few images need it
    measured = _measured(plane, low, high, pool)
    sums, (means, across, down, lowest, highest) = measured[: len(SUMS)], measured[len(SUMS) :]
    if of is not None:
        means = _measured(of.brightness, low, high, pool)[len(SUMS)]
        lowest, highest = _measured(of.clipped, -1, 1, pool)[-2:]
    variance = (sums[0] + sums[1]) / 2
    natural = ~block.too_equal(np.maximum(across, down), variance, step)
    if np.count_nonzero(natural) < FEWEST:
        return None
    # Counts of few photons are not clipped; other noise that is clipped was stronger than it looks.
    squared = median(variance[natural]) / MOST_COUNTED
    counts = squared < block.lattice(plane, block.SKIPPED) ** 2 and squared < step() ** 2
    empty = np.mean(lowest == 1) > LEAST_EMPTY or (counts and np.mean(lowest[natural]) > LEAST_EMPTY_PIXELS)
    dark = low if empty and of is None else None
    if np.mean(natural) < (LEAST_SHARE if dark is None else LEAST_SHARE_OF_COUNTS):
        return None
    # If whole areas have zero counts, a pixel without counts was not clipped.
    clipped = highest if dark is not None else lowest + highest
    kept = block.unclipped(natural, clipped > block.CLIPPED_SHARE, FEWEST)
    left = np.ones(1)
    if not counts and (clipped[kept] > block.CLIPPED_SHARE).any():
        kept &= clipped <= block.MOST_CLIPPED_SHARE
        left = block.left_by_clipping(clipped[kept])
    if np.count_nonzero(kept) < FEWEST:
        return None
    pixels = block.windows(plane, SIDE, 1, longer=2)
    grid = pixels.shape[2:]
    chosen = np.flatnonzero(kept)
    scale = np.broadcast_to(np.sqrt(left), chosen.shape)
    of_kept = sums.take(chosen, axis=1) / left
    return Blocks(
        pixels, scale, of_kept, means[chosen], *np.divmod(chosen, grid[1]), grid, dark, plane, (low, high)
    )


def _measured(plane: NDArray[Any], low: float, high: float, pool: Pool | None) -> Float:
    """What `measure_blocks` finds in all blocks of a plane: (len(SUMS) + 5, n)."""
    plane = np.ascontiguousarray(plane, np.float64)
    pixels = block.windows(plane, SIDE, 1, longer=2)
    step = pixels.strides[2] // plane.strides[0]
    found = np.empty((pixels.shape[2] * pixels.shape[3], len(SUMS) + 5))
    matrix, weights = block.cosine_matrix(SIDE), np.ascontiguousarray(SUMS.T)

    def measure(first: int) -> None:
        part = found[first : first + block.PART]
        measure_blocks(plane, step, first, matrix, weights, low, high, part)

    (pool or Pool(1)).for_each(measure, range(0, len(found), block.PART))
    return np.ascontiguousarray(found.T)


def by_brightness(blocks: Blocks) -> Levels:
    """What the flattest blocks of every class of brightness show.

    >>> noisy = np.random.default_rng(0).normal(100, 5, (128, 128))
    >>> levels = by_brightness(cut(noisy))
    >>> levels.high.size, bool(abs(levels.high.mean() / 25 - 1) < 0.1)
    (24, True)
    """
    classes = max(1, min(CLASSES, blocks.count // FEWEST))
    few, more = divmod(blocks.count, classes)
    sizes = np.full(classes, few) + (np.arange(classes) < more)
    group = np.empty(blocks.count, np.int16)
    group[block.order(blocks.brightness)] = np.repeat(np.arange(classes), sizes)
    return _flattest(blocks, group, sizes)


def by_flatness(blocks: Blocks) -> Levels:
    """What blocks show, from the flattest to textured ones."""
    ends = [0]
    for share in RANKS:
        last = min(blocks.count, max(int(share * blocks.count), ends[-1] + FEWEST_IN_RANK))
        if last - ends[-1] < FEWEST_IN_RANK // 3:
            break
        ends.append(last)
    return _read(blocks, blocks.ranked, np.array(ends[:-1]), np.diff(ends))


def by_place(blocks: Blocks, down: int, across: int) -> tuple[Float, Levels]:
    """What the flattest blocks of every cell of a grid show; cells with too few blocks are left out.

    Returns the places of the cells (n, 2), rows and columns of their middles from -1 to 1 over the image, and
    what each shows.

    >>> places, levels = by_place(cut(np.random.default_rng(0).normal(100, 5, (64, 64))), 2, 2)
    >>> places.tolist()
    [[-0.5, -0.5], [-0.5, 0.5], [0.5, -0.5], [0.5, 0.5]]
    """
    cell = (blocks.row * down // blocks.grid[0]) * across + blocks.column * across // blocks.grid[1]
    sizes = np.bincount(cell, minlength=down * across)
    row, column = np.divmod(np.flatnonzero(sizes >= FEWEST), across)
    places = np.stack([(2 * row + 1) / down - 1, (2 * column + 1) / across - 1], axis=1)
    return places, _flattest(blocks, cell.astype(np.int16), sizes)


def _flattest(blocks: Blocks, group: NDArray[np.int16], sizes: NDArray[Any]) -> Levels:
    """What the flattest blocks of every group show, given how many each has, if they are enough."""
    orders = [ranked[np.argsort(group[ranked], kind="stable")] for ranked in blocks.ranked]
    firsts, enough = np.cumsum(sizes) - sizes, sizes >= FEWEST
    counts = np.minimum(sizes, np.maximum(FEWEST_IN_CLASS, (FLAT_SHARE * sizes).astype(int)))
    return _read(blocks, orders, firsts[enough], counts[enough])


def _read(
    blocks: Blocks, orders: list[NDArray[np.intp]], firsts: NDArray[Any], counts: NDArray[Any]
) -> Levels:
    """What ranges of blocks show: those with some numbers in an order, for each half of the coefficients."""
    starts = np.cumsum(counts) - counts
    within = np.repeat(firsts - starts, counts) + np.arange(counts.sum())
    found = []
    for order, high, middle in zip(orders, blocks.sums[:2], blocks.sums[2:4], strict=True):
        taken = order[within]
        values = np.stack([blocks.brightness[taken], high[taken], middle[taken]])
        means = np.add.reduceat(values, starts, axis=1) / counts
        apart = (values[1] - np.repeat(means[1], counts)) ** 2
        deviation = np.sqrt(np.add.reduceat(apart, starts) / counts)
        found.append([*means, deviation / np.maximum(means[1], 1e-300) / np.sqrt(2.0 / _MEASURED)])
    first, second = np.array(found).reshape(2, 4, -1)
    error = np.sqrt(2.0 / (_MEASURED * np.maximum(OVERLAP * counts, 1.0)))
    # Patterns may have all of their energy in one half, where the other does not show them.
    unlike = np.abs(first[1] - second[1]) > error * (first[1] + second[1])
    one = np.where(second[1] < first[1], second, first)
    brightness, high, middle, unevenness = np.where(unlike, one, (first + second) / 2)
    return Levels(brightness, high, middle, unevenness, np.where(unlike, error, error / np.sqrt(2)))


def white_level(blocks: Blocks) -> float:
    """Variance of white noise: the lower envelope over space, frequency and direction.

    The level at high frequencies is followed from textured blocks to ever flatter ones, until middle
    frequencies have no more power than high ones. If the flattest blocks, or their quietest directions,
    clearly have less, that level is used. If even the flattest blocks are as uneven as texture, the level is
    lower still. If they do not look like noise at all, the squares between strokes bound it.

    >>> rng = np.random.default_rng(0)
    >>> texture = 20 * np.sin(np.arange(128) * 1.1)[:, None] * np.sin(np.arange(128) * 0.9)
    >>> bool(abs(white_level(cut(texture + rng.normal(0, 2, (128, 128)))) ** 0.5 / 2 - 1) < 0.1)
    True
    """
    ranks = by_flatness(blocks)
    level = _envelope(blocks, ranks)
    if blocks.plane is None or ranks.like_noise()[0]:
        return level
    sigma = level**0.5
    least = least_peak(blocks.plane, *blocks.limits, sigma)
    # JPEG files lack the highest frequencies, where the peak is seen.
    return level if least == sigma or compression(blocks.plane) >= MOST_COMPRESSED else least**2


def _envelope(blocks: Blocks, ranks: Levels) -> float:
    """The level that blocks show, from the ranks of their flatness."""
    flattest, error = float(ranks.most()[0]), float(ranks.error[0])
    level = _without_leak(ranks)
    if flattest < level * (1 - 2 * error):
        level = flattest
    quiet, error = _quiet_directions(blocks)
    if quiet < level * (1 - 2 * error):
        return quiet
    if float(ranks.unevenness[:2].mean()) > TEXTURED:
        # A class of brightness may be free of that texture, such as a night sky above a town.
        classes = by_brightness(blocks)
        plain = classes.least(USUAL_LEAK)[classes.like_noise()]
        least = float(plain.min()) if plain.size else 0.0
        return min(level, max(MOST_OF_TEXTURED * float(ranks.high[0]), least))
    return level


def _without_leak(ranks: Levels) -> float:
    """Where the line of high against middle energies meets white noise, which has equal energies."""
    if ranks.high.size < 3:
        return float(ranks.least()[0])
    high, middle = ranks.high, ranks.middle
    # Uneven sets are less certain. Flatter ones weigh more: texture of another kind leaks differently.
    error = ranks.error * np.maximum(ranks.unevenness, 1.0)
    weights = 1 / np.maximum(high * error, 1e-140) ** 2 / (1 + np.arange(high.size))
    x, y = (float(weights @ values) / float(weights.sum()) for values in (middle, high))
    # If the texture hardly differs between the ranks, the usual leak is the best guess.
    usual = 1 / LEAK_SPREAD**2
    spread = float(weights @ (middle - x) ** 2)
    likely = (float(weights @ ((middle - x) * (high - y))) + usual * USUAL_LEAK) / (spread + usual)
    # No more can have leaked than there is, and no less than nothing: the mean of what is left.
    most = min(MOST_LEAK, float(np.min(high / np.maximum(middle, 1e-300))))
    leaks = np.linspace(0.0, most, LEAKS)
    misfit = (spread + usual) * (leaks - likely) ** 2
    leak = float(np.average(leaks, weights=np.exp((misfit.min() - misfit) / 2)))
    return max((y - leak * x) / (1 - leak), 0.0)


def _quiet_directions(blocks: Blocks) -> tuple[float, float]:
    """Energy of the flattest blocks in the directions in which they vary the least, and its relative error.

    Patterns fill some directions of patch space and leave others to the noise. Directions are found in one
    half of the blocks and measured in the other, so the choice causes no bias.
    """
    count = min(blocks.count, max(QUIET_BLOCKS, int(QUIET_SHARE * blocks.count)))
    levels, numbers = [], []
    for score, reading in zip(blocks.sums[6:], reversed(_HALVES), strict=True):
        flat = block.order(score)[:count]
        vectors = blocks.coefficients(flat)[reading]
        group = blocks.row[flat] // (SIDE // 2) % 2
        for side in (0, 1):
            first, second = vectors[:, group == side], vectors[:, group != side]
            if min(first.shape[1], second.shape[1]) < len(vectors):
                continue
            _, directions = largest_eigenpairs(-(first @ first.T) / first.shape[1], QUIET_DIRECTIONS)
            levels.append(float(np.mean((directions.T @ second) ** 2)))
            numbers.append(second.shape[1])
    if not levels:
        return np.inf, 1.0
    own = max(OVERLAP * sum(numbers) / 2, 1.0)
    return float(np.mean(levels)), float(np.sqrt(2.0 / (QUIET_DIRECTIONS * own)))
