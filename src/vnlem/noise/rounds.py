"""Noise that depends on the brightness, at several scales and, if photons are few, in rounds.

At half the size four pixels have become one, with four times the photons. So an image is halved before it is
stabilised, not after: the mean of roots is not the root of the mean, and a coarser scale keeps what a fine
one loses to that difference.

If hardly any pixel has counted more than a few photons, no transform makes the noise even: the variances of
one photon and of none differ under any transform. So weak structures are lost. The image at half or a quarter
of its size has enough photons. A mixture of the image and of what was found there has a known part of the
noise; counted in units that small, the same pixels have many photons, and the transform does its work [1]_.

.. [1] L. Azzari, A. Foi, "Variance stabilization for noisy+estimate combination in iterative Poisson
   denoising", IEEE Signal Processing Letters 23, 2016. :DOI:`10.1109/LSP.2016.2580600`
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.scales import count_scales, halve, halve_in_tiles, join_in_tiles
from vnlem.noise import strips
from vnlem.noise.model import NoiseModel
from vnlem.noise.speckle import Speckle
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

BRIGHT = 0.95  # quantile of the brightness that gives the number of photons
BLOCK = 4  # side in pixels of the blocks averaged before
# Photons of bright pixels below which a second round pays. Above, what it gains in weak structures it loses
# in flat areas.
FEW_PHOTONS = 6.0
# Photons below which the first round is better at half the size, and at a quarter of it.
FEWER_PHOTONS = (2.0, 0.8)
SHARE = 0.5  # of the noise in later rounds: what halving leaves
# The logarithm of speckle of fewer looks has a long tail. Three looks count as one photon.
FEW_LOOKS, LOOKS_PER_PHOTON = 6.0, 3.0
SHARE_OF_SPECKLE = 0.7  # at which the logarithm of a mixture is the least skewed
# If every scale has its own units, the coarse one is trusted more than with halved roots.
LEFT_OVER = 0.03
# Window in pixels over which the brightness of the coarse scale is used unchanged: with more photons, taking
# means of roots darkens it less.
LEVEL = 25


def count_photons(model: NoiseModel, planes: Float) -> float:
    """Photons in bright pixels of planes (C, H, W); infinite if the noise is not photon noise.

    Speckle counts as photons that would need the same rounds.

    >>> count_photons(NoiseModel.camera(2.0), np.full((1, 32, 32), 8.0))
    4.0
    """
    law = model.curves[0].law
    if isinstance(law, Speckle) and not model.is_correlated:
        return law.looks / LOOKS_PER_PHOTON if law.looks < FEW_LOOKS and law.domain != "log" else np.inf
    if model.is_correlated or any(curve.gain is None for curve in model.curves):
        return np.inf
    photons = []
    for number, plane in enumerate(planes):
        camera = model.curves[min(number, len(model.curves) - 1)].gain
        assert camera is not None
        bright = float(np.quantile(_means(plane), BRIGHT))
        # Read noise has the effect of this many more photons.
        photons.append((bright - camera.offset) / camera.gain + (camera.read_noise / camera.gain) ** 2)
    return max(photons)


class Round(NamedTuple):
    """One denoising of several."""

    halvings: int  # of the image before
    share: float = 1.0  # of the image, in a mixture with what was found before

    @property
    def mixed(self) -> bool:
        """Whether it denoises a mixture of the image and the previous result."""
        return self.share < 1


def rounds_for(model: NoiseModel, planes: Float, height: int, width: int) -> tuple[Round, ...]:
    """The rounds for an image of this size, from its planes or a sample of them."""
    share = SHARE_OF_SPECKLE if isinstance(model.curves[0].law, Speckle) else SHARE
    return plan_rounds(count_photons(model, planes), height, width, share)


def plan_rounds(photons: float, height: int, width: int, share: float = SHARE) -> tuple[Round, ...]:
    """The rounds for an image of this size with a given number of photons in its bright pixels.

    >>> [len(plan_rounds(photons, 500, 500)) for photons in (50.0, 4.0, 1.0, 0.5)]
    [1, 2, 2, 3]
    >>> plan_rounds(1.0, 500, 500)
    (Round(halvings=1, share=1.0), Round(halvings=0, share=0.5))
    """
    halvings = sum(photons < limit for limit in FEWER_PHOTONS)
    halvings = min(halvings, count_scales(height, width, halvings + 1) - 1)
    if not halvings:
        again = [Round(0, share)] if photons < FEW_PHOTONS else []
        return (Round(0), *again)
    later = (Round(number, share) for number in reversed(range(halvings)))
    return (Round(halvings), *later)


def noise_in(model: NoiseModel, one: Round) -> NoiseModel:
    """The noise of the input of a round.

    >>> noise_in(NoiseModel.camera(16.0), Round(1, 0.5)).gain.gain
    1.0
    """
    own = model.halved(one.halvings)
    return own.with_share(one.share) if one.mixed else own


def mix(planes: Float, found: Float, share: float) -> Float:
    """Planes mixed with their previous result, with a share of their noise."""
    return share * planes + (1 - share) * found


def stand_for_mixture(model: NoiseModel, planes: Float, pool: Pool | None = None) -> Float:
    """A stand-in for the mixture of a later round, from which it takes its units, made from the image alone.

    This is the image at half its size: as bright as the mixture, with nearly its share of the noise.

    model: of the noise of the mixture.
    planes: (C, H, W), the image at the size of the mixture.
    pool: the threads to use; they do not change the result.

    >>> photons = np.random.default_rng(0).poisson(4.0, (1, 128, 128)).astype(float)
    >>> stable = stand_for_mixture(NoiseModel.camera(1.0).with_share(SHARE), photons)
    >>> stable.shape, bool(abs(stable.std() - 1) < 0.15)
    ((1, 64, 64), True)
    """
    threads = pool or Pool(1)
    smaller = halve_in_tiles(planes, threads)
    # A signal has one row: halving averages two numbers instead of four.
    return strips.stabilise(model, halve(smaller) if planes.shape[1] == 1 else smaller, threads)


def join_in_units(model: NoiseModel, fine: Float, coarse: Float, pool: Pool | None = None) -> Float:
    """Denoised planes (C, H, W) and the same at half the size, joined in the units of their pixels.

    model: of the noise at full size.
    pool: the threads to use; they do not change the result.

    >>> fine, coarse = np.full((1, 32, 32), 9.9), np.full((1, 16, 16), 10.0)
    >>> bool(join_in_units(NoiseModel.camera(1.0), fine, coarse).min() > 9.99)
    True
    """

    def deviations(planes: Float) -> list[Float]:
        return [np.sqrt(model.variance(plane, channel)) for channel, plane in enumerate(planes)]

    threads = pool or Pool(1)
    sigma = strips.pixel_by_pixel(deviations, threads, fine)
    joined: Float = join_in_tiles(fine, coarse, sigma, threads, LEFT_OVER, LEVEL)
    return joined


def _means(plane: Float) -> Float:
    """Means of small blocks; the mean of an image that is smaller than a block."""
    height, width = (side // BLOCK * BLOCK for side in plane.shape)
    if not (height and width):
        return np.array([plane.mean()])
    parts = plane[:height, :width].reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK)
    means: Float = parts.mean(axis=(1, 3))
    return means
