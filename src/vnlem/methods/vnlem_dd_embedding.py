"""The patch graph of an image, its diffusion coordinates, and where they can be trusted."""

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from vnlem.diffusion.graph import patch_graph
from vnlem.diffusion.map import coordinates
from vnlem.diffusion.spectrum import Spectrum, leading_eigenpairs
from vnlem.features.canonical import Extended, whole_region
from vnlem.kernels.cpu import vnlem as kernels
from vnlem.kernels.cpu.vnlem import Diffusion
from vnlem.methods.vnlem_dd_params import VnlemDdParams, check_embedding_dim
from vnlem.methods.vnlem_params import VnlemParams, looks_unrotated, make_rule, rings_of, search_of
from vnlem.pipeline.progress import ProgressCallback
from vnlem.pipeline.run import Job
from vnlem.pipeline.workers import Pool

# The trust in the diffusion distance rises from 0 to 1 between these ratios of a patch's variance to the
# noise's: noise alone gives 1 +- 0.11 in patches of 13 pixels.
FLAT, STRUCTURED = 1.2, 1.8
# Residual of the eigenpairs. A tenth of it changes the SNR by less than 0.001 dB.
RESIDUAL = 1e-3
# Rows of coordinates per task; fixed, because sums must not depend on the number of workers.
STRIP = 16


def region_of(job: Job[Any], params: VnlemParams) -> kernels.Features:
    """The features of the whole image, which graph and estimate share."""
    rings = rings_of(params, len(job.pixels))
    image = Extended.of(job.pixels, rings, params.scale)
    with_raw = looks_unrotated(params)
    return whole_region(image, rings, params.scale, params.arc, job.workers, with_raw=with_raw)


def embed(
    job: Job[VnlemDdParams],
    params: VnlemParams,
    region: kernels.Features,
    progress: ProgressCallback | None = None,
) -> Diffusion:
    """Diffusion coordinates of every pixel, scaled to a mean square of one, and the trust in them."""
    with Pool(job.workers) as pool:
        padded = _embedding(job, params, region, pool, progress)
    trust = np.ones(padded.shape[:2], dtype=np.float32)
    if job.params.flat_guard:
        trust = structure(job.pixels, job.sigma, params.patch_size)
    return Diffusion(padded, trust, job.params.flat_guard)


def _embedding(
    job: Job[VnlemDdParams],
    params: VnlemParams,
    region: kernels.Features,
    pool: Pool,
    progress: ProgressCallback | None,
) -> NDArray[np.float32]:
    """The coordinates, (height, width, a multiple of eight)."""
    settings = job.params
    rings = rings_of(params, len(job.pixels))
    _, height, width = job.pixels.shape
    check_embedding_dim(settings.embedding_dim, job.pixels)
    begun = time.perf_counter()
    between = 2 * job.sigma**2 * rings.noise_energy * rings.distance_scale
    graph = patch_graph(
        region,
        search_of(params, rings, (height, width)),
        make_rule(params, job.sigma, rings),
        factor=rings.distance_scale,
        bandwidth=settings.graph_bandwidth,
        noise=between if params.noise_correction else 0.0,
        local=settings.local_bandwidth,
        pool=pool,
        progress=progress,
    )
    degrees = graph.degrees()
    job.details["graph_parts"] = graph.count_components()
    found = eigenpairs_of(graph, degrees, job, begun)
    return _placed(found, degrees, settings.diffusion_time, pool)


def _placed(found: Spectrum, degrees: NDArray[np.float64], at_time: float, pool: Pool) -> NDArray[np.float32]:
    """Diffusion coordinates of a mean square of one, (height, width, a multiple of eight), strip by strip.

    With a multiple of eight the loop over coordinates has no remainder.
    """
    height, width, count = found.vectors.shape
    count -= 1
    padded = np.zeros((height, width, 8 * -(-count // 8)), dtype=np.float32)
    roots = np.sqrt(degrees).astype(np.float32).reshape(height, width, 1)
    strips = [slice(top, top + STRIP) for top in range(0, height, STRIP)]

    def place(strip: slice) -> float:
        placed = coordinates(found.eigenvalues, found.vectors[strip] / roots[strip], at_time)
        padded[strip, :, :count] = placed
        return float(np.square(placed, dtype=np.float64).sum())

    squares = sum(pool.results(place, strips))
    size = np.float32(max(math.sqrt(squares / (height * width * count)), 1e-30))

    def scale(strip: slice) -> None:
        padded[strip] /= size

    pool.for_each(scale, strips)
    return padded


def eigenpairs_of(
    graph: Any, degrees: NDArray[np.float64], job: Job[VnlemDdParams], begun: float
) -> Spectrum:
    """The leading eigenpairs of a graph, started at `begun`; their cost goes to the details."""
    built = time.perf_counter()
    found = leading_eigenpairs(graph, degrees, job.params.embedding_dim + 1, RESIDUAL)
    job.details["seconds"] = {"graph": built - begun, "eigenvectors": time.perf_counter() - built}
    job.details["eigenvalues"] = found.eigenvalues.tolist()
    job.details["residual"] = found.residual
    job.details["products"] = found.products
    return found


def structure(pixels: NDArray[np.float32], sigma: float, patch_size: int) -> NDArray[np.float32]:
    """How much the patch of every pixel varies beyond noise: 0 like noise, 1 clearly more.

    >>> flat = np.random.default_rng(0).normal(0, 1, (1, 40, 40)).astype(np.float32)
    >>> float(structure(flat, 1.0, 13).mean()) < 0.05
    True
    """
    planes = pixels.astype(np.float64)
    box = (1, patch_size, patch_size)
    mean = ndimage.uniform_filter(planes, box, mode="reflect")
    variance = (ndimage.uniform_filter(planes**2, box, mode="reflect") - mean**2).mean(axis=0)
    rise = np.clip((variance / sigma**2 - FLAT) / (STRUCTURED - FLAT), 0, 1)
    smooth: NDArray[np.float32] = (rise**2 * (3 - 2 * rise)).astype(np.float32)
    return smooth
