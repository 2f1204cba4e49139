"""Fields: noise whose strength varies over the image independently of the brightness.

Vignetting that was corrected, parallel MRI, stitched and averaged mosaics have such noise. The image is cut
into cells; the flattest blocks of a cell bound its noise from below and from above, as they do for classes of
brightness (`vnlem.noise.levels`). A smooth surface is fitted to the lower envelope of the cells: texture can
only raise what a cell shows.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.levels import USUAL_LEAK, Blocks, Levels, by_place, cut, white_level
from vnlem.noise.model import NoiseModel
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

CELLS, SMALLEST_CELL = 8, 32  # along a side at most; pixels of a cell
SMALLEST = 2 * SMALLEST_CELL  # least side in pixels of an image with a field
DEGREE = 3  # of the polynomial in rows and columns, of the logarithm of the variance
ROUGHNESS = 0.3  # what a bend costs, relative to the misfit
# Texture may lift a cell above the surface: beyond this (logarithm) it loses its weight.
RAISED = 0.3
ROUNDS = 12  # of least squares with weights
LEAST_ERROR = 0.03  # relative, of the variance of a cell
LEAST_OF_HIGH, LEAST_BOUND = 0.2, 0.02  # of the energy at high frequencies that counts as noise
BEYOND = 0.7  # of the logarithm of the variance, by which the surface may exceed what the cells show
# A field is accepted if enough cells look like noise, sigma varies enough, and the surface fits the cells:
# absolutely, compared with one level, and compared with a curve of the brightness. Chosen on 98 photographs:
# with white noise of sigma 0 to 20 the surface misses by at least 0.41 of one level, with photon noise by at
# least as much as the brightness; with a field by 0.2 in the median. The texture of one photograph of BSD68
# passed with a factor of 1.5.
LEAST_LIKE_NOISE, LEAST_RATIO, MOST_MISFIT = 0.45, 2.5, 0.25
BESIDE_ONE_LEVEL, BESIDE_BRIGHTNESS = 0.4, 0.5
ERROR_OF_CELL = 0.05  # in addition to its chance error, in comparisons


class Cells(NamedTuple):
    """What the cells of a plane show."""

    places: Float  # (n, 2), rows and columns from -1 to 1
    levels: Levels
    total: int  # of all cells, including those that show nothing

    @classmethod
    def of(cls, blocks: Blocks, shape: tuple[int, int]) -> "Cells":
        """The cells of a plane of a shape, from its blocks."""
        down, across = (int(np.clip(side // SMALLEST_CELL, 2, CELLS)) for side in shape)
        return cls(*by_place(blocks, down, across), down * across)


class Surface(NamedTuple):
    """A smooth map of the noise."""

    coefficients: Float
    limits: tuple[float, float]  # of the logarithm of the variance

    def sigma(self, height: int, width: int) -> Float:
        """The map (H, W), of an unknown unit."""
        rows, columns = ((2 * np.arange(side) + 1) / side - 1 for side in (height, width))
        return self.at(rows, columns, np.multiply.outer)

    def at(self, rows: Float, columns: Float, product: Any = np.multiply) -> Float:
        """The map at some rows and columns from -1 to 1, pair by pair or at all pairs."""
        value = sum(
            product(factor * rows**down, columns**across)
            for (down, across), factor in zip(_POWERS, self.coefficients, strict=True)
        )
        return np.asarray(np.exp(np.clip(value, *self.limits) / 2))

    def evened(self, blocks: Blocks) -> Blocks:
        """Blocks with noise of equal strength everywhere."""
        places = (blocks.row, blocks.column)
        rows, columns = ((2 * at + 1) / side - 1 for at, side in zip(places, blocks.grid, strict=True))
        return blocks.divided(self.at(rows, columns))


_POWERS = [(i, j) for i in range(DEGREE + 1) for j in range(DEGREE + 1 - i)]
_BENDS = np.array([max(i + j - 1, 0) ** 2 for i, j in _POWERS], np.float64)


def find_field(every: list[Cells], *, sure: bool = False) -> Surface | None:
    """The surface that the cells of some planes support: channels, or pages of a stack.

    every: levels may differ between planes, but not how they vary over the image.
    sure: return what is found, even if it is not obvious.

    Returns None if the noise is the same everywhere, or if that cannot be decided.
    """
    seen = [cells for cells in every if len(cells.places) >= len(_POWERS)]
    if not seen:
        return None
    places = np.concatenate([cells.places for cells in seen])
    levels = Levels(
        *(
            np.concatenate([getattr(cells.levels, name) for cells in seen])
            for name in Levels.__dataclass_fields__
        )
    )
    plane = np.repeat(np.arange(len(seen)), [len(cells.places) for cells in seen])
    floor = 1e-6 * float(levels.high.max()) + 1e-300
    high = np.maximum(levels.high, floor)
    low = np.log(np.maximum(levels.least(USUAL_LEAK), LEAST_OF_HIGH * high))
    doubt = np.hypot(levels.error, np.log(high / np.maximum(levels.least(), LEAST_BOUND * high)) / 2)
    low = low - _means(low, 1 / (doubt + LEAST_ERROR) ** 2, plane)
    like_noise = levels.like_noise()
    if not sure and np.count_nonzero(like_noise) < LEAST_LIKE_NOISE * sum(cells.total for cells in every):
        return None
    surface = _through(places, low, doubt + LEAST_ERROR)
    return surface if sure or _is_plain(surface, places, high, levels, plane, like_noise) else None


def _through(places: Float, values: Float, doubt: Float) -> Surface:
    """The surface through the lower envelope of values, each with its uncertainty."""
    terms = np.stack([places[:, 0] ** i * places[:, 1] ** j for i, j in _POWERS], axis=1)
    weights = 1 / doubt**2
    for _ in range(ROUNDS):
        matrix = terms.T @ (terms * weights[:, None]) + ROUGHNESS * weights.mean() * np.diag(_BENDS)
        coefficients = np.linalg.solve(matrix, terms.T @ (weights * values))
        above = np.maximum(values - terms @ coefficients, 0.0)
        weights = 1 / doubt**2 / (1 + (above / RAISED) ** 2)
    found = terms @ coefficients
    return Surface(coefficients, (float(found.min()) - BEYOND, float(found.max()) + BEYOND))


def _is_plain(
    surface: Surface,
    places: Float,
    high: Float,
    levels: Levels,
    plane: NDArray[np.intp],
    chosen: NDArray[np.bool_],
) -> bool:
    """Whether the surface explains the cells that look like noise, and nothing else does."""
    terms = np.stack([places[:, 0] ** i * places[:, 1] ** j for i, j in _POWERS], axis=1)[chosen]
    weights = 1 / (levels.error[chosen] + ERROR_OF_CELL) ** 2
    values, which = np.log(high[chosen]), plane[chosen]
    fitted = terms @ surface.coefficients
    low, most = np.quantile(fitted, [0.05, 0.95])
    if np.exp((most - low) / 2) < LEAST_RATIO:
        return False
    bright = levels.brightness[chosen]
    bright = (bright - bright.mean()) / max(float(bright.std()), 1e-300)
    root = np.sqrt(weights)
    each = [which == number for number in np.unique(which)]
    bend = np.stack([*(one * bright**power for one in each for power in range(DEGREE + 1))], axis=1)
    explained = bend @ np.linalg.lstsq(bend * root[:, None], values * root, rcond=None)[0]
    missed, one_level, by_brightness = (
        _spread(values - found, weights, which) for found in (fitted, 0.0, explained)
    )
    return missed <= min(MOST_MISFIT, BESIDE_ONE_LEVEL * one_level, BESIDE_BRIGHTNESS * by_brightness)


def _means(values: Float, weights: Float, plane: NDArray[np.intp]) -> Float:
    """The mean of each value's plane."""
    means = np.bincount(plane, weights * values) / np.maximum(np.bincount(plane, weights), 1e-300)
    return np.asarray(means[plane])


def _spread(values: Float, weights: Float, plane: NDArray[np.intp]) -> float:
    """Root mean square about the means of the planes."""
    left = values - _means(values, weights, plane)
    return float(np.sqrt(np.average(left**2, weights=weights)))


def field_of(planes: Sequence[Float], pool: Pool | None = None, *, sure: bool = False) -> NoiseModel | None:
    """The noise of planes or pages (H, W) whose strength varies over the image; None if it does not clearly.

    >>> sigma = np.tile(np.linspace(2, 10, 128), (128, 1))
    >>> noisy = 100 + sigma * np.random.default_rng(0).standard_normal((1, 128, 128))
    >>> model = field_of(noisy)
    >>> model.kind, bool(abs(model.sigma - np.sqrt((sigma**2).mean())) < 0.5)
    ('field', True)
    """
    if len({plane.shape for plane in planes}) > 1 or min(planes[0].shape) < SMALLEST:
        return None
    height, width = planes[0].shape
    blocks = [found for plane in planes if (found := cut(plane, pool=pool)) is not None]
    surface = find_field([Cells.of(one, (height, width)) for one in blocks], sure=sure)
    return None if surface is None else with_surface(surface, blocks, height, width)


def with_surface(surface: Surface, blocks: list[Blocks], height: int, width: int) -> NoiseModel:
    """White noise whose strength follows a surface; the blocks of some planes give its level."""
    level = float(np.mean([np.sqrt(white_level(surface.evened(one))) for one in blocks]))
    return NoiseModel.field(level * surface.sigma(height, width)) if level > 0 else NoiseModel.white(0.0)
