"""Parameters of VNLEM-DD: those of VNLEM, and those of its diffusion map."""

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.methods.vnlem_params import VnlemParams, check_params, with_defaults
from vnlem.pipeline import checks
from vnlem.pipeline.params import checked, param, preset_of, spec

# More coordinates take the eigen-solver longer than all the rest.
LARGEST_EMBEDDING = 1000


@dataclass(frozen=True, kw_only=True)
class VnlemDdParams(VnlemParams):
    """Parameters of VNLEM and of its diffusion map."""

    embedding_dim: int = param(
        "Number of diffusion coordinates (m), less than the number of pixels.",
        spec(checks.whole, 1, LARGEST_EMBEDDING, paper=30),
    )
    diffusion_time: float = param(
        "Diffusion time (t), positive.", spec(checks.real, 0, open_low=True, paper=1.0)
    )
    graph_bandwidth: float = param(
        "Affinities of the graph are exp(-squared distance / graph_bandwidth^2), in the units of "
        "`bandwidth`. "
        'Default: `bandwidth` itself ("paper"), what noise leaves between equal patches ("auto"); with '
        "two sizes of patches in proportion to the larger one, of which the graph is made.",
        spec(checks.real, 0, open_low=True, paper=None),
    )
    local_bandwidth: bool = param(
        "Raise the bandwidth of a patch to the distance of its 50th nearest if that is larger.",
        spec(checks.flag, paper=False, auto=True),
    )
    flat_guard: bool = param(
        "If a patch varies no more than noise, the graph shows the geometry of the noise: there rank "
        "neighbours as VNLEM does, with a smooth transition.",
        spec(checks.flag, paper=False, auto=True),
    )
    scope: str = param(
        'Where to search for neighbours by diffusion distance: in the "window", or anywhere in the "image", '
        'which is slower and the default of engine="printed".',
        spec(checks.choice, ("window", "image"), paper="window"),
    )


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
    """Refuse, in one clear sentence, more coordinates than an image has."""
    _, height, width = pixels.shape
    if embedding_dim >= height * width:
        raise ValueError(
            f"embedding_dim is {embedding_dim} but an image of {height}x{width} pixels has at most "
            f"{height * width - 1} diffusion coordinates; ask for fewer"
        )
