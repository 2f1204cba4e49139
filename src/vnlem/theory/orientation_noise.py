"""The orientation feature of a patch under noise: the paper's definition, its proposition, and experiment."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter

from vnlem.pipeline import checks
from vnlem.pipeline.sigma import check_sigma
from vnlem.reference.orientation import BINS, arc_sums, strongest

NOISE_STREAM = 0x0E1E  # keeps noise independent of a patch made with default_rng(seed)
STATUS = "as printed, not proved"

Estimator = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class OrientationBound:
    """What the paper's proposition claims about the orientation of a noisy patch.

    Attributes
    ----------
    probability : float
        Claimed lower bound of the probability that noise turns the orientation by less than delta.
    k : float
    threshold : float
        sigma sqrt((1 + 1.25 k) / (4 pi)), which must be below epsilon.
    status : str
        "as printed, not proved": the proof uses a bound at one point as if it held on the whole disc, and
        counterexamples exist.

    Examples
    --------
    >>> claim = orientation_bound(0.5, k=3, epsilon=0.4)
    >>> claim.k, round(claim.threshold, 3), claim.threshold < 0.4
    (3.0, 0.307, True)
    """

    probability: float
    k: float
    threshold: float
    status: str = STATUS


def orientation_bound(sigma: Any, k: float | None = None, epsilon: float = 1.0) -> OrientationBound:
    """The proposition on the orientation feature, as printed.

    Parameters
    ----------
    sigma : float
        Noise level, positive.
    k : float, optional
        Number of standard deviations; by default the largest the proposition allows for this epsilon.
    epsilon : float
        Margin: by how much the best arc of directions beats every other one, as a mean over the disc of the
        norm of the gradient.

    Returns
    -------
    OrientationBound
        With ``status == "as printed, not proved"``. It is not a guarantee: see
        :func:`orientation_counterexample`.

    Examples
    --------
    >>> claim = orientation_bound(0.5, k=3, epsilon=0.4)
    >>> claim.probability, claim.status
    (0.9, 'as printed, not proved')
    """
    noise = check_sigma(sigma)
    margin = checks.real("epsilon", epsilon, 0, open_low=True)
    if noise == 0:
        raise ValueError("sigma must be positive: without noise there is nothing to bound")
    if k is None:
        # A hair below the limit: the proposition needs the threshold strictly below epsilon.
        k = ((margin / noise) ** 2 * 4 * math.pi - 1) / 1.25 * (1 - 1e-12)
        if k <= 0:
            raise ValueError(
                f"no k > 0 satisfies the proposition for sigma {noise:g} and epsilon {margin:g}; "
                "it says nothing there"
            )
    deviations = checks.real("k", k, 0, open_low=True)
    threshold = noise * math.sqrt((1 + 1.25 * deviations) / (4 * math.pi))
    if threshold >= margin:
        raise ValueError(
            f"the proposition needs sigma * sqrt((1 + 1.25 k) / (4 pi)) < epsilon, got {threshold:g} and "
            f"{margin:g}: outside it nothing is claimed; take a smaller k or a larger epsilon"
        )
    return OrientationBound(1 - 1 / (1 + deviations**2), deviations, threshold)


def _disc(shape: tuple[int, ...], radius: float | None) -> NDArray[np.bool_]:
    height, width = shape
    y = np.arange(height)[:, None] - (height - 1) / 2
    x = np.arange(width) - (width - 1) / 2
    largest = (min(height, width) - 1) / 2
    reach = largest if radius is None else checks.real("radius", radius, 0, largest, open_low=True)
    return np.asarray(x**2 + y**2 <= reach**2)


def arc_strengths(
    patches: ArrayLike, delta: float, *, scale: float = 1.0, radius: float | None = None
) -> NDArray[np.float64]:
    """Mean over the disc of the gradient's norm, counting directions within delta of each angle.

    Parameters
    ----------
    patches : array_like of shape (..., height, width)
    delta : float
        Half-width of the arc in degrees, below 180.
    scale : float
        Standard deviation of the Gaussian smoothing.
    radius : float, optional
        Radius of the disc around the patch's centre; by default the largest that fits. Give a patch that is
        larger than its disc to keep the smoothing away from the patch's border.

    Returns
    -------
    ndarray of shape (..., 3600)
        Strength of the arc around each tenth of a degree, counterclockwise as displayed from the positive x
        axis.

    Examples
    --------
    >>> ramp = np.tile(np.arange(15.0), (15, 1))
    >>> strengths = arc_strengths(ramp, delta=20, radius=5)
    >>> strengths.shape, round(float(strengths.max()), 3)
    ((3600,), 0.999)
    """
    stack = np.asarray(patches, dtype=np.float64)
    if stack.ndim < 2:
        raise ValueError(f"patches must have at least two dimensions, got shape {stack.shape}")
    half = checks.real("delta", delta, 0, 180, open_low=True)
    if half == 180:
        raise ValueError("delta must be below 180 degrees, or every arc is the whole circle")
    width = checks.real("scale", scale, 0, open_low=True)
    inside = _disc(stack.shape[-2:], radius)
    lead, flat = stack.shape[:-2], stack.reshape(-1, *stack.shape[-2:])
    smooth = gaussian_filter(flat, (0, width, width), mode="reflect")
    down, right = np.gradient(smooth, axis=(1, 2))
    down, right = down[:, inside], right[:, inside]
    # Rows count downwards; angles turn counterclockwise as displayed.
    angle = np.degrees(np.arctan2(-down, right)) % 360
    norms = np.hypot(down, right)
    strengths = arc_sums(angle, norms, half) / inside.sum()
    return np.asarray(strengths.reshape(*lead, BINS))


def orientation_feature(
    patches: ArrayLike, delta: float = 18.0, *, scale: float = 1.0, radius: float | None = None
) -> NDArray[np.float64]:
    """Orientation of patches by the paper's definition: the angle whose arc holds most of the gradient.

    Parameters
    ----------
    patches, delta, scale, radius
        As in :func:`arc_strengths`.

    Returns
    -------
    ndarray
        Degrees in [0, 360), counterclockwise as displayed; 0 points along the rows.

    Examples
    --------
    >>> ramp = np.tile(np.arange(15.0), (15, 1))
    >>> round(float(orientation_feature(ramp, radius=5)), 1) % 360
    0.0
    >>> round(float(orientation_feature(np.rot90(ramp), radius=5)), 1)
    90.0
    """
    return np.asarray(strongest(arc_strengths(patches, delta, scale=scale, radius=radius)))


def orientation_margin(
    patch: ArrayLike, delta: float, *, scale: float = 1.0, radius: float | None = None
) -> float:
    """The epsilon of the paper's assumption: how much the best arc beats every arc more than delta away.

    Examples
    --------
    A ramp has one direction only; add a weaker, opposite ramp on a third of the disc and the margin shrinks:

    >>> x = np.tile(np.arange(-20.0, 21), (41, 1))
    >>> round(orientation_margin(x, delta=20, radius=12), 2)
    1.0
    >>> round(orientation_margin(np.where(x > -4, x, -8 - x), delta=20, radius=12), 2)
    0.42
    """
    strengths = arc_strengths(patch, delta, scale=scale, radius=radius)
    best = float(strongest(strengths))
    angles = np.arange(BINS) * (360 / BINS)
    apart = np.abs((angles - best + 180) % 360 - 180)
    return float(strengths.max() - strengths[apart > delta].max())


@dataclass(frozen=True)
class OrientationErrors:
    """Errors of the orientation under noise.

    Attributes
    ----------
    clean : float
        Orientation of the clean patch, degrees.
    errors : ndarray
        Orientation of each noisy copy minus the clean one, degrees in [-180, 180).

    Examples
    --------
    >>> found = OrientationErrors(clean=45.0, errors=np.array([-3.0, 1.0, 20.0]))
    >>> round(found.within(10), 3)
    0.667
    """

    clean: float
    errors: NDArray[np.float64]

    def within(self, delta: float) -> float:
        """Share of the noisy copies whose orientation is less than `delta` degrees off."""
        return float(np.mean(np.abs(self.errors) < delta))


def orientation_errors(
    patch: ArrayLike,
    sigma: Any,
    n_trials: int = 500,
    *,
    estimator: Estimator | None = None,
    delta: float = 18.0,
    scale: float = 1.0,
    radius: float | None = None,
    seed: int = 0,
) -> OrientationErrors:
    """The distribution of the orientation's error for a given patch and noise, by simulation.

    Parameters
    ----------
    patch : array_like of shape (height, width)
        The clean patch; larger than the disc, if the smoothing should include its surroundings.
    sigma : float
        Noise level.
    n_trials : int
        Number of noisy copies.
    estimator : callable, optional
        Stack of patches (n, height, width) -> n orientations in degrees. By default the paper's definition,
        :func:`orientation_feature`, with `delta`, `scale` and `radius`.
    seed : int
        Seed of the noise.

    Returns
    -------
    OrientationErrors

    Examples
    --------
    >>> ramp = np.tile(np.arange(21.0), (21, 1))
    >>> found = orientation_errors(ramp, sigma=0.5, n_trials=50, radius=6)
    >>> found.within(10)
    1.0
    """
    clean = np.asarray(patch, dtype=np.float64)
    if clean.ndim != 2:
        raise ValueError(f"patch must have two dimensions, got shape {clean.shape}")
    noise = check_sigma(sigma)
    trials = checks.whole("n_trials", n_trials)

    def by_definition(stack: NDArray[np.float64]) -> NDArray[np.float64]:
        return orientation_feature(stack, delta, scale=scale, radius=radius)

    estimate = by_definition if estimator is None else estimator
    rng = np.random.default_rng([NOISE_STREAM, seed])
    truth = float(np.asarray(estimate(clean[None]))[0])
    errors = np.empty(trials)
    for begin in range(0, trials, 100):  # bounds the memory of the fine histograms
        end = min(begin + 100, trials)
        noisy = clean + noise * rng.standard_normal((end - begin, *clean.shape))
        errors[begin:end] = (np.asarray(estimate(noisy)) - truth + 180) % 360 - 180
    return OrientationErrors(truth, errors)


@dataclass(frozen=True)
class OrientationPatch:
    """A patch with what is needed to evaluate the proposition on it.

    Attributes
    ----------
    patch : ndarray
    delta : float
        Half-width of the arc, degrees.
    radius : float
        Radius of the disc, pixels.
    margin : float
        By how much the strongest arc beats those that are not near it.

    Examples
    --------
    >>> case = orientation_counterexample()
    >>> case.patch.shape, case.radius, case.margin > 0
    ((45, 45), 16.0, True)
    """

    patch: NDArray[np.float64]
    delta: float
    radius: float
    margin: float


def orientation_counterexample(radius: int = 16, slack: float = 0.2) -> OrientationPatch:
    """A patch whose orientation changes under noise far more often than the proposition allows.

    Parameters
    ----------
    radius : int
        Radius of the disc in pixels.
    slack : float
        Degrees between the patch's gradient directions and the ends of the arc: the smaller, the less noise
        is needed. At least 0.1, the resolution of angles.

    Returns
    -------
    OrientationPatch
        The patch has gradients of norm about 1 and a margin that does not depend on `slack`, so sigma can
        be so small that the proposition claims near certainty.

    Notes
    -----
    On the right of the disc the patch is the ridge cos(a) x + sin(a) |y|: half of its gradients
    point to +a, half to -a, with a just below delta, so that only the arc around 0 holds both. On the left
    it is a ramp that points the other way, weaker than the ridge but stronger than half of it. Any noise,
    however small against the gradients, pushes half of the ridge's directions out of the arc (they lie at
    its ends), and the other side wins. The proof of the proposition considers only norms and keeps the
    directions of the clean patch.

    Examples
    --------
    >>> case = orientation_counterexample()
    >>> claimed = orientation_bound(0.05, epsilon=case.margin).probability
    >>> found = orientation_errors(case.patch, 0.05, 100, delta=case.delta, radius=case.radius)
    >>> claimed > 0.99, found.within(case.delta) < 0.1
    (True, True)
    """
    reach = checks.whole("radius", radius, smallest=8)
    gap = checks.real("slack", slack, 0.1, 10)  # angles are resolved to 0.1
    delta, back = 30.0, 20.0  # degrees; `back` is how far the left side's gradients lie off 180
    half = reach + 6  # beyond the reach of the smoothing
    y, x = np.mgrid[half : -half - 1 : -1, -half : half + 1].astype(np.float64)
    along, across = math.cos(math.radians(delta - gap)), math.sin(math.radians(delta - gap))
    fall = across / math.tan(math.radians(back))
    edge = -0.25 * reach  # leaves the left side about a third of the disc
    right = x - edge
    patch = across * np.abs(y) + np.where(right > 0, along * right, -fall * right)
    return OrientationPatch(patch, delta, float(reach), orientation_margin(patch, delta, radius=reach))
