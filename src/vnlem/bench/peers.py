"""Denoisers of other packages, called the way their users call them, for comparison.

Each takes a grey float image in 0..255, or a stack of them (pages, H, W), its noise level, and the number of
threads it may use. Packages that are not installed are left out.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

Peer = Callable[[NDArray[np.float64], float, int], NDArray[Any]]
FRAMES = 2  # that OpenCV uses before and after


def available_peers() -> dict[str, Peer]:
    """The peers for images whose packages are installed, by name.

    >>> "skimage-nlm" in available_peers()
    True
    """
    return {
        name: peer
        for name, (peer, needs) in _PEERS.items()
        if name not in STACK_PEERS and not _missing(needs)
    }


def find_peer(name: str) -> Peer | None:
    """A peer by its name; None for an unknown name, an error if its package is missing.

    >>> find_peer("nlem") is None
    True
    """
    if name not in _PEERS:
        return None
    peer, needs = _PEERS[name]
    if missing := _missing(needs):
        raise ValueError(f"{name} needs {' and '.join(missing)}: run pip install {' '.join(missing)}")
    return peer


def _missing(modules: Sequence[str]) -> list[str]:
    """The packages of the modules that cannot be imported."""
    return [_INSTALLED_BY[module] for module in modules if find_spec(module) is None]


def _skimage_nlm(noisy: NDArray[np.float64], sigma: float, threads: int) -> NDArray[Any]:
    from skimage.restoration import denoise_nl_means

    # The sizes and the bandwidth of scikit-image's own example for a known sigma, a wider window.
    result: NDArray[Any] = denoise_nl_means(
        noisy, patch_size=5, patch_distance=9, h=0.8 * sigma, sigma=sigma, fast_mode=True
    )
    return result


def _skimage_tv(noisy: NDArray[np.float64], sigma: float, threads: int) -> NDArray[Any]:
    from skimage.restoration import denoise_tv_chambolle

    # 0.8 sigma had the best PSNR on Set12 at sigma 25 and 50.
    return 255 * np.asarray(denoise_tv_chambolle(noisy / 255, weight=0.8 * sigma / 255))


def _skimage_wavelet(noisy: NDArray[np.float64], sigma: float, threads: int) -> NDArray[Any]:
    from skimage.restoration import denoise_wavelet

    # On [0, 1], as its documentation requires, with room on both sides: it clips what lies outside.
    low, width = noisy.min() - 1, np.ptp(noisy) + 2
    result = denoise_wavelet((noisy - low) / width, sigma=sigma / width, rescale_sigma=True)
    return np.asarray(np.asarray(result) * width + low)


def _opencv_nlm(noisy: NDArray[np.float64], sigma: float, threads: int) -> NDArray[Any]:
    import cv2

    cv2.setNumThreads(threads)
    # It takes only bytes. A strength of 0.9 sigma was near the best on Set12 at sigma 15, 25 and 50.
    bytes_ = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    return np.asarray(cv2.fastNlMeansDenoising(bytes_, None, 0.9 * sigma, 7, 21), dtype=np.float64)


def _bm3d(noisy: NDArray[np.float64], sigma: float, threads: int) -> NDArray[Any]:
    from bm3d import bm3d

    return 255 * np.asarray(bm3d(noisy / 255, sigma_psd=sigma / 255))


def _bm4d(noisy: NDArray[np.float64], sigma: float, threads: int) -> NDArray[Any]:
    from bm4d import bm4d

    return 255 * np.asarray(bm4d(noisy / 255, sigma / 255))


def _opencv_multi(noisy: NDArray[np.float64], sigma: float, threads: int) -> NDArray[Any]:
    import cv2

    cv2.setNumThreads(threads)
    # It takes bytes, and as many frames before as after: fewer towards both ends.
    frames = list(np.clip(np.rint(noisy), 0, 255).astype(np.uint8))
    found = []
    for number in range(len(frames)):
        half = min(FRAMES, number, len(frames) - 1 - number)
        found.append(cv2.fastNlMeansDenoisingMulti(frames, number, 2 * half + 1, None, 0.9 * sigma, 5, 21))
    return np.stack(found).astype(np.float64)


# Name -> function, and the modules it needs.
_PEERS: dict[str, tuple[Peer, tuple[str, ...]]] = {
    "skimage-nlm": (_skimage_nlm, ("skimage",)),
    "skimage-tv": (_skimage_tv, ("skimage",)),
    "skimage-wavelet": (_skimage_wavelet, ("skimage", "pywt")),
    "opencv-nlm": (_opencv_nlm, ("cv2",)),
    "bm3d": (_bm3d, ("bm3d",)),
    "bm4d": (_bm4d, ("bm4d",)),
    "opencv-multi": (_opencv_multi, ("cv2",)),
}
PEER_NAMES = tuple(_PEERS)
STACK_PEERS = ("bm4d", "opencv-multi")  # those that take whole stacks
_INSTALLED_BY = {
    "skimage": "scikit-image",
    "pywt": "PyWavelets",
    "cv2": "opencv-python-headless",
    "bm3d": "bm3d",
    "bm4d": "bm4d",
}
