"""Checks of single parameters, shared by the methods: what was wrong, what was got, how to cure it."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def whole(name: str, value: Any, smallest: int = 1) -> int:
    """A whole number of at least `smallest`.

    Examples
    --------
    >>> whole("patch_distance", 10.0)
    10
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if not np.isfinite(value) or value != int(value):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if value < smallest:
        raise ValueError(f"{name} must be at least {smallest}, got {value!r}")
    return int(value)


def odd(name: str, value: Any, smallest: int = 1) -> int:
    """An odd whole number.

    Examples
    --------
    >>> odd("patch_size", 7)
    7
    """
    number = whole(name, value, smallest)
    if number % 2 == 0:
        raise ValueError(
            f"{name} must be odd, so that a patch has a central pixel; got {number}, try {number + 1}"
        )
    return number


def real(
    name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, open_low: bool = False
) -> float:
    """A finite number in [low, high], or in (low, high] with `open_low`.

    Examples
    --------
    >>> real("gamma", 1, 0, 2, open_low=True)
    1.0
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {value!r}") from None
    if not np.isfinite(number) or number < low or number > high or (open_low and number == low):
        raise ValueError(f"{name} must lie in {'(' if open_low else '['}{low:g}, {high:g}], got {value!r}")
    return number


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """One of the allowed names.

    Examples
    --------
    >>> choice("engine", "fast", ("fast", "reference"))
    'fast'
    """
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return str(value)


def finite(name: str, array: ArrayLike) -> NDArray[np.float64]:
    """A real array of any shape as finite float64 values.

    Examples
    --------
    >>> finite("clean", [[0, 255]])
    array([[  0., 255.]])
    """
    given = np.asarray(array)
    if given.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold integers or floats, got dtype {given.dtype}; take e.g. its real part"
        )
    if given.size == 0:
        raise ValueError(f"{name} is empty (shape {given.shape}); pass at least one value")
    values = given.astype(np.float64)
    bad = ~np.isfinite(values)
    if bad.any():
        first = tuple(int(k) for k in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} holds {int(bad.sum())} NaN or infinite values, the first at index {first}; "
            "replace them first, e.g. with numpy.nan_to_num or by inpainting"
        )
    return values
