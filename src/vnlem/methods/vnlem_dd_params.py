"""Parameters of VNLEM-DD: those of VNLEM, and those of its diffusion map."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.methods.vnlem_params import VnlemParams, check_params, with_defaults
from vnlem.pipeline import checks

# More coordinates take the eigen-solver longer than all the rest.
LARGEST_EMBEDDING = 1000


@dataclass(frozen=True, kw_only=True)
class VnlemDdParams(VnlemParams):
    """Parameters of VNLEM and of its diffusion map; the paper's symbols beside them."""

    embedding_dim: int  # m
    diffusion_time: float  # t
    graph_bandwidth: float  # square root of epsilon in W
    local_bandwidth: bool
    flat_guard: bool
    scope: str


def resolve_params(preset: str, noise: float, given: dict[str, Any], own: dict[str, Any]) -> VnlemDdParams:
    """Validated parameters: VNLEM's from given, those of the diffusion map from own."""
    base = check_params(**with_defaults(preset, noise, given | {"adapt": False}))
    largest = max(base.patch_size, base.coarse_patch_size)
    auto = preset == "auto"
    defaults = {
        "embedding_dim": 30,
        "diffusion_time": 1.0,
        "graph_bandwidth": base.bandwidth * largest / base.patch_size,
        "local_bandwidth": auto,
        "flat_guard": auto,
        "scope": "window",
    }
    values = defaults | {name: value for name, value in own.items() if value is not None}
    return VnlemDdParams(
        **asdict(base),
        embedding_dim=checks.whole("embedding_dim", values["embedding_dim"], largest=LARGEST_EMBEDDING),
        diffusion_time=checks.real("diffusion_time", values["diffusion_time"], 0, open_low=True),
        graph_bandwidth=checks.real("graph_bandwidth", values["graph_bandwidth"], 0, open_low=True),
        local_bandwidth=checks.flag("local_bandwidth", values["local_bandwidth"]),
        flat_guard=checks.flag("flat_guard", values["flat_guard"]),
        scope=checks.choice("scope", values["scope"], ("window", "image")),
    )


def check_embedding_dim(embedding_dim: int, pixels: NDArray[np.float32]) -> None:
    """One clear sentence where an image has fewer coordinates than are asked for."""
    _, height, width = pixels.shape
    if embedding_dim >= height * width:
        raise ValueError(
            f"embedding_dim is {embedding_dim} but an image of {height}x{width} pixels has at most "
            f"{height * width - 1} diffusion coordinates; ask for fewer"
        )
