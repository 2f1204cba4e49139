"""The patch graph of an image: Gaussian affinities of aligned distances within the search window."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.diffusion.stencil import StencilGraph
from vnlem.features.canonical import Extended, canonical_region, expand
from vnlem.features.rings import RingLayout
from vnlem.kernels.numba import affinity
from vnlem.kernels.numba import vnlem as kernels
from vnlem.pipeline.progress import ProgressCallback
from vnlem.pipeline.tiles import Tile, grid
from vnlem.pipeline.workers import for_each

TILE = 128
# Where the bandwidth follows the data, a patch's scale is its distance to so many nearest patches.
SCALE_NEIGHBORS = 50


def patch_graph(
    image: Extended,
    rings: RingLayout,
    search: kernels.Search,
    rule: kernels.Rule,
    frame: dict[str, float],
    *,
    bandwidth: float,
    noise: float = 0.0,
    local: bool = False,
    workers: int = 1,
    progress: ProgressCallback | None = None,
) -> StencilGraph:
    """Weights exp(-max(d^2 - noise, 0) / (s_i s_j)) between all pixels and those in their window.

    Parameters
    ----------
    image, rings, search, rule
        The image, its features and the search of VNLEM's first stage.
    frame : dict
        scale and arc of the orientation.
    bandwidth : float
        The scale s of every pixel, in the units of square patches.
    noise : float
        What is subtracted from squared distances, in the same units.
    local : bool
        s_i is the corrected distance to the nearest SCALE_NEIGHBORS patches where that is larger than
        bandwidth: a patch that has no like keeps some neighbours, and one that has many keeps to them.
    """
    height, width = image.shape
    graph = StencilGraph(height, width, search.patch_distance, workers)
    inside = graph.inside(graph.weights)

    def work(part: Tile) -> None:
        around = expand(part, search.patch_distance, height, width)
        region = canonical_region(image, around, rings, frame["scale"], frame["arc"])
        top, left = part.top - around.top, part.left - around.left
        out = inside[part.top : part.bottom, part.left : part.right].transpose(0, 2, 1)
        affinity.half_windows(region, search, rule, top, left, np.float32(rings.distance_scale), out)

    for_each(work, grid(height, width, TILE, TILE), workers, progress)
    # Inverse squares must neither vanish nor overflow in float32.
    least = min(max(bandwidth, 1e-12), 1e12)
    scales: NDArray[Any] = np.full(graph.n_vertices, least)
    if local:
        scales = np.sqrt(np.maximum(least**2, graph.local_scales(noise, SCALE_NEIGHBORS)))
    graph.gaussian(1 / scales, noise)
    return graph
