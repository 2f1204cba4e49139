"""What squares of four pixels show of white noise, where no block of an image is flat: in drawings and print.

The difference d = (a - b - c + d) / 2 of the four pixels of a square has the variance of the noise, and
structure is added to it. Wherever structure is weak, such as between the strokes of letters, d is near zero.
So the density of d has a peak, which is never narrower than that of the noise alone: the density of a sum
over that of its Gaussian part can only rise with the distance from zero. The peak is found even if it holds
only a small share of the squares.

Next to strokes without noise, many squares have four equal pixels. Noise hardly ever makes them equal.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

MOST_SQUARES = 2**18  # bounds time for large planes
FEWEST, LEAST_SHARE = 1000, 0.03  # squares within a standard deviation, in number and of all
PRECISION = 256  # candidates of the standard deviation, up to the known level
# Half a standard deviation contains this share of what a whole one contains.
SHARE_OF_HALF = 0.561
ROUNDING = 1e-6  # of sigma, or of the range of values: smaller differences are zero
# A window of this side whose differences are at most this many steps of the values was painted, or is a block
# of a JPEG file that stored only its mean.
AROUND, PAINTED = 5, 4.0
# A drawing has this share of equal squares, and more around its strokes, on bright paper. Clipped noise makes
# 1 in 16 equal. Dark squares do not count: a background without photons has equal ones too.
EQUAL_ANYWHERE, EQUAL_AROUND_STROKES, LOOKED_AT = 0.05, 0.13, 4
FEWEST_AROUND_STROKES = 200


def least_peak(plane: Float, low: float, high: float, sigma: float) -> float:
    """Standard deviation of white noise, from the peak of the diagonal differences; at most sigma.

    low, high: the smallest and the largest value; pixels there are clipped.

    >>> rng = np.random.default_rng(0)
    >>> strokes = np.where(rng.random((256, 256)) < 0.3, 40.0, 200.0)
    >>> noisy = strokes + rng.normal(0, 3, strokes.shape)
    >>> bool(2.7 < least_peak(noisy, -np.inf, np.inf, 40.0) < 4)
    True
    """
    if not sigma > 0:
        return sigma
    squares = _squares(plane)
    apart = _apart(squares)
    seen, step_of_values = _around_strokes(np.abs(apart), ROUNDING * sigma)
    if not np.isfinite(step_of_values):
        return sigma
    for pixels in squares:
        seen &= (pixels > low) & (pixels < high)
    apart = apart[seen]
    # Whole numbers have differences in steps, which are spread evenly.
    apart += np.random.default_rng(0).uniform(-0.5, 0.5, apart.shape) * step_of_values
    place = np.abs(apart) * (2 * PRECISION / sigma)
    counts = np.bincount(place[place < 2 * PRECISION].astype(np.intp), minlength=2 * PRECISION)
    within = np.cumsum(counts)  # within (k + 1) / (2 * PRECISION) of sigma
    half, whole = within[:PRECISION], within[1::2]
    enough = whole >= max(FEWEST, LEAST_SHARE * apart.size)
    peaks = np.flatnonzero(enough & (half >= SHARE_OF_HALF * whole))
    return sigma * float(peaks[0] + 1) / PRECISION if peaks.size else sigma


def is_drawn(plane: Float, low: float, high: float) -> bool:
    """Whether many bright squares around strokes have four equal pixels, which noise would make unequal.

    low, high: the smallest and the largest value.

    >>> rng = np.random.default_rng(0)
    >>> strokes = np.where(rng.random((256, 256)) < 0.1, 40.0, 200.0)
    >>> is_drawn(strokes, 40, 200), is_drawn(np.round(strokes + rng.normal(0, 2, strokes.shape)), 40, 200)
    (True, False)
    """
    squares = _squares(plane)
    first, *others = squares
    few = (slice(None, None, LOOKED_AT),)
    if np.mean(_equal(first[few], *(pixels[few] for pixels in others))) < EQUAL_ANYWHERE:
        return False
    seen, _ = _around_strokes(np.abs(_apart(squares)), ROUNDING * (high - low))
    if np.count_nonzero(seen) < FEWEST_AROUND_STROKES:
        return False
    bright = _equal(*squares) & (first > plane.mean())
    return bool(np.mean(bright[seen]) > EQUAL_AROUND_STROKES)


def _squares(plane: Float) -> tuple[Float, Float, Float, Float]:
    """The four pixels of every square, or of evenly spread squares of a large plane."""
    step = max(1, int(np.sqrt(plane.size / MOST_SQUARES)))
    upper, lower = plane[:-1:step], plane[1::step]
    return upper[:, :-1:step], upper[:, 1::step], lower[:, :-1:step], lower[:, 1::step]


def _apart(squares: tuple[Float, Float, Float, Float]) -> Float:
    first, second, third, fourth = squares
    apart: Float = (first - second - third + fourth) / 2
    return apart


def _equal(first: Float, *others: Float) -> NDArray[np.bool_]:
    found: NDArray[Any] = np.ones(first.shape, bool)
    for pixels in others:
        found &= pixels == first
    return found


def _around_strokes(size: Float, rounding: float) -> tuple[NDArray[np.bool_], float]:
    """Squares with structure or noise around them, given the size of differences; and the step of values."""
    step_of_values = float(np.min(size[size > rounding], initial=np.inf))
    least = min(PAINTED * step_of_values, float(size.max(initial=0.0)) / 2)  # of two values only
    return _largest_around(size) > least, step_of_values


def _largest_around(values: Float) -> Float:
    """The largest value of the AROUND x AROUND values about each; at the border, of those within."""
    for _ in range(2):
        padded = np.pad(values, ((AROUND // 2, AROUND // 2), (0, 0)), mode="edge")
        values = padded[: len(values)].copy()
        for offset in range(1, AROUND):
            np.maximum(values, padded[offset : offset + len(values)], out=values)
        values = values.T
    return values
