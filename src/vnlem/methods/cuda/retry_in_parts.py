"""Images that do not fit into a device's memory: solved in parts, with the result of the whole."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from vnlem.kernels.cuda import engine as engines
from vnlem.kernels.cuda.patches import largest_magnitude
from vnlem.pipeline.device import namespace
from vnlem.pipeline.regions import Region
from vnlem.pipeline.run import Job, computed
from vnlem.pipeline.tiles import Tile

# Parts are cut at multiples of this; a part of this size or smaller is not cut.
GRAIN = 64

Solver = Callable[..., Any]


def in_regions(halo: Callable[[Any], int], grain: int = 1) -> Callable[[Solver], Solver]:
    """Make a solver of a job on an engine work in parts if the memory is too small for the whole.

    halo: parameters -> how far around a part its result depends on pixels. grain: parts are read from
    multiples of it, for kernels whose sums depend on where their blocks begin. The job's pixels may lie on
    the host, if they do not fit either; the result lies where they do.
    """

    def decorate(solve: Solver) -> Solver:
        @wraps(solve)
        def wrapped(job: Job[Any], engine: Any = None) -> Any:
            engine = engine or engines.Engine()
            if isinstance(job.pixels, engine.xp.ndarray):
                # Outside the handler the arrays of the failed attempt are freed.
                try:
                    return solve(job, engine)
                except MemoryError:
                    pass
                engine.free()
            return _solve_parts(solve, job, engine, halo(job.params), grain)

        return wrapped

    return decorate


def _solve_parts(solve: Solver, job: Job[Any], engine: Any, halo: int, grain: int) -> Any:
    """Part by part; those that do not fit are halved."""
    whole = job.region or Region.whole(*job.pixels.shape[1:])
    on_device = isinstance(job.pixels, engine.xp.ndarray)
    peak = job.peak or _peak(engine, job.pixels, on_device)
    out = namespace(job.pixels).empty_like(job.pixels)
    waiting = [whole.write]
    failed = {whole.read} if on_device else set()
    found: list[tuple[float, dict[str, Any]]] = []
    total = whole.write.area
    while waiting:
        tile = waiting.pop(0)
        region = Region(whole.shape, tile, _read(whole, tile, halo, grain))
        part = None if region.read in failed else _attempt(solve, job, engine, whole, region, peak)
        if part is None:
            engine.free()
            failed.add(region.read)
            waiting[:0] = _halves(tile)
            continue
        solved, details = part
        written = solved[:, *region.written()]
        out[:, *tile.inside(whole.read)] = written if on_device or engine.xp is np else written.get()
        found.append((tile.area / total, details))
        if job.progress is not None:
            job.progress(round(1000 * sum(share for share, _ in found)), 1000)
    job.details.update(_mean_of(found), regions=len(found))
    return out


def _attempt(
    solve: Solver, job: Job[Any], engine: Any, whole: Region, region: Region, peak: float
) -> tuple[Any, dict[str, Any]] | None:
    """The part's planes and details, or None if it does not fit."""
    rows, columns = region.read.inside(whole.read)
    sigma_map = job.sigma_map
    try:
        pixels = engine.xp.ascontiguousarray(engine.xp.asarray(job.pixels[:, rows, columns]))
        if sigma_map is not None:
            if sigma_map.shape[2] > 1:
                sigma_map = sigma_map[:, rows, columns]
            sigma_map = engine.xp.asarray(sigma_map)
        part = replace(
            job, pixels=pixels, region=region, peak=peak, sigma_map=sigma_map, progress=None, details={}
        )
        return solve(part, engine), computed(part.details)
    except MemoryError:
        return None


def _read(whole: Region, tile: Tile, halo: int, grain: int) -> Tile:
    """What is read for a tile: from a multiple of the grain on, with the halo of such a multiple."""
    start = tile._replace(top=tile.top // grain * grain, left=tile.left // grain * grain)
    around = start.grown(halo, whole.shape)
    return Tile(
        max(around.top // grain * grain, whole.read.top),
        min(around.bottom, whole.read.bottom),
        max(around.left // grain * grain, whole.read.left),
        min(around.right, whole.read.right),
    )


def _halves(tile: Tile) -> list[Tile]:
    """A tile cut across its longer side."""
    height, width = tile.shape
    if max(height, width) <= GRAIN:
        raise MemoryError("even a small part of the image does not fit into the device's memory")
    if height >= width:
        middle = max((tile.top + height // 2) // GRAIN, tile.top // GRAIN + 1) * GRAIN
        return [tile._replace(bottom=middle), tile._replace(top=middle)]
    middle = max((tile.left + width // 2) // GRAIN, tile.left // GRAIN + 1) * GRAIN
    return [tile._replace(right=middle), tile._replace(left=middle)]


def _peak(engine: Any, pixels: Any, on_device: bool) -> float:
    if on_device:
        return largest_magnitude(engine, pixels)
    return max(float(np.abs(line).max()) for plane in pixels for line in plane)


def _mean_of(found: list[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    """Details of all parts, each with its share of the image."""
    names = found[0][1] if found else {}
    return {
        name: np.sum([share * np.asarray(details[name]) for share, details in found], axis=0).tolist()
        for name in names
    }
