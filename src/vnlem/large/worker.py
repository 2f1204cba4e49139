"""One unit of work, from reading to its marker. This is what every worker runs, here or on a cluster."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.large.blocks import Block, BlockPlan, BlockSolver
from vnlem.large.boxes import Box, cut_at, describe, extent, inside, shifted, slices
from vnlem.large.errors import explain
from vnlem.large.markers import Markers
from vnlem.large.pyramid import covered, downsample
from vnlem.large.sources import Source
from vnlem.large.stores import StoreLevel, open_level, write_box
from vnlem.pipeline import checks
from vnlem.pipeline.workers import check_workers

PYRAMID_SIDE = 1024  # of a unit in coarser levels; it reads four times as many pixels


@dataclass(frozen=True)
class RunTask:
    """Everything a worker needs to know; small enough to send with every unit."""

    source: Source
    solver: BlockSolver
    root: Path  # the store that is written
    levels: tuple[StoreLevel, ...]
    plans: tuple[BlockPlan, ...]  # one for each level
    markers: Markers
    fingerprint: str
    target: Path  # for messages


def level_plan(level: StoreLevel) -> BlockPlan:
    """The plan of a coarser level: whole files, no halo."""
    unit = tuple(
        min(-(-PYRAMID_SIDE // file), -(-size // file)) * file if axis >= len(level.shape) - 2 else file
        for axis, (size, file) in enumerate(zip(level.shape, level.file, strict=True))
    )
    none = (0,) * len(unit)
    return BlockPlan(
        shape=level.shape, unit=unit, block=unit, halo=none, work_halo=none, offset=none, whole=level.shape
    )


def do_unit(task: RunTask, level: int, number: int, workers: int | None = None) -> int:
    """Do a unit and mark it; returns its number. Errors are one sentence each."""
    try:
        box = task.plans[level].box(number)
        pixels = _solve(task, box, workers) if level == 0 else _downsample(task, level, box)
        array = open_level(task.root, task.levels[level], "r+")
        threads = check_workers(workers)
        files, size = write_box(array, task.root, task.levels[level], box, pixels, threads)
        task.markers.set_done(level, number, fingerprint=task.fingerprint, files=files, bytes=size)
    except Exception as error:
        raise explain(error, task.target) from error
    return number


def _solve(task: RunTask, box: Box, workers: int | None) -> NDArray[Any]:
    plan, source = task.plans[0], task.source
    read = plan.read_box(box)
    pixels = source.read(read)
    _check_finite(pixels, source, read, task.solver.fills)
    if pixels.dtype.kind == "f":
        valid = pixels[~np.isnan(pixels)] if task.solver.fills else pixels
        if valid.size:
            checks.refuse_outliers(f"{source.name} at {describe(read, source.axes)}", valid)
    result = solve_unit(task.solver, plan, source.axes, box, pixels, source.result_dtype.str, workers)
    if source.sensor is None:
        return result
    kept = source.sensor.keep_saturated(result, source.raw(shifted(box, plan.offset)), source.dtype)
    return kept.astype(result.dtype)


def solve_unit(
    solver: BlockSolver,
    plan: BlockPlan,
    axes: tuple[str, ...],
    box: Box,
    pixels: NDArray[Any],
    dtype: str,
    workers: int | None,
) -> NDArray[Any]:
    """The denoised pixels of a box of the target, block by block, from those of ``plan.read_box(box)``."""
    pixels, known = np.asarray(pixels), plan.read_box(box)
    solved = [axes.index(name) for name in solver.axes]
    flat = tuple(slice(None) if axis in solved else 0 for axis in range(len(box)))
    whole = tuple(plan.whole[axis] for axis in solved)
    result = np.empty(extent(box), np.dtype(dtype))
    for part in plan.blocks(box):
        read, write = plan.read_box(part), shifted(part, plan.offset)
        at = {name: write[axis][0] for axis, name in enumerate(axes) if axis not in solved}
        block = Block(tuple(read[axis] for axis in solved), tuple(write[axis] for axis in solved), whole, at)
        values = pixels[slices(inside(read, known))][flat]
        result[slices(inside(part, box))][flat] = solver.solve(values, block, workers)
    return result


def _check_finite(pixels: NDArray[Any], source: Source, box: Box, may_miss: bool) -> None:
    if pixels.dtype.kind != "f":
        return
    wrong = np.isinf(pixels) if may_miss else ~np.isfinite(pixels)
    if wrong.any():
        bad = np.argwhere(wrong)[0]
        place = tuple((start + int(k), start + int(k) + 1) for k, (start, _) in zip(bad, box, strict=True))
        raise ValueError(
            f"{source.name} holds NaN or infinite values, e.g. at {describe(place, source.axes)}; "
            "replace them first"
        )


def _downsample(task: RunTask, level: int, box: Box) -> NDArray[Any]:
    """A unit of a coarser level, made piece by piece to save memory with large shards."""
    fine, coarse = task.levels[level - 1], task.levels[level]
    array = open_level(task.root, fine)
    result = np.empty(extent(box), array.dtype)
    steps = [PYRAMID_SIDE if axis >= len(box) - 2 else 1 for axis in range(len(box))]
    for piece in cut_at(box, steps):
        pixels = np.asarray(array[slices(covered(piece, fine.shape, coarse.shape))])
        result[slices(inside(piece, box))] = downsample(pixels, piece, fine.shape, coarse.shape)
    return result
