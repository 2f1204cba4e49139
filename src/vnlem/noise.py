"""Noise: its level estimated from one image, and the noise models of the experiments."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.frame import to_planes


def estimate_sigma_of_planes(planes: NDArray[np.float64]) -> float:
    """Noise level of channel planes (C, H, W): the mean over the channels."""
    from skimage.restoration import estimate_sigma as wavelet_sigma

    return float(np.mean([wavelet_sigma(plane) for plane in planes]))


def estimate_sigma(image: ArrayLike, channel_axis: int | None = None) -> float:
    """Standard deviation of white Gaussian noise, from the image alone."""
    return estimate_sigma_of_planes(to_planes(image, channel_axis, signals=True).data)
