"""Rows and columns that differ by offsets or gains: sCMOS and infrared sensors, scanners, 1/f noise of rows.

Neighbouring lines of a picture differ by structure, which changes along the line, and by their offsets, which
do not. So both are cut into blocks, and the value on which the mid-means of all blocks agree is the
difference of the offsets. Differences over one, two and three lines are combined by least squares; those
distorted by structure, such as the edge of a facade, are rejected by their misfit. The offsets are shrunk by
their variance: if lines do not differ, they are close to zero.

A line with a different gain differs more in bright areas: the differences of the blocks grow with their
brightness. The slopes are combined in the same way, and the offsets are then measured on the picture
corrected for the gains.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.lines import middle_means
from vnlem.noise.maps import PixelMaps
from vnlem.noise.median import median
from vnlem.noise.model import NoiseModel
from vnlem.pipeline import checks
from vnlem.pipeline.image import Planes
from vnlem.pipeline.workers import pool_for_pixels

Float = NDArray[np.float64]

BLOCKS, LAGS = 16, 3
SMALLEST, SMALLEST_PLAIN = 4 * BLOCKS, 6 * BLOCKS  # pixels along a line: to be sure, and to be plain
FEWEST = 48  # lines
ROUNDS = 6  # of least squares with weights
MISFIT = 2.0  # standard errors by which a difference may be wrong before it loses half of its weight
LEAST_ERROR = 0.5  # of the usual error: blocks may agree by chance
LEAST_SHARE = 1e-4  # of the variance of the lines: the least variance of an error
MOST_ROWS = 64  # of a block that are used to decide whether there are lines
# Lines clearly differ if the differences are larger than their errors, the quarters of the picture agree on
# them, and they are independent: then neighbouring differences correlate like those of white noise, at -0.5,
# and do not repeat. Chosen on 98 photographs with noise of sigma 0 to 20: their
# quarters agree by at most 0.4, the correlation of neighbours is at least -0.3, and none has both.
LEAST_SIGNIFICANCE, LEAST_AGREEMENT = 4.0, 0.35
INDEPENDENT, MOST_REPEATED, REPEATS = (-0.7, -0.2), 0.35, 24
NORMAL = 1.4826  # standard deviations over median absolute deviations
# Lines have gains if slopes exceed their errors by this factor. On four pictures of Set12 with noise of sigma
# 10 it is 0.98 to 1.05 without gains, and 1.4 to 1.9 with gains that differ by 3 %.
LEAST_SLOPE = 1.25
SMOOTH = 9  # columns whose mean is the brightness of a block
SLOPE_ROUNDS = 5  # of least squares with weights, of the slopes


def without_lines(
    planes: Planes, lines: Any, plain: bool, workers: int | None = 1
) -> tuple[PixelMaps | None, Planes]:
    """The offsets of the lines of an image, if the option enables them, and the image without them.

    lines: "auto", True or False; None is "auto".
    plain: whether "auto" may look for them.
    workers: number of threads; all cores when None.
    """
    asked = check_lines(lines)
    found = None
    if asked is True or (asked == "auto" and plain):
        found = find_lines(planes.data, sure=asked is True, workers=workers)
    return found, planes if found is None else replace(planes, data=found.enter(planes.data))


def check_lines(lines: Any) -> "bool | str":
    """The option `lines`, checked."""
    if lines is None or isinstance(lines, bool | np.bool_):
        return "auto" if lines is None else bool(lines)
    if not (isinstance(lines, str) and lines == "auto"):
        raise ValueError(f"lines must be True, False or 'auto', got {checks.shown(lines)}")
    return "auto"


def with_lines(model: NoiseModel, found: PixelMaps | None) -> NoiseModel:
    """The noise of an image with lines, from that of the image without them."""
    if found is None:
        return model
    maps = model.maps or PixelMaps()
    return replace(model, maps=replace(found, sensor=maps.sensor, sigma=maps.sigma))


_FIELDS = {1: {"offsets": "rows", "gains": "row_gains"}, 2: {"offsets": "columns", "gains": "column_gains"}}


def find_lines(planes: Float, *, sure: bool = False, workers: int | None = 1) -> PixelMaps | None:
    """The offsets and gains of rows and columns of planes (C, H, W); None if lines do not differ.

    sure: return what is found, even if it is not obvious.
    workers: number of threads; all cores when None. They do not change the result.

    >>> rng = np.random.default_rng(0)
    >>> offsets = rng.normal(0, 4, 128)
    >>> lines = find_lines(rng.normal(100, 5, (1, 128, 128)) + offsets)
    >>> bool(np.std(lines.columns[0, 0] - offsets) < 1.0), lines.rows is None
    (True, True)
    """
    views = {1: [plane.T for plane in planes], 2: list(planes)}

    def has_lines(axis: int) -> bool:
        length, count = views[axis][0].shape
        wanted = length >= (SMALLEST if sure else SMALLEST_PLAIN) and count >= FEWEST
        return wanted and (sure or any(map(differ_plainly, views[axis])))

    found: dict[str, Any] = {}
    with pool_for_pixels(planes.size, workers) as pool:
        both = pool.results(has_lines, tuple(views))
    for (axis, each), there in zip(views.items(), both, strict=True):
        if not there:
            continue
        gains = np.stack([gains_of_columns(plane) for plane in each])
        even = zip(each, gains, strict=True)
        offsets = gains * np.stack([offsets_of_columns(plane / own) for plane, own in even])
        for name, values, usual in (("gains", gains, 1), ("offsets", offsets, 0)):
            if (values != usual).any():
                found[_FIELDS[axis][name]] = np.expand_dims(values.astype(np.float32), 3 - axis)
    return PixelMaps(**found) if found else None


def gains_of_columns(plane: Float) -> Float:
    """Gains of the columns of a plane (H, W), one in the mean; all one if they do not differ.

    >>> rng = np.random.default_rng(0)
    >>> gains = 1 + rng.normal(0, 0.05, 128)
    >>> picture = np.repeat(np.linspace(20, 200, 128)[:, None], 128, axis=1)
    >>> found = gains_of_columns(gains * picture + rng.normal(0, 5, picture.shape))
    >>> bool(np.std(found - gains) < 0.02), bool((gains_of_columns(picture) == 1).all())
    (True, True)
    """
    pairs = [_slopes(plane, lag) for lag in range(1, LAGS + 1)]
    (slope, error), *_ = pairs
    usual = median(error)
    variance = ((NORMAL * median(np.abs(slope - median(slope)))) ** 2 - usual**2) / 2
    beyond = NORMAL * median(np.abs(slope) / np.maximum(error, 1e-300))
    if not (variance > 0 and usual > 0 and beyond >= LEAST_SLOPE):
        return np.ones(plane.shape[1])
    least = (LEAST_ERROR * usual) ** 2
    found = _joined([one for one, _ in pairs], [np.maximum(one**2, least) for _, one in pairs], variance)
    return 1 + found


def _slopes(plane: Float, lag: int) -> tuple[Float, Float]:
    """How differences of columns a few apart grow with the brightness of a block, and the errors of that."""
    from scipy.ndimage import uniform_filter1d

    blocks = _of_blocks(plane, lag)
    bright = uniform_filter1d(_in_blocks(plane).mean(axis=1), SMOOTH, axis=1, mode="nearest")
    bright = (bright[:, lag:] + bright[:, :-lag]) / 2
    weights = np.ones_like(blocks)
    for _ in range(SLOPE_ROUNDS):
        total = weights.sum(axis=0)
        about = bright - (weights * bright).sum(axis=0) / total
        rest = blocks - (weights * blocks).sum(axis=0) / total
        spread = np.maximum((weights * about**2).sum(axis=0), 1e-300)
        slope = (weights * about * rest).sum(axis=0) / spread
        rest -= slope * about
        # Two numbers are fitted to the blocks.
        deviation = NORMAL * np.median(np.abs(rest), axis=0) * np.sqrt(BLOCKS / (BLOCKS - 2))
        deviation = np.maximum(deviation, max(LEAST_ERROR * median(deviation), 1e-300))
        with np.errstate(over="ignore"):  # if most blocks are constant, the others get no weight
            weights = 1 / (1 + (rest / (MISFIT * deviation)) ** 2)
    return slope, deviation / np.sqrt(spread)


def offsets_of_columns(plane: Float) -> Float:
    """Offsets of the columns of a plane (H, W), without their mean.

    >>> offsets_of_columns(np.tile(np.arange(64.0), (64, 1))).round(3).any()
    np.False_
    """
    count = plane.shape[1]
    pairs = [_differences(plane, lag) for lag in range(1, LAGS + 1)]
    variance = _usual(pairs[0])
    if not variance > 0:
        return np.zeros(count)
    differences = [pair.difference for pair in pairs]
    least = LEAST_ERROR**2 * _error(pairs[0])
    errors = [np.maximum(pair.error**2, least) for pair in pairs]
    return _joined(differences, errors, variance)


def _joined(differences: list[Float], errors: list[Float], variance: float) -> Float:
    """Values of lines, without their mean, from differences of lines 1, 2, ... apart.

    differences, errors: for each distance the differences and the variances of their errors.
    variance: of the values.
    """
    from scipy.linalg import solveh_banded

    count = len(differences[0]) + 1
    errors = [np.maximum(error, LEAST_SHARE * variance) for error in errors]
    weights = [1 / error for error in errors]
    values = np.zeros(count)
    for _ in range(ROUNDS):
        # The diagonal is the last row of the band matrix. Pairs that share a line are not independent.
        matrix, right = np.zeros((LAGS + 1, count)), np.zeros(count)
        matrix[LAGS] = LAGS / variance
        for lag, (difference, weight) in enumerate(zip(differences, weights, strict=True), 1):
            for side, sign in ((np.s_[lag:], 1), (np.s_[:-lag], -1)):
                matrix[LAGS, side] += weight
                right[side] += sign * weight * difference
            matrix[LAGS - lag, lag:] = -weight
        values = np.asarray(solveh_banded(matrix, right))
        weights = [
            1 / (error + (difference - (values[lag:] - values[:-lag])) ** 2 / MISFIT**2)
            for lag, (difference, error) in enumerate(zip(differences, errors, strict=True), 1)
        ]
    return np.asarray(values - values.mean())


def differ_plainly(plane: Float) -> bool:
    """Whether the columns of a plane (H, W) have offsets, not just structure that looks like offsets.

    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(0, 5, (128, 128))
    >>> differ_plainly(noise), differ_plainly(noise + rng.normal(0, 3, 128))
    (False, True)
    """
    found = _differences(plane, 1, MOST_ROWS)
    significance = 2 * _usual(found) / max(_error(found), 1e-300)
    if significance < LEAST_SIGNIFICANCE:
        return False
    quarters = [_clipped(_middle(part)) for part in np.split(found.blocks, 4)]
    if min(_correlation(a, b) for k, a in enumerate(quarters) for b in quarters[:k]) < LEAST_AGREEMENT:
        return False
    all_of_them = _clipped(found.difference)
    beside, *further = (_correlation(all_of_them[k:], all_of_them[:-k]) for k in range(1, REPEATS))
    low, high = INDEPENDENT
    return low <= beside <= high and max(map(abs, further)) <= MOST_REPEATED


class _Differences(NamedTuple):
    """Differences of columns a few apart."""

    blocks: Float  # (blocks, columns)
    difference: Float  # what the blocks agree on
    error: Float  # its standard error, from their agreement


def _in_blocks(plane: Float) -> Float:
    """(blocks, rows of a block, columns)."""
    height = plane.shape[0] // BLOCKS
    return plane[: height * BLOCKS].reshape(BLOCKS, height, -1)


def _differences(plane: Float, lag: int, most: int | None = None) -> _Differences:
    blocks = _of_blocks(plane, lag, most)
    middle = _middle(blocks)
    deviation = NORMAL * _middle(np.abs(blocks - middle), (len(blocks) - 1) // 2)
    return _Differences(blocks, middle, deviation / np.sqrt(BLOCKS))


def _usual(found: _Differences) -> float:
    """Variance of the offsets: half of that of their differences, minus their errors."""
    deviation = NORMAL * median(np.abs(found.difference - median(found.difference)))
    return (deviation**2 - _error(found)) / 2


def _error(found: _Differences) -> float:
    """Usual variance of the error of a difference."""
    return median(found.error) ** 2


def _middle(values: Float, dropped: int | None = None) -> Float:
    """Mean of the middle half of every column: as robust as a median, and less coarse for integers.

    dropped: how many values at either end do not count, instead of a quarter; (rows - 1) // 2 for medians.
    """
    means = np.empty((1, values.shape[1]))
    middle_means(values, len(values), 0, False, len(values) // 4 if dropped is None else dropped, means)
    return np.asarray(means[0])


def _of_blocks(plane: Float, lag: int, most: int | None = None) -> Float:
    """The same of the differences of columns, of at most some rows of each of the blocks."""
    rows = min(len(plane) // BLOCKS, most or len(plane))
    means = np.empty((BLOCKS, plane.shape[1] - lag))
    across = not plane.flags.c_contiguous
    middle_means(np.ascontiguousarray(plane.T if across else plane), rows, lag, across, rows // 4, means)
    return means


def _clipped(values: Float) -> Float:
    """Values clipped to three standard deviations about their median."""
    values = values - median(values)
    most = 3 * NORMAL * median(np.abs(values))
    return np.clip(values, -most, most)


def _correlation(first: Float, second: Float) -> float:
    first, second = first - first.mean(), second - second.mean()
    size = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / size if size > 0 else 0.0
