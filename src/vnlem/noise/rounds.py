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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.scales import check_scales, double, halve, join
from vnlem.estimate.scales import count_scales as count_scales
from vnlem.noise.model import NoiseModel
from vnlem.pipeline.progress import Progress, reporting

Float = NDArray[np.float64]

BRIGHT = 0.95  # quantile of the brightness that says how many photons there are
BLOCK = 4  # pixels a side that are averaged before
# Photons of bright pixels below which a second round pays. Above, what it gains in weak structures it loses
# in flat areas.
FEW_PHOTONS = 6.0
# Photons below which the first round is better made at half the size, and at a quarter of it.
FEWER_PHOTONS = (2.0, 0.8)
SHARE = 0.5  # of the noise, in the second round
# Between scales of their own units the coarse one is to be trusted further than between halved roots.
LEFT_OVER = 0.03
STEPS = 1_000_000  # of the progress, whatever the rounds and scales

# planes, progress -> denoised planes, and what else is known
Denoise = Callable[[Float, Progress], tuple[Float, Any]]


def count_photons(model: NoiseModel, planes: Float) -> float:
    """Photons that bright pixels of planes (C, H, W) have counted; infinite where noise is not of photons.

    Examples
    --------
    >>> count_photons(NoiseModel.camera(2.0), np.full((1, 32, 32), 8.0))
    4.0
    """
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


def in_rounds(
    model: NoiseModel, planes: Float, progress: Progress, denoise: Denoise, scales: int = 1
) -> tuple[Float, Any]:
    """Denoise planes (C, H, W) between a model's transform and its inverse.

    Parameters
    ----------
    model : NoiseModel
    planes : ndarray
    progress : bool or callable(done, total)
        Of all rounds and scales.
    denoise : callable
        Planes with white noise of standard deviation one, and progress -> denoised planes, anything.
    scales : int
        How many, each half the size of the one before; of noise that is not correlated.

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
    ...     NoiseModel.camera(1.0), photons, False, lambda x, _: (np.full_like(x, x.mean()), "flat")
    ... )
    >>> bool(abs(found.mean() - 2) < 0.1), rounds
    (True, 'flat')
    """
    photons = count_photons(model, planes)
    halvings = sum(photons < limit for limit in FEWER_PHOTONS)
    height, width = planes.shape[1:]
    halvings = min(halvings, count_scales(height, width, halvings + 1) - 1)
    again = photons < FEW_PHOTONS and not halvings
    with reporting(progress, "denoise") as report:
        work = _Work(report, denoise, check_scales(scales))
        work.plan(height, width, halvings, again)
        found, info = _first_round(model, planes, halvings, work)
        if again:
            found, info = _second_round(model, planes, found, work)
    return found, info


class _Work:
    """One denoising after the other, and how much of all is done."""

    def __init__(self, report: Any, denoise: Denoise, scales: int) -> None:
        self.scales = scales
        self._denoise = denoise
        self._report = report
        self._pixels = 0
        self._total = 1

    def plan(self, height: int, width: int, halvings: int, again: bool) -> None:
        """Count the pixels of all rounds."""
        self._total = self._pixels_of(height, width) * (2 if again else 1)
        for _ in range(halvings):
            height, width = -(-height // 2), -(-width // 2)
            self._total += self._pixels_of(height, width)

    def _pixels_of(self, height: int, width: int) -> int:
        total = 0
        for _ in range(count_scales(height, width, self.scales)):
            total += height * width
            height, width = -(-height // 2), -(-width // 2)
        return total

    def __call__(self, model: NoiseModel, planes: Float) -> tuple[Float, Any]:
        """Planes denoised in their own units, and what else is known."""
        size, before = planes[0].size, self._pixels

        def part(done: int, total: int) -> None:
            self._report(int(STEPS * (before + size * done / max(total, 1)) / self._total), STEPS)

        stable, info = self._denoise(model.stabilise(planes), False if self._report is None else part)
        self._pixels += size
        return model.unstabilise(stable), info


def _first_round(model: NoiseModel, planes: Float, halvings: int, work: _Work) -> tuple[Float, Any]:
    """What is found without knowing anything, from an image that was halved so often."""
    if not halvings:
        return _at_scales(model, planes, work)
    coarse, _ = _first_round(model.with_share(0.5), halve(planes), halvings - 1, work)
    return _second_round(model, planes, double(coarse, *planes.shape[1:]), work)


def _second_round(model: NoiseModel, planes: Float, found: Float, work: _Work) -> tuple[Float, Any]:
    """The same with part of the noise, around what was found before."""
    return _at_scales(model.with_share(SHARE), SHARE * planes + (1 - SHARE) * found, work)


def _at_scales(model: NoiseModel, planes: Float, work: _Work) -> tuple[Float, Any]:
    levels = [planes]
    height, width = planes.shape[1:]
    for _ in range(1, count_scales(height, width, work.scales)):
        levels.append(halve(levels[-1]))
    # The mean of four pixels has half of their noise.
    models = [model.with_share(0.5**number) for number in range(len(levels))]
    results = [work(*both) for both in zip(models, levels, strict=True)]
    info = results[0][1]
    joined = results.pop()[0]
    while results:
        joined = join_in_units(models[len(results) - 1], results.pop()[0], joined)
    return joined, info


def join_in_units(model: NoiseModel, fine: Float, coarse: Float) -> Float:
    """Denoised planes (C, H, W) and the same at half the size, joined in the units of their pixels.

    Parameters
    ----------
    model : NoiseModel
        Of the noise at full size.
    fine, coarse : ndarray

    Examples
    --------
    >>> fine, coarse = np.full((1, 32, 32), 9.9), np.full((1, 16, 16), 10.0)
    >>> bool(join_in_units(NoiseModel.camera(1.0), fine, coarse).min() > 9.99)
    True
    """
    deviations = [np.sqrt(model.variance(plane, channel)) for channel, plane in enumerate(fine)]
    return join(fine, coarse, np.stack(deviations), LEFT_OVER)


def _means(plane: Float) -> Float:
    """Means of small blocks; of an image that is smaller its own mean."""
    height, width = (side // BLOCK * BLOCK for side in plane.shape)
    if not (height and width):
        return np.array([plane.mean()])
    parts = plane[:height, :width].reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK)
    means: Float = parts.mean(axis=(1, 3))
    return means
