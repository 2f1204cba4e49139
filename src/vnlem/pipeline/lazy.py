"""Load a function by its place "module:name", when it is first needed."""

import importlib
from typing import Any


def load(place: str) -> Any:
    """What lies at "package.module:name".

    >>> load("math:floor")(2.5)
    2
    """
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)
