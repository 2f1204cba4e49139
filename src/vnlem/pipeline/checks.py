"""Checks of single parameters, shared by the methods: what is wrong, what was passed, how to fix it."""

import math
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.pipeline import units_on_gpu
from vnlem.pipeline.device import namespace

# No length, count or number of repetitions should be larger; the product of two still fits 64 bits.
LARGEST_WHOLE = 2**31 - 1
# Values this much larger than all others are not part of an image: single precision could not resolve the
# others next to them.
APART = 1e6
FEW = 1e-3  # of all values: this few may be broken pixels
NO_DATA = 1e15  # outliers of at least this size mark pixels without data, however many
_LOOK = 2**16  # values that are examined first


def whole(name: str, value: Any, smallest: int = 1, largest: int = LARGEST_WHOLE) -> int:
    """A whole number from `smallest` to `largest`.

    >>> whole("patch_distance", 10.0)
    10
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a whole number, got {shown(value)}")
    if not isinstance(value, int) and (not math.isfinite(value) or value != int(value)):
        raise ValueError(f"{name} must be a whole number, got {shown(value)}")
    if value < smallest:
        raise ValueError(f"{name} must be at least {smallest}, got {shown(value)}")
    if value > largest:
        raise ValueError(f"{name} must be at most {largest}, got {shown(value)}")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """True or False; other values that Python treats as true or false are refused.

    >>> flag("noise_correction", np.True_)
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def odd(name: str, value: Any, smallest: int = 1, largest: int = LARGEST_WHOLE) -> int:
    """An odd whole number.

    >>> odd("patch_size", 7)
    7
    """
    number = whole(name, value, smallest, largest)
    if number % 2 == 0:
        raise ValueError(
            f"{name} must be odd, so that a patch has a central pixel; got {number}, try {number + 1}"
        )
    return number


def real(
    name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, open_low: bool = False
) -> float:
    """A finite number in [low, high], or in (low, high] with `open_low`.

    >>> real("gamma", 1, 0, 2, open_low=True)
    1.0
    """
    number = as_float(name, value)
    if not math.isfinite(number) or number < low or number > high or (open_low and number == low):
        begins, ends = "(" if open_low or math.isinf(low) else "[", ")" if math.isinf(high) else "]"
        raise ValueError(f"{name} must lie in {begins}{low:g}, {high:g}{ends}, got {shown(value)}")
    return number


def as_float(name: str, value: Any) -> float:
    """A number, perhaps infinite, as a float; text, truth values and arrays are refused.

    >>> as_float("sigma", np.int16(25))
    25.0
    """
    if isinstance(value, bool | np.bool_ | str | bytes | bytearray) or np.ndim(value) != 0:
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {shown(value)}") from None
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def shown(value: Any) -> str:
    """A value as an error message shows it: on one line, and not at full length if it is long.

    >>> shown("much"), shown(10**400)
    ("'much'", '1000000000... (401 digits)')
    """
    if isinstance(value, int) and abs(value) >= 10**50:
        # Python refuses to write very long whole numbers out.
        digits = int(value.bit_length() * math.log10(2)) + 1
        if digits > 4000:
            return f"a whole number of about {digits} digits"
        text = str(value)
        return f"{text[:10]}... ({len(text.lstrip('-'))} digits)"
    text = " ".join(repr(value).split())
    return text if len(text) <= 200 else f"{text[:200]}..."


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """One of the allowed names.

    >>> choice("engine", "fast", ("fast", "reference"))
    'fast'
    """
    if not isinstance(value, str) or value not in allowed:
        error = ValueError if isinstance(value, str) else TypeError
        raise error(f"{name} must be one of {', '.join(map(repr, allowed))}, got {shown(value)}")
    return str(value)


def finite(name: str, array: ArrayLike) -> NDArray[np.float64]:
    """A real array of any shape as finite float64 values.

    >>> finite("clean", [[0, 255]])
    array([[  0., 255.]])
    """
    values = numbers(name, array)
    if not units_on_gpu.usable(values) or not math.isfinite(units_on_gpu.statistics(values).largest):
        refuse_infinite(name, values)
    return values


def numbers(name: str, array: ArrayLike) -> NDArray[np.float64]:
    """A real array of any shape as float64 values."""
    if np.ma.isMaskedArray(array):
        raise TypeError(
            f"{name} is a masked array, and a mask would be lost; fill the masked pixels first, e.g. with "
            "array.filled(numpy.ma.median(array)), and put the mask back on the result"
        )
    given = as_array(name, array)
    if given.dtype.kind not in "biuf":
        cure = {"c": "take e.g. its real part", "O": "convert it with numpy.asarray(..., float)"}
        raise TypeError(
            f"{name} must hold integers or floats, got dtype {given.dtype}; "
            f"{cure.get(given.dtype.kind, 'convert it to numbers first')}"
        )
    if given.size == 0:
        raise ValueError(f"{name} is empty (shape {given.shape}); pass at least one value")
    with np.errstate(invalid="ignore"):  # a signalling NaN is refused like any other
        values: NDArray[np.float64] = given.astype(np.float64)
    return values


def as_array(name: str, given: Any) -> Any:
    """The input as an array on its device, or a clear error.

    >>> as_array("the image", [[1, 2], [3]])
    Traceback (most recent call last):
    ...
    ValueError: the image must be an array of numbers, but the rows of the list have different lengths
    """
    if isinstance(given, str | bytes | os.PathLike):
        raise TypeError(
            f"{name} must be an array of numbers, got the path or text {shown(given)}; "
            "read a file with vnlem.io.read(path).pixels"
        )
    try:
        array = namespace(given).asarray(given)
    except ValueError:
        if not isinstance(given, list | tuple):
            raise
        raise ValueError(
            f"{name} must be an array of numbers, but the rows of the list have different lengths"
        ) from None
    if array.ndim == 0 and array.dtype.kind == "O":
        raise TypeError(f"{name} must be an array of numbers, got {_kind_of(given)}")
    return array


def listed(name: str, given: Any) -> Any:
    """A list of numbers as an array, or a clear error; anything else as it is.

    Examples
    --------
    >>> listed("sigma", [1, 2]), listed("sigma", 3.0)
    (array([1, 2]), 3.0)
    """
    return as_array(name, given) if isinstance(given, list | tuple) else given


def _kind_of(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def refuse_infinite(name: str, values: NDArray[np.float64]) -> None:
    """A clear error if values are not finite."""
    xp = namespace(values)
    bad = ~xp.isfinite(values)
    if bad.any():
        first = tuple(int(k) for k in xp.argwhere(bad)[0])
        raise ValueError(
            f"{name} holds {int(bad.sum())} NaN or infinite values, the first at index {first}; "
            "replace them first, e.g. with numpy.nan_to_num; vnlem.denoise takes NaN for missing pixels"
        )


def refuse_outliers(name: str, values: NDArray[Any], largest: float | None = None) -> None:
    """A clear error if some values are far beyond all others; `largest`: of their absolute values.

    >>> refuse_outliers("the image", np.array([0.1, 0.2, 300.0]))
    >>> refuse_outliers("the image", np.array([0.1, 0.2, -3.4e38]))
    Traceback (most recent call last):
    ...
    ValueError: the image holds -3.4e+38 (1 value of 3, the first at index (2,)), where all others are at \
most 0.2: a broken pixel or one without data; replace it, e.g. image[abs(image) > 2e+02] = the mean of \
the others
    """
    if largest is None:
        largest = float(max(values.max(), -values.min()))
    flat = values.reshape(-1)
    seen = abs(flat[:: -(-flat.size // _LOOK)])
    if not bool(((seen > 0) & (seen <= largest / APART)).any()):
        return
    sizes = abs(values)
    apart = sizes > largest / APART
    others = float(sizes[~apart].max())
    count = int(apart.sum())
    if others == 0 or float(sizes[apart].min()) < APART * others:
        return
    if largest < NO_DATA and count > max(1, FEW * values.size):
        return
    first = tuple(int(k) for k in namespace(values).argwhere(apart)[0])
    raise ValueError(
        f"{name} holds {float(values[first]):g} ({count} value{'s' if count > 1 else ''} of {values.size}, "
        f"the first at index {first}), where all others are at most {others:g}: a broken pixel or one "
        f"without data; replace it, e.g. image[abs(image) > {1e3 * others:.1g}] = the mean of the others"
    )
