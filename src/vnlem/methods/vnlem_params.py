"""Parameters of VNLEM: the presets, their checks, and their form for the kernels."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vnlem.estimate.weights import inverse_square
from vnlem.features.orientation import BINS, DEFAULT_ARC
from vnlem.features.rings import LARGEST_UPSAMPLING, RingLayout, layout
from vnlem.kernels.cpu import vnlem as kernels
from vnlem.neighbours.window import make_search
from vnlem.pipeline import checks
from vnlem.pipeline.params import checked, param, preset_of, spec

# Limits of parameters: a larger patch has more coefficients than its pixels determine, and the memory of the
# window grows with its area.
LARGEST_PATCH = 99
LARGEST_DISTANCE = 100
# The regression stops when a step changes the patch by less than this per pixel (root mean square, in units
# of the clean image's standard deviation).
STEP = 1e-4
# With `adapt`: factors on the bandwidth of the estimates that are combined; the middle one is the anchor.
BANDWIDTHS = (0.7, 1.0, 1.4)


def usual_size(noise: float) -> int:
    """Diameter of the patches of preset "auto": they grow with the noise."""
    return 5 if noise < 0.3 else 7 if noise < 0.7 else 9 if noise < 1.1 else 11


def usual_bandwidth(noise: float, size: int | None = None) -> float:
    """The bandwidth of preset "auto" for patches of a size."""
    return 0.95 * noise * (usual_size(noise) if size is None else size)


def check_coarse(name: str, value: Any) -> int:
    """An odd size of patches, or 0."""
    return 0 if value == 0 else checks.odd(name, value, 3, LARGEST_PATCH)


@dataclass(frozen=True, kw_only=True)
class VnlemParams:
    """Parameters of VNLEM in the units of the standardised image."""

    patch_size: int = param(
        "Diameter of the patch, odd (the paper's q).",
        spec(checks.odd, 3, LARGEST_PATCH, paper=13, auto=usual_size),
    )
    patch_distance: int = param(
        "The search window is 2 * patch_distance + 1 pixels wide (N2).",
        spec(checks.whole, 1, LARGEST_DISTANCE, paper=10),
    )
    n_neighbors: int = param(
        "Number of candidates searched over the angles (N1); the better half of them is used.",
        spec(checks.whole, paper=100, auto=300),
    )
    bandwidth: float = param(
        "Weights are exp(-squared distance / bandwidth^2), the square root of epsilon, in units of the clean "
        "image's standard deviation and for a square patch of patch_size^2 pixels.",
        spec(checks.real, 0, open_low=True, paper=16.5, auto=usual_bandwidth),
    )
    gamma: float = param(
        "Power of the regression, in (0, 2]; 2 is the weighted mean.",
        spec(checks.real, 0, 2, open_low=True, paper=0.1, auto=2.0),
    )
    angle_range: float = param(
        "Angles tried around the difference of the orientations (theta_l), in degrees: the multiples of "
        "angle_step that are smaller than this. 180 is the whole circle, 0 the orientations themselves.",
        spec(checks.real, 0, 180, paper=30.0, auto=35.0),
    )
    angle_step: float = param(
        "Step between these angles, in degrees.", spec(checks.real, 0.01, 180, paper=5.0)
    )
    try_unrotated: bool = param(
        "Whether the unrotated patch is tried too.", spec(checks.flag, paper=False, auto=True)
    )
    scale: float = param(
        "Scale of the orientation (l), see :func:`vnlem.orientation`.", spec(checks.real, 0.3, 100, paper=1.0)
    )
    arc: float = param(
        "Half-width of the orientation's arc in degrees (delta), see :func:`vnlem.orientation`.",
        spec(checks.real, 360 / BINS, 90, paper=DEFAULT_ARC),
    )
    upsample: int = param(
        "Factor by which patches are upsampled before they are rotated (the k of U_k).",
        spec(checks.whole, 1, LARGEST_UPSAMPLING, paper=2),
    )
    shape: str = param(
        'Round patches ("disc"), or "square" ones as the paper prints them (engine="printed" only, and its '
        "default).",
        spec(checks.choice, ("disc", "square"), paper="disc"),
    )
    search: str = param(
        '"image": exact nearest neighbours over the whole image instead of the "window"; slow.',
        spec(checks.choice, ("window", "image"), paper="window"),
    )
    noise_correction: bool = param(
        "Subtract from squared distances what noise alone adds to them.",
        spec(checks.flag, paper=False, auto=True),
    )
    rotation_margin: float = param(
        "A rotated match counts as (1 + margin) times its squared distance, plus a tenth of the margin times "
        "the noise in a patch; 0 accepts every rotation that is nearer.",
        spec(checks.real, 0, 100, paper=0.0, auto=0.5),
    )
    coarse_patch_size: int = param(
        "The result is the mean of two estimates, the other with patches of this odd size (and a bandwidth "
        "in proportion): small patches keep rare detail, large ones average more where many are alike. "
        "0: one estimate.",
        spec(check_coarse, paper=0, auto=lambda noise: usual_size(noise) + 6),
    )
    average_down: bool = param(
        "Average the upsampled image down to the original resolution before patches are compared: distances "
        "then contain less noise.",
        spec(checks.flag, paper=False, auto=True),
    )
    adapt: bool = param(
        "Patches of different kinds need different parameters: take estimates with three bandwidths for each "
        "size of patches, and combine them and the noisy image in every neighbourhood, so that Stein's "
        'unbiased estimate of the error is smallest. It searches twice, and needs search="window".',
        spec(checks.flag, paper=False, auto=True),
    )


PAPER = preset_of(VnlemParams, "paper")


def with_defaults(preset: str, noise: float, given: dict[str, Any]) -> dict[str, Any]:
    """The preset's parameters at a noise level, replaced by those given."""
    defaults = preset_of(VnlemParams, preset, noise)
    # A smaller window than the preset's holds fewer candidates than the preset uses.
    if "patch_distance" in given and "n_neighbors" not in given:
        side = 2 * checks.whole("patch_distance", given["patch_distance"], largest=LARGEST_DISTANCE) + 1
        defaults = defaults | {"n_neighbors": min(defaults["n_neighbors"], side**2)}
    if "patch_size" in given and preset == "auto":
        size = checks.odd("patch_size", given["patch_size"], 3, LARGEST_PATCH)
        coarse = min(size + 6, LARGEST_PATCH)
        defaults = defaults | {"bandwidth": usual_bandwidth(noise, size), "coarse_patch_size": coarse}
    return defaults | given


def check_params(**given: Any) -> VnlemParams:
    """Validated parameters, or a clear error; the paper's if not given."""
    params = VnlemParams(**checked(VnlemParams, PAPER | given))
    window = (2 * params.patch_distance + 1) ** 2
    if params.n_neighbors > window:
        raise ValueError(
            f"n_neighbors is {params.n_neighbors} but the window holds only {window} patches; "
            "ask for fewer or raise patch_distance"
        )
    if params.adapt and params.search == "image":
        raise ValueError("adapt=True exists for search='window' only; leave it out, or pass adapt=False")
    return params


def check_engine(params: VnlemParams, engine: str) -> None:
    """Refuse what an engine cannot do, in one clear sentence."""
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
    """Whether patches are also compared without a rotation."""
    return params.try_unrotated or params.rotation_margin > 0


def bandwidths_of(params: VnlemParams) -> list[float]:
    """The bandwidths of the estimates of one size of patches."""
    return [factor * params.bandwidth for factor in (BANDWIDTHS if params.adapt else (1.0,))]


def search_of(params: VnlemParams, rings: RingLayout, shape: tuple[int, int]) -> kernels.Search:
    """The search in an image of a shape, as the kernels take it."""
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
    """Parameters of the estimates with fine and, if there are any, with coarse patches."""
    if not params.coarse_patch_size:
        return [params]
    bandwidth = params.bandwidth * params.coarse_patch_size / params.patch_size
    return [params, replace(params, patch_size=params.coarse_patch_size, bandwidth=bandwidth)]
