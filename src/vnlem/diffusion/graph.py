"""The patch graph of an image: Gaussian affinities of aligned distances within the search window."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.diffusion.stencil import ALONE, StencilGraph
from vnlem.kernels.cpu import affinity
from vnlem.kernels.cpu import vnlem as kernels
from vnlem.pipeline.progress import ProgressCallback
from vnlem.pipeline.tiles import Tile, grid
from vnlem.pipeline.workers import Pool

TILE = 128
# If the bandwidth follows the data, a patch's scale is its distance to this many nearest patches.
SCALE_NEIGHBORS = 50


def patch_graph(
    region: kernels.Features,
    search: kernels.Search,
    rule: kernels.Rule,
    *,
    factor: float,
    bandwidth: float,
    noise: float = 0.0,
    local: bool = False,
    pool: Pool = ALONE,
    progress: ProgressCallback | None = None,
) -> StencilGraph:
    """Weights exp(-max(d^2 - noise, 0) / (s_i s_j)) between all pixels and those in their window.

    region, search, rule: the features of the whole image and the search of VNLEM's first stage.
    factor: from squared distances of features to those of square patches.
    bandwidth: the scale s of every pixel, in the units of square patches.
    noise: what is subtracted from squared distances, in the same units.
    local: s_i is the corrected distance to the nearest SCALE_NEIGHBORS patches if that is larger than the
        bandwidth: a unique patch keeps some neighbours, and one with many similar patches keeps to them.
    """
    height, width = region.raw.shape[0], region.width
    graph = StencilGraph(height, width, search.patch_distance, pool)

    def work(part: Tile) -> None:
        edges = (part.top, part.bottom, part.left, part.right)
        affinity.half_windows(region, rule, *edges, factor, graph.size, graph.slots)

    pool.for_each(work, grid(height, width, TILE, TILE), progress)
    # Inverse squares must neither vanish nor overflow in float32.
    least = min(max(bandwidth, 1e-12), 1e12)
    scales: NDArray[Any] = np.full(graph.n_vertices, least)
    if local:
        scales = np.sqrt(np.maximum(least**2, graph.local_scales(noise, SCALE_NEIGHBORS)))
    graph.gaussian(1 / scales, noise)
    return graph
