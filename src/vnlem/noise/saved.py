"""What the parts of a saved noise model must look like."""

from collections.abc import Callable
from typing import Any


def is_number(value: Any) -> bool:
    """Whether this is a number and no truth value."""
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
