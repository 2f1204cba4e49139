"""The images of a set that look most like patches, and where (alike.cu)."""

from typing import Any

import numpy as np

from vnlem.kernels.cuda.engine import Engine

Array = Any  # of the engine's library

_THREADS, _TILE = 128, 128


def nearest_places(
    engine: Engine, vectors: Array, index: tuple[Array, Array], own: int, wanted: int, most: int
) -> Array:
    """For each vector (n, features) of image `own` the nearest place in each of the images nearest to it.

    index: (all places, features), image after image, and int32 (images + 1), where those of each begin.
    Returns int32 (n, wanted): indices of places, the nearest image first, -1 if an image has none among the
    `most` nearest places of all.
    """
    xp = engine.xp
    places, firsts = index
    n_queries, features = vectors.shape
    n_images = len(firsts) - 1
    shape = (n_queries, n_images)
    nearest, where = xp.zeros(shape, np.float32), xp.zeros(shape, np.int32)
    fields = {
        "vectors": xp.ascontiguousarray(vectors),
        "places": places,
        "firsts": firsts,
        "nearest": nearest,
        "where": where,
    }
    sizes = {"n_queries": n_queries, "n_images": n_images}
    macros = {"FEATURES": features, "THREADS": _THREADS, "TILE": _TILE}
    grid = (-(-n_queries // _THREADS), n_images)
    engine.launch(
        "alike",
        grid,
        {**fields, "limits": None, "counts": None, **sizes, "n_limits": 0},
        kernel="nearest_places",
        threads=_THREADS,
        **macros,
    )
    nearest[:, own] = np.inf
    order = xp.argsort(nearest, axis=1)[:, :wanted]
    limits = xp.ascontiguousarray(xp.take_along_axis(nearest, order, axis=1))
    counts = xp.zeros((n_queries, wanted), np.int32)
    engine.launch(
        "alike",
        grid,
        {**fields, "limits": limits, "counts": counts, **sizes, "n_limits": wanted},
        kernel="count_places",
        threads=_THREADS,
        **macros,
    )
    found = xp.take_along_axis(where, order, axis=1)
    return xp.where(xp.cumsum(counts, axis=1) < most, found, -1).astype(np.int32)
