"""Dask arrays in, lazy Dask arrays out: each block of the result is solved from the pixels it needs."""

import math
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.large.boxes import Box, extent, slices
from vnlem.large.engine import Engine, Place
from vnlem.large.memory import default_memory
from vnlem.large.methods import find_engine
from vnlem.large.prepare import plan_for
from vnlem.large.sample import take_sample
from vnlem.large.sources import Source, open_source


def denoise_lazily(
    image: Any,
    sigma: float | None,
    method: str,
    channel_axis: int | None,
    workers: int | None,
    dtype: np.dtype[Any] | None = None,
    **params: Any,
) -> Any:
    """What :func:`vnlem.denoise` does with a Dask array: a lazy one of the same shape, in `dtype` or its own.

    A sample, on which noise and scale are estimated, is computed at once; the rest when it is asked for.
    """
    if (channel_axis is None and image.ndim != 2) or (channel_axis is not None and image.ndim != 3):
        raise ValueError(
            f"a dask array must have two dimensions, or three with channel_axis, got shape {image.shape}; "
            "use vnlem.denoise_large for stacks"
        )
    if any(math.isnan(size) for size in image.shape):
        raise ValueError(
            f"the dask array has chunks of unknown size (shape {image.shape}); "
            "call its compute_chunk_sizes() first"
        )
    names = ["y", "x"]
    if channel_axis is not None:
        names.insert(range(3)[channel_axis], "c")
    source = open_source(image, "".join(names))
    source.colour, source.wanted = channel_axis is not None, dtype
    engine = find_engine(source, take_sample(source), sigma, method, params, stack=False)
    return lazily(image, source, engine, default_memory(), workers)


def lazily(array: Any, source: Source, engine: Engine, memory: int, workers: int | None) -> Any:
    """The denoised array, not computed yet; its chunks are whole multiples of the largest given one."""
    import dask.array as da
    from dask.delayed import delayed

    whole = tuple((0, size) for size in source.shape)
    file = tuple(max(array.chunks[axis]) for axis in source.order)
    plan = plan_for(source, engine, whole, file, memory)
    straight = array.transpose(source.order)
    solve = delayed(solve_unit, pure=True)
    blocks = np.empty(plan.counts, object)
    for number, place in enumerate(product(*(range(count) for count in plan.counts))):
        box = plan.box(number)
        read = plan.read_box(box)
        pixels = straight[slices(read)]
        result = solve(pixels, box, read, source.axes, source.shape, source.result_dtype.str, engine, workers)
        blocks[place] = da.from_delayed(result, extent(box), dtype=source.result_dtype)
    found = da.block(blocks.tolist())
    return found.transpose(tuple(int(axis) for axis in np.argsort(source.order)))


def solve_unit(
    pixels: NDArray[Any],
    box: Box,
    read: Box,
    axes: tuple[str, ...],
    shape: tuple[int, ...],
    dtype: str,
    engine: Engine,
    workers: int | None,
) -> NDArray[Any]:
    """One block of the result: every position along the axes that are not solved together on its own."""
    pixels = np.asarray(pixels)
    solved = [axes.index(name) for name in engine.axes]
    place = Place(
        tuple(read[axis] for axis in solved),
        tuple(box[axis] for axis in solved),
        tuple(shape[axis] for axis in solved),
    )
    result = np.empty(extent(box), np.dtype(dtype))
    counted: list[Any] = [
        range(size) if axis not in solved else [slice(None)] for axis, size in enumerate(result.shape)
    ]
    for index in product(*counted):
        result[index] = engine.solve(pixels[index], place, workers)
    return result
