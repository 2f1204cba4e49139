"""VNLEM-DD, the other branch of Algorithm 1: neighbours by the diffusion distance of the patch graph."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from vnlem.kernels.cpu import vnlem as kernels
from vnlem.kernels.cpu.vnlem import Diffusion
from vnlem.methods.vnlem import NO_DIFFUSION, PIXELS_AT_ONCE, part_of, solve_with_features
from vnlem.methods.vnlem_dd_embedding import embed, region_of
from vnlem.methods.vnlem_dd_params import VnlemDdParams, check_embedding_dim, resolve_params
from vnlem.methods.vnlem_params import (
    VnlemParams,
    check_engine,
    make_rule,
    rings_of,
    search_of,
    sizes_of,
)
from vnlem.noise.white import estimate_sigma_of_planes
from vnlem.pipeline.image import to_planes
from vnlem.pipeline.method import Method
from vnlem.pipeline.params import takes
from vnlem.pipeline.progress import Progress, ProgressCallback
from vnlem.pipeline.run import NEGLIGIBLE, Job, Result
from vnlem.pipeline.scale import Scale
from vnlem.pipeline.sigma import check_sigma
from vnlem.pipeline.workers import check_workers, for_each


@takes(VnlemDdParams, without=("search", "adapt"))
def denoise_vnlem_dd(
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
    """VNLEM with neighbours by diffusion distance: patches near each other along the graph of all patches.

    Parameters
    ----------
    image, sigma
        As in :func:`vnlem.denoise_vnlem`.
    preset : {"auto", "paper"}
        "paper": Algorithm 1 with the paper's parameters. "auto": those of VNLEM's "auto", a graph whose
        bandwidth follows the noise and the data, and VNLEM's own neighbours in flat regions.
    **params
    engine : {"fast", "printed"}
        "printed" is Algorithm 1 line by line, with dense matrices and rotated square patches in NumPy, for
        images of some thousand pixels; preset="paper" only.
    channel_axis, workers, progress, return_info, device
        As in :func:`vnlem.denoise`.

    Returns
    -------
    ndarray
        The denoised image in the units, dtype and layout of the input; with `return_info` also an Info, whose
        details hold the eigenvalues, the solver's residual and the number of parts of the graph.

    Notes
    -----
    The graph takes 4 bytes per pixel and offset of half the window (231 MB at 512x512), the eigen-solver
    about as much again, and the features 1 kB per pixel and channel.

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
    >>> denoised = vnlem.denoise_vnlem_dd(noisy, sigma=0.5)
    >>> bool(np.std(denoised - cells) < 0.5 * np.std(noisy - cells))
    True
    """
    return METHOD.denoise(**locals())


def resolve(noise: float, ndim: int, *, preset: str, engine: str, **given: Any) -> VnlemDdParams:
    """The parameters for a noise level in standardised units."""
    if given["shape"] is None and engine == "printed":
        given["shape"] = "square"
    if given["scope"] is None and engine == "printed":
        given["scope"] = "image"
    chosen = {name: value for name, value in given.items() if value is not None}
    params = resolve_params(preset, noise, chosen)
    check_engine(params, engine)
    if engine == "printed" and (params.local_bandwidth or params.flat_guard):
        raise ValueError(
            "engine='printed' is Algorithm 1 as the paper prints it: use preset='paper' without "
            "local_bandwidth and flat_guard"
        )
    return params


METHOD = Method(
    name="vnlem-dd",
    function="vnlem.methods.vnlem_dd:denoise_vnlem_dd",
    resolve=resolve,
    engines={
        "fast": "vnlem.methods.vnlem_dd:solve",
        "printed": "vnlem.methods.vnlem_dd:solve_as_printed",
        "cuda": "vnlem.methods.cuda.vnlem_dd:solve",
    },
    has_paper_preset=True,
)


def solve(job: Job[VnlemDdParams]) -> NDArray[np.float32]:
    """Graph and embedding of the larger patches, then an estimate for each size of patches."""
    sizes = sizes_of(job.params)
    region = region_of(job, sizes[-1])
    diffusion = embed(job, sizes[-1], region, part_of(job.progress, 0, 2))
    estimate = _solve_whole if job.params.scope == "image" else solve_with_features
    progress = part_of(job.progress, 1, 2)
    if len(sizes) == 1:
        return estimate(job, sizes[0], region, diffusion, progress)
    coarse = estimate(job, sizes[1], region, diffusion, part_of(progress, 0, 2))
    fine = estimate(job, sizes[0], region_of(job, sizes[0]), diffusion, part_of(progress, 1, 2))
    return np.float32(0.5) * (fine + coarse)


def diffusion_coordinates(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    preset: str = "auto",
    embedding_dim: int = 30,
    workers: int | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Diffusion coordinates of the patch graph of a grey image, without denoising it.

    Parameters
    ----------
    image, sigma, preset, embedding_dim, workers
        As in :func:`denoise_vnlem_dd`; sigma must not be zero.

    Returns
    -------
    coordinates : ndarray, shape (height, width, embedding_dim)
    eigenvalues : ndarray, shape (embedding_dim + 1,)

    Examples
    --------
    >>> halves = np.where(np.arange(24) < 12, 0.0, 3.0) + np.zeros((24, 1))
    >>> placed, eigenvalues = diffusion_coordinates(halves, 0.3, embedding_dim=2)
    >>> placed.shape, bool(eigenvalues[0] > 0.999)
    ((24, 24, 2), True)
    """
    planes = to_planes(image)
    level = estimate_sigma_of_planes(planes.data) if sigma is None else check_sigma(sigma)
    scale = Scale.measure(planes.data, level)
    if level <= NEGLIGIBLE * scale.scale:
        raise ValueError("sigma is zero: without noise there is no scale for the graph; pass a small sigma")
    params = resolve_params(preset, scale.sigma, {"embedding_dim": embedding_dim})
    job = Job(scale.standardise(planes.data), scale.sigma, params, check_workers(workers), None)
    coarsest = sizes_of(params)[-1]
    diffusion = embed(job, coarsest, region_of(job, coarsest), None)
    eigenvalues = job.details["eigenvalues"]
    return diffusion.embedding[..., : len(eigenvalues) - 1], np.array(eigenvalues)


def _solve_whole(
    job: Job[VnlemDdParams],
    params: VnlemParams,
    region: kernels.Features,
    diffusion: Diffusion,
    progress: ProgressCallback | None,
) -> NDArray[np.float32]:
    """Neighbours by diffusion distance from the whole image; VNLEM's estimate where it is not trusted."""
    rings = rings_of(params, len(job.pixels))
    _, height, width = job.pixels.shape
    search, rule = search_of(params, rings, (height, width)), make_rule(params, job.sigma, rings)
    order_of_lane = np.tile(rings.lane_order, rings.channels)
    points = diffusion.embedding.reshape(height * width, -1)
    tree = cKDTree(points)
    count = min(params.n_neighbors, height * width)
    stride = region.raw.shape[1]
    values = np.empty((height * width, rings.channels), dtype=np.float32)

    def work(first: int) -> None:
        own = np.arange(first, min(first + PIXELS_AT_ONCE, height * width))
        nearest = tree.query(points[own], k=np.arange(1, count + 1))[1]
        # Among many patches at one place the tree may leave out the patch itself.
        missing = (nearest != own[:, None]).all(axis=1)
        nearest[missing, -1] = own[missing]
        # The patch itself comes first: among patches at zero distance it is kept, and with it a weight.
        nearest[nearest == own[:, None]] = -1
        nearest.sort(axis=1)
        nearest[:, 0] = own
        kernels.estimate_candidates(
            region,
            search,
            rule,
            order_of_lane,
            own // width * stride + own % width,
            nearest // width * stride + nearest % width,
            values[own[0] : own[-1] + 1],
        )

    for_each(work, range(0, height * width, PIXELS_AT_ONCE), job.workers, progress)
    estimate = np.ascontiguousarray(values.T.reshape(rings.channels, height, width))
    if diffusion.blended:
        plain = solve_with_features(job, params, region, NO_DIFFUSION, None)
        estimate = plain + diffusion.trust * (estimate - plain)
    return estimate


def solve_as_printed(job: Job[VnlemDdParams]) -> NDArray[np.float32]:
    """Algorithm 1 line by line."""
    from vnlem.reference.vnlem_dd import vnlem_dd

    check_embedding_dim(job.params.embedding_dim, job.pixels)
    denoised: NDArray[np.float32] = vnlem_dd(job.pixels, job.params, job.progress)
    return denoised
