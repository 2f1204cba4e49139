"""Noise in the gradient of a Gaussian-smoothed patch: the paper's second lemma and its corollary."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline import checks
from vnlem.pipeline.sigma import check_sigma

# The paper's factor on the variance: it includes a fourth-moment term that white noise does not have.
PRINTED_FACTOR = 1 + 27 / (16 * math.pi)
# The paper's rounding of the square root of that factor, in its corollary.
PRINTED_SLOPE = 1.25

GRIDS = ("continuous", "derivative", "difference")
TRUNCATE = 4.0  # radius of the sampled kernels in units of the scale


@dataclass(frozen=True)
class GradientMoments:
    """Moments of the squared norm of the noise's gradient after smoothing.

    Attributes
    ----------
    mean : float
    variance : float
        Exact: the square of the mean.
    printed_variance : float
        The paper's: larger by the factor 1 + 27/(16 pi).
    component_variance : float
        Variance of each of the two independent components.
    grid : str

    Examples
    --------
    >>> moments = gradient_moments(2.0)
    >>> round(moments.variance / moments.mean**2, 6), moments.grid
    (1.0, 'continuous')
    """

    mean: float
    variance: float
    printed_variance: float
    component_variance: float
    grid: str


def gradient_kernel(scale: float, grid: str, spacing: float = 1.0) -> NDArray[np.float64]:
    """The weights with which pixels enter the horizontal gradient after Gaussian smoothing.

    Parameters
    ----------
    scale : float
        Standard deviation of the Gaussian.
    grid : {"derivative", "difference"}
        The derivative of the Gaussian sampled at the pixels; or the sampled Gaussian, normalised to sum 1,
        followed by half the difference of the right and the left neighbour (what image code usually does).
    spacing : float
        Distance of the pixels.

    Examples
    --------
    >>> kernel = gradient_kernel(1.0, "derivative")
    >>> kernel.shape, bool(np.allclose(kernel, -kernel[:, ::-1]))
    ((9, 9), True)
    """
    checks.choice("grid", grid, GRIDS[1:])
    radius = math.ceil(TRUNCATE * scale / spacing)
    x = np.arange(-radius, radius + 1) * spacing
    profile = np.exp(-(x**2) / (2 * scale**2))
    if grid == "derivative":
        profile *= spacing / (math.sqrt(2 * math.pi) * scale)
        # Correlation with noise at x: the weight of a pixel to the right is positive.
        slope = profile * x / scale**2
        return np.outer(profile, slope)
    profile /= profile.sum()
    slope = np.convolve(profile, [-0.5 / spacing, 0, 0.5 / spacing])
    return np.outer(np.pad(profile, 1), slope)


def gradient_moments(sigma: Any, scale: float = 1.0, grid: str = "continuous") -> GradientMoments:
    """Mean and variance of the squared gradient of smoothed white Gaussian noise.

    Parameters
    ----------
    sigma : float
        Noise level: of white noise of spectral density sigma^2 in the continuous model, of each pixel on a
        grid. With unit pixels the two agree for smooth kernels.
    scale : float
        Standard deviation of the Gaussian (the paper's l, there 1).
    grid : {"continuous", "derivative", "difference"}
        The continuous model of the paper, or pixels: see :func:`gradient_kernel`.

    Returns
    -------
    GradientMoments

    Notes
    -----
    Each component is a linear functional of Gaussian noise, hence exactly Gaussian, with
    variance sigma^2 times the integral (or sum) of the squared kernel: sigma^2 / (8 pi l^4) in the
    continuous case. The two components are uncorrelated by symmetry, hence independent, so the squared norm
    is exponential: mean sigma^2 / (4 pi l^4), variance the square of the mean. The paper's proof expands
    the fourth power of the stochastic integral and counts E xi^4 on the diagonal s = t = u = v, a set of
    measure zero.

    Examples
    --------
    >>> moments = gradient_moments(1.0)
    >>> round(moments.mean, 5), round(moments.variance, 6), round(moments.printed_variance, 6)
    (0.07958, 0.006333, 0.009734)
    """
    noise = check_sigma(sigma)
    size = checks.real("scale", scale, 0, open_low=True)
    checks.choice("grid", grid, GRIDS)
    if grid == "continuous":
        component = noise**2 / (8 * math.pi * size**4)
    else:
        component = noise**2 * float(np.sum(gradient_kernel(size, grid) ** 2))
    mean = 2 * component
    return GradientMoments(mean, mean**2, PRINTED_FACTOR * mean**2, component, grid)


@dataclass(frozen=True)
class GradientBound:
    """How far noise moves the norm of the gradient at one point.

    Attributes
    ----------
    threshold : float
        Bound on the change of the norm.
    probability : float
        Lower bound of the probability that the change stays below the threshold, at one given point.
    exact : float
        Probability that the gradient of the noise itself stays below the threshold: also a lower bound.
    form : str

    Examples
    --------
    >>> bound = gradient_bound(1.0, k=3)
    >>> bound.probability < bound.exact, bound.form
    (True, 'corrected')
    """

    threshold: float
    probability: float
    exact: float
    form: str


def gradient_bound(
    sigma: Any, k: float, scale: float = 1.0, grid: str = "continuous", *, form: str = "corrected"
) -> GradientBound:
    """The corollary: with high probability noise changes the norm of the gradient little, at one point.

    Parameters
    ----------
    sigma, scale, grid
        As in :func:`gradient_moments`.
    k : float
        Number of standard deviations above the mean, positive.
    form : {"corrected", "printed"}
        Threshold sqrt(m (1 + k)), m the mean squared gradient of the noise, from the exact variance; or the
        paper's sqrt(m (1 + 1.25 k)), which holds too and is looser.

    Notes
    -----
    One-sided Chebyshev gives 1 - 1/(1 + k^2). The squared norm being exponential, the exact probability is
    1 - exp(-threshold^2 / m).

    Examples
    --------
    >>> bound = gradient_bound(1.0, k=3)
    >>> round(bound.threshold, 4), round(bound.probability, 3), round(bound.exact, 3)
    (0.5642, 0.9, 0.982)
    """
    moments = gradient_moments(sigma, scale, grid)
    deviations = checks.real("k", k, 0, open_low=True)
    slope = PRINTED_SLOPE if checks.choice("form", form, ("corrected", "printed")) == "printed" else 1.0
    room = 1 + slope * deviations
    return GradientBound(
        math.sqrt(moments.mean * room), 1 - 1 / (1 + deviations**2), 1 - math.exp(-room), form
    )
