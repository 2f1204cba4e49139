"""Parameters of VNLEM-DD: those of VNLEM, and those of its diffusion map."""

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.methods.vnlem_params import VnlemParams, check_params, with_defaults
from vnlem.pipeline import checks
from vnlem.pipeline.params import checked, param, preset_of

# More coordinates take the eigen-solver longer than all the rest.
LARGEST_EMBEDDING = 1000


@dataclass(frozen=True, kw_only=True)
class VnlemDdParams(VnlemParams):
    """Parameters of VNLEM and of its diffusion map; the paper's symbols beside them."""

    embedding_dim: int = param(checks.whole, 1, LARGEST_EMBEDDING, paper=30)  # m
    diffusion_time: float = param(checks.real, 0, open_low=True, paper=1.0)  # t
    # Square root of epsilon in W; by default that of the larger patches.
    graph_bandwidth: float = param(checks.real, 0, open_low=True, paper=None)
    local_bandwidth: bool = param(checks.flag, paper=False, auto=True)
    flat_guard: bool = param(checks.flag, paper=False, auto=True)
    scope: str = param(checks.choice, ("window", "image"), paper="window")


def resolve_params(preset: str, noise: float, given: dict[str, Any]) -> VnlemDdParams:
    """Validated parameters; those given are VNLEM's and those of the diffusion map."""
    known = {field.name for field in fields(VnlemParams)}
    vnlems = {name: value for name, value in given.items() if name in known}
    base = check_params(**with_defaults(preset, noise, vnlems | {"adapt": False}))
    largest = max(base.patch_size, base.coarse_patch_size)
    defaults = preset_of(VnlemDdParams, preset, noise)
    defaults["graph_bandwidth"] = base.bandwidth * largest / base.patch_size
    return VnlemDdParams(**checked(VnlemDdParams, defaults | given | asdict(base)))


def check_embedding_dim(embedding_dim: int, pixels: NDArray[np.float32]) -> None:
    """One clear sentence where an image has fewer coordinates than are asked for."""
    _, height, width = pixels.shape
    if embedding_dim >= height * width:
        raise ValueError(
            f"embedding_dim is {embedding_dim} but an image of {height}x{width} pixels has at most "
            f"{height * width - 1} diffusion coordinates; ask for fewer"
        )
