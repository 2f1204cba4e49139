"""Noise that depends on the brightness, at several scales and, where photons are few, in rounds.

At half the size four pixels have become one, with four times the photons. So an image is halved before it is
stabilised, not after: the mean of roots is not the root of the mean, and what is lost by that at a fine scale
a coarser one still has.

Where hardly a pixel has counted more than a few photons no transform makes the noise even: of one photon and
of none the variances differ, whatever is done to the values. So weak structures are lost. The image at half
its size has photons enough, or that at a quarter. A mixture of the image and of what was found there has a
known part of the noise; counted in units that small, the same pixels have many photons, and the transform
does its work [1]_.

.. [1] L. Azzari, A. Foi, "Variance stabilization for noisy+estimate combination in iterative Poisson
   denoising", IEEE Signal Processing Letters 23, 2016. :DOI:`10.1109/LSP.2016.2580600`
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.scales import check_scales, double_in_tiles, halve, halve_in_tiles, join_in_tiles
from vnlem.estimate.scales import count_scales as count_scales
from vnlem.noise import strips
from vnlem.noise.model import NoiseModel
from vnlem.noise.speckle import Speckle
from vnlem.pipeline.progress import Progress, reporting
from vnlem.pipeline.stand_in import StandIn
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

BRIGHT = 0.95  # quantile of the brightness that says how many photons there are
BLOCK = 4  # pixels a side that are averaged before
# Photons of bright pixels below which a second round pays. Above, what it gains in weak structures it loses
# in flat areas.
FEW_PHOTONS = 6.0
# Photons below which the first round is better made at half the size, and at a quarter of it.
FEWER_PHOTONS = (2.0, 0.8)
SHARE = 0.5  # of the noise, in later rounds: what halving leaves of it
# Speckle of fewer looks has a logarithm with a long tail. Beside photons, its looks count a third.
FEW_LOOKS, LOOKS_PER_PHOTON = 6.0, 3.0
SHARE_OF_SPECKLE = 0.7  # at which the logarithm of a mixture is the least skewed
# Between scales of their own units the coarse one is to be trusted further than between halved roots.
LEFT_OVER = 0.03
# Pixels across, over which the brightness of the coarse scale is taken as it is: with more photons it is less
# darkened by means of roots.
LEVEL = 25
STEPS = 1_000_000  # of the progress, whatever the rounds and scales

# planes, their noise, progress -> denoised planes, and what else is known
Denoise = Callable[[Float, "float | StandIn", Progress], tuple[Float, Any]]


def count_photons(model: NoiseModel, planes: Float) -> float:
    """Photons that bright pixels of planes (C, H, W) have counted; infinite where noise is not of photons.

    Speckle counts as photons that would need the same rounds.

    Examples
    --------
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
        # Read noise blurs the counts as so many more photons would.
        photons.append((bright - camera.offset) / camera.gain + (camera.read_noise / camera.gain) ** 2)
    return max(photons)


class Round(NamedTuple):
    """One denoising of several."""

    halvings: int  # of the image before
    share: float = 1.0  # of the image, in a mixture with what was found before

    @property
    def mixed(self) -> bool:
        """Whether it sees a mixture of the image and of what was found before."""
        return self.share < 1


def rounds_for(model: NoiseModel, planes: Float, height: int, width: int) -> tuple[Round, ...]:
    """The rounds for an image of this size, from its planes or a sample of them."""
    share = SHARE_OF_SPECKLE if isinstance(model.curves[0].law, Speckle) else SHARE
    return plan_rounds(count_photons(model, planes), height, width, share)


def plan_rounds(photons: float, height: int, width: int, share: float = SHARE) -> tuple[Round, ...]:
    """The rounds for an image of this size whose bright pixels have counted so many photons.

    Examples
    --------
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
    """The noise of what a round sees.

    Examples
    --------
    >>> noise_in(NoiseModel.camera(16.0), Round(1, 0.5)).gain.gain
    1.0
    """
    own = model.halved(one.halvings)
    return own.with_share(one.share) if one.mixed else own


def mix(planes: Float, found: Float, share: float) -> Float:
    """Planes with a share of their noise, around what was found in them."""
    return share * planes + (1 - share) * found


def stand_for_mixture(model: NoiseModel, planes: Float, pool: Pool | None = None) -> Float:
    """What a later round takes its units from: as bright and as noisy as its mixture, from the image alone.

    This is the image at half its size. It has the mixture's share of the noise, or nearly so.

    Parameters
    ----------
    model : NoiseModel
        Of the noise of the mixture.
    planes : ndarray
        (C, H, W), the image at the size of the mixture.
    pool : Pool, optional
        The threads to use; they do not change the result.

    Examples
    --------
    >>> photons = np.random.default_rng(0).poisson(4.0, (1, 128, 128)).astype(float)
    >>> stable = stand_for_mixture(NoiseModel.camera(1.0).with_share(SHARE), photons)
    >>> stable.shape, bool(abs(stable.std() - 1) < 0.15)
    ((1, 64, 64), True)
    """
    threads = pool or Pool(1)
    smaller = halve_in_tiles(planes, threads)
    # Of a signal, which has one row, two numbers became one. Four are to be.
    return strips.stabilise(model, halve(smaller) if planes.shape[1] == 1 else smaller, threads)


def in_rounds(
    model: NoiseModel, planes: Float, progress: Progress, denoise: Denoise, scales: int = 1, workers: int = 1
) -> tuple[Float, Any]:
    """Denoise planes (C, H, W) between a model's transform and its inverse.

    Parameters
    ----------
    model : NoiseModel
    planes : ndarray
    progress : bool or callable(done, total)
        Of all rounds and scales.
    denoise : callable
        Planes with white noise, its standard deviation (one), progress -> denoised planes, anything. The
        noise of a later round is a StandIn, which says what to take units from.
    scales : int
        How many, each half the size of the one before; of noise that is not correlated.
    workers : int
        Threads for what is done around `denoise`; they do not change the result.

    Returns
    -------
    denoised : ndarray
        In the units of `planes`.
    info
        What `denoise` gave beside the planes at full size in the last round.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> photons = rng.poisson(2.0, (1, 64, 64)).astype(float)
    >>> found, rounds = in_rounds(
    ...     NoiseModel.camera(1.0), photons, False, lambda x, *_: (np.full_like(x, x.mean()), "flat")
    ... )
    >>> bool(abs(found.mean() - 2) < 0.1), rounds
    (True, 'flat')
    """
    rounds = rounds_for(model, planes, *planes.shape[1:])
    halved = [planes]
    with reporting(progress, "denoise") as report, Pool(workers) as pool:
        for _ in range(rounds[0].halvings):
            halved.append(halve_in_tiles(halved[-1], pool))
        work = _Work(report, denoise, check_scales(scales), pool)
        work.plan([halved[one.halvings].shape[1:] for one in rounds])
        size = rounds[0].halvings
        found, info = _at_scales(noise_in(model, rounds[0]), halved[size], None, work)
        for one in rounds[1:]:
            own = halved[one.halvings]
            if one.halvings < size:
                found = double_in_tiles(found, own.shape[1], own.shape[2], pool)
            size = one.halvings
            mixture = strips.pixel_by_pixel(partial(mix, share=one.share), pool, own, found)
            found, info = _at_scales(noise_in(model, one), mixture, own, work)
    return found, info


class _Work:
    """One denoising after the other, and how much of all is done."""

    def __init__(self, report: Any, denoise: Denoise, scales: int, pool: Pool) -> None:
        self.scales, self.pool = scales, pool
        self._denoise = denoise
        self._report = report
        self._pixels = 0
        self._total = 1

    def plan(self, sizes: list[tuple[int, ...]]) -> None:
        """Count the pixels of all rounds, from the size of the image in each."""
        self._total = sum(self._pixels_of(*size) for size in sizes)

    def _pixels_of(self, height: int, width: int) -> int:
        total = 0
        for _ in range(count_scales(height, width, self.scales)):
            total += height * width
            height, width = -(-height // 2), -(-width // 2)
        return total

    def __call__(self, model: NoiseModel, planes: Float, image: Float | None) -> tuple[Float, Any]:
        """Planes denoised in their own units, and what else is known.

        Of a mixture `image` is what it was made from.
        """
        size, before = planes[0].size, self._pixels

        def part(done: int, total: int) -> None:
            self._report(int(STEPS * (before + size * done / max(total, 1)) / self._total), STEPS)

        noise = 1.0 if image is None else StandIn(1.0, stand_for_mixture(model, image, self.pool))
        stable = strips.stabilise(model, planes, self.pool)
        found, info = self._denoise(stable, noise, False if self._report is None else part)
        self._pixels += size
        return strips.unstabilise(model, found, self.pool), info


def _at_scales(model: NoiseModel, planes: Float, image: Float | None, work: _Work) -> tuple[Float, Any]:
    """One round. Of a mixture `image` is what it was made from."""
    models, results = [], []
    for number in range(count_scales(planes.shape[1], planes.shape[2], work.scales)):
        if number:
            planes = halve_in_tiles(planes, work.pool)
            image = None if image is None else halve_in_tiles(image, work.pool)
        models.append(model.halved(number))
        results.append(work(models[-1], planes, image))
    info = results[0][1]
    joined = results.pop()[0]
    while results:
        joined = join_in_units(models[len(results) - 1], results.pop()[0], joined, work.pool)
    return joined, info


def join_in_units(model: NoiseModel, fine: Float, coarse: Float, pool: Pool | None = None) -> Float:
    """Denoised planes (C, H, W) and the same at half the size, joined in the units of their pixels.

    Parameters
    ----------
    model : NoiseModel
        Of the noise at full size.
    fine, coarse : ndarray
    pool : Pool, optional
        The threads to use; they do not change the result.

    Examples
    --------
    >>> fine, coarse = np.full((1, 32, 32), 9.9), np.full((1, 16, 16), 10.0)
    >>> bool(join_in_units(NoiseModel.camera(1.0), fine, coarse).min() > 9.99)
    True
    """

    def deviations(planes: Float) -> list[Float]:
        return [np.sqrt(model.variance(plane, channel)) for channel, plane in enumerate(planes)]

    threads = pool or Pool(1)
    sigma = strips.pixel_by_pixel(deviations, threads, fine)
    return join_in_tiles(fine, coarse, sigma, threads, LEFT_OVER, LEVEL)


def _means(plane: Float) -> Float:
    """Means of small blocks; of an image that is smaller its own mean."""
    height, width = (side // BLOCK * BLOCK for side in plane.shape)
    if not (height and width):
        return np.array([plane.mean()])
    parts = plane[:height, :width].reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK)
    means: Float = parts.mean(axis=(1, 3))
    return means
