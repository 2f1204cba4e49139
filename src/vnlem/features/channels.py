"""How the channels of an image belong together, and so how they are denoised."""

import numpy as np
from numpy.typing import NDArray

BLOCK = 4  # pixels a side that are averaged, so that the noise falls by four
RELATED = 0.65  # least correlation of the structure of channels that are handled together
SAME = 0.2  # channels that differ by less than this share of the noise have the same noise


CHANNELS = ("auto", "joint", "separate")


def handling(
    wanted: str, planes: NDArray[np.float64], noise: NDArray[np.float64], *, shared_noise: bool = False
) -> str:
    """How channels are denoised: "joint", "separate", or "same" for one picture several times.

    All that decides it is here: what the user wants, else noise that the channels share, else structure.

    Parameters
    ----------
    wanted : {"auto", "joint", "separate"}
    planes : ndarray
        (channels, height, width).
    noise : ndarray
        (channels), standard deviation of the noise.
    shared_noise : bool
        The channels share noise, as those of a colour camera do. Where it was made white, the structure by
        which channels are seen to belong together went with it.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=(3, 32, 32))
    >>> handling("auto", noise, np.ones(3)), handling("auto", noise, np.ones(3), shared_noise=True)
    ('separate', 'joint')
    """
    if wanted != "auto":
        return wanted
    if shared_noise:
        return "joint"
    return {"same": "same", "related": "joint", "independent": "separate"}[relation(planes, noise)]


def relation(planes: NDArray[np.float64], noise: NDArray[np.float64]) -> str:
    """Whether channels are "same", "related" or "independent".

    "same": one image several times, noise included (a grey picture stored as RGB). "related": the same edges
    at the same places (a colour photograph). "independent": anything else, also where the noise hides all
    structure of a channel.

    Parameters
    ----------
    planes : ndarray
        (channels, height, width).
    noise : ndarray
        (channels), standard deviation of the noise.

    Examples
    --------
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
    differences = [float(np.std(plane - planes[0])) for plane in planes[1:]]
    if all(found <= SAME * level for found, level in zip(differences, noise[1:], strict=True)):
        return "same"
    steps = np.stack([_steps(plane) for plane in planes])
    # Each step is a difference of two means of BLOCK^2 pixels: so much of its energy is noise.
    products = steps @ steps.T / max(steps.shape[1], 1)
    structure = np.diag(products) - 2 * noise**2 / BLOCK**2
    if not (structure > 0.2 * np.diag(products)).all():
        return "independent"
    correlation = products / np.sqrt(np.outer(structure, structure))
    others = ~np.eye(len(planes), dtype=bool)
    return "related" if (correlation[others] > RELATED).all() else "independent"


def _steps(plane: NDArray[np.float64]) -> NDArray[np.float64]:
    """Differences of neighbouring block means, along rows and columns."""
    height, width = (side // BLOCK * BLOCK for side in plane.shape)
    blocks = plane[:height, :width].reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK).mean(axis=(1, 3))
    return np.concatenate([np.diff(blocks, axis=axis).ravel() for axis in (0, 1)])
