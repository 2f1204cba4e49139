"""Neighbours under the rotation-invariant distance on a device (rid.cu)."""

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cuda.engine import Engine

Array = Any  # of the engine's library

# See rid.cu. 9 warps with 2 candidates per thread take 576 at a time, all of 4 x 4 windows of 21 x 21 pixels.
_WARPS, _TOGETHER, _CHUNK = 9, 2, 8


class Features(NamedTuple):
    """Features of every pixel of a region."""

    raw: Array  # (height, width, dim)
    canonical: Array  # (height, width, dim)
    lengths: Array  # (height, width), squared
    sharp: Array  # (height, width), see `vnlem.kernels.cpu.vnlem.Features`
    angle: Array  # (height, width), radians
    pixels: Array  # (channels, height, width)


class Search(NamedTuple):
    """What to look for."""

    patch_distance: int
    n_candidates: int
    n_neighbors: int
    with_identity: bool
    starts: NDArray[np.int64]  # (blocks + 1): rows of lanes that hold equal orders
    rows: NDArray[np.int64]  # first lanes of these rows
    cosine: NDArray[np.float32]  # (angles, 8 * blocks), of order * angle
    sine: NDArray[np.float32]
    margin: tuple[float, float] | None  # a rotated match counts as factor * its squared distance + offset


class Neighbours(NamedTuple):
    """Neighbours of all pixels of some rows."""

    position: Array  # int32 (pixels, neighbours), pixel number in the region
    squared: Array  # float32, squared distance of features
    which: Array  # int16, +-number of the angle, or none
    counts: Array  # int32 (pixels)


class Diffusion(NamedTuple):
    """Coordinates by which candidates are ranked, and the trust in them."""

    embedding: Array  # (height, width, coordinates), a multiple of four of them
    trust: Array  # (height, width) in [0, 1]


def neighbours(
    engine: Engine,
    features: Features,
    search: Search,
    top: int,
    bottom: int,
    diffusion: Diffusion | None = None,
) -> Neighbours:
    """The neighbours of the pixels of rows top..bottom of a region."""
    xp = engine.xp
    n_pixels, count = (bottom - top) * features.raw.shape[1], search.n_neighbors
    found = Neighbours(
        xp.empty((n_pixels, count), np.int32),
        xp.empty((n_pixels, count), np.float32),
        xp.empty((n_pixels, count), np.int16),
        xp.empty(n_pixels, np.int32),
    )
    _launch(engine, features, search, (top, bottom), found=found, diffusion=diffusion)
    return found


def half_windows(engine: Engine, features: Features, search: Search, scale: float, weights: Array) -> None:
    """Write scale * squared distance of every pixel to later ones of its window into a graph's weights."""
    rows = (0, features.raw.shape[0])
    _launch(engine, features, search, rows, scale=scale, weights=weights)


def _launch(
    engine: Engine,
    features: Features,
    search: Search,
    rows: tuple[int, int],
    *,
    found: Neighbours | None = None,
    diffusion: Diffusion | None = None,
    scale: float = 1.0,
    weights: Array | None = None,
) -> None:
    """Start the kernel that finds neighbours, or, with `weights`, the one that makes a graph."""
    height, width, dim = features.raw.shape
    n_angles, columns = search.cosine.shape
    window = (2 * search.patch_distance + 1) ** 2
    block_of = np.full(dim // 16, -1, np.int32)
    for block, (first, last) in enumerate(itertools.pairwise(search.starts)):
        block_of[search.rows[first:last] // 8] = block

    def shared_of(tile: int) -> int:
        side = 2 * search.patch_distance + tile
        with_raw = search.with_identity or search.margin is not None
        own = tile**2 * ((1 + with_raw) * dim + side**2) + 3
        chunk = min(side**2, _TOGETHER * 32 * _WARPS) * (_CHUNK + 4)
        warp = window + 3 * search.n_candidates
        floats: int = own + 2 * n_angles * columns + max(chunk, _WARPS * warp)
        return 4 * floats

    fitting = [tile for tile in (4, 2, 1) if shared_of(tile) <= engine.largest_shared - 1024]
    if not fitting:
        raise ValueError(
            f"a window of {2 * search.patch_distance + 1} pixels is too large for this device; "
            "pass a smaller patch_distance or device='cpu'"
        )
    tile = fitting[0]
    factor, offset = search.margin or (1.0, 0.0)
    embedding, trust = diffusion or (None, None)
    engine.launch(
        "rid",
        (-(-(rows[1] - rows[0]) // tile), -(-width // tile)),
        {
            "raw": features.raw,
            "canonical": features.canonical,
            "lengths": features.lengths,
            "block_of": engine.constant(block_of),
            "cosine": engine.constant(search.cosine),
            "sine": engine.constant(search.sine),
            **(dict.fromkeys(Neighbours._fields) if found is None else found._asdict()),
            "height": height,
            "width": width,
            "top": rows[0],
            "bottom": rows[1],
            "reach": search.patch_distance,
            "n_candidates": search.n_candidates,
            "n_neighbors": search.n_neighbors,
            "n_angles": n_angles,
            "factor": float(factor),
            "offset": float(offset),
            "embedding": embedding,
            "trust": trust,
            "n_coordinates": 0 if embedding is None else embedding.shape[2],
            "scale": float(scale),
            "weights": weights,
        },
        kernel="rid" if weights is None else "half_windows",
        threads=32 * _WARPS,
        shared=shared_of(tile),
        TILE=tile,
        WARPS=_WARPS,
        TOGETHER=_TOGETHER,
        CHUNK=_CHUNK,
        BLOCKS_OF_SM=max(1, min((engine.largest_shared + 1024) // (shared_of(tile) + 1024), 3)),
        HALF=dim // 2,
        BLOCKS=columns // 8,
        WITH_MARGIN=int(search.margin is not None),
        WITH_IDENTITY=int(search.with_identity),
        DIFFUSION=int(diffusion is not None),
        GRAPH=int(weights is not None),
    )
