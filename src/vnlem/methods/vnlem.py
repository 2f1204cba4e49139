"""VNLEM, the paper's Algorithm 1: features in canonical frames, neighbours by RID, gamma-power regression."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.estimate import stein
from vnlem.features.canonical import Extended, canonical_region, whole_region
from vnlem.features.orientation import halo as halo_of_orientation
from vnlem.features.rings import RingLayout
from vnlem.kernels.cpu import vnlem as kernels
from vnlem.kernels.cpu.vnlem import Diffusion
from vnlem.methods.vnlem_params import (
    BANDWIDTHS,
    VnlemParams,
    check_engine,
    check_params,
    looks_unrotated,
    make_rule,
    rings_of,
    search_of,
    sizes_of,
    with_defaults,
)
from vnlem.neighbours import image as whole_image
from vnlem.pipeline.device import namespace
from vnlem.pipeline.method import Method
from vnlem.pipeline.params import takes
from vnlem.pipeline.progress import Progress, ProgressCallback
from vnlem.pipeline.run import Job, Result
from vnlem.pipeline.tiles import Tile, grid
from vnlem.pipeline.workers import for_each

# Large enough for the halo to be a small share of the work, small enough for many tiles in an image.
TILE = 128
# Pixels per task, for estimates over the whole image.
PIXELS_AT_ONCE = 4096
# Noise in units of the clean image, whose standard deviation counts as at least a tenth of the noise.
NOTHING_BUT_NOISE = 9.9


@takes(VnlemParams)
def denoise_vnlem(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    preset: str = "auto",
    engine: str = "fast",
    channel_axis: int | None = None,
    workers: int | None = None,
    progress: Progress = False,
    return_info: bool = False,
    device: str | None = None,
    **params: Any,
) -> Result:
    """Vector non-local Euclidean median: neighbours that agree up to a rotation, aligned, then regression.

    Parameters
    ----------
    image : array_like
        Two dimensions, or three with `channel_axis`.
    sigma : float, optional
        Noise standard deviation in the units of the image; estimated when None.
    preset : {"auto", "paper"}
        "paper": Algorithm 1 with the paper's parameters. "auto": parameters that follow sigma,
        noise-corrected distances of averaged-down patches, rotations only if they beat the unrotated patch by
        a margin, and `adapt`.
    **params
    engine : {"fast", "printed"}
        "printed" is Algorithm 1 line by line, on rotated square patches, in NumPy: some ten milliseconds per
        pixel; preset="paper" only.
    channel_axis, workers, progress, return_info, device
        As in :func:`vnlem.denoise`.

    Returns
    -------
    ndarray
        The denoised image in the units, dtype and layout of the input; with `return_info` also an Info.

    Notes
    -----
    Time grows linearly with the number of pixels, the area of the window and the length of the feature
    vector (115 numbers for patch_size=13). Memory is bounded by the tiles in flight, except with
    search="image", whose time grows with the square of the number of pixels.

    References
    ----------
    .. [1] C.-Y. Lin, A. Minasian, X. J. Qi, H.-T. Wu, "Manifold learning via the principal bundle approach",
           Frontiers in Applied Mathematics and Statistics 4 (2018), doi:10.3389/fams.2018.00021

    Examples
    --------
    >>> import vnlem
    >>> from vnlem.bench import phantoms
    >>> cells = phantoms.discs(5, 18, 3, seed=1, size=48)
    >>> noisy = cells + np.random.default_rng(0).normal(0, 0.5, cells.shape)
    >>> denoised = vnlem.denoise_vnlem(noisy, sigma=0.5)
    >>> bool(np.std(denoised - cells) < 0.4 * np.std(noisy - cells))
    True
    """
    return METHOD.denoise(**locals())


def resolve(noise: float, ndim: int, *, preset: str, engine: str, **given: Any) -> VnlemParams:
    """The parameters for a noise level in standardised units."""
    if given["shape"] is None and engine == "printed":
        given["shape"] = "square"
    if given["adapt"] is None and given["search"] == "image":
        given["adapt"] = False
    chosen = {name: value for name, value in given.items() if value is not None}
    params = check_params(**with_defaults(preset, noise, chosen))
    check_engine(params, engine)
    # If sigma says that the image is pure noise, Stein's estimate of the error is useless.
    return replace(params, adapt=False) if noise >= NOTHING_BUT_NOISE else params


# No coordinates: candidates are ranked by their patches.
NO_DIFFUSION = Diffusion(np.zeros((0, 0, 0), dtype=np.float32), np.zeros((0, 0), dtype=np.float32), False)


def solve(job: Job[VnlemParams], tile: int = TILE) -> NDArray[np.float32]:
    """One estimate, the mean of a fine and a coarse one, or several combined; independent of the tiles."""
    found: NDArray[np.float32] = combined(job, partial(solve_one_size, tile=tile))
    return found


def combined(job: Job[VnlemParams], solve_size: Callable[..., Any]) -> Any:
    """The result from estimates of each size of patches.

    solve_size: (job, parameters of the size, progress) -> estimates (bandwidths, channels, height, width).
    """
    sizes = sizes_of(job.params)
    runs = len(sizes) * (2 if job.params.adapt else 1)

    def estimates(of: Job[VnlemParams], first: int) -> list[Any]:
        parts = enumerate(sizes, first)
        return [
            plane for part, size in parts for plane in solve_size(of, size, part_of(job.progress, part, runs))
        ]

    plain = estimates(job, 0)
    if not job.params.adapt:
        return plain[0] if len(plain) == 1 else np.float32(0.5) * (plain[0] + plain[1])
    origin = (job.region.read.top, job.region.read.left) if job.region is not None else (0, 0)
    signs = stein.push_of(job.pixels.shape, origin, namespace(job.pixels))
    pushed_job = replace(job, pixels=job.pixels + np.float32(stein.PUSH * job.sigma) * signs)
    pushed = estimates(pushed_job, len(sizes))
    anchor = tuple(range(1, len(plain), len(BANDWIDTHS)))
    return stein.combine(job.pixels, stein.Estimates(plain, pushed, anchor), job.sigma, origin, job.workers)


def halo(params: VnlemParams) -> int:
    """How many pixels around a part of an image its result depends on: the window and the features."""
    if params.search == "image":
        raise ValueError(
            "search='image' needs the whole image at once; use search='window' for images in parts"
        )
    size = max(params.patch_size, params.coarse_patch_size)
    rings = rings_of(replace(params, patch_size=size), channels=1)
    one = params.patch_distance + max(rings.halo, halo_of_orientation(params.scale, size))
    return one + stein.REACH if params.adapt else one


METHOD = Method(
    name="vnlem",
    function="vnlem.methods.vnlem:denoise_vnlem",
    resolve=resolve,
    engines={
        "fast": "vnlem.methods.vnlem:solve",
        "printed": "vnlem.methods.vnlem:solve_as_printed",
        "cuda": "vnlem.methods.cuda.vnlem:solve",
    },
    halo=halo,
    has_paper_preset=True,
)


def part_of(progress: ProgressCallback | None, part: int, parts: int) -> ProgressCallback | None:
    """Progress of one of several equal parts, from 0, as progress of the whole.

    >>> part_of(lambda done, total: print(done, "of", total), 1, 2)(3, 10)
    13 of 20
    """
    if progress is None:
        return None
    return lambda done, total: progress(done + part * total, parts * total)


def solve_one_size(
    job: Job[Any], params: VnlemParams, progress: ProgressCallback | None, tile: int = TILE
) -> NDArray[np.float32]:
    """Algorithm 1 on the tiles of a standardised image, with features per tile: (bandwidths, C, H, W)."""
    rings = rings_of(params, len(job.pixels))
    image = Extended.of(job.pixels, rings, params.scale)
    if params.search == "image":
        return _solve_whole(job, params, progress, image, rings)[None]
    estimates = TileEstimates(job, params, NO_DIFFUSION)
    height, width = image.shape

    def work(part: Tile) -> None:
        around = part.grown(estimates.search.patch_distance, (height, width))
        region = canonical_region(
            image, around, rings, params.scale, params.arc, with_raw=looks_unrotated(params)
        )
        estimates.make(part, region, (part.top - around.top, part.left - around.left))

    for_each(work, grid(height, width, tile, tile), job.workers, progress)
    return estimates.planes


def solve_with_features(
    job: Job[Any],
    params: VnlemParams,
    region: kernels.Features,
    diffusion: Diffusion,
    progress: ProgressCallback | None,
) -> NDArray[np.float32]:
    """The same (C, H, W) with features of the whole image, and its diffusion coordinates if it has any."""
    estimates = TileEstimates(job, params, diffusion)
    _, height, width = job.pixels.shape

    def work(part: Tile) -> None:
        estimates.make(part, region, (part.top, part.left))

    for_each(work, grid(height, width, TILE, TILE), job.workers, progress)
    denoised: NDArray[np.float32] = estimates.planes[0]
    return denoised


class TileEstimates:
    """Estimates of an image with one size of patches, made tile by tile; `planes` holds them all."""

    def __init__(self, job: Job[Any], params: VnlemParams, diffusion: Diffusion) -> None:
        rings = rings_of(params, len(job.pixels))
        _, height, width = job.pixels.shape
        self.search = search_of(params, rings, (height, width))
        self._rule = make_rule(params, job.sigma, rings)
        self._diffusion = diffusion
        self._lane_order = np.tile(rings.lane_order, rings.channels)
        bandwidths = len(self._rule.inverse_bandwidths)
        self.planes: NDArray[np.float32] = np.empty((bandwidths, *job.pixels.shape), np.float32)

    def make(self, part: Tile, region: kernels.Features, corner: tuple[int, int]) -> None:
        """Those of a tile, which lies at `corner` of a region of features."""
        bandwidths, channels = self.planes.shape[:2]
        shape = (bandwidths, *part.shape, channels)
        made = np.empty(shape, np.float32)
        kernels.denoise_tile(
            region, self.search, self._rule, self._diffusion, self._lane_order, *corner, made
        )
        self.planes[:, :, *part.slices] = np.moveaxis(made, -1, 1)


def _solve_whole(
    job: Job[VnlemParams],
    params: VnlemParams,
    progress: ProgressCallback | None,
    image: Extended,
    rings: RingLayout,
) -> NDArray[np.float32]:
    """Neighbours from the whole image, then the same estimate, on all workers."""
    height, width = image.shape
    search, rule = search_of(params, rings, image.shape), make_rule(params, job.sigma, rings)
    region = whole_region(image, rings, params.scale, params.arc, job.workers)
    index = whole_image.ImageIndex.of(region, rings)
    stride = region.raw.shape[1]
    pixels = (np.arange(height)[:, None] * stride + np.arange(width)).ravel()
    found = whole_image.find(index, search, rule, pixels, workers=job.workers, progress=progress)
    values = np.empty((len(pixels), rings.channels), dtype=np.float32)

    def work(first: int) -> None:
        some = slice(first, first + PIXELS_AT_ONCE)
        neighbours = (found.position[some], found.squared[some], found.which[some])
        kernels.estimate_all(
            region, search, rule, index.order_of_lane, pixels[some], *neighbours, values[some]
        )

    for_each(work, range(0, len(pixels), PIXELS_AT_ONCE), job.workers)
    job.details["pairs"] = dict(
        zip(("all", "after_bound_1", "after_bound_2", "after_bound_3"), map(int, found.left), strict=True)
    )
    return np.ascontiguousarray(values.T.reshape(rings.channels, height, width))


def solve_as_printed(job: Job[VnlemParams]) -> NDArray[np.float32]:
    """Algorithm 1 line by line."""
    from vnlem.reference.vnlem import vnlem

    denoised: NDArray[np.float32] = vnlem(job.pixels, job.params, job.progress)
    return denoised
