"""Synthetic images whose truth is known: cells, half discs and concentric rings.

Discs and half discs recur at every angle, so rotation helps there more than anywhere; concentric rings
hold an aligned copy of each patch close by, so it helps nowhere.
"""

import math

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline import checks

# Shapes are drawn at this multiple of the size and averaged down, which smooths their edges.
OVERSAMPLING = 2


def discs(radius: float, spacing: float, jitter: float, seed: int, size: int = 128) -> NDArray[np.float64]:
    """Bright discs on a jittered grid, like cells in a microscope: mean 0, standard deviation 1.

    Parameters
    ----------
    radius, spacing : float
        Radius of a disc and distance between grid points, in pixels.
    jitter : float
        Each disc lies up to this many pixels from its grid point, along each axis.
    seed : int
        Seed of the positions.
    size : int
        Height and width of the image.

    Returns
    -------
    ndarray of float64, shape (size, size)

    Examples
    --------
    >>> cells = discs(5, 18, 3, seed=1)
    >>> cells.shape, bool(abs(cells.mean()) < 1e-12), round(float(cells.std()), 6)
    ((128, 128), True, 1.0)
    """
    return _draw(radius, spacing, jitter, seed, size, half=False)


def half_discs(
    radius: float, spacing: float, jitter: float, seed: int, size: int = 128
) -> NDArray[np.float64]:
    """Half discs at random angles on a jittered grid: mean 0, standard deviation 1.

    Parameters
    ----------
    radius, spacing, jitter, seed, size
        As in :func:`discs`; `seed` fixes the angles too.

    Returns
    -------
    ndarray of float64, shape (size, size)

    Examples
    --------
    >>> particles = half_discs(6, 16, 2, seed=1)
    >>> bool(particles.max() > 0 > particles.min())
    True
    """
    return _draw(radius, spacing, jitter, seed, size, half=True)


def rings(size: int, frequency: float = 0.6) -> NDArray[np.float64]:
    """Concentric rings cos(frequency * distance from the centre): mean 0, standard deviation 1.

    Parameters
    ----------
    size : int
        Height and width of the image.
    frequency : float
        Radians per pixel.

    Returns
    -------
    ndarray of float64, shape (size, size)

    Examples
    --------
    >>> image = rings(65)
    >>> bool(image[32, 32] == image.max())
    True
    """
    size = checks.whole("size", size, 2)
    centre = (size - 1) / 2
    y, x = np.mgrid[:size, :size] - centre
    return _standardised(np.cos(checks.real("frequency", frequency) * np.hypot(y, x)))


def _draw(
    radius: float, spacing: float, jitter: float, seed: int, size: int, *, half: bool
) -> NDArray[np.float64]:
    radius = checks.real("radius", radius, 0, open_low=True)
    spacing = checks.real("spacing", spacing, 1)
    jitter = checks.real("jitter", jitter, 0)
    size = checks.whole("size", size, 2)
    rng = np.random.default_rng(seed)
    # Pixel centres of the fine raster, in units of the final pixels.
    fine = (np.arange(OVERSAMPLING * size) + 0.5) / OVERSAMPLING - 0.5
    canvas = np.zeros((fine.size, fine.size))
    grid = np.arange(spacing / 2, size, spacing)
    for centre_y in grid:
        for centre_x in grid:
            dy = fine[:, None] - (centre_y + rng.uniform(-jitter, jitter))
            dx = fine[None, :] - (centre_x + rng.uniform(-jitter, jitter))
            inside = dy**2 + dx**2 <= radius**2
            if half:
                angle = rng.uniform(0, 2 * math.pi)
                inside &= dx * math.cos(angle) + dy * math.sin(angle) >= 0
            canvas[inside] = 1.0
    image = canvas.reshape(size, OVERSAMPLING, size, OVERSAMPLING).mean(axis=(1, 3))
    return _standardised(image)


def _standardised(image: NDArray[np.float64]) -> NDArray[np.float64]:
    spread = float(image.std())
    if spread == 0:
        raise ValueError("the phantom is constant; choose a smaller radius or a larger size")
    standard: NDArray[np.float64] = (image - image.mean()) / spread
    return standard
