"""Few photons: denoise again, with part of the noise, around what was found before.

Where hardly a pixel has counted more than a few photons no transform makes the noise even: of one photon and
of none the variances differ, whatever is done to the values. So weak structures are lost. A mixture of the
image and of what was found has a known part of the noise; counted in units that small, the same pixels have
many photons, and the transform does its work [1]_.

.. [1] L. Azzari, A. Foi, "Variance stabilization for noisy+estimate combination in iterative Poisson
   denoising", IEEE Signal Processing Letters 23, 2016. :DOI:`10.1109/LSP.2016.2580600`
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.model import NoiseModel
from vnlem.pipeline.progress import Progress

Float = NDArray[np.float64]

BRIGHT = 0.95  # quantile of the brightness that says how many photons there are
BLOCK = 4  # pixels a side that are averaged before
# Photons of bright pixels below which a second round pays. Above, what it gains in weak structures it loses
# in flat areas.
FEW_PHOTONS = 6.0
SHARE = 0.5  # of the noise, in the second round

# planes, progress -> denoised planes, and what else is known
Denoise = Callable[[Float, Progress], tuple[Float, Any]]


def has_few_photons(model: NoiseModel, planes: Float) -> bool:
    """Whether even bright pixels of planes (C, H, W) have counted only a few photons.

    Examples
    --------
    >>> camera = NoiseModel.camera(2.0)
    >>> [has_few_photons(camera, np.full((1, 32, 32), level)) for level in (8.0, 40.0)]
    [True, False]
    """
    if model.is_correlated or any(curve.gain is None for curve in model.curves):
        return False
    photons = []
    for number, plane in enumerate(planes):
        camera = model.curves[min(number, len(model.curves) - 1)].gain
        assert camera is not None
        bright = float(np.quantile(_means(plane), BRIGHT))
        # Read noise blurs the counts as so many more photons would.
        photons.append((bright - camera.offset) / camera.gain + (camera.read_noise / camera.gain) ** 2)
    return max(photons) < FEW_PHOTONS


def in_rounds(model: NoiseModel, planes: Float, progress: Progress, denoise: Denoise) -> tuple[Float, Any]:
    """Denoise planes (C, H, W) between a model's transform and its inverse, twice where photons are few.

    Parameters
    ----------
    model : NoiseModel
    planes : ndarray
    progress : bool or callable(done, total)
        Of all rounds.
    denoise : callable
        Planes with white noise of standard deviation one, and progress -> denoised planes, anything.

    Returns
    -------
    denoised : ndarray
        In the units of `planes`.
    info
        What `denoise` gave beside the planes in the last round.

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
    rounds = 2 if has_few_photons(model, planes) else 1
    found, info = denoise(model.stabilise(planes), _part(progress, 0, rounds))
    found = model.unstabilise(found)
    if rounds == 2:
        quieter = model.with_share(SHARE)
        mixed = quieter.stabilise(SHARE * planes + (1 - SHARE) * found)
        found, info = denoise(mixed, _part(progress, 1, rounds))
        found = quieter.unstabilise(found)
    return found, info


def _means(plane: Float) -> Float:
    """Means of small blocks; of an image that is smaller its own mean."""
    height, width = (side // BLOCK * BLOCK for side in plane.shape)
    if not (height and width):
        return np.array([plane.mean()])
    parts = plane[:height, :width].reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK)
    means: Float = parts.mean(axis=(1, 3))
    return means


def _part(progress: Progress, number: int, count: int) -> Progress:
    """Progress of one round as part of all."""
    if not callable(progress) or count == 1:
        return progress
    return lambda done, total: progress(number * total + done, count * total)
