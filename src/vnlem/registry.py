"""Which methods there are, and where each one lives. Only this module knows the methods by name."""

import importlib
from typing import Any

# Method name -> where its public function lives.
METHODS = {
    "nlm": "vnlem.methods.nlm:denoise_nlm",
    "nlem": "vnlem.methods.nlem:denoise_nlem",
    "nlpr": "vnlem.methods.nlem:denoise_nlpr",
    "vnlem": "vnlem.methods.vnlem:denoise_vnlem",
    "vnlem-dd": "vnlem.methods.vnlem_dd:denoise_vnlem_dd",
    "vnlr": "vnlem.methods.vnlr:denoise_vnlr",
}
DEFAULT_METHOD = "vnlr"


def find_method(name: str) -> Any:
    """The public function of a method; names accept - and _.

    Examples
    --------
    >>> find_method("nlm").__name__
    'denoise_nlm'
    """
    key = str(name).lower().replace("_", "-")
    if key not in METHODS:
        raise ValueError(f"unknown method {name!r}; the methods are {', '.join(METHODS)}")
    module, function = METHODS[key].split(":")
    return getattr(importlib.import_module(module), function)
