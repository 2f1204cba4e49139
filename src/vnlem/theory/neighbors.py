"""How likely noisy patches keep the neighbourhood of the clean ones: the paper's theorem."""

import math
from dataclasses import dataclass
from typing import Any

from vnlem.pipeline import checks
from vnlem.pipeline.sigma import check_sigma

FORMS = ("corrected", "printed")
ROTATIONS = ("any", "identity")

CLOSE_SCOPE = "proved for the minimum over all rotations"
FAR_SCOPE = "proved for a fixed rotation only"
UNION_SCOPE = "proved for the minimum over {n} rotations (union bound)"


@dataclass(frozen=True)
class NeighborBounds:
    """Lower bounds of the probability that noise leaves two patches close, or far.

    Attributes
    ----------
    close : float
        Clean distance below epsilon: lower bound of the probability of a noisy distance below 2 epsilon.
    far : float
        Clean distance `far_distance` (at least 2 epsilon): lower bound of the probability of a noisy distance
        above epsilon.
    far_distance : float
        The clean distance, for the rotation at hand, that `far` is evaluated at.
    close_scope, far_scope : str
        What the bound is proved for.
    form : str
        "corrected" or "printed".

    Examples
    --------
    >>> bounds = neighbor_bounds(7, sigma=0.1, epsilon=1.5, overlap=False)
    >>> round(bounds.close, 3), bounds.far_distance, bounds.form
    (0.993, 3.0, 'corrected')
    """

    close: float
    far: float
    far_distance: float
    close_scope: str
    far_scope: str
    form: str


def _check(q: Any, sigma: Any, epsilon: Any) -> tuple[int, float, float]:
    size = checks.odd("q", q)
    noise = check_sigma(sigma)
    radius = checks.real("epsilon", epsilon, 0, open_low=True)
    if noise * size >= radius:
        raise ValueError(
            f"the theorem needs sigma * q < epsilon, got sigma * q = {noise * size:g} and epsilon = "
            f"{radius:g}: outside it nothing is claimed; take a smaller q or a larger epsilon"
        )
    return size, noise, radius


def _check_far(distance: float | None, epsilon: float, smallest: float) -> float:
    """The clean distance of the far direction: by default 2 epsilon, at least `smallest` times epsilon."""
    if distance is None:
        return 2 * epsilon
    value = checks.real("distance", distance, 0)
    if value < smallest * epsilon:
        raise ValueError(
            f"distance must be at least {smallest:g} * epsilon = {smallest * epsilon:g} for this far bound, "
            f"got {distance!r}"
        )
    return value


def neighbor_bounds(
    q: int,
    sigma: float,
    epsilon: float,
    overlap: bool = True,
    *,
    form: str = "corrected",
    rotation: str = "any",
    distance: float | None = None,
    n_rotations: int = 1,
) -> NeighborBounds:
    """The theorem's probability bounds, in both directions.

    Parameters
    ----------
    q : int
        Patch size, odd.
    sigma : float
        Noise level.
    epsilon : float
        Distance of patches (not squared, summed over the patch) below which two clean patches count as
        neighbours. The theorem needs ``sigma * q < epsilon``.
    overlap : bool
        Whether the two patches may overlap.
    form : {"corrected", "printed"}
        The bound as it can be derived, or as the paper prints it.
    rotation : {"any", "identity"}
        "identity" is the case of NLM and NLEM; it has a sharper bound if patches overlap. The paper prints
        no formula for it.
    distance : float, optional
        Distance of the clean patches in the far direction; by default 2 epsilon, the worst case the theorem
        allows (for sigma q < epsilon the bound rises with the distance).
    n_rotations : int
        For a search over finitely many rotations: the far bound that follows from the union bound,
        1 - n r / (1 + r). With 1 (the default) the rotation is fixed.

    Returns
    -------
    NeighborBounds

    Notes
    -----
    One-sided Chebyshev: Pr(X >= E X + a) <= Var X / (Var X + a^2), so a bound is 1 / (1 + r)
    with r the ratio of the variance and the squared gap between threshold and mean. With |K_O|, |K_S| <=
    q(q-1), |K_I| in {0, 1} and |sum over K_O of P(a) P(b)| <= ||P||^2 the lemma gives, for overlapping
    patches and any rotation,

    - close: r = 8 sigma^2 (2 epsilon^2 + sigma^2 (2 q^2 - q)) / (3 epsilon^2 - 2 sigma^2 q^2)^2,
    - far:   r = 8 sigma^2 (2 ||P||^2 + sigma^2 (2 q^2 - q)) / (3 ||P||^2 / 4 + 2 sigma^2 (q^2 - 1))^2,

    and without overlap

    - close: r = 8 sigma^2 (epsilon^2 + sigma^2 q^2) / (3 epsilon^2 - 2 sigma^2 q^2)^2,
    - far:   r = 8 sigma^2 (||P||^2 + sigma^2 q^2) / (3 ||P||^2 / 4 + 2 sigma^2 q^2)^2.

    The printed close bound with overlap has q^2 - 1 in the denominator: it puts |K_I| = 1 there, where the
    worst case is |K_I| = 0. The other three are printed as they stand here, but the printed statement of
    the last one requires a clean distance above epsilon only, its proof one above 2 epsilon: the
    corrected form insists on 2 epsilon, the printed one without overlap takes any distance from epsilon on
    (and is false there).

    The close direction holds for the minimum over rotations, since the minimum is not larger than the value
    at the rotation that is best for the clean patches. The far direction holds for each rotation separately:
    it does not follow that all rotations stay far at once.

    Examples
    --------
    >>> bounds = neighbor_bounds(7, sigma=0.1, epsilon=1.5, overlap=False)
    >>> round(bounds.close, 3), round(bounds.far, 3)
    (0.993, 0.987)
    >>> bounds.far_scope
    'proved for a fixed rotation only'
    """
    size, noise, radius = _check(q, sigma, epsilon)
    checks.choice("form", form, FORMS)
    checks.choice("rotation", rotation, ROTATIONS)
    far_distance = _check_far(distance, radius, 1 if form == "printed" and not overlap else 2)
    searched = checks.whole("n_rotations", n_rotations)
    n, s2, near2, far2 = size * size, noise**2, radius**2, far_distance**2
    if overlap:
        signal = 2.0  # ||P||^2 - sum over K_O of P(a) P(b), in units of ||P||^2, at most
        if rotation == "identity":
            spread, identical = (3 * n - size) / 2, 0  # K_S and K_I are empty
        else:
            spread, identical = 2.0 * n - size, 1
    else:
        signal, spread, identical = 1.0, float(n), 0
    in_close_gap = identical if form == "printed" else 0
    close = 8 * s2 * (signal * near2 + s2 * spread) / (3 * near2 - 2 * s2 * (n - in_close_gap)) ** 2
    far = 8 * s2 * (signal * far2 + s2 * spread) / (0.75 * far2 + 2 * s2 * (n - identical)) ** 2
    far_bound, scope = 1 / (1 + far), FAR_SCOPE
    if searched > 1:
        far_bound = max(0.0, 1 - searched * far / (1 + far))
        scope = UNION_SCOPE.format(n=searched)
    return NeighborBounds(1 / (1 + close), far_bound, far_distance, CLOSE_SCOPE, scope, form)


@dataclass(frozen=True)
class NeighborProbabilities:
    """The exact probabilities that the bounds bound, for a fixed rotation and patches that do not overlap.

    Attributes
    ----------
    close, far : float
        Probabilities of the two events of :class:`NeighborBounds`.
    close_miss, far_miss : float
        Probabilities of the opposite, to full precision where they are tiny.
    far_distance : float
    scope : str

    Examples
    --------
    >>> exact = neighbor_probabilities(7, sigma=0.15, epsilon=1.5)
    >>> round(exact.close + exact.close_miss, 6), exact.far_distance
    (1.0, 3.0)
    """

    close: float
    far: float
    close_miss: float
    far_miss: float
    far_distance: float
    scope: str = "exact for a fixed rotation and patches that do not overlap"


def neighbor_probabilities(
    q: int, sigma: float, epsilon: float, *, distance: float | None = None
) -> NeighborProbabilities:
    """Exact probabilities of the theorem's two events at its worst cases, without overlap.

    Parameters
    ----------
    q, sigma, epsilon, distance
        As in :func:`neighbor_bounds`, but with any `distance`. The close event is evaluated at clean distance
        epsilon.

    Returns
    -------
    NeighborProbabilities

    Notes
    -----
    Without overlap the noisy difference is N(P, 2 sigma^2 I), so its squared norm over 2
    sigma^2 is non-central chi-square with q^2 degrees of freedom and non-centrality ||P||^2 / (2 sigma^2).
    Chebyshev sees only two moments of it: this is how much the bounds give away.

    Examples
    --------
    >>> exact = neighbor_probabilities(7, sigma=0.15, epsilon=1.5)
    >>> bound = neighbor_bounds(7, sigma=0.15, epsilon=1.5, overlap=False)
    >>> exact.close > bound.close, exact.far > bound.far
    (True, True)
    """
    size, noise, radius = _check(q, sigma, epsilon)
    far_distance = _check_far(distance, radius, 0)
    if noise == 0:
        stays_far = float(far_distance > radius)
        return NeighborProbabilities(1.0, stays_far, 0.0, 1 - stays_far, far_distance)
    from scipy.stats import ncx2  # slow to load, and needed only here

    unit = 2 * noise**2
    dof = size * size
    close = ncx2(dof, radius**2 / unit)
    far = ncx2(dof, far_distance**2 / unit)
    at_close, at_far = 4 * radius**2 / unit, radius**2 / unit
    return NeighborProbabilities(
        float(close.cdf(at_close)),
        float(far.sf(at_far)),
        float(close.sf(at_close)),
        float(far.cdf(at_far)),
        far_distance,
    )


def balance_ratio() -> float:
    """sigma q / epsilon at which the two bounds without overlap are equal (far patches at 2 epsilon).

    Notes
    -----
    With u = (sigma q / epsilon)^2 the ratios are 8 (sigma/epsilon)^2 times (1 + u) / (3 - 2 u)^2 and
    (4 + u) / (3 + 2 u)^2. They are equal where 12 u^2 + 60 u - 27 = 0, whatever sigma and epsilon are.

    Examples
    --------
    >>> round(balance_ratio(), 4)
    0.6446
    """
    return math.sqrt((-60 + math.sqrt(60**2 + 4 * 12 * 27)) / 24)
