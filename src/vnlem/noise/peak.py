"""An upper bound of white noise, where no block of an image is flat: on pages of small print.

The difference d = (a - b - c + d) / 2 of the four pixels of a square has the variance of the noise, and
structure is added to it. Wherever structure is weak, such as between the strokes of letters, d is near zero.
So the density of d has a peak, which is never narrower than that of the noise alone: the density of a sum
over that of its Gaussian part can only rise with the distance from zero. The peak is found even if it holds
only a small share of the squares.
"""

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

MOST_SQUARES = 2**18  # bounds time for large planes
FEWEST, LEAST_SHARE = 1000, 0.03  # squares within a standard deviation, in number and of all
PRECISION = 256  # candidates of the standard deviation, up to the known level
# Half a standard deviation contains this share of what a whole one contains.
SHARE_OF_HALF = 0.561
ROUNDING = 1e-6  # of sigma: smaller differences are zero
# If all of so many squares on a side differ by at most so many steps of the values, they were painted, or a
# JPEG file stored nothing but their mean.
AROUND, PAINTED = 5, 4.0


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
    step = max(1, int(np.sqrt(plane.size / MOST_SQUARES)))
    upper, lower = plane[:-1:step], plane[1::step]
    squares = upper[:, :-1:step], upper[:, 1::step], lower[:, :-1:step], lower[:, 1::step]
    first, second, third, fourth = squares
    apart = (first - second - third + fourth) / 2
    size = np.abs(apart)
    step_of_values = float(np.min(size[size > ROUNDING * sigma], initial=np.inf))
    if not np.isfinite(step_of_values):
        return sigma
    natural = _largest_around(size) > PAINTED * step_of_values
    for pixels in squares:
        natural &= (pixels > low) & (pixels < high)
    apart = apart[natural]
    # Whole numbers have differences in steps, which are spread evenly.
    apart += np.random.default_rng(0).uniform(-0.5, 0.5, apart.shape) * step_of_values
    place = np.abs(apart) * (2 * PRECISION / sigma)
    counts = np.bincount(place[place < 2 * PRECISION].astype(np.intp), minlength=2 * PRECISION)
    within = np.cumsum(counts)  # within (k + 1) / (2 * PRECISION) of sigma
    half, whole = within[:PRECISION], within[1::2]
    enough = whole >= max(FEWEST, LEAST_SHARE * apart.size)
    peaks = np.flatnonzero(enough & (half >= SHARE_OF_HALF * whole))
    return sigma * float(peaks[0] + 1) / PRECISION if peaks.size else sigma


def _largest_around(values: Float) -> Float:
    """The largest value of the AROUND x AROUND values about each; at the border, of those within."""
    for _ in range(2):
        padded = np.pad(values, ((AROUND // 2, AROUND // 2), (0, 0)), mode="edge")
        values = padded[: len(values)].copy()
        for offset in range(1, AROUND):
            np.maximum(values, padded[offset : offset + len(values)], out=values)
        values = values.T
    return values
