"""Where a function lives, as text: tables can name what is loaded only when it is asked for."""

import importlib
from typing import Any


def load(place: str) -> Any:
    """What lies at "package.module:name".

    Examples
    --------
    >>> load("math:floor")(2.5)
    2
    """
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)
