"""Monte Carlo checks of the moment formulas and of the bounds: seeded, vectorised, with standard errors."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter

from vnlem.pipeline import checks
from vnlem.pipeline.sigma import check_sigma
from vnlem.theory.gradient import GradientMoments, gradient_bound, gradient_kernel, gradient_moments
from vnlem.theory.moments import DistanceMoments, distance_moments
from vnlem.theory.neighbors import neighbor_bounds
from vnlem.theory.overlap import Offset, check_rotation

LIMIT = 3.0  # standard errors
CHUNK = 1 << 22  # noise values drawn at once: bounds the memory
SPACING = 0.25  # pixel of the fine grid that represents the continuous model, in units of the scale

IMAGE_STREAM = 0x1A6E
Seed = int | list[int]
OFFSETS: tuple[Offset | None, ...] = ((0, 1), (1, 1), (2, -1), (0, 2), (4, 4), None)


@dataclass(frozen=True)
class Check:
    """One formula and its simulation.

    Attributes
    ----------
    name : str
    formula, simulated, standard_error : float
    kind : {"value", "bound"}
        A value must be met; a simulation must not fall below a bound.
    expected : bool
        False for a formula that is known to be wrong; the check shows it.

    Examples
    --------
    >>> met = Check("mean", formula=2.0, simulated=2.1, standard_error=0.05)
    >>> round(met.deviation, 3), met.agrees
    (2.0, True)
    """

    name: str
    formula: float
    simulated: float
    standard_error: float
    kind: str = "value"
    expected: bool = True

    @property
    def deviation(self) -> float:
        """Simulation minus formula in standard errors; infinite if they differ and the error is zero."""
        difference = self.simulated - self.formula
        if self.standard_error > 0:
            return difference / self.standard_error
        if abs(difference) <= 1e-9 * max(1.0, abs(self.formula)):
            return 0.0
        return math.copysign(math.inf, difference)

    @property
    def agrees(self) -> bool:
        """Whether simulation and formula agree within three standard errors."""
        return self.deviation > -LIMIT if self.kind == "bound" else abs(self.deviation) < LIMIT


def random_image(size: int = 32, seed: int = 0) -> NDArray[np.float64]:
    """A smooth random image of mean 0 and standard deviation 1.

    Examples
    --------
    >>> image = random_image(16)
    >>> image.shape, round(float(image.std()), 6)
    ((16, 16), 1.0)
    """
    side = checks.whole("size", size)
    # A separate stream: noise drawn with the same seed is independent of the image.
    rng = np.random.default_rng([IMAGE_STREAM, seed])
    image = gaussian_filter(rng.standard_normal((side, side)), 1.0, mode="wrap")
    image -= image.mean()
    return np.asarray(image / image.std())


def _corners(shape: tuple[int, ...], q: int, offset: Offset | None) -> tuple[Offset, Offset]:
    """Top left corners of two patches at an offset inside an image; side by side for None."""
    rows, columns = (0, q) if offset is None else offset
    first = (max(0, -rows), max(0, -columns))
    second = (first[0] + rows, first[1] + columns)
    if max(first[0], second[0]) + q > shape[0] or max(first[1], second[1]) + q > shape[1]:
        raise ValueError(f"the image {shape} is too small for patches of {q} at offset {offset}")
    return first, second


def simulate_distances(
    image: ArrayLike,
    q: int,
    offset: Offset | None,
    rotation: float,
    sigma: Any,
    n_trials: int = 20000,
    seed: Seed = 0,
) -> NDArray[np.float64]:
    """Squared distances of two noisy patches, both cut from one noisy image, drawn again and again.

    Parameters
    ----------
    image : array_like of shape (height, width)
        Clean image; the first patch is cut at its top left corner (as far as the offset allows).
    q, offset, rotation, sigma
        As in :func:`distance_moments`; None for patches side by side.
    n_trials : int
    seed : int or list of int
        Number of draws of the noise, and its seed.

    Returns
    -------
    ndarray of shape (n_trials,)

    Examples
    --------
    >>> draws = simulate_distances(random_image(), 3, (0, 1), 90, 0.5, n_trials=4)
    >>> draws.shape
    (4,)
    """
    clean = np.asarray(image, dtype=np.float64)
    size, noise, turns = checks.odd("q", q), check_sigma(sigma), check_rotation(rotation)
    trials = checks.whole("n_trials", n_trials)
    first, second = _corners(clean.shape, size, offset)
    clean = clean[: max(first[0], second[0]) + size, : max(first[1], second[1]) + size]
    rng = np.random.default_rng(seed)
    result = np.empty(trials)
    step = max(1, CHUNK // clean.size)
    for begin in range(0, trials, step):
        end = min(begin + step, trials)
        noisy = clean + noise * rng.standard_normal((end - begin, *clean.shape))
        patch_i, patch_j = (noisy[:, top : top + size, left : left + size] for top, left in (first, second))
        result[begin:end] = np.sum((patch_i - np.rot90(patch_j, turns, axes=(1, 2))) ** 2, axis=(1, 2))
    return result


def simulate_gradients(
    sigma: Any, scale: float = 1.0, grid: str = "continuous", n_trials: int = 20000, seed: Seed = 0
) -> NDArray[np.float64]:
    """Squared norms of the gradient of smoothed white noise at one point, drawn again and again.

    Parameters
    ----------
    sigma, scale, grid
        As in :func:`gradient_moments`. The continuous model is simulated on a grid of a quarter of the
        scale, with noise of variance sigma^2 / spacing^2 per cell: for a Gaussian kernel the sum then
        equals the integral to many digits.
    n_trials : int
    seed : int or list of int
        Number of draws of the noise, and its seed.

    Examples
    --------
    >>> simulate_gradients(1.0, n_trials=3).shape
    (3,)
    """
    noise = check_sigma(sigma)
    size = checks.real("scale", scale, 0, open_low=True)
    trials = checks.whole("n_trials", n_trials)
    if grid == "continuous":
        spacing = SPACING * size
        # The kernel has one factor of spacing per axis (the area of a cell); the noise has its inverse.
        across = gradient_kernel(size, "derivative", spacing)
        noise /= spacing
    else:
        across = gradient_kernel(size, grid)
    kernels = np.stack([across.ravel(), across.T.ravel()], axis=1)
    rng = np.random.default_rng(seed)
    result = np.empty(trials)
    step = max(1, CHUNK // len(kernels))
    for begin in range(0, trials, step):
        end = min(begin + step, trials)
        components = noise * rng.standard_normal((end - begin, len(kernels))) @ kernels
        result[begin:end] = np.sum(components**2, axis=1)
    return result


def _mean(name: str, formula: float, draws: NDArray[np.float64]) -> Check:
    return Check(name, formula, float(draws.mean()), float(draws.std(ddof=1) / np.sqrt(len(draws))))


def _variance(name: str, formula: float, draws: NDArray[np.float64], expected: bool = True) -> Check:
    squares = (draws - draws.mean()) ** 2
    n = len(draws)
    # Standard error of a sample variance: sqrt((fourth central moment - variance^2) / n).
    return Check(
        name, formula, float(squares.sum() / (n - 1)), float(squares.std() / np.sqrt(n)), expected=expected
    )


def _share(name: str, bound: float, events: NDArray[np.bool_]) -> Check:
    p, n = float(events.mean()), len(events)
    # If all draws agree the binomial error is zero; one draw more or less could have differed.
    return Check(name, bound, p, max(math.sqrt(p * (1 - p) / n), 1 / n), kind="bound")


def _confirmed(
    draw: Callable[[int, int], NDArray[np.float64]],
    compare: Callable[[NDArray[np.float64]], list[Check]],
    n_trials: int,
) -> list[Check]:
    """Rows from draws; if one disagrees, from a second, independent set of four times as many draws.

    By chance about one in 370 right formulas lies beyond three standard errors, but not twice in a row; a
    wrong formula does so twice, and more clearly the second time.
    """
    rows = compare(draw(0, n_trials))
    if all(row.agrees or not row.expected for row in rows):
        return rows
    return compare(draw(1, 4 * n_trials))


def check_distance_moments(
    q: int = 5, sigma: float = 0.5, n_trials: int = 20000, seed: int = 0
) -> Iterator[Check]:
    """Mean and variance of the squared distance over offsets and rotations, patches from one random image.

    Rows that disagree are drawn again, four times as often; the second result counts.

    Examples
    --------
    >>> all(row.agrees for row in check_distance_moments(3, n_trials=2000))
    True
    """
    image = random_image(seed=seed)
    size = checks.odd("q", q)
    for number, (offset, rotation) in enumerate(
        (offset, rotation) for offset in OFFSETS for rotation in (0, 90, 180, 270)
    ):
        if offset is not None and max(map(abs, offset)) >= size:
            continue
        first, second = _corners(image.shape, size, offset)
        patches = [image[top : top + size, left : left + size] for top, left in (first, second)]
        moments = distance_moments(patches[0], patches[1], offset, rotation, sigma)
        where = f"q={size}, offset {'none' if offset is None else offset}, {rotation} deg"

        def draw(
            again: int, n: int, place: Any = offset, turn: int = rotation, stream: int = number
        ) -> NDArray[np.float64]:
            return simulate_distances(image, size, place, turn, sigma, n, seed=[seed, stream, again])

        def compare(
            draws: NDArray[np.float64], known: DistanceMoments = moments, label: str = where
        ) -> list[Check]:
            return [
                _mean(f"distance mean, {label}", known.mean, draws),
                _variance(f"distance variance, {label}", known.variance, draws),
            ]

        yield from _confirmed(draw, compare, n_trials)


def check_neighbor_bounds(
    q: int = 5, ratio: float = 0.6, n_trials: int = 20000, seed: int = 0
) -> Iterator[Check]:
    """The theorem's bounds for fixed rotations: simulated probabilities must not fall below them.

    `ratio` is sigma q / epsilon, below 1. The clean patches are those of a random image; epsilon is set to
    their distance for the close direction and to half of it for the far one.

    Examples
    --------
    >>> all(row.agrees for row in check_neighbor_bounds(3, n_trials=2000))
    True
    """
    image = random_image(seed=seed)
    size = checks.odd("q", q)
    share = checks.real("ratio", ratio, 0, 1, open_low=True)
    for number, (offset, rotation) in enumerate(
        (offset, rotation) for offset in ((0, 1), (2, -1), None) for rotation in (0, 90, 180)
    ):
        first, second = _corners(image.shape, size, offset)
        patches = [image[top : top + size, left : left + size] for top, left in (first, second)]
        clean = float(np.sqrt(distance_moments(patches[0], patches[1], offset, rotation, 0).clean))
        where = f"q={size}, offset {'none' if offset is None else offset}, {rotation} deg"
        kind = "identity" if rotation == 0 else "any"
        for direction, epsilon in (("close", clean * (1 + 1e-9)), ("far", clean / 2)):
            sigma = share * epsilon / size
            bounds = neighbor_bounds(size, sigma, epsilon, offset is not None, rotation=kind)
            draws = simulate_distances(
                image, size, offset, rotation, sigma, n_trials, seed=[seed, 100 + number]
            )
            if direction == "close":
                yield _share(f"close bound, {where}", bounds.close, draws < 4 * epsilon**2)
            else:
                yield _share(f"far bound, {where}", bounds.far, draws > epsilon**2)


def check_gradient_moments(
    sigma: float = 0.5, scale: float = 1.0, n_trials: int = 20000, seed: int = 0
) -> Iterator[Check]:
    """The gradient lemma and its corollary, continuous and on pixels, and the printed variance.

    Examples
    --------
    >>> [row.name for row in check_gradient_moments(n_trials=5000) if not row.agrees]
    ['gradient variance as printed, continuous']
    """
    for number, grid in enumerate(("continuous", "derivative", "difference")):
        moments = gradient_moments(sigma, scale, grid)

        def draw(again: int, n: int, where: str = grid, stream: int = 200 + number) -> NDArray[np.float64]:
            return simulate_gradients(sigma, scale, where, n, seed=[seed, stream, again])

        def compare(
            draws: NDArray[np.float64], known: GradientMoments = moments, where: str = grid
        ) -> list[Check]:
            rows = [
                _mean(f"gradient mean, {where}", known.mean, draws),
                _variance(f"gradient variance, {where}", known.variance, draws),
            ]
            if where == "continuous":
                name = "gradient variance as printed, continuous"
                rows.append(_variance(name, known.printed_variance, draws, expected=False))
            for form in ("corrected", "printed"):
                bound = gradient_bound(sigma, 2.0, scale, where, form=form)
                name = f"gradient bound ({form}, k=2), {where}"
                rows.append(_share(name, bound.probability, draws < bound.threshold**2))
            return rows

        yield from _confirmed(draw, compare, n_trials)


def run_checks(q: int = 5, sigma: float = 0.5, n_trials: int = 20000, seed: int = 0) -> list[Check]:
    """Every formula of :mod:`vnlem.theory` that a simulation can check, as rows of a table.

    Parameters
    ----------
    q : int
        Patch size, odd.
    sigma : float
        Noise level, for images of standard deviation 1.
    n_trials, seed : int
        Number of draws per row, and the seed. Rows that disagree are drawn again, four times as often.

    Examples
    --------
    >>> rows = run_checks(q=5, n_trials=5000)
    >>> sum(not row.agrees for row in rows)
    1
    """
    return [
        *check_distance_moments(q, sigma, n_trials, seed),
        *check_neighbor_bounds(q, 0.6, n_trials, seed),
        *check_gradient_moments(sigma, 1.0, n_trials, seed),
    ]
