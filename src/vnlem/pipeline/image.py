"""An image as float64 channel planes, and back to its own layout, dtype and range."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.pipeline import checks, units_on_gpu
from vnlem.pipeline.device import namespace, to_host
from vnlem.pipeline.dtypes import as_dtype
from vnlem.pipeline.gpu_copies import to_locked_host
from vnlem.pipeline.units_on_gpu import LARGEST_VALUE as LARGEST_VALUE

# Single precision has a smaller range in both directions.
LARGEST_UNIT = 1e50


@dataclass(frozen=True)
class Planes:
    """An image as float64 channel planes, with what is needed to restore its layout and dtype."""

    data: NDArray[np.float64]  # (channels, height, width)
    dtype: np.dtype[Any]
    channel_axis: int | None
    ndim: int
    statistics: units_on_gpu.Statistics | None = None  # of data on a GPU

    @cached_property
    def limits(self) -> NDArray[np.float64]:
        """(2, channels): the smallest and the largest value of each, on the host."""
        return np.array([to_host(self.data.min(axis=(1, 2))), to_host(self.data.max(axis=(1, 2)))])

    def on_host(self) -> "Planes":
        """The same on the host."""
        found = replace(self, data=to_locked_host(self.data), statistics=None)
        if self.statistics is not None and len(self.data) == 1:
            vars(found)["limits"] = np.array([[self.statistics.lowest], [self.statistics.highest]])  # known
        return found

    def unclipped(self, rows: slice = np.s_[:]) -> NDArray[np.bool_]:
        """Pixels (H, W) of some rows that are at the limits of no channel but constant ones."""
        varied = self.limits[0] < self.limits[1]
        low, high = self.limits[:, varied, None, None]
        data = self.data[varied, rows]
        return np.asarray(((data > low) & (data < high)).all(axis=0))

    @property
    def largest(self) -> float:
        """The largest absolute value; not finite if any value is not."""
        return float(np.abs(self.limits).max())

    def restore(self, planes: NDArray[Any]) -> NDArray[Any]:
        """Planes back in the input's layout and dtype; integers are rounded and clipped."""
        return as_dtype(self.layout(planes), self.dtype)

    def layout(self, planes: NDArray[Any]) -> NDArray[Any]:
        """Planes in the input's layout."""
        if self.channel_axis is not None:
            laid_out: NDArray[Any] = namespace(planes).moveaxis(planes, 0, self.channel_axis)
            return laid_out
        image: NDArray[Any] = planes[0] if self.ndim == 2 else planes[0, 0]
        return image


def constant(planes: Any) -> tuple[int, ...]:
    """The channels that have one value everywhere, such as the black one of two stains or an alpha channel.

    They are left as they are, and out of the groups of the others. If all are constant, none is named.

    Examples
    --------
    >>> constant(np.stack([np.eye(4), np.zeros((4, 4))])), constant(np.zeros((2, 4, 4)))
    ((1,), ())
    """
    if len(planes) == 1:
        return ()
    varied = to_host(planes.min(axis=(1, 2)) < planes.max(axis=(1, 2)))
    return tuple(map(int, np.flatnonzero(~varied))) if varied.any() else ()


def check_values(planes: Planes) -> None:
    """Refuse an image with outliers, or in units whose squares would overflow or vanish.

    >>> check_values(to_planes(np.full((2, 2), 1e80)))
    Traceback (most recent call last):
    ...
    ValueError: the image holds values up to 1e+80, whose squares are too large; divide it by a constant first
    """
    if planes.dtype.kind != "f" and planes.dtype.itemsize <= 2:
        return
    largest = planes.largest
    checks.refuse_outliers("the image", planes.layout(planes.data), largest)
    if largest > LARGEST_UNIT:
        raise ValueError(
            f"the image holds values up to {largest:g}, whose squares are too large; "
            "divide it by a constant first"
        )
    if 0 < largest < 1 / LARGEST_UNIT:
        raise ValueError(
            f"the image holds values up to {largest:g}, whose squares are too small; "
            "multiply it by a constant first"
        )


def to_planes(image: ArrayLike, channel_axis: int | None = None, *, signals: bool = False) -> Planes:
    """Check an image and lay it out as float64 channel planes (C, H, W).

    image: two dimensions, or three with `channel_axis`.
    channel_axis: the axis of the channels.
    signals: accept one-dimensional input, laid out as an image of one row.

    >>> to_planes(np.zeros((4, 5, 3)), channel_axis=-1).data.shape
    (3, 4, 5)
    """
    if np.ma.isMaskedArray(image):
        checks.finite("the image", image)  # raises with the reason
    xp = namespace(image)
    array = checks.as_array("the image", image)
    if array.dtype.kind == "b":
        raise TypeError("the image is boolean; convert it to a grey scale first, e.g. image.astype(float)")
    if channel_axis is not None:
        if isinstance(channel_axis, bool) or not isinstance(channel_axis, int | np.integer):
            raise TypeError(
                f"channel_axis must be a whole number or None, got {checks.shown(channel_axis)}; "
                "pass -1 if the colours are the last axis"
            )
        if not -array.ndim <= channel_axis < array.ndim:
            raise ValueError(
                f"channel_axis {channel_axis} does not exist in an array of shape {array.shape}; "
                f"it must lie between {-array.ndim} and {array.ndim - 1}"
            )
        channel_axis %= array.ndim
        if array.ndim != 3:
            raise ValueError(
                f"with channel_axis the image must have three dimensions, got shape {array.shape}; "
                "for a stack pass axes to vnlem.denoise, e.g. axes='TYX'"
            )
    elif array.ndim > 2:
        raise ValueError(
            f"the image has {array.ndim} dimensions (shape {array.shape}): for colour pass channel_axis "
            "(e.g. channel_axis=-1), for a stack axes to vnlem.denoise (e.g. axes='TYX')"
        )
    elif array.ndim < (1 if signals else 2):
        raise ValueError(f"the image must have two dimensions, got {array.ndim} (shape {array.shape})")
    values = checks.numbers("the image", array)
    # Reading values waits for a GPU: all statistics are read at once.
    statistics = units_on_gpu.statistics(values) if units_on_gpu.usable(values) else None
    if channel_axis is not None:
        data = xp.moveaxis(values, channel_axis, 0)
    else:
        data = values.reshape((1, 1, -1) if array.ndim == 1 else (1, *array.shape))
    planes = Planes(xp.ascontiguousarray(data), array.dtype, channel_axis, array.ndim, statistics)
    largest = planes.largest if statistics is None else statistics.largest
    if not math.isfinite(largest):
        checks.refuse_infinite("the image", values)
    if largest > LARGEST_VALUE:
        raise ValueError(f"the image holds values beyond {LARGEST_VALUE:g}; divide it by a constant first")
    return planes


def check_smallest(shape: tuple[int, int], smallest: int, ndim: int = 2) -> None:
    """Refuse an image (height, width), or a signal if ndim is 1, that is smaller than its patches.

    >>> check_smallest((4, 9), 5)
    Traceback (most recent call last):
    ...
    ValueError: the image (4x9) is smaller than the patch (5); pass a smaller patch_size or a larger image
    """
    height, width = shape
    if min(height if ndim > 1 else width, width) < smallest:
        size = f"{height}x{width}" if ndim > 1 else f"{width} samples long"
        raise ValueError(
            f"the image ({size}) is smaller than the patch ({smallest}); "
            "pass a smaller patch_size or a larger image"
        )
