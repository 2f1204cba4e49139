"""Denoisers of other packages, called the way their users call them, for comparison.

Each takes a grey float image in 0..255 and its noise level. Packages that are not installed are left out.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

Peer = Callable[[NDArray[np.float64], float], NDArray[Any]]


def available_peers() -> dict[str, Peer]:
    """The peers whose packages are installed, by the name a table shows.

    Examples
    --------
    >>> "scikit-image NLM" in available_peers()
    True
    """
    peers: dict[str, Peer] = {"scikit-image NLM": _scikit_image_nlm}
    if find_spec("bm3d") is not None:
        peers["BM3D"] = _bm3d
    return peers


def _scikit_image_nlm(noisy: NDArray[np.float64], sigma: float) -> NDArray[Any]:
    from skimage.restoration import denoise_nl_means

    # The sizes and the bandwidth of scikit-image's own example for a known sigma, a wider window.
    result: NDArray[Any] = denoise_nl_means(
        noisy, patch_size=5, patch_distance=9, h=0.8 * sigma, sigma=sigma, fast_mode=True
    )
    return result


def _bm3d(noisy: NDArray[np.float64], sigma: float) -> NDArray[Any]:
    from bm3d import bm3d

    return 255 * np.asarray(bm3d(noisy / 255, sigma_psd=sigma / 255))
