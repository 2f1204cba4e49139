"""Parameters of VNLEM: the presets, their checks, and what the kernels take in their place."""

import math
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

import numpy as np

from vnlem.estimate.weights import inverse_square
from vnlem.features.orientation import BINS, DEFAULT_ARC
from vnlem.features.rings import LARGEST_UPSAMPLING, RingLayout, layout
from vnlem.kernels.cpu import vnlem as kernels
from vnlem.neighbours.rid import check_angles
from vnlem.neighbours.window import make_search
from vnlem.pipeline import checks

# Limits of parameters: a larger patch holds more coefficients than pixels tell apart, and the window's memory
# grows with its area.
LARGEST_PATCH = 99
LARGEST_DISTANCE = 100
# The regression has arrived when a step changes the patch by less than this per pixel (root mean square, in
# units of the clean image's standard deviation).
STEP = 1e-4
# With `adapt`: factors on the bandwidth of the estimates that are combined; the middle one is the anchor.
BANDWIDTHS = (0.7, 1.0, 1.4)


@dataclass(frozen=True, kw_only=True)
class VnlemParams:
    """Parameters of VNLEM in the units of the standardised image; the paper's symbols beside them.

    Those without a default here have one in each preset.
    """

    patch_size: int  # q
    patch_distance: int  # N2
    n_neighbors: int  # N1
    bandwidth: float  # square root of epsilon
    gamma: float  # gamma
    angle_range: float  # theta_l, degrees
    angle_step: float = 5.0  # degrees
    try_unrotated: bool
    scale: float = 1.0  # l
    arc: float = DEFAULT_ARC  # delta, degrees
    upsample: int = 2  # k of U_k
    shape: str = "disc"
    search: str = "window"
    noise_correction: bool
    rotation_margin: float
    coarse_patch_size: int  # 0: none
    average_down: bool
    adapt: bool


PAPER: dict[str, Any] = {
    "patch_size": 13,
    "patch_distance": 10,
    "n_neighbors": 100,
    "bandwidth": 16.5,
    "gamma": 0.1,
    "angle_range": 30.0,
    "try_unrotated": False,
    "noise_correction": False,
    "rotation_margin": 0.0,
    "coarse_patch_size": 0,
    "average_down": False,
    "adapt": False,
}


def auto_params(sigma: float) -> dict[str, Any]:
    """Defaults at noise level `sigma` in standardised units: patches grow with the noise."""
    size = 5 if sigma < 0.3 else 7 if sigma < 0.7 else 9 if sigma < 1.1 else 11
    return {
        "patch_size": size,
        "patch_distance": 10,
        "n_neighbors": 300,
        "bandwidth": 0.95 * sigma * size,
        "gamma": 2.0,
        "angle_range": 35.0,
        "try_unrotated": True,
        "noise_correction": True,
        "rotation_margin": 0.5,
        "coarse_patch_size": size + 6,
        "average_down": True,
        "adapt": True,
    }


def with_defaults(preset: str, noise: float, given: dict[str, Any]) -> dict[str, Any]:
    """The preset's parameters at a noise level, those given instead of its own."""
    defaults = PAPER if preset == "paper" else auto_params(noise)
    # A smaller window than the preset's holds fewer candidates than it asks for.
    if "patch_distance" in given and "n_neighbors" not in given:
        side = 2 * checks.whole("patch_distance", given["patch_distance"], largest=LARGEST_DISTANCE) + 1
        defaults = defaults | {"n_neighbors": min(defaults["n_neighbors"], side**2)}
    if "patch_size" in given and preset == "auto":
        size = checks.odd("patch_size", given["patch_size"], 3, LARGEST_PATCH)
        coarse = min(size + 6, LARGEST_PATCH)
        defaults = defaults | {"bandwidth": 0.95 * noise * size, "coarse_patch_size": coarse}
    return defaults | given


def check_params(**given: Any) -> VnlemParams:
    """Validated parameters, or one clear sentence."""
    own = {field.name: field.default for field in fields(VnlemParams) if field.default is not MISSING}
    values = own | given
    patch_distance = checks.whole("patch_distance", values["patch_distance"], largest=LARGEST_DISTANCE)
    window = (2 * patch_distance + 1) ** 2
    n_neighbors = checks.whole("n_neighbors", values["n_neighbors"])
    if n_neighbors > window:
        raise ValueError(
            f"n_neighbors is {n_neighbors} but the window holds only {window} patches; "
            "ask for fewer or raise patch_distance"
        )
    angle_range, angle_step = check_angles(values["angle_range"], values["angle_step"])
    adapt = checks.flag("adapt", values["adapt"])
    if adapt and values["search"] == "image":
        raise ValueError("adapt=True exists for search='window' only; leave it out, or pass adapt=False")
    coarse = values["coarse_patch_size"]
    return VnlemParams(
        patch_size=checks.odd("patch_size", values["patch_size"], 3, LARGEST_PATCH),
        patch_distance=patch_distance,
        n_neighbors=n_neighbors,
        bandwidth=checks.real("bandwidth", values["bandwidth"], 0, open_low=True),
        gamma=checks.real("gamma", values["gamma"], 0, 2, open_low=True),
        angle_range=angle_range,
        angle_step=angle_step,
        try_unrotated=checks.flag("try_unrotated", values["try_unrotated"]),
        scale=checks.real("scale", values["scale"], 0.3, 100),
        arc=checks.real("arc", values["arc"], 360 / BINS, 90),
        upsample=checks.whole("upsample", values["upsample"], largest=LARGEST_UPSAMPLING),
        shape=checks.choice("shape", values["shape"], ("disc", "square")),
        search=checks.choice("search", values["search"], ("window", "image")),
        noise_correction=checks.flag("noise_correction", values["noise_correction"]),
        rotation_margin=checks.real("rotation_margin", values["rotation_margin"], 0, 100),
        coarse_patch_size=0 if coarse == 0 else checks.odd("coarse_patch_size", coarse, 3, LARGEST_PATCH),
        average_down=checks.flag("average_down", values["average_down"]),
        adapt=adapt,
    )


def check_engine(params: VnlemParams, engine: str) -> None:
    """One clear sentence where an engine cannot do what is asked."""
    if engine == "fast" and params.shape == "square":
        raise ValueError("shape='square' exists for engine='printed' only; use shape='disc'")
    if engine == "printed":
        beyond = params.noise_correction or params.rotation_margin > 0 or params.average_down or params.adapt
        if beyond or params.coarse_patch_size or params.search == "image":
            raise ValueError(
                "engine='printed' is Algorithm 1 as the paper prints it: use preset='paper' and "
                "search='window', without noise_correction, rotation_margin, average_down, adapt and "
                "coarse_patch_size"
            )


def rings_of(params: VnlemParams, channels: int) -> RingLayout:
    """The layout of the features."""
    return layout(params.patch_size, params.upsample, channels, params.average_down)


def make_rule(params: VnlemParams, sigma: float, rings: RingLayout) -> kernels.Rule:
    """Distances to weights, in the units of the features (E / q^2 times those of square patches)."""
    patch_noise = sigma**2 * rings.noise_energy
    return kernels.Rule(
        with_margin=params.rotation_margin > 0,
        factor=1 + params.rotation_margin,
        offset=0.1 * params.rotation_margin * patch_noise,
        noise=2 * patch_noise if params.noise_correction else 0.0,
        inverse_bandwidths=np.array(
            [inverse_square(width, rings.distance_scale) for width in bandwidths_of(params)]
        ),
        own_as_best=params.noise_correction,
        gamma=params.gamma,
        step=STEP * math.sqrt(math.pi / 4) * params.patch_size,
    )


def looks_unrotated(params: VnlemParams) -> bool:
    """Whether patches are also compared as the image has them, without a rotation."""
    return params.try_unrotated or params.rotation_margin > 0


def bandwidths_of(params: VnlemParams) -> list[float]:
    """Of the estimates of one size of patches."""
    return [factor * params.bandwidth for factor in (BANDWIDTHS if params.adapt else (1.0,))]


def search_of(params: VnlemParams, rings: RingLayout, shape: tuple[int, int]) -> kernels.Search:
    """What to look for in an image of a shape, as the kernels take it."""
    return make_search(
        rings=rings,
        patch_distance=min(params.patch_distance, max(shape)),
        n_candidates=params.n_neighbors,
        n_neighbors=math.ceil(params.n_neighbors / 2),
        angle_range=params.angle_range,
        angle_step=params.angle_step,
        try_unrotated=params.try_unrotated,
    )


def sizes_of(params: VnlemParams) -> list[VnlemParams]:
    """Parameters of the estimates with fine and, where there are any, with coarse patches."""
    if not params.coarse_patch_size:
        return [params]
    bandwidth = params.bandwidth * params.coarse_patch_size / params.patch_size
    return [params, replace(params, patch_size=params.coarse_patch_size, bandwidth=bandwidth)]
