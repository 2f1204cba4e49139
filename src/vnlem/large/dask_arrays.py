"""Dask arrays in, lazy Dask arrays out: each block of the result is computed from the pixels it needs."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from vnlem.large.blocks import BlockSolver
from vnlem.large.boxes import extent, slices
from vnlem.large.memory import default_memory
from vnlem.large.sample import take_sample
from vnlem.large.solvers import find_solver
from vnlem.large.sources import Source, open_source
from vnlem.large.target import plan_for
from vnlem.large.worker import solve_unit
from vnlem.repair import EVERY_PIXEL, fitting


def denoise_lazily(
    image: Any,
    sigma: float | None,
    method: str,
    channel_axis: int | None,
    axes: str | None,
    workers: int | None,
    reports: bool,
    dtype: np.dtype[Any] | None = None,
    **params: Any,
) -> Any:
    """:func:`vnlem.denoise` of a Dask array: a lazy one of the same shape, in `dtype` or its own.

    A sample, on which noise and scale are estimated, is computed at once; the rest when it is requested.
    reports: whether progress or Info was requested.
    """
    if axes is not None:
        raise ValueError(
            f"a dask array must be one image, and axes={axes!r} names a stack; use vnlem.denoise_large, "
            "or pass a NumPy array (image.compute())"
        )
    if reports:
        raise ValueError("a dask array is denoised when it is computed; leave return_info and progress out")
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
    if isinstance(image._meta, np.ma.MaskedArray):
        from dask.array import ma

        pixels = params.get("pixels", EVERY_PIXEL)
        hidden, image = ma.getmaskarray(image).compute(), ma.getdata(image)
        if pixels.mask is not None:
            hidden |= fitting("mask", pixels.mask, image.shape, channel_axis)
        params["pixels"] = replace(pixels, mask=hidden)
    names = ["y", "x"]
    if channel_axis is not None:
        names.insert(range(3)[channel_axis], "c")
    source = open_source(image, "".join(names))
    source.colour, source.wanted = channel_axis is not None, dtype
    solver = find_solver(source, take_sample(source), sigma, method, params, stack=False)
    return lazily(image, source, solver, default_memory(), workers)


def lazily(array: Any, source: Source, solver: BlockSolver, memory: int, workers: int | None) -> Any:
    """The denoised array, not computed yet; its chunks are whole multiples of the largest given one."""
    import dask.array as da
    from dask.delayed import delayed

    dtype = source.result_dtype
    whole = tuple((0, size) for size in source.shape)
    file = tuple(max(array.chunks[axis]) for axis in source.order)
    plan = plan_for(source, solver, whole, file, memory)
    straight = array.transpose(source.order)
    solve = delayed(solve_unit, pure=True)
    blocks = np.empty(plan.counts, object)
    for number, place in enumerate(product(*(range(count) for count in plan.counts))):
        box = plan.box(number)
        pixels = straight[slices(plan.read_box(box))]
        result = solve(solver, plan, source.axes, box, pixels, dtype.str, workers)
        blocks[place] = da.from_delayed(result, extent(box), dtype=dtype)
    found = da.block(blocks.tolist())
    return found.transpose(tuple(int(axis) for axis in np.argsort(source.order)))
