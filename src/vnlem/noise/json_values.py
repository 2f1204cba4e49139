"""What the parts of a saved noise model must look like, and maps as text."""

import base64
import binascii
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_number(value: Any) -> bool:
    """Whether this is a number, not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def are_numbers(value: Any) -> bool:
    """Whether this is a list of numbers."""
    return isinstance(value, list) and all(map(is_number, value))


def is_curve(value: Any) -> bool:
    """Whether this can be a curve in a noise model's file."""
    if not isinstance(value, dict):
        return False
    if not (are_numbers(value.get("levels")) and are_numbers(value.get("variances"))):
        return False
    camera = value.get("camera")
    names = {"gain", "offset", "read_noise"}
    if not isinstance(value.get("law", {}), dict):
        return False
    return camera is None or (isinstance(camera, dict) and set(camera) == names)


def is_spectrum(value: Any) -> bool:
    """Whether this can be a spectrum in a noise model's file."""
    if value is None:
        return True
    return isinstance(value, list) and all(map(are_numbers, value)) and len({len(row) for row in value}) == 1


PARTS: dict[str, Callable[[Any], bool]] = {
    "curves": is_curve,
    "spectra": is_spectrum,
    "strengths": is_number,
}


def packed(values: NDArray[Any]) -> dict[str, Any]:
    """A map as text: single precision, compressed.

    >>> unpacked(packed(np.array([[1.5, 2.0]]))).tolist()
    [[1.5, 2.0]]
    """
    data = zlib.compress(np.ascontiguousarray(values, "<f4").tobytes(), 6)
    return {"shape": list(values.shape), "float32": base64.b64encode(data).decode("ascii")}


def unpacked(values: Any) -> NDArray[np.float32]:
    """A map from the output of :func:`packed`, or a clear error."""
    try:
        shape = tuple(int(side) for side in values["shape"])
        size = 4 * int(np.prod(shape))
        data = zlib.decompressobj().decompress(base64.b64decode(values["float32"], validate=True), size)
        return np.frombuffer(data, "<f4").reshape(shape).astype(np.float32)
    except (KeyError, TypeError, ValueError, OverflowError, zlib.error, binascii.Error):
        raise ValueError("a map of the noise model is damaged; make the model again") from None
