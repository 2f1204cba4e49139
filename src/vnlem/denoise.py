"""The one entry point: ``vnlem.denoise(image, sigma, method=...)``."""

import importlib
from typing import Any

from numpy.typing import ArrayLike

from vnlem.frame import Progress, Result

# Method name -> where its public function lives.
METHODS = {
    "nlm": "vnlem.methods.nlm:denoise_nlm",
    "nlem": "vnlem.methods.nlem:denoise_nlem",
    "nlpr": "vnlem.methods.nlem:denoise_nlpr",
}
DEFAULT_METHOD = "nlem"
METHODS_WITH_PAPER_PRESET = ("nlem", "vnlem", "vnlem-dd")


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


def denoise(
    image: ArrayLike,
    sigma: Any = None,
    *,
    method: str = DEFAULT_METHOD,
    preset: str = "auto",
    channel_axis: int | None = None,
    workers: int | None = None,
    progress: Progress = False,
    return_info: bool = False,
    **params: Any,
) -> Result:
    """Denoise an image."""
    function = find_method(method)
    result: Result = function(
        image,
        sigma,
        preset=preset,
        channel_axis=channel_axis,
        workers=workers,
        progress=progress,
        return_info=return_info,
        **params,
    )
    return result
