"""Help texts of options, taken from the docstrings of the functions they are handed to."""

import inspect
from collections.abc import Callable
from typing import Any


def parameter_help(function: Callable[..., Any], name: str) -> str:
    """What a numpydoc docstring says about a parameter.

    Examples
    --------
    >>> from vnlem.api import denoise
    >>> parameter_help(denoise, "workers")
    'Threads; all cores when not given. The result does not depend on it.'
    """
    lines = inspect.cleandoc(function.__doc__ or "").splitlines()
    start = next((k for k, line in enumerate(lines) if line.startswith(f"{name} : ")), None)
    if start is None:
        raise LookupError(f"the docstring of {function.__name__} says nothing about {name}")
    text: list[str] = []
    for line in lines[start + 1 :]:
        if not line.startswith(" "):
            break
        text.append(line.strip())
    return " ".join(text).replace("when None", "when not given")
