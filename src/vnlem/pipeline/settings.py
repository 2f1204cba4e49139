"""``--set name=value``: parameters of a method as text, checked against the method's signature."""

from collections.abc import Callable, Iterable
from typing import Any

from vnlem.pipeline.method import CALL, arguments_of

# Parameters with their own command-line options, in addition to the arguments of a call.
_OPTIONS = ("preset", "profile")


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """The names that ``--set`` accepts for a method.

    >>> parameters_of(lambda image, sigma=None, *, patch_size=None, workers=None: None)
    ['patch_size']
    """
    hidden = {*CALL, *_OPTIONS} - {"device"}
    return [name for name in arguments_of(function) if name not in hidden]


def parse_settings(pairs: Iterable[str], function: Callable[..., Any], method: str) -> dict[str, Any]:
    """Turn ``name=value`` texts into keyword arguments of a method.

    >>> def function(image, sigma=None, *, patch_size=None, gamma=None): ...
    >>> parse_settings(["patch_size=7", "gamma=0.5"], function, "nlem")
    {'patch_size': 7, 'gamma': 0.5}
    """
    valid = parameters_of(function)
    found: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not separator or not name or not text.strip():
            raise ValueError(f"--set takes name=value, got {pair!r}")
        if name not in valid:
            listed = ", ".join(valid) if valid else "none"
            raise ValueError(f"method {method!r} has no parameter {name!r}; it has {listed}")
        if name in found:
            raise ValueError(f"--set gives {name} twice")
        found[name] = parse_value(text.strip())
    return found


def parse_value(text: str) -> Any:
    """An integer, a number, a bool, None, or the text itself.

    >>> [parse_value(text) for text in ("7", "0.5", "1e3", "true", "none", "square")]
    [7, 0.5, 1000.0, True, None, 'square']
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    words = {"true": True, "yes": True, "false": False, "no": False, "none": None}
    return words.get(text.lower(), text)
