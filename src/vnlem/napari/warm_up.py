"""Kernels compiled in the background, in a second process, so that the first use does not stall napari."""

import numpy as np

_warm: set[str] = set()


def is_warm(method: str) -> bool:
    """Whether this process has the method's kernels loaded."""
    return method in _warm


def warm_up(method: str) -> None:
    """Compile a method's kernels into the cache by another process, then load them into this one."""
    import vnlem

    if method in _warm:
        return
    vnlem.warm_up([method], processes=1)
    image = np.random.default_rng(0).normal(0, 0.5, (64, 64)) + (np.arange(64) > 31)
    vnlem.denoise(image, 0.5, method=method, workers=1)
    _warm.add(method)
