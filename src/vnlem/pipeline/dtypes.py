"""The dtype of a result: that of the image, or the one requested."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline import checks, units_on_gpu
from vnlem.pipeline.device import namespace


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """A dtype that images can have, or a clear error.

    >>> check_dtype("float32")
    dtype('float32')
    """
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError):
        found = None
    if found is None or dtype is None or found.kind not in "iuf" or found.itemsize > 8:
        raise ValueError(
            f"dtype must be a type of integers or floats such as 'float32', got {checks.shown(dtype)}"
        )
    native: np.dtype[Any] = found.newbyteorder("=")
    return native


def readable_as(given: np.dtype[Any], wanted: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which pixels are read, for a result of dtype `wanted` to lose nothing.

    >>> readable_as(np.dtype("uint16"), np.dtype("float32"))
    dtype('float32')
    >>> readable_as(np.dtype("int64"), np.dtype("float32"))
    dtype('float64')
    """
    return wanted if wanted.kind == "f" and np.can_cast(given, wanted) else np.dtype(np.float64)


def taken_up(image: Any, wanted: np.dtype[Any]) -> Any:
    """An image in the dtype of :func:`readable_as`; non-numeric input is unchanged.

    >>> taken_up([[1, 2]], np.dtype("float32")).dtype
    dtype('float64')
    """
    array = image if hasattr(image, "astype") else checks.as_array("the image", image)
    kind = getattr(array.dtype, "kind", "")
    return array.astype(readable_as(array.dtype, wanted)) if kind in tuple("biuf") else image


def as_dtype(image: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Floats in another dtype; integers are rounded and clipped.

    >>> as_dtype(np.array([-3.0, 1.6, 300.0]), np.dtype("uint8")).tolist()
    [0, 2, 255]
    """
    xp = namespace(image)
    if dtype.kind not in "iu" or image.dtype == dtype:
        result: NDArray[Any] = xp.ascontiguousarray(image.astype(dtype, copy=False))
    elif units_on_gpu.usable(image):
        result = xp.ascontiguousarray(units_on_gpu.rounded(image, dtype))
    else:
        result = _rounded(image, dtype)
    return result


def _rounded(image: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Floats as integers, clipped to the dtype's range."""
    limits = np.iinfo(dtype)
    # The largest 64-bit integers are not floats: the next float above would wrap around.
    above = float(limits.max)
    highest = above if above <= limits.max else np.nextafter(above, 0.0)
    xp = namespace(image)
    whole: NDArray[Any] = xp.clip(xp.rint(image), float(limits.min), highest).astype(dtype)
    whole[image >= above] = limits.max
    whole = xp.ascontiguousarray(whole)
    return whole
