"""Levels of noise: what the flattest blocks of an image show, everywhere and at each brightness.

Noise is everywhere, structure only in places. So blocks of 8x8 pixels are ranked by the energy of some of
their coefficients, and the noise of the flattest is measured in other coefficients, at high and at middle
frequencies. White noise has the same power at both. Texture has more at middle frequencies, and a part of
that leaks into the high ones. So both together bound the noise from below and from above.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.noise import blocks as block
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
_RANKED = [np.where(high | middle, 0.0, _WEIGHTS) for high, middle in zip(HIGH, MIDDLE, strict=True)]


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

        Examples
        --------
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

    coefficients: Float  # (SIDE, SIDE, n)
    brightness: Float  # (n,)
    row: NDArray[np.intp]  # (n,), of the grid of blocks
    column: NDArray[np.intp]  # (n,)
    grid: tuple[int, int]  # rows and columns
    scores: tuple[Float, Float]  # texture, without the measured coefficients of one half
    dark: float | None  # the smallest value, if whole areas have it and so no noise: zero counts

    @property
    def count(self) -> int:
        """How many there are."""
        return self.brightness.size

    def divided(self, sigma: Float) -> "Blocks":
        """Blocks divided by the strength (n,) of the noise in each: then it is one in all."""
        scores = self.scores[0] / sigma**2, self.scores[1] / sigma**2
        return replace(self, coefficients=self.coefficients / sigma, scores=scores)


def cut(plane: Float, of: "Differences | None" = None, pool: Pool | None = None) -> Blocks | None:
    """The blocks of a plane (H, W) that can hold noise; None if there are almost none.

    Parameters
    ----------
    plane : ndarray
        Both sides at least SMALLEST.
    of : Differences, optional
        The pages whose noise the plane is: their brightness, and which pixels were clipped.
    pool : Pool, optional
        The threads to use; they do not change the result.

    Examples
    --------
    >>> cut(np.random.default_rng(0).normal(size=(32, 32))).count
    625
    >>> cut(np.zeros((32, 32))) is None
    True
    """
    low, high = float(plane.min()), float(plane.max())
    step = block.lattice(plane)
    both = HIGH[0] | HIGH[1]

    def look(blocks: Float, *more: NDArray[Any]) -> tuple[Any, ...]:
        coefficients = block.cosine(blocks)
        means = more[0].mean(axis=(0, 1)) if more else coefficients[0, 0] / SIDE
        variance = np.mean(coefficients[both] ** 2, axis=0)
        painted = block.painted(blocks, variance, step)
        clipped = (more[1] < 0, more[1] > 0) if more else (blocks == low, blocks == high)
        limits = [block.share_of(one) for one in clipped]
        return coefficients, means, variance, painted, *limits

    planes: list[NDArray[Any]] = [plane] if of is None else [plane, of.brightness, of.clipped]
    views = [block.windows(one, SIDE, 1, longer=2) for one in planes]
    coefficients, means, variance, painted, lowest, highest = block.in_parts(look, views, pool or Pool(1))
    natural = ~painted
    if np.count_nonzero(natural) < FEWEST:
        return None
    # Counts of few photons are not clipped; other noise that is clipped was stronger than it looks.
    counts = float(np.median(variance[natural])) < MOST_COUNTED * step**2
    empty = np.mean(lowest == 1) > LEAST_EMPTY or (counts and np.mean(lowest[natural]) > LEAST_EMPTY_PIXELS)
    dark = low if empty and of is None else None
    if np.mean(natural) < (LEAST_SHARE if dark is None else LEAST_SHARE_OF_COUNTS):
        return None
    # If whole areas have zero counts, a pixel without counts was not clipped.
    clipped = highest if dark is not None else lowest + highest
    kept = block.unclipped(natural, clipped > block.CLIPPED_SHARE, FEWEST)
    if not counts and (clipped[kept] > block.CLIPPED_SHARE).any():
        kept &= clipped <= block.MOST_CLIPPED_SHARE
        coefficients = coefficients / np.sqrt(block.left_by_clipping(clipped))
    if np.count_nonzero(kept) < FEWEST:
        return None
    grid = views[0].shape[2], views[0].shape[3]
    row, column = np.divmod(np.flatnonzero(kept), grid[1])
    coefficients = coefficients[:, :, kept]
    energy = (coefficients**2).reshape(SIDE**2, -1)
    first, second = (np.asarray(weights.ravel() @ energy) for weights in _RANKED)
    return Blocks(coefficients, means[kept], row, column, grid, (first, second), dark)


def by_brightness(blocks: Blocks) -> Levels:
    """What the flattest blocks of every class of brightness show.

    Examples
    --------
    >>> noisy = np.random.default_rng(0).normal(100, 5, (128, 128))
    >>> levels = by_brightness(cut(noisy))
    >>> levels.high.size, bool(abs(levels.high.mean() / 25 - 1) < 0.1)
    (24, True)
    """
    order = np.argsort(blocks.brightness, kind="stable")
    parts = np.array_split(order, max(1, min(CLASSES, blocks.count // FEWEST)))
    bands = _Bands(blocks)
    read = [bands.read(part, 0, max(FEWEST_IN_CLASS, int(FLAT_SHARE * part.size))) for part in parts]
    return Levels(*np.array(read).T)


def by_flatness(blocks: Blocks) -> Levels:
    """What blocks show, from the flattest to textured ones."""
    every, bands = np.arange(blocks.count), _Bands(blocks)
    read, first = [], 0
    for share in RANKS:
        last = min(blocks.count, max(int(share * blocks.count), first + FEWEST_IN_RANK))
        if last - first < FEWEST_IN_RANK // 3:
            break
        read.append(bands.read(every, first, last - first))
        first = last
    return Levels(*np.array(read).T)


def by_place(blocks: Blocks, down: int, across: int) -> tuple[Float, Levels]:
    """What the flattest blocks of every cell of a grid show; cells with too few blocks are left out.

    Returns
    -------
    places : ndarray
        (cells, 2): rows and columns of their middles, from -1 to 1 over the image.
    levels : Levels
        One number per cell.

    Examples
    --------
    >>> places, levels = by_place(cut(np.random.default_rng(0).normal(100, 5, (64, 64))), 2, 2)
    >>> places.tolist()
    [[-0.5, -0.5], [-0.5, 0.5], [0.5, -0.5], [0.5, 0.5]]
    """
    cell = (blocks.row * down // blocks.grid[0]) * across + blocks.column * across // blocks.grid[1]
    order = np.argsort(cell, kind="stable")
    ends = np.searchsorted(cell[order], np.arange(down * across + 1))
    places, read, bands = [], [], _Bands(blocks)
    for number in range(down * across):
        among = order[ends[number] : ends[number + 1]]
        if among.size >= FEWEST:
            row, column = divmod(number, across)
            places.append(((2 * row + 1) / down - 1, (2 * column + 1) / across - 1))
            read.append(bands.read(among, 0, max(FEWEST_IN_CLASS, int(FLAT_SHARE * among.size))))
    return np.array(places).reshape(-1, 2), Levels(*np.array(read).reshape(-1, 5).T)


class _Bands:
    """High and middle coefficients of both halves, extracted once for all sets of blocks."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._halves = [
            (blocks.coefficients[high], blocks.coefficients[middle])
            for high, middle in zip(HIGH, MIDDLE, strict=True)
        ]

    def read(self, among: NDArray[np.intp], first: int, count: int) -> tuple[float, ...]:
        """Brightness, energies, unevenness and error of some ranks of flatness among some blocks."""
        count = min(count, among.size - first)
        found = []
        for (highs, middles), scores in zip(self._halves, self._blocks.scores, strict=True):
            ranked = among[np.argsort(scores[among], kind="stable")[first : first + count]]
            energy = highs[:, ranked] ** 2
            high = float(energy.mean())
            scatter = float(energy.mean(axis=0).std()) / max(high, 1e-300) / np.sqrt(2.0 / len(energy))
            middle = float(np.mean(middles[:, ranked] ** 2))
            found.append((float(self._blocks.brightness[ranked].mean()), high, middle, scatter))
        error = float(np.sqrt(2.0 / (len(energy) * max(OVERLAP * count, 1.0))))
        # Patterns may have all of their energy in one half, where the other does not show them.
        both = [one[1] for one in found]
        if abs(both[0] - both[1]) > error * (both[0] + both[1]):
            return (*found[int(np.argmin(both))], error)
        return (*np.mean(found, axis=0), error / np.sqrt(2))


def white_level(blocks: Blocks) -> float:
    """Variance of white noise: the lower envelope over space, frequency and direction.

    The level at high frequencies is followed from textured blocks to ever flatter ones, until middle
    frequencies have no more power than high ones. If the flattest blocks, or their quietest directions,
    clearly have less, that level is used. If even the flattest blocks are as uneven as texture, the level is
    lower still.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> texture = 20 * np.sin(np.arange(128) * 1.1)[:, None] * np.sin(np.arange(128) * 0.9)
    >>> bool(abs(white_level(cut(texture + rng.normal(0, 2, (128, 128)))) ** 0.5 / 2 - 1) < 0.1)
    True
    """
    ranks = by_flatness(blocks)
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
    rows, columns = np.indices((SIDE, SIDE))
    count = min(blocks.count, max(QUIET_BLOCKS, int(QUIET_SHARE * blocks.count)))
    energy = blocks.coefficients**2
    levels, numbers = [], []
    for parity in (0, 1):
        ranking = (rows + columns) % 2 == parity
        reading = ~ranking
        reading[0, 0] = False
        score = energy[ranking & (rows + columns > 0)].sum(axis=0)
        flat = np.argsort(score, kind="stable")[:count]
        vectors = blocks.coefficients[reading][:, flat]
        group = blocks.row[flat] // (SIDE // 2) % 2
        for side in (0, 1):
            first, second = vectors[:, group == side], vectors[:, group != side]
            if min(first.shape[1], second.shape[1]) < len(vectors):
                continue
            _, directions = np.linalg.eigh(first @ first.T / first.shape[1])
            levels.append(float(np.mean((directions[:, :QUIET_DIRECTIONS].T @ second) ** 2)))
            numbers.append(second.shape[1])
    if not levels:
        return np.inf, 1.0
    own = max(OVERLAP * sum(numbers) / 2, 1.0)
    return float(np.mean(levels)), float(np.sqrt(2.0 / (QUIET_DIRECTIONS * own)))
