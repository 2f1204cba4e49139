"""The input checks of all measures."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.pipeline import checks
from vnlem.pipeline.image import LARGEST_VALUE, to_planes


def values_of(name: str, array: ArrayLike) -> NDArray[np.float64]:
    """An array as float64 values whose differences stay finite, or an error that names the argument.

    >>> values_of("clean", [[0, 255]])
    array([[  0., 255.]])
    """
    values = checks.finite(name, array)
    if np.abs(values).max() > LARGEST_VALUE:
        raise ValueError(
            f"{name} holds values beyond {LARGEST_VALUE:g}; divide the images by a constant first"
        )
    return values


def pair_of(
    clean: ArrayLike, other: ArrayLike, other_name: str = "other", name: str = "clean"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two arrays of one shape as float64 values.

    >>> pair_of([1, 2], [3, 4])
    (array([1., 2.]), array([3., 4.]))
    """
    first, second = values_of(name, clean), values_of(other_name, other)
    if first.shape != second.shape:
        raise ValueError(
            f"{name} and {other_name} must have the same shape, got {first.shape} and {second.shape}; "
            "crop or resize one of them"
        )
    return first, second


def pair_of_planes(
    clean: ArrayLike, other: ArrayLike, channel_axis: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two images of one shape as float64 channel planes (C, H, W).

    >>> pair_of_planes([[1, 2]], [[3, 4]], None)[0].shape
    (1, 1, 2)
    """
    first, second = pair_of(clean, other)
    return to_planes(first, channel_axis).data, to_planes(second, channel_axis).data


def check_data_range(data_range: float) -> float:
    """The width of the grey scale, e.g. 255 or 1.

    >>> check_data_range(255)
    255.0
    """
    return checks.real("data_range", data_range, 0, open_low=True)


def data_range_of(clean: ArrayLike) -> float:
    """The width of an integer image's grey scale, from its dtype; floats have none.

    >>> data_range_of(np.zeros(3, np.uint16)), data_range_of(np.array([-5, 5], np.int8))
    (65535.0, 255.0)
    """
    given = np.asarray(clean)
    if given.dtype.kind not in "iu":
        raise ValueError(
            f"data_range is needed for {given.dtype} images, whose scale is unknown; pass e.g. "
            "data_range=1 or data_range=255"
        )
    limits = np.iinfo(given.dtype)
    return float(limits.max) - (float(limits.min) if given.min() < 0 else 0.0)
