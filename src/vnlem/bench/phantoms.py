"""Synthetic images whose truth is known: cells, half discs, rings, shapes that recur at other sizes.

Discs and half discs recur at every angle, so rotation helps most there; concentric rings contain an aligned
copy of each patch nearby, so it does not help. Discs of mixed sizes, a floor of discs in perspective, and
discs that carry smaller discs recur at other sizes.
"""

import math

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline import checks

# Shapes are drawn at this multiple of the size and averaged down, which smooths their edges.
OVERSAMPLING = 2


def discs(radius: float, spacing: float, jitter: float, seed: int, size: int = 128) -> NDArray[np.float64]:
    """Bright discs on a jittered grid, like cells in a microscope: mean 0, standard deviation 1.

    radius, spacing: radius of a disc and distance between grid points, in pixels.
    jitter: each disc lies up to this many pixels from its grid point, along each axis.
    seed: seed of the positions.
    size: height and width of the image.

    >>> cells = discs(5, 18, 3, seed=1)
    >>> cells.shape, bool(abs(cells.mean()) < 1e-12), round(float(cells.std()), 6)
    ((128, 128), True, 1.0)
    """
    return _draw((radius, radius), spacing, jitter, seed, size, half=False)


def mixed_discs(
    smallest: float, largest: float, spacing: float, jitter: float, seed: int, size: int = 128
) -> NDArray[np.float64]:
    """Bright discs of random radius on a jittered grid: mean 0, standard deviation 1.

    smallest, largest: the radii lie between these, in pixels.
    spacing, jitter, seed, size: as in :func:`discs`; `seed` fixes the radii too.

    >>> mixed_discs(3, 9, 22, 3, seed=1).shape
    (128, 128)
    """
    smallest = checks.real("smallest", smallest, 0, open_low=True)
    largest = checks.real("largest", largest, smallest)
    return _draw((smallest, largest), spacing, jitter, seed, size, half=False)


def floor_of_discs(seed: int, size: int = 128) -> NDArray[np.float64]:
    """A floor of discs in rows, seen in perspective: smaller towards the top. Mean 0, standard deviation 1.

    seed: seed of the height of the horizon and of where the rows begin.
    size: height and width of the image.

    >>> image = floor_of_discs(seed=1)
    >>> bool(image.max() > 0 > image.min())
    True
    """
    size = checks.whole("size", size, 2)
    rng = np.random.default_rng(seed)
    horizon, sideways, forwards = (
        rng.uniform(0.1, 0.18) * size,
        rng.uniform(0, 1, 2),
        rng.uniform(-0.04, 0.04),
    )
    fine = (np.arange(4 * size) + 0.5) / 4
    nearness = 1 / (fine[:, None] + horizon)
    across = (fine[None, :] / size - 0.5 + forwards) * size * nearness * 10
    along = size * nearness * 2
    u, v = (across + sideways[0]) % 1 - 0.5, (along + sideways[1]) % 1 - 0.5
    return _standardised(_averaged((u**2 + v**2 < 0.09).astype(float), 4))


def budding_discs(seed: int, size: int = 128) -> NDArray[np.float64]:
    """Discs that carry smaller discs, which carry smaller ones: mean 0, standard deviation 1.

    seed, size: as in :func:`floor_of_discs`; the seed fixes places, radii and angles.

    >>> round(float(budding_discs(seed=1).std()), 6)
    1.0
    """
    size = checks.whole("size", size, 2)
    rng = np.random.default_rng(seed)
    y, x = (np.mgrid[: 3 * size, : 3 * size] + 0.5) / 3
    canvas = np.zeros(y.shape)

    def grow(row: float, column: float, radius: float, angle: float) -> None:
        if radius < 1.2:
            return
        canvas[(y - row) ** 2 + (x - column) ** 2 <= radius**2] = 1.0
        for side in (-1.9, 0.0, 1.9):
            towards = angle + side + rng.uniform(-0.3, 0.3)
            away = 1.65 * radius
            grow(row + away * math.sin(towards), column + away * math.cos(towards), 0.6 * radius, towards)

    for row in (size / 4, 3 * size / 4):
        for column in (size / 4, 3 * size / 4):
            moved_y, moved_x = rng.uniform(-4, 4, 2)
            grow(row + moved_y, column + moved_x, rng.uniform(8, 13), rng.uniform(0, 2 * math.pi))
    return _standardised(_averaged(canvas, 3))


def half_discs(
    radius: float, spacing: float, jitter: float, seed: int, size: int = 128
) -> NDArray[np.float64]:
    """Half discs at random angles on a jittered grid: mean 0, standard deviation 1.

    radius, spacing, jitter, seed, size: as in :func:`discs`; `seed` fixes the angles too.

    >>> particles = half_discs(6, 16, 2, seed=1)
    >>> bool(particles.max() > 0 > particles.min())
    True
    """
    return _draw((radius, radius), spacing, jitter, seed, size, half=True)


def rings(size: int, frequency: float = 0.6) -> NDArray[np.float64]:
    """Concentric rings cos(frequency * distance from the centre): mean 0, standard deviation 1.

    size: height and width of the image.
    frequency: radians per pixel.

    >>> image = rings(65)
    >>> bool(image[32, 32] == image.max())
    True
    """
    size = checks.whole("size", size, 2)
    centre = (size - 1) / 2
    y, x = np.mgrid[:size, :size] - centre
    return _standardised(np.cos(checks.real("frequency", frequency) * np.hypot(y, x)))


def _draw(
    radii: tuple[float, float], spacing: float, jitter: float, seed: int, size: int, *, half: bool
) -> NDArray[np.float64]:
    smallest, largest = (checks.real("radius", radius, 0, open_low=True) for radius in radii)
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
            # A fixed radius must not consume random numbers of the places.
            radius = rng.uniform(smallest, largest) if largest > smallest else smallest
            dy = fine[:, None] - (centre_y + rng.uniform(-jitter, jitter))
            dx = fine[None, :] - (centre_x + rng.uniform(-jitter, jitter))
            inside = dy**2 + dx**2 <= radius**2
            if half:
                angle = rng.uniform(0, 2 * math.pi)
                inside &= dx * math.cos(angle) + dy * math.sin(angle) >= 0
            canvas[inside] = 1.0
    return _standardised(_averaged(canvas, OVERSAMPLING))


def _averaged(canvas: NDArray[np.float64], factor: int) -> NDArray[np.float64]:
    """Squares of factor x factor pixels become one."""
    size = len(canvas) // factor
    image: NDArray[np.float64] = canvas.reshape(size, factor, size, factor).mean(axis=(1, 3))
    return image


def _standardised(image: NDArray[np.float64]) -> NDArray[np.float64]:
    spread = float(image.std())
    if spread == 0:
        raise ValueError("the phantom is constant; choose a smaller radius or a larger size")
    standard: NDArray[np.float64] = (image - image.mean()) / spread
    return standard
