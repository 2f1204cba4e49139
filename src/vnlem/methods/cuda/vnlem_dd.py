"""VNLEM-DD on a CUDA device: the patch graph, its leading eigenvectors, neighbours by diffusion distance."""

import time
from typing import Any

import numpy as np

from vnlem.diffusion.graph import SCALE_NEIGHBORS
from vnlem.diffusion.on_device import DeviceGraph
from vnlem.kernels.cuda import engine as engines
from vnlem.kernels.cuda.aligned import estimate
from vnlem.kernels.cuda.rid import Diffusion, Features, half_windows, neighbours
from vnlem.kernels.cuda.stencil import Stencil
from vnlem.methods.cuda.vnlem import features_of, search_and_regressions
from vnlem.methods.vnlem import part_of
from vnlem.methods.vnlem_dd_embedding import eigenpairs_of, structure
from vnlem.methods.vnlem_dd_params import VnlemDdParams, check_embedding_dim
from vnlem.methods.vnlem_params import VnlemParams, rings_of, sizes_of
from vnlem.pipeline.device import to_host
from vnlem.pipeline.progress import ProgressCallback
from vnlem.pipeline.run import Job

Array = Any  # of the engine's library

# Bytes of neighbours that are held at a time.
BAND_BYTES = 2**30


def solve(job: Job[VnlemDdParams], engine: Any = None) -> Array:
    """Graph and embedding of the larger patches, then an estimate for each size of patches."""
    engine = engine or engines.Engine()
    if job.params.scope == "image":
        raise ValueError("scope='image' runs on the CPU only; pass device='cpu' or scope='window'")
    job.pixels = engine.xp.asarray(job.pixels)
    sizes = sizes_of(job.params)
    features = _features(job, engine, sizes[-1])
    diffusion = _embed(job, engine, sizes[-1], features)
    progress = part_of(job.progress, 1, 2)
    if progress is not None:
        progress(0, 1)
    if len(sizes) == 1:
        return _estimate(job, engine, sizes[0], features, diffusion, progress)
    total = _estimate(job, engine, sizes[1], features, diffusion, part_of(progress, 0, 2))
    del features
    fine = _features(job, engine, sizes[0])
    total += _estimate(job, engine, sizes[0], fine, diffusion, part_of(progress, 1, 2))
    return np.float32(0.5) * total


def _features(job: Job[Any], engine: Any, params: VnlemParams) -> Features:
    """The features of the whole image, which graph and estimate share."""
    layout = rings_of(params, len(job.pixels))
    return features_of(engine, job.pixels, (0, job.pixels.shape[1]), layout, params)


def _embed(job: Job[VnlemDdParams], engine: Any, params: VnlemParams, features: Features) -> Diffusion:
    """Diffusion coordinates of every pixel, scaled to a mean square of one, and the trust in them."""
    settings = job.params
    layout = rings_of(params, len(job.pixels))
    _, height, width = job.pixels.shape
    check_embedding_dim(settings.embedding_dim, job.pixels)
    begun = time.perf_counter()
    search, _ = search_and_regressions(job, params, layout, (height, width))
    stencil = Stencil.empty(engine, height, width, search.patch_distance)
    half_windows(engine, features, search, layout.distance_scale, stencil.weights)
    graph = DeviceGraph(engine, stencil)
    noise = 2 * job.sigma**2 * layout.noise_energy * layout.distance_scale if params.noise_correction else 0.0
    # Inverse squares must neither vanish nor overflow in float32.
    least = min(max(settings.graph_bandwidth, 1e-12), 1e12)
    scales = np.full(graph.n_vertices, least)
    if settings.local_bandwidth:
        scales = np.sqrt(np.maximum(least**2, graph.local_scales(noise, SCALE_NEIGHBORS)))
    graph.gaussian(1 / scales, noise)
    degrees = graph.degrees()
    job.details["graph_parts"] = graph.count_components()
    found = eigenpairs_of(graph, degrees, job, begun)
    # lambda_k^t phi_k for k = 2, 3, ..., see `vnlem.diffusion.map.coordinates`.
    powers = (np.abs(found.eigenvalues[1:]) ** settings.diffusion_time).astype(np.float32)
    roots = np.sqrt(degrees).astype(np.float32).reshape(height, width, 1)
    vectors: Any = found.vectors
    placed = vectors[..., 1:] / engine.xp.asarray(roots) * engine.xp.asarray(powers)
    size = float(to_host((placed.astype(np.float64) ** 2).mean()))
    embedding = engine.xp.zeros((height, width, 4 * -(-placed.shape[2] // 4)), np.float32)
    embedding[..., : placed.shape[2]] = placed / np.float32(max(size**0.5, 1e-30))
    trust = np.ones((height, width), np.float32)
    if settings.flat_guard:
        trust = structure(to_host(job.pixels), job.sigma, params.patch_size)
    return Diffusion(embedding, engine.xp.asarray(trust))


def _estimate(
    job: Job[VnlemDdParams],
    engine: Any,
    params: VnlemParams,
    features: Features,
    diffusion: Diffusion,
    progress: ProgressCallback | None,
) -> Array:
    """The estimate of all pixels from candidates by diffusion distance, band by band."""
    layout = rings_of(params, len(job.pixels))
    _, height, width = job.pixels.shape
    search, (regression,) = search_and_regressions(job, params, layout, (height, width))
    rows = max(BAND_BYTES // (10 * search.n_neighbors * width), 1)
    out = engine.xp.empty_like(job.pixels)
    for top in range(0, height, rows):
        band = (top, min(top + rows, height))
        found = neighbours(engine, features, search, *band, diffusion)
        out[:, band[0] : band[1]] = estimate(engine, features, found, regression, band)
        if progress is not None:
            progress(band[1], height)
    return out
