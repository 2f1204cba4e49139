"""One unit of work, from reading to its marker. This is what every worker runs, here or on a cluster."""

from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.large.boxes import Box, describe, inside, shifted, slices
from vnlem.large.engine import Engine, Place
from vnlem.large.errors import explain
from vnlem.large.markers import Markers
from vnlem.large.pyramid import covered, downsample
from vnlem.large.sources import Source
from vnlem.large.stores import Level, open_level, write_box
from vnlem.large.units import Plan
from vnlem.pipeline import checks
from vnlem.pipeline.workers import check_workers

PYRAMID_SIDE = 1024  # of a unit in coarser levels; it reads four times as many pixels


@dataclass(frozen=True)
class Task:
    """Everything a worker needs to know; small enough to travel with every unit."""

    source: Source
    engine: Engine
    root: Path  # the store that is written
    levels: tuple[Level, ...]
    plans: tuple[Plan, ...]  # one for each level
    markers: Markers
    fingerprint: str
    target: Path  # for messages


def level_plan(level: Level) -> Plan:
    """The plan of a coarser level: whole files, no halo."""
    unit = tuple(
        min(-(-PYRAMID_SIDE // file), -(-size // file)) * file if axis >= len(level.shape) - 2 else file
        for axis, (size, file) in enumerate(zip(level.shape, level.file, strict=True))
    )
    none = (0,) * len(unit)
    return Plan(
        shape=level.shape, unit=unit, block=unit, halo=none, work_halo=none, offset=none, whole=level.shape
    )


def do_unit(task: Task, level: int, number: int, workers: int | None = None) -> int:
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


def _solve(task: Task, box: Box, workers: int | None) -> NDArray[Any]:
    plan, source, engine = task.plans[0], task.source, task.engine
    read_box = plan.read_box(box)
    pixels = source.read(read_box)
    _check_finite(pixels, source, read_box)
    if pixels.dtype.kind == "f":
        checks.refuse_outliers(f"{source.name} at {describe(read_box, source.axes)}", pixels)
    result = np.empty([stop - start for start, stop in box], source.result_dtype)
    solved = [source.axes.index(name) for name in engine.axes]
    along = partial(_along, solved=solved)
    whole = tuple(source.shape[axis] for axis in solved)
    for block in plan.blocks(box):
        write = shifted(block, plan.offset)
        read = plan.read_box(block)
        at = {name: write[axis][0] for axis, name in enumerate(source.axes) if axis not in solved}
        place = Place(along(read), along(write), whole, at)
        flat = [0 if axis not in solved else slice(None) for axis in range(len(box))]
        values = pixels[slices(inside(read, read_box))][tuple(flat)]
        result[slices(inside(block, box))][tuple(flat)] = engine.solve(values, place, workers)
    if source.sensor is None:
        return result
    kept = source.sensor.keep_saturated(result, source.raw(shifted(box, plan.offset)), source.dtype)
    return kept.astype(result.dtype)


def _along(box: Box, solved: list[int]) -> Box:
    return tuple(box[axis] for axis in solved)


def _check_finite(pixels: NDArray[Any], source: Source, box: Box) -> None:
    if pixels.dtype.kind == "f" and not np.isfinite(pixels).all():
        bad = np.argwhere(~np.isfinite(pixels))[0]
        place = tuple((start + int(k), start + int(k) + 1) for k, (start, _) in zip(bad, box, strict=True))
        raise ValueError(
            f"{source.name} holds NaN or infinite values, e.g. at {describe(place, source.axes)}; "
            "replace them first"
        )


def _downsample(task: Task, level: int, box: Box) -> NDArray[Any]:
    """A unit of a coarser level, made piece by piece so that a large shard does not need much memory."""
    fine, coarse = task.levels[level - 1], task.levels[level]
    array = open_level(task.root, fine)
    result = np.empty([stop - start for start, stop in box], array.dtype)
    steps = [PYRAMID_SIDE if axis >= len(box) - 2 else 1 for axis in range(len(box))]
    cuts = [
        [(a, min(a + step, stop)) for a in range(start, stop, step)]
        for (start, stop), step in zip(box, steps, strict=True)
    ]
    for piece in product(*cuts):
        pixels = np.asarray(array[slices(covered(piece, fine.shape, coarse.shape))])
        result[slices(inside(piece, box))] = downsample(pixels, piece, fine.shape, coarse.shape)
    return result
