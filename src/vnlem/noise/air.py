"""Sigma of magnitude images, from their air and from their tissue; and whether an image is one at all.

In air there is no signal, so the pixels follow a chi distribution with one parameter [1]_. Blocks whose mean
square and pixels agree with it are air, for one sigma; the sigma with the most of them is used. Without air,
or if it was set to zero, the noise of the tissue is estimated like white noise, between the transform and its
correction.

.. [1] C. G. Koay, E. Ozarslan, C. Pierpaoli, "Probabilistic identification and estimation of noise (PIESNO)",
   Journal of Magnetic Resonance 199, 2009. :DOI:`10.1016/j.jmr.2009.03.005`
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.blocks import lattice
from vnlem.noise.levels import by_brightness, cut
from vnlem.noise.model import NoiseModel
from vnlem.noise.rician import Rician
from vnlem.noise.white import estimate_sigma_of_planes
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

SIDE = 4  # of a block
MOST_BLOCKS = 40_000
FEWEST_BLOCKS = 40
LEAST_AIR = 0.01  # of the blocks, if the kind of noise is given
STEP = 1.06  # between the sigmas that are tried
TAILS = 0.05  # of blocks of air that are left out
MOST_ZEROS = 0.1  # of a block: it was set to zero
# Limits for air: distance of the pixels' distribution from that of air, difference of their relative
# deviations, correlation of neighbours, and share of the blocks darker than the last share of the floor.
# The first two may also vary by chance, by a number over the root of the number of pixels.
MOST_APART, SAME_WIDTH, MOST_CORRELATED, MOST_DARKER, DARKER = 0.012, 0.02, 0.15, 0.01, 0.6
CHANCE = 1.2
# Noise of the whole image relative to that of the air; if larger, that of the tissue is used.
SAME_NOISE = (0.65, 1.5)
TISSUE_ROUNDS = 5
MOST_BRIGHT = 2.0  # variance of stabilised bright areas: above this, noise rises with brightness
LEAST_STEPS = (
    4.0  # of the pixels' values in sigma: counts of 3.7 photons look like air, with 3 steps in sigma
)
PLAIN_AIR = 0.05  # of the blocks, if the kind of noise is not given

UNLIKE_AIR = "the noise of the tissue differs from that of the air, and that of the tissue is used; a map \
of sigma would say more"


class Air(NamedTuple):
    """What the blocks without signal show."""

    sigma: float
    share: float  # of all blocks
    apart: float  # largest difference of the distributions
    width: float  # relative deviation of the pixels over that of air
    correlation: float  # of neighbouring pixels
    darker: float  # share of the blocks that are darker than air
    pixels: int

    @property
    def is_plausible(self) -> bool:
        """Whether this is air, not a flat area of something else."""
        chance = CHANCE / self.pixels**0.5
        return (
            self.apart < MOST_APART + chance
            and abs(self.width - 1) < SAME_WIDTH + chance
            and abs(self.correlation) < MOST_CORRELATED
            and self.darker < MOST_DARKER
        )


def estimate_rician(planes: Float, coils: int = 1, pool: Pool | None = None) -> NoiseModel:
    """The noise of a magnitude image, planes (C, H, W) or pages below each other.

    >>> from vnlem.noise.rician import add_rician
    >>> signal = np.zeros((128, 128))
    >>> signal[32:96, 32:96] = 100.0
    >>> round(estimate_rician(add_rician(signal, 10.0, seed=0)[None]).curves[0].law.sigma)
    10
    """
    pool = pool or Pool(1)
    air = find_air(planes, coils)
    if air is None or air.share < LEAST_AIR:
        sigma = _of_tissue(planes, coils, pool)
        return NoiseModel.rician(sigma, coils, 0.8) if sigma > 0 else NoiseModel.white(0.0)
    if _agrees(planes, Rician(air.sigma, coils), pool):
        return NoiseModel.rician(air.sigma, coils)
    sigma = _of_tissue(planes, coils, pool)
    return NoiseModel.rician(sigma if sigma > 0 else air.sigma, coils, 0.5, UNLIKE_AIR)


def recognise_rician(planes: Float, pool: Pool) -> NoiseModel | None:
    """Rician noise if it is obvious: enough air, nothing darker, and tissue with the same noise.

    No pixel may be negative.

    >>> recognise_rician(np.random.default_rng(0).normal(100, 5, (1, 128, 128)), Pool(1)) is None
    True
    """
    if len(planes) > 1:
        return None
    air = find_air(planes, 1)
    if air is None or air.share < PLAIN_AIR or air.sigma < LEAST_STEPS * lattice(planes[0]):
        return None
    law = Rician(air.sigma)
    rises = _bright_noise(law.stabilise(planes[0]), pool) > MOST_BRIGHT
    return NoiseModel.rician(air.sigma) if _agrees(planes, law, pool) and not rises else None


def find_air(planes: Float, coils: int) -> Air | None:
    """The air of planes (C, H, W); None if nothing looks like it."""
    _, height, width = planes.shape
    height, width = height // SIDE * SIDE, width // SIDE * SIDE
    if min(height, width) < 4 * SIDE:
        return None
    down, across = len(planes) * height // SIDE, width // SIDE
    row, column = np.divmod(np.arange(0, down * across, -(-down * across // MOST_BLOCKS)), across)
    pieces = np.ascontiguousarray(planes[:, :height, :width]).reshape(-1, SIDE)  # of rows
    own = (row * SIDE * across + column)[:, None] + np.arange(SIDE) * across
    blocks = pieces.take(own, axis=0).reshape(-1, SIDE * SIDE)
    zeros = blocks <= 0
    if zeros.any():
        count = np.einsum("ij->i", zeros.view(np.int8))
        blocks = np.compress(count <= MOST_ZEROS * SIDE**2, blocks, axis=0)
    if len(blocks) < FEWEST_BLOCKS:
        return None
    own = np.einsum("ij,ij->i", blocks, blocks) / (2 * coils * SIDE**2)
    squares, brightness = np.sort(own), np.einsum("ij->i", blocks) / SIDE**2
    count = coils * SIDE**2
    low, high = (_gamma_quantile(count, share) / count for share in (TAILS / 2, 1 - TAILS / 2))
    first, last = squares[0], squares[-1]
    if not first < last:
        return None
    tried = np.geomspace(first, last, 2 + int(np.log(last / first) / (2 * np.log(STEP))))
    kept = np.searchsorted(squares, high * tried) - np.searchsorted(squares, low * tried)
    # Peaks of the number of blocks, the highest first: one of them is air, if there is any.
    inner = np.pad(kept, 1)
    peaks = np.flatnonzero((kept >= inner[:-2]) & (kept >= inner[2:]) & (kept >= FEWEST_BLOCKS))
    for at in peaks[np.argsort(-kept[peaks], kind="stable")][:8]:
        seen = _refined(squares, float(tried[at]), (low, high))
        air = None if seen is None else _look(blocks, brightness, own, seen, coils)
        if air is not None:
            return air
    return None


def _refined(squares: Float, square: float, limits: tuple[float, float]) -> Float | None:
    """The mean squares that agree with sigma^2, refined, of those in their order; None if they are few."""
    for _ in range(10):
        first = np.searchsorted(squares, limits[0] * square, "right")
        chosen = squares[first : np.searchsorted(squares, limits[1] * square)]
        if len(chosen) < FEWEST_BLOCKS:
            return None
        square = float(chosen.mean())
    return chosen


def _look(blocks: Float, brightness: Float, own: Float, seen: Float, coils: int) -> Air | None:
    """The blocks whose mean squares `own` were seen; None if they are not air."""
    square = float(seen.mean())
    sigma = math.sqrt(square)
    # Mean and variance of a chi distribution with two degrees of freedom for each coil.
    floor = math.sqrt(2) * math.exp(math.lgamma(coils + 0.5) - math.lgamma(coils))
    deviation = math.sqrt(2 * coils - floor**2)
    chosen = (own >= seen[0]) & (own <= seen[-1])
    mean = float(brightness[chosen].mean())
    variance = max(2 * coils * square - mean**2, 0.0)
    air = Air(
        sigma,
        float(np.mean(chosen)),
        apart=0.0,
        width=math.sqrt(variance) / mean / (deviation / floor),
        correlation=0.0,
        darker=float(np.mean(brightness < DARKER * floor * sigma)),
        pixels=seen.size * SIDE**2,
    )
    if not air.is_plausible:
        return None  # as in most images; what follows takes longer
    pixels = blocks[chosen].ravel()
    # Pixels may be integers: half of those that are equal count as smaller.
    values, counts = np.unique(pixels, return_counts=True)
    expected = _gamma_share(coils, values**2 / (2 * square))
    apart = float(np.max(np.abs(expected - (np.cumsum(counts) - counts / 2) / pixels.size)))
    grid = pixels.reshape(-1, SIDE, SIDE) - mean
    correlation = float(np.mean(grid[:, 1:] * grid[:, :-1]) + np.mean(grid[:, :, 1:] * grid[:, :, :-1])) / 2
    air = air._replace(apart=apart, correlation=correlation / max(variance, 1e-300))
    return air if air.is_plausible else None


def _gamma_share(shape: int, x: Float) -> Float:
    """Distribution function of gamma variables of a whole shape; SciPy's takes long to import.

    >>> _gamma_share(1, np.array([0.0, 1.0])).round(3)
    array([0.   , 0.632])
    """
    logs = np.log(np.maximum(x, 1e-300))
    return np.asarray(1 - sum(np.exp(k * logs - x - math.lgamma(k + 1)) for k in range(shape)))


@cache
def _gamma_quantile(shape: int, share: float) -> float:
    """Where the distribution function of gamma variables has a value."""
    low, high = 0.0, 2.0 * shape + 20
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _gamma_share(shape, np.array(middle)) < share else (low, middle)
    return low


def _agrees(planes: Float, law: Rician, pool: Pool) -> bool:
    """Whether the noise of the whole image is that of its air."""
    return SAME_NOISE[0] < estimate_sigma_of_planes(law.stabilise(planes), pool) < SAME_NOISE[1]


def _bright_noise(stable: Float, pool: Pool) -> float:
    """Least variance of bright areas of a stabilised plane: more than one if there is photon noise."""
    blocks = cut(stable, pool=pool)
    if blocks is None:
        return 0.0
    least = by_brightness(blocks).least()
    return float(np.median(least[least.size // 2 :]))


def _of_tissue(planes: Float, coils: int, pool: Pool) -> float:
    """Sigma with which the transformed image has noise of standard deviation one."""
    sigma = estimate_sigma_of_planes(planes, pool)
    for _ in range(TISSUE_ROUNDS):
        if sigma <= 0:
            return 0.0
        left = estimate_sigma_of_planes(Rician(sigma, coils).stabilise(planes), pool)
        sigma *= left
        if abs(left - 1) < 0.01:
            break
    return sigma
