"""FSIM as piq computes it."""

import sys
import types
from typing import Any

import numpy as np
from numpy.typing import NDArray


def piq_fsim(clean: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """FSIM of grey, FSIMc of RGB images (channels last) on the 0..255 scale."""
    import torch

    _provide_torchvision(torch)
    import piq

    def tensor(image: NDArray[np.float64]) -> Any:
        planes = image[None] if image.ndim == 2 else np.moveaxis(image, -1, 0)
        return torch.tensor(np.ascontiguousarray(planes) / 255)[None]

    with torch.no_grad():
        return float(piq.fsim(tensor(clean), tensor(other), data_range=1.0, chromatic=clean.ndim == 3))


def _provide_torchvision(torch: Any) -> None:
    """piq imports torchvision for measures that need trained networks; FSIM needs only its name."""
    try:
        import torchvision  # noqa: F401

        return
    except ImportError:
        pass

    class StandIn(types.ModuleType):
        __path__: list[str] = []  # noqa: RUF012 - marks it as a package

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            if name[0].isupper():
                value: Any = type(name, (torch.nn.Module,), {})
            else:
                value = StandIn(f"{self.__name__}.{name}")
                sys.modules[value.__name__] = value
            setattr(self, name, value)
            return value

    sys.modules["torchvision"] = StandIn("torchvision")
