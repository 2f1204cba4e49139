"""The level of white noise, estimated from one image, and the noise of the experiments."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.noise import levels
from vnlem.noise.blocks import cosine, in_parts, lattice, painted, windows
from vnlem.pipeline import checks
from vnlem.pipeline.image import to_planes
from vnlem.pipeline.scale import standard_scale
from vnlem.pipeline.sigma import check_sigma
from vnlem.pipeline.workers import Pool, check_workers

BLOCK_SIDE = 8
SIGNAL_BLOCK = 16  # a block of a signal, which has one direction to take its frequencies from
HIGH_FREQUENCY = 0.5  # mean over the directions, 1 being the highest
FLAT_FRACTION = 0.05  # of the blocks, by energy at low frequencies
FEWEST_COEFFICIENTS = 2000  # that many independent ones give sigma to 1.6 %
MOST_BLOCKS = 2**15  # bounds time and memory for any image
SMALLEST_FOR_LEVELS = 4 * BLOCK_SIDE  # least side in pixels to compare levels of flat blocks


def estimate_sigma(image: ArrayLike, channel_axis: int | None = None, *, workers: int | None = None) -> float:
    """Standard deviation of white Gaussian noise, from the image alone.

    Parameters
    ----------
    image : array_like
        A grey image, a signal (one dimension), or a colour image with `channel_axis`.
    channel_axis : int, optional
        The axis of the channels; the result is the mean of their estimates.
    workers : int, optional
        Number of threads; all cores when None. They do not change the result.

    Returns
    -------
    float
        In the units of the pixels. Zero for a constant image and for a single pixel.

    Notes
    -----
    The level is the lower envelope of the energies of flat blocks of 8x8 pixels over space, frequency and
    direction: see ``vnlem.noise.levels``. Grain that is the same everywhere counts as noise. Constant and
    painted blocks (labels, borders, text) are left out, and clipped ones if enough others exist.

    Images of less than 32x32 pixels and signals have too few blocks for that. The 5 % of their blocks with
    the least energy at low frequencies count as flat, and the energy of their high frequencies is averaged:
    white noise has independent coefficients, so choosing blocks by the low ones does not bias the mean of the
    high ones.

    The noise must be white: after JPEG compression, demosaicking or resampling the estimate is too low.

    References
    ----------
    .. [1] N. Ponomarenko, V. Lukin, S. Abramov, K. Egiazarian, J. Astola, "An automatic approach to lossy
       compression of AVIRIS images", IGARSS 2007. :DOI:`10.1109/IGARSS.2007.4422833`
    .. [2] M. Colom, A. Buades, "Analysis and Extension of the Ponomarenko et al. Method, Estimating a Noise
       Curve from a Single Image", Image Processing On Line 3, 2013. :DOI:`10.5201/ipol.2013.45`

    Examples
    --------
    >>> ramp = np.add.outer(np.arange(128.0), np.arange(128.0))
    >>> bool(abs(estimate_sigma(add_gaussian(ramp, 10, seed=0)) - 10) < 0.5)
    True
    """
    planes = to_planes(image, channel_axis, signals=True).data
    with Pool(check_workers(workers)) as pool:
        return estimate_sigma_of_planes(planes, pool)


def estimate_sigma_of_planes(planes: NDArray[np.float64], pool: Pool | None = None) -> float:
    """Noise level of channel planes (C, H, W): the mean over the channels that are not constant.

    pool: the threads to use; they do not change the result.

    >>> estimate_sigma_of_planes(np.ones((3, 16, 16)))
    0.0
    """
    varied = [plane for plane in planes if plane.min() < plane.max()]
    return float(np.mean([_sigma_of_plane(plane, pool or Pool(1)) for plane in varied] or [0.0]))


def _sigma_of_plane(plane: NDArray[np.float64], pool: Pool) -> float:
    low, high = float(plane.min()), float(plane.max())
    spread = high - low
    if spread == 0:
        return 0.0
    # Values lie in [0, 1], whatever the units; rounding errors at that scale are not noise.
    plane = np.round((plane - low) / spread, 13)
    if min(plane.shape) >= SMALLEST_FOR_LEVELS:
        blocks = levels.cut(plane, pool=pool)
        return 0.0 if blocks is None else spread * float(np.sqrt(levels.white_level(blocks)))
    return spread * _relative_sigma(plane, pool)


def _relative_sigma(plane: NDArray[np.float64], pool: Pool) -> float:
    """Noise level of a signal or a small plane with values from 0 to 1."""
    side = SIGNAL_BLOCK if min(plane.shape) == 1 else BLOCK_SIDE
    # Evenly spread over the plane. An odd step does not stay in phase with the 8x8 grid of JPEG.
    view = windows(plane, side, 1, MOST_BLOCKS, longer=2)
    is_high = _mean_frequency(view.shape[:2]) >= HIGH_FREQUENCY
    is_low = ~is_high
    is_low[0, 0] = False
    step = lattice(plane)

    def look(blocks: NDArray[np.float64]) -> tuple[NDArray[Any], ...]:
        energy = cosine(blocks) ** 2
        natural = ~painted(blocks, energy[is_high].mean(axis=0), step)
        unclipped = natural & ((blocks > 0) & (blocks < 1)).all(axis=(0, 1))
        return natural, unclipped, energy[is_low].sum(axis=0), energy[is_high]

    natural, unclipped, texture, energy = in_parts(look, [view], pool)
    enough = -(-FEWEST_COEFFICIENTS // int(is_high.sum()))
    for kept in (unclipped, natural):
        if kept.sum() >= enough:
            break
    else:
        kept = np.ones(texture.size, bool)
    blocks = np.flatnonzero(kept)
    n_flat = min(max(int(FLAT_FRACTION * blocks.size), enough), blocks.size)
    flattest = blocks[np.argsort(texture[blocks], kind="stable")[:n_flat]]
    return float(np.sqrt(energy[:, flattest].mean()))


def _mean_frequency(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Frequency of each coefficient of a block, averaged over the directions it extends in: 0 to 1."""
    axes = [np.arange(side) / max(side - 1, 1) for side in shape]
    directions = sum(side > 1 for side in shape)
    mean: NDArray[np.float64] = np.add.outer(*axes) / directions
    return mean


def add_gaussian(image: ArrayLike, sigma: float, seed: Any = None) -> NDArray[np.float64]:
    """Add white Gaussian noise.

    Parameters
    ----------
    image : array_like
        Any shape.
    sigma : float
        Standard deviation of the noise, in the units of the pixels.
    seed : int, numpy.random.Generator or None
        What ``numpy.random.default_rng`` takes: a whole number gives the same noise each time.

    Returns
    -------
    ndarray of float64
        ``image + default_rng(seed).normal(0, sigma, image.shape)``, neither rounded nor clipped.

    Examples
    --------
    >>> add_gaussian(np.zeros(2), 10, seed=0)
    array([ 1.25730221, -1.32104863])
    """
    values = checks.finite("image", image)
    return values + np.random.default_rng(seed).normal(0, check_sigma(sigma), values.shape)


def standardise(image: ArrayLike) -> tuple[NDArray[np.float64], float, float]:
    """Bring an image to mean 0 and standard deviation 1, the units of the paper's experiments.

    The paper standardises the clean image and then adds noise of variance 0.3.

    Parameters
    ----------
    image : array_like
        Any shape; a colour image gets one mean and one scale.

    Returns
    -------
    standardised : ndarray of float64
        ``(image - mean) / std``; zeros for a constant image, whose `std` is 0.
    mean, std : float
        What :func:`unstandardise` needs to undo it.

    Examples
    --------
    >>> standardise([1, 3])
    (array([-1.,  1.]), 2.0, 1.0)
    """
    values = checks.finite("image", image)
    if values.min() == values.max():
        return np.zeros_like(values), float(values.flat[0]), 0.0
    mean, std = standard_scale(values, sigma=0.0)
    return (values - mean) / std, mean, std


def unstandardise(standardised: ArrayLike, mean: float, std: float) -> NDArray[np.float64]:
    """Undo :func:`standardise`.

    Parameters
    ----------
    standardised : array_like
        An image in standardised units.
    mean, std : float
        As :func:`standardise` gave them.

    Returns
    -------
    ndarray of float64
        ``standardised * std + mean``

    Examples
    --------
    >>> unstandardise(*standardise([1, 3]))
    array([1., 3.])
    """
    return checks.finite("standardised", standardised) * std + mean
