"""Image denoising without training, for microscopes and cameras.

Public names are loaded on first use: ``import vnlem`` and the command line stay quick.
"""

import importlib
from typing import Any

__version__ = "0.3.0"

# Public name -> module that defines it (relative to this package).
_PUBLIC = {
    "check_noise": "check",
    "compare_view": "notebook",
    "CompareView": "notebook",
    "denoise": "api",
    "denoise_large": "large.api",
    "denoise_nlm": "methods.nlm",
    "denoise_nlem": "methods.nlem",
    "denoise_nlpr": "methods.nlem",
    "denoise_raw": "raw",
    "denoise_vnlem": "methods.vnlem",
    "denoise_vnlem_dd": "methods.vnlem_dd",
    "denoise_vnlr": "methods.vnlr",
    "diffusion_coordinates": "methods.vnlem_dd",
    "DiffusionMap": "diffusion.map",
    "estimate_noise": "noise.auto",
    "estimate_sigma": "noise.white",
    "Group": "pipeline.choices",
    "Info": "pipeline.run",
    "NoiseModel": "noise.model",
    "orientation": "features.orientation",
    "PatchSpace": "features.patch_space",
    "Preset": "pipeline.choices",
    "Profile": "pipeline.choices",
    "rid": "neighbours.rid",
    "Stream": "stream",
}
_SUBPACKAGES = ("figures", "io", "metrics", "noise", "reference", "theory")

__all__ = ["__version__", *_PUBLIC, *_SUBPACKAGES]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(importlib.import_module(f"vnlem.{_PUBLIC[name]}"), name)
    elif name in _SUBPACKAGES:
        value = importlib.import_module(f"vnlem.{name}")
    else:
        raise AttributeError(f"module 'vnlem' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
