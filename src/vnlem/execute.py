"""Execute a plan on an image, or on any part of it: the only executor, for memory, parts and GPUs.

    rounds -> sizes, coarse to fine -> groups of channels -> a method's solver on standardised pixels

A part gets the same bytes as in the whole. The whole image is the region that covers everything.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from vnlem.estimate.halved import double_part, half_of, halve_part, needed_to_double, part_of
from vnlem.estimate.missing import first_guess, next_guess, relative_noise
from vnlem.estimate.runs import REACH, mean_of_runs_in_strips
from vnlem.estimate.scales import double_in_tiles, halve_in_tiles, join_in_tiles, level_around
from vnlem.noise import parts, strips
from vnlem.noise.rounds import join_in_units, mix
from vnlem.pipeline.device import lies_on_gpu, namespace, on_current_gpu, to_host
from vnlem.pipeline.progress import ProgressCallback
from vnlem.pipeline.regions import Region
from vnlem.pipeline.run import Job, computed
from vnlem.pipeline.sigma import halved_map
from vnlem.pipeline.tiles import Tile
from vnlem.pipeline.workers import Pool
from vnlem.plan import Group, Plan, Round, Size, map_of, reach
from vnlem.registry import find_method

STEPS = 1_000_000  # of the progress, for any rounds and sizes


def execute(
    plan: Plan,
    planes: Any,
    region: Region | None = None,
    *,
    workers: int = 1,
    progress: ProgressCallback | None = None,
    sigma_map: Any = None,
    missing: Any = None,
    details: dict[str, Any] | None = None,
) -> Any:
    """The denoised pixels of ``region.write`` from those of ``region.read``.

    planes: (channels, height, width), the pixels of ``region.read``; on a GPU only if the noise is white.
    region: the whole image when None.
    workers: threads; they do not change the result.
    sigma_map: standard deviation of the noise, (channels or 1, height or 1, width or 1), of ``region.read``.
    missing: missing pixels of ``region.read``, for plans that repair; none when None.
    details: receives what the method reports about the image at full size.

    >>> from vnlem.noise.model import NoiseModel
    >>> from vnlem.plan import Sample, make_plan
    >>> image = np.random.default_rng(0).normal(100, 20, (1, 96, 80))
    >>> params = find_method("nlm").with_defaults({})
    >>> plan = make_plan("nlm", params, Sample(image, (96, 80)), NoiseModel.white(15.0))
    >>> execute(plan, image).shape
    (1, 96, 80)
    """
    region = region or Region.whole(*planes.shape[1:])
    if not region.is_whole():
        _check_read(plan, region)
    if plan.repair is not None:
        return _repaired(plan, planes, region, workers, progress, sigma_map, missing, details)
    method = find_method(plan.method)
    solver = method.solver(plan.engine, plan.device)
    with Pool(workers) as pool:
        runs = sum(len(method.members(group.params)) for group in plan.groups())
        share = Share(progress, runs, _work_of(plan, region))
        run = _Execution(plan, solver, pool, share)
        if not plan.stabilises_first:
            result = run.rounds(planes, region, plan.rounds, sigma_map)
        else:
            before, solved, after = parts.steps(plan.noise, region)
            stable = strips.stabilise(plan.noise, planes, pool, before)
            result = run.rounds(stable, solved, plan.rounds, None)
            result = strips.unstabilise(plan.noise, result, pool, after)
    if details is not None:
        details.update(_mean_of(run.details))
    result = result if plan.limits is None else result.clip(*plan.limits)
    for channel in plan.constant:
        result[channel] = part_of(planes[channel : channel + 1], region.read, region.write)[0]
    return result


def _repaired(
    plan: Plan,
    planes: Any,
    region: Region,
    workers: int,
    progress: ProgressCallback | None,
    sigma_map: Any,
    missing: Any,
    details: dict[str, Any] | None,
) -> Any:
    """Execute a plan on planes with holes: they are filled round by round, then denoised with the rest."""
    repair = plan.repair
    assert repair is not None
    shape, write, read = region
    holes = np.zeros(planes.shape, bool) if missing is None else missing
    filled = first_guess(planes, holes, repair.level)
    bare = replace(plan, repair=None)
    steps: list[tuple[Plan, Tile]] = [(bare, write)]  # what each step writes, from the last to the first
    for guess in reversed(repair.guesses):
        before, wanted = steps[-1]
        steps.append((guess, wanted.grown(before.halo, shape) if not region.is_whole() else read))
    # Without holes within reach there is nothing to guess.
    if not holes.any():
        steps = steps[:1]
    share = Share(progress, len(steps), float(len(steps)))
    for own, wanted in reversed(steps):
        around = wanted.grown(own.halo, shape) if not region.is_whole() else read
        filled, holes = part_of(filled, read, around), part_of(holes, read, around)
        noise = _noise_with_holes(own, sigma_map, holes, Region(shape, around, region.read))
        part = Region(shape, wanted, around)
        told = details if own is bare else None
        result = execute(
            own, filled, part, workers=workers, progress=share.next(1.0), sigma_map=noise, details=told
        )
        if own is not bare:
            filled, holes = part_of(filled, around, wanted), part_of(holes, around, wanted)
            filled, read = next_guess(filled, result, holes), wanted
    return result


def _noise_with_holes(plan: Plan, sigma_map: Any, holes: Any, region: Region) -> Any:
    """The map of the noise of the pixels that a region writes; None if method or noise has none."""
    if not find_method(plan.method).sigma_maps or plan.noise.is_correlated or len(plan.rounds) > 1:
        return None
    level: Any = plan.noise.sigma if plan.noise.is_white else 1.0
    if sigma_map is not None:
        level = sigma_map if sigma_map.shape[2] == 1 else part_of(sigma_map, region.read, region.write)
    return level * relative_noise(holes)


def _check_read(plan: Plan, region: Region) -> None:
    """Refuse a part that reads less than its result depends on."""
    needed, read = region.write.grown(plan.halo, region.shape), region.read
    if read.grown(0, region.shape) != read or not read.contains(needed):
        raise ValueError(
            f"the region reads {tuple(read)} and the plan needs {tuple(needed)} (top, bottom, left, right); "
            "read the plan's halo around what is written"
        )


def _work_of(plan: Plan, region: Region) -> float:
    """Pixels of all rounds and sizes, counted once per run."""
    total = 0.0
    for one in plan.rounds:
        for number, size in enumerate(one.sizes):
            total += len(size.groups) * 0.25 ** (one.halvings + number)
    return total * region.read.area


class Share:
    """Progress of successive denoisings as progress of the whole."""

    def __init__(self, report: ProgressCallback | None, count: int, total: float) -> None:
        self._report, self._count, self._total, self._done = report, count, total, 0.0

    def next(self, work: float) -> ProgressCallback | None:
        """The progress of the next denoising; work: its number of pixels."""
        begun = self._done
        self._done += work
        report = self._report
        if report is None or self._count == 1:
            return report
        return lambda done, total: report(
            min(int(STEPS * (begun + work * done / max(total, 1)) / self._total), STEPS), STEPS
        )


class _Execution:
    """The execution of a plan."""

    def __init__(
        self,
        plan: Plan,
        solver: Callable[[Any], Any],
        pool: Pool,
        share: Share,
    ) -> None:
        self._plan, self._solver, self._pool, self._share = plan, solver, pool, share
        self.details: list[dict[str, Any]] = []  # what the groups of channels report
        self._method = find_method(plan.method)

    def rounds(self, planes: Any, region: Region, rounds: tuple[Round, ...], sigma_map: Any) -> Any:
        """The result of the last of some rounds.

        `region` and `planes` are those of the image, halved as often as in the last round. A later round
        works on a mixture of the image and the result of the round before.
        """
        *before, last = rounds
        final = len(rounds) == len(self._plan.rounds)
        if not before:
            return self.sizes(planes, region, last.sizes, sigma_map, final)
        shape, write, read = region
        seen = write.grown(reach(last.sizes), shape)
        if before[-1].halvings == last.halvings:
            found = self.rounds(planes, Region(shape, seen, read), tuple(before), None)
        else:
            smaller, known = halve_part(planes, read, shape, self._halve)
            below = Region(half_of(shape), needed_to_double(seen, shape), known)
            double = partial(double_in_tiles, pool=self._pool)
            found = double_part(self.rounds(smaller, below, tuple(before), None), seen, shape, double)
        mixture = strips.pixel_by_pixel(
            partial(mix, share=last.share), self._pool, part_of(planes, read, seen), found
        )
        return self.sizes(mixture, Region(shape, write, seen), last.sizes, None, final)

    def sizes(
        self, planes: Any, region: Region, sizes: tuple[Size, ...], sigma_map: Any, reports: bool
    ) -> Any:
        """The image at several sizes, joined from coarse to fine. Parts begin at even pixels."""
        shape, write, read = region
        first = sizes[0]
        if len(sizes) == 1:
            return self.one_size(planes, region, first, sigma_map, reports)
        half = half_of(shape)
        # What the coarser sizes must write, and twice that: what this size must write for the join.
        coarse = write.halved().grown(first.join_reach, half)
        fine = coarse.doubled(shape)
        result = self.one_size(planes, Region(shape, fine, read), first, sigma_map, reports)
        smaller, known = halve_part(planes, read, shape, self._halve)
        smaller_map = self._halved_map(sigma_map, region, first)
        below = self.sizes(smaller, Region(half, coarse, known), sizes[1:], smaller_map, False)
        joined = self._join(first, result, below, _map_of_part(sigma_map, read, fine))
        return part_of(joined, fine, write)

    def one_size(self, planes: Any, region: Region, size: Size, sigma_map: Any, reports: bool) -> Any:
        """One size, from the part of the read pixels that it needs."""
        shape, write, read = region
        around = write.grown(size.margin, shape) if not region.is_whole() else read
        around = around._replace(top=_up(around.top, size.grain), left=_up(around.left, size.grain))
        pixels = part_of(planes, read, around)
        own = Region(shape, write, around)
        if size.noise is not None:
            pixels = strips.stabilise(size.noise, pixels, self._pool, Region(shape, around, around))
        sigma_map = _map_of_part(sigma_map, read, around)
        found: list[dict[str, Any]] = []

        rows, columns = own.written()

        def solved(group: Group, picture: Any, own_map: Any) -> Any:
            """The denoised pixels of a group of channels, in the units of the picture."""
            if group.is_negligible:
                return picture[:, rows, columns].copy()
            there, scale, workers = self._where_solved(picture), group.scale, self._pool.workers
            jobs = self._jobs(group, own, there, own_map)
            if len(jobs) == 1:
                denoised = self._solver(jobs[0])[:, rows, columns]
            else:
                denoised = self._mean(jobs, own, np.float32(scale.sigma))
            found.extend(job.details for job in jobs)
            before = jobs[0].pixels[:, rows, columns]
            result = scale.restore(there[:, rows, columns], before, denoised, workers=workers)
            return result if there is picture else to_host(result)

        if size.same:
            (group,) = size.groups
            mean = pixels.mean(axis=0, keepdims=True)
            change = solved(group, mean, map_of(sigma_map, group, same=True)) - mean[:, rows, columns]
            result = pixels[:, rows, columns] + change
        elif self._plan.constant:
            (group,) = size.groups
            picture = pixels[list(group.channels)]
            result = pixels[:, rows, columns].copy()
            result[list(group.channels)] = solved(group, picture, map_of(sigma_map, group))
        elif len(size.groups) == 1:
            result = solved(size.groups[0], pixels, map_of(sigma_map, size.groups[0]))
        else:
            every = [
                solved(group, pixels[list(group.channels)], map_of(sigma_map, group)) for group in size.groups
            ]
            result = namespace(every[0]).concatenate(every)
        if reports:
            self.details = found
        if size.noise is None:
            return result
        return strips.unstabilise(size.noise, result, self._pool, Region(shape, write, write))

    def _where_solved(self, picture: Any) -> Any:
        """A picture on the device of its solver; solvers that work in parts copy them to a GPU themselves."""
        if self._plan.device == "cpu" or lies_on_gpu(picture) or self._method.halo:
            return picture
        return on_current_gpu(picture)

    def _jobs(self, group: Group, region: Region, picture: Any, sigma_map: Any) -> list[Job[Any]]:
        """The runs whose mean is the result: one, or two that also write what the mean reads around."""
        workers, scale = self._pool.workers, group.scale
        pixels = scale.standardise(picture, workers)
        members = self._method.members(group.params)
        work = picture.shape[1] * picture.shape[2] / len(members)
        spread = None if sigma_map is None else (sigma_map / scale.scale).astype(np.float32)
        if len(members) > 1:
            region = region._replace(write=region.write.grown(REACH, region.shape))
        part = None if region.is_whole() and region.write == region.read else region
        return [
            Job(
                pixels,
                scale.sigma,
                params,
                workers,
                self._share.next(work),
                sigma_map=spread,
                region=part,
                peak=group.peak,
            )
            for params in members
        ]

    def _mean(self, jobs: list[Job[Any]], region: Region, sigma: Any) -> Any:
        """The mean of two runs, in the part that a region writes."""
        wide = region.write.grown(REACH, region.shape)
        written = (slice(None), *wide.inside(region.read))
        small, large = (self._solver(job)[written] for job in jobs)
        level = sigma if jobs[0].sigma_map is None else _map_of_part(jobs[0].sigma_map, region.read, wide)
        mean = mean_of_runs_in_strips(small, large, level, self._pool)
        return mean[:, *region.write.inside(wide)]

    def _halve(self, planes: Any) -> Any:
        return halve_in_tiles(planes, self._pool)

    def _halved_map(self, sigma_map: Any, region: Region, size: Size) -> Any:
        """A map of the noise at half the size, for the part that `halve_part` gives."""
        if sigma_map is None or 1 in sigma_map.shape[1:]:
            return halved_map(sigma_map, self._halve)

        def halve(squares: Any) -> Any:
            return halve_part(squares, region.read, region.shape, self._halve)[0]

        smaller = halved_map(sigma_map, halve)
        # Noise that is stabilised at each size has standard deviation one there.
        return smaller if size.noise is None else 2 * smaller

    def _join(self, size: Size, fine: Any, coarse: Any, sigma_map: Any) -> Any:
        if size.noise is not None:
            return join_in_units(size.noise, fine, coarse, self._pool)
        if sigma_map is not None:
            level = sigma_map if 1 in sigma_map.shape[1:] else level_around(sigma_map)
        elif len({group.scale.noise for group in size.groups}) > 1:
            level = np.array([group.scale.noise for group in size.groups])[:, None, None]
        else:
            level = size.level
        return join_in_tiles(fine, coarse, level, self._pool)


def _map_of_part(sigma_map: Any, read: Tile, tile: Tile) -> Any:
    """A tile of a map of the noise."""
    if sigma_map is None or 1 in sigma_map.shape[1:]:
        return sigma_map
    return part_of(sigma_map, read, tile)


def _up(line: int, grain: int) -> int:
    return -(-line // grain) * grain


def _mean_of(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean of what the groups of channels report. A group without noise reports nothing."""
    told = [computed(details) for details in found if details]
    if len(told) < 2:
        return told[0] if told else {}
    return {
        key: np.mean([details[key] for details in told], axis=0).tolist()
        for key, value in told[0].items()
        if isinstance(value, int | float | list)
    }
