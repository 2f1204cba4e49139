"""A given noise level, checked: one number, one per channel, or a map."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline import checks
from vnlem.pipeline.device import namespace
from vnlem.pipeline.image import LARGEST_VALUE, Planes


def check_sigma(sigma: Any) -> float:
    """A noise level as a float, or a clear error."""
    if not np.isscalar(sigma) and np.ndim(sigma) != 0:
        raise ValueError(f"sigma must be a single number, got an array of shape {np.shape(sigma)}")
    value = checks.as_float("sigma", sigma)
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"sigma must be finite and not negative, got {checks.shown(sigma)}")
    if value > LARGEST_VALUE:
        raise ValueError(f"sigma is beyond {LARGEST_VALUE:g}; divide the image and sigma by a constant first")
    return value


def check_sigma_map(sigma: Any, planes: Planes) -> NDArray[np.float64]:
    """A noise level per channel or per pixel, broadcastable to the planes (C, H, W), or a clear error."""
    if np.ma.isMaskedArray(sigma):
        raise TypeError("sigma is a masked array, and a mask would be lost; fill its masked values first")
    xp = namespace(sigma)
    values: NDArray[Any] = xp.asarray(sigma)
    if values.dtype.kind not in "iuf":
        raise TypeError(f"sigma must hold numbers, got dtype {values.dtype}")
    values = values.astype(np.float64)
    channels, height, width = planes.data.shape
    if planes.channel_axis is not None and values.shape == (channels,):
        laid_out = values.reshape(channels, 1, 1)
    elif values.shape == (height, width):
        laid_out = values[None]
    elif planes.channel_axis is not None and values.ndim == 3:
        laid_out = xp.moveaxis(values, planes.channel_axis, 0)
    else:
        laid_out = values
    if laid_out.ndim != 3 or laid_out.shape not in (
        (channels, 1, 1),
        (1, height, width),
        (channels, height, width),
    ):
        per_channel = f", one number per channel ({channels})" if planes.channel_axis is not None else ""
        raise ValueError(
            f"sigma must be a number{per_channel} or a map of the image's size ({height}x{width}), "
            f"got an array of shape {values.shape}"
        )
    if not xp.isfinite(values).all() or (values < 0).any():
        raise ValueError(
            "sigma must be finite and not negative everywhere; the map holds "
            f"{int((~xp.isfinite(values)).sum())} NaN or infinite "
            f"and {int((values < 0).sum())} negative values"
        )
    if values.max() > LARGEST_VALUE:
        raise ValueError(f"sigma is beyond {LARGEST_VALUE:g}; divide the image and sigma by a constant first")
    return laid_out


def check_positive_map(sigma: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """A map of Rician noise for an image or a volume of a shape, or a clear error.

    >>> check_positive_map(np.ones((4, 5)), (3, 4, 5)).shape
    (4, 5)
    """
    levels = checks.finite("sigma", sigma)
    try:
        fits = np.broadcast_shapes(levels.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits or levels.ndim < 2:
        raise ValueError(
            f"sigma must be a number or a map of the image's shape {shape}, or of its last axes, "
            f"got an array of shape {levels.shape}"
        )
    if levels.min() <= 0:
        raise ValueError(
            f"sigma of Rician noise must be larger than 0 everywhere, and the map holds {levels.min():g}; "
            "set it to a small number where nothing was measured"
        )
    return levels


def root_mean_square(values: Any) -> float:
    """Root mean square of an array, e.g. a map of the noise, without overflow in any units.

    >>> root_mean_square(np.array([3e200, 4e200])) / 1e200
    3.53553390593273...
    """
    peak = float(abs(values).max())
    return peak * math.sqrt(float(((values / peak) ** 2).mean())) if peak > 0 else 0.0


def halved_map(sigma_map: Any, halve: Any) -> Any:
    """Standard deviation of the noise at half the size."""
    if sigma_map is None or 1 in sigma_map.shape[1:]:
        return None if sigma_map is None else sigma_map / 2
    return namespace(sigma_map).sqrt(halve(sigma_map**2).clip(0.0)) / 2
