"""How the channels of an image are related, which decides how they are denoised."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Side of the averaged blocks in pixels, finest first. Larger blocks reduce noise by this factor, but also
# blur together things that lie near each other.
BLOCKS = (2, 4, 8, 16)
# Least correlation of the structure of channels that are handled together. Colour photographs have 0.65 to
# 1, channels of fluorescence -0.1 to 0.2, objects that lie near each other 0.3 (benchmarks/channels.py).
RELATED = 0.5
CERTAIN = 2.0  # standard errors between a correlation and this limit: then it decides
# The noise may be stronger than given, by this factor: the excess in each channel looks like structure that
# the channels do not share.
DOUBT = 1.2
SAME = 0.2  # channels that differ by less than this share of the noise have the same noise

CHANNELS = ("auto", "joint", "separate", "same")


def handling(
    wanted: str,
    count: int,
    seen: Callable[[], tuple[NDArray[np.float64], NDArray[np.float64]]],
    *,
    shared_noise: bool = False,
) -> str:
    """How channels are denoised: "joint", "separate", or "same" for one picture several times.

    Every call, on an image, a stack or a part, decides here: by what the user wants, else by noise that the
    channels share, else by their structure.

    wanted: "auto", "joint", "separate" or "same".
    count: number of channels; one channel is "joint".
    seen: gives planes (channels, height, width) and the standard deviation of their noise (channels); called
        only if the structure decides.
    shared_noise: the channels share noise, as those of a colour camera do. Making that noise white also
        removes the structure by which channels are seen to belong together.

    >>> apart = np.random.default_rng(0).normal(size=(3, 64, 64)).cumsum(axis=1).cumsum(axis=2)
    >>> [handling("auto", 3, lambda: (apart, np.ones(3)), shared_noise=shared) for shared in (False, True)]
    ['separate', 'joint']
    """
    if count == 1:
        return "joint"
    if wanted != "auto":
        return wanted
    if shared_noise:
        return "joint"
    return {"same": "same", "related": "joint", "independent": "separate"}[relation(*seen())]


def handling_for(model: Any, wanted: str, count: int, planes: Callable[[], NDArray[np.float64]]) -> str:
    """:func:`handling` for channels whose noise a model describes; `planes` are made only if they decide."""
    return handling(wanted, count, lambda: model.seen_in(planes()), shared_noise=model.ties_channels)


def relation(planes: NDArray[np.float64], noise: NDArray[np.float64]) -> str:
    """Whether channels are "same", "related" or "independent".

    "same": one image several times, noise included (a grey picture stored as RGB). "independent": the
    structure of the channels is clearly uncorrelated (stains, fluorescence). "related": the same edges at the
    same places (a colour photograph), or noise that hides the structure.

    The structure is the steps between means of blocks. Noise that is independent between channels adds
    nothing to the products of two channels, and what it adds to the square of one is known.

    planes: (channels, height, width).
    noise: (channels), standard deviation of the noise.

    >>> rng = np.random.default_rng(0)
    >>> y, x = np.mgrid[:64, :64]
    >>> shapes = [100.0 * (x // 16 % 2), 100.0 * (y // 16 % 2)]
    >>> first, second, third = rng.normal(size=(3, 64, 64))
    >>> relation(np.stack([shapes[0] + first, 0.5 * shapes[0] + second]), np.ones(2))
    'related'
    >>> relation(np.stack([shapes[0] + first, shapes[1] + second]), np.ones(2))
    'independent'
    >>> relation(np.stack([shapes[0] + first] * 3), np.ones(3))
    'same'
    """
    peak = float(np.abs(planes).max(initial=0.0))
    if peak == 0:
        return "same"
    # Scaled to keep squares from overflowing or vanishing.
    planes, noise = planes / peak, noise / peak
    differences = [float(np.std(plane - planes[0])) for plane in planes[1:]]
    if all(found <= SAME * level for found, level in zip(differences, noise[1:], strict=True)):
        return "same"
    # If the image shows more noise than was given, the given level cannot separate noise from structure.
    noise = np.maximum(noise, [_noise_seen(plane) for plane in planes])
    others = ~np.eye(len(planes), dtype=bool)
    for block in BLOCKS:
        steps = np.stack([_steps(plane, block) for plane in planes])
        count = max(steps.shape[1], 1)
        products = steps @ steps.T / count
        energy = np.diag(products)
        shared = float(products[others].sum())
        # Each step is a difference of two means of block^2 pixels, which gives the noise part of its energy.
        most, least = (_possible(energy - 2 * (trust * noise) ** 2 / block**2) for trust in (1.0, DOUBT))
        # Neighbouring steps share a block, and every pair of channels is counted twice.
        error = 2 * CERTAIN * (float(np.outer(energy, energy)[others].sum()) / count) ** 0.5
        if shared - error > RELATED * most:
            return "related"
        if shared + error < RELATED * least:
            return "independent"
    return "related"


def _possible(structure: NDArray[np.float64]) -> float:
    """The sum of the products of all pairs of channels with these energies, if they were fully correlated."""
    lengths = np.sqrt(np.maximum(structure, 0.0))
    return float(lengths.sum() ** 2 - (lengths**2).sum())


def _steps(plane: NDArray[np.float64], block: int) -> NDArray[np.float64]:
    """Differences of neighbouring block means, along rows and columns."""
    height, width = (side // block * block for side in plane.shape)
    means = plane[:height, :width].reshape(height // block, block, width // block, block).mean(axis=(1, 3))
    return np.concatenate([np.diff(means, axis=axis).ravel() for axis in (0, 1)])


def _noise_seen(plane: NDArray[np.float64]) -> float:
    """Noise level from the median over 2x2 pixels, as if all they show were noise: at least the true one."""
    height, width = (side // 2 * 2 for side in plane.shape)
    a, b, c, d = (plane[y:height:2, x:width:2] for y in (0, 1) for x in (0, 1))
    return float(np.median(np.abs(a - b - c + d))) / (2 * 0.6745) if a.size else 0.0
