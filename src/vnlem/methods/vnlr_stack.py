"""VNLR on stacks: movies, volumes and sets of images, whose groups draw members from many planes.

planes -> patches of one or several planes -> k nearest in the planes around -> ridge combination -> planes
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from vnlem.estimate.particles import filter_set, may_filter
from vnlem.estimate.planes import Delay, Frame, PlanesInFlight, Sweep, run_planes, work_on
from vnlem.estimate.ridge import PassSettings
from vnlem.kernels.cpu.sheets import PADDING
from vnlem.methods.vnlr_passes import from_opponent, matching_weights, to_opponent
from vnlem.methods.vnlr_stack_params import MUCH_NOISE_KEPT, StackParams, resolve_stack
from vnlem.neighbours.alike import Alike
from vnlem.neighbours.motion import Motion
from vnlem.neighbours.planes import PlaneMatcher, Search
from vnlem.neighbours.sites import SamePlace, Sites
from vnlem.pipeline import checks
from vnlem.pipeline.device import namespace, to_host
from vnlem.pipeline.stack_task import Plane, StackSolver, StackTask
from vnlem.pipeline.workers import Pool
from vnlem.registry import check_preset, find_method, stack_solver


def prepare(
    task: StackTask,
    *,
    preset: str = "auto",
    engine: str = "fast",
    profile: str = "balanced",
    group: str = "d4",
    patch_size: int | None = None,
    patch_depth: int | None = None,
    plane_distance: int | None = None,
    n_neighbors: int | None = None,
    patch_distance: int | None = None,
    step: int | None = None,
    passes: int | None = None,
    scales: int | None = None,
    delay: int | None = None,
) -> tuple[StackParams, StackSolver]:
    """Check everything before the first page is read; the parameters, and what takes and gives the pages.

    task: the pages of one series; of any kind.
    preset, engine, profile, group, patch_size, n_neighbors, patch_distance, step, passes: as in
        :func:`vnlem.denoise_vnlr`; the window of radius `patch_distance` is searched in every plane.
    patch_depth: planes that a patch spans.
    plane_distance: planes before and after in which members are searched for; for a set, how many other
        images.
    scales: sizes at which the stack is denoised, as in :func:`vnlem.denoise_vnlr`: three for a movie when
        None, one for other stacks.
    delay: for a movie: how many later frames a frame may depend on. All that the passes reach when None.
    """
    options = {name: value for name, value in locals().items() if name not in ("task", "preset", "engine")}
    check_preset(find_method("vnlr"), preset)
    checks.choice("engine", engine, ("fast", "reference"))
    params = resolve_stack(task.kind, len(task.sizes), **options)
    if task.channels == 3:
        params = replace(params, noise_kept=MUCH_NOISE_KEPT)
    smallest = min(min(size) for size in task.sizes)
    if smallest < max(params.patch_sizes):
        raise ValueError(
            f"the smallest page is {smallest} pixels wide or high, less than the patch "
            f"({max(params.patch_sizes)}); pass a smaller patch_size or larger pages"
        )
    if task.device != "cpu" and task.sigma_map is not None:
        raise ValueError("a sigma that varies within a stack works on the CPU only; pass device='cpu'")
    if engine == "reference" and task.device == "cpu":
        return params, lambda planes: solve_plainly(planes, task, params)
    solve = solve_stack if task.device == "cpu" else stack_solver("vnlr", engine)
    usual = all(options[name] is None for name in options.keys() - {"profile", "group", "delay"})
    alone = task.channels == 1 and task.sigma_map is None and usual
    if task.kind == "N" and alone and may_filter(task.sizes, task.sigma):
        return params, lambda planes: _of_particles(planes, task, lambda held: solve(held, task, params))
    return params, lambda planes: solve(planes, task, params)


def _of_particles(planes: Iterator[Plane], task: StackTask, otherwise: StackSolver) -> Iterator[Plane]:
    """A set of noisy particles by their covariance, if that is informative; else by groups of patches."""
    held = list(planes)
    images = np.stack([to_host(plane) for plane in held]).astype(np.float64)
    found = filter_set(images, task.sigma)
    if found is None:
        yield from otherwise(iter(held))
        return
    if task.report is not None:
        task.report(1, 1)
    for plane, image in zip(held, found, strict=True):
        yield namespace(plane).asarray(image.astype(np.float32))


def solve_stack(planes: Iterator[Plane], task: StackTask, params: StackParams) -> Iterator[Plane]:
    """Denoise standardised planes one after another; only those in flight are held.

    planes: in order; (H, W), or (channels, H, W).
    task: their sizes and their noise.

    Yields the denoised planes, in order.
    """
    schedule = schedule_of(task, params)
    frames: Iterator[Frame] = (
        Frame(plane, plane, plane, _variance(task, index))
        for index, plane in enumerate(map(entering, planes))
    )
    with Pool(task.workers) as pool:
        for number, sweep in enumerate(schedule.sweeps):
            first = number == 0
            search = search_of(params, number)
            matcher = None
            if first or number in params.rematch:
                weights = matching_weights(task.channels, first).ravel()
                sites = _sites(params, first, task.sigma, pool)
                matcher = PlaneMatcher(schedule.shape, search, task.sigma, weights, sites)
            settings = settings_of(params, number)
            varies = task.sigma_map is not None
            held = PlanesInFlight(
                schedule.shape, search, settings, task.sigma, task.channels, matcher, varies=varies
            )
            work = partial(work_on, held, sweep=sweep, search=search, pool=pool)
            frames = run_planes(frames, held, sweep, search.depth, work, schedule.one_done)
        for frame in frames:
            yield leaving(frame.pilot, task.channels)


def _variance(task: StackTask, index: int) -> Plane | None:
    """The variance of the noise of a plane; None if it is the same everywhere."""
    if task.sigma_map is None:
        return None
    # A patch without any noise would make its weights 0/0.
    least = np.float32(max(1e-6 * task.sigma**2, 1e-30))
    found: Plane = np.maximum(task.sigma_map(index).astype(np.float32) ** 2, least)
    return found


def entering(plane: Plane) -> Plane:
    """A plane as the passes take it, (channels, H, W): three channels as opponent colours."""
    return to_opponent(plane if plane.ndim == 3 else plane[None])


def leaving(plane: Plane, channels: int) -> Plane:
    """A plane with its original axes."""
    return from_opponent(plane) if channels > 1 else plane[0]


def solve_plainly(planes: Iterator[Plane], task: StackTask, params: StackParams) -> Iterator[Plane]:
    """The same with the NumPy reference."""
    from vnlem.reference import vnlr_stack as reference

    weights = [matching_weights(task.channels, first).ravel() for first in (True, False)]
    variances = [_variance(task, index) for index in range(len(task.sizes))]
    for plane in reference.denoise(map(entering, planes), task.sigma, params, weights, variances):
        yield leaving(plane, task.channels)


class StackSchedule(NamedTuple):
    """How the passes go through a stack."""

    sweeps: list[Sweep]
    shape: tuple[int, int, int]  # the most planes in flight, and the size of the largest
    one_done: Callable[[], None]  # reports that the reference patches of a plane are done


def schedule_of(task: StackTask, params: StackParams) -> StackSchedule:
    """The passes, and room for the planes in flight in each."""
    total = len(task.sizes)
    done = 0
    # A set of images is held as a whole: the most similar images may be anywhere in it.
    reach = total if params.kind == "N" else params.reach
    sweeps = [
        Sweep(
            total,
            reach,
            params.step if number else params.first_step,
            params.plane_step,
            keep_groups=number < params.passes and number + 1 not in params.rematch,
            part=task.part,
            delay=None if params.delays is None else Delay(*params.delays[number]),
        )
        for number in range(params.passes + 1)
    ]
    n_parts = sum(len(sweep.planes(depth)) for sweep, depth in zip(sweeps, params.depths, strict=True))

    def one_done() -> None:
        nonlocal done
        done += 1
        if task.report is not None:
            task.report(done, n_parts)

    in_flight = sweeps[0].in_flight(0, max(params.depths))[1]
    shape = (in_flight, max(h for h, _ in task.sizes), max(w for _, w in task.sizes))
    if in_flight * shape[1] * (shape[2] + PADDING) > np.iinfo(np.int32).max:
        raise ValueError(
            f"{in_flight} planes of {shape[1]}x{shape[2]} pixels are too large to be held together; "
            "pass a smaller plane_distance, or denoise parts of the planes"
        )
    return StackSchedule(sweeps, shape, one_done)


def settings_of(params: StackParams, number: int) -> PassSettings:
    """How the groups of a pass are combined."""
    return PassSettings(
        tau=params.noise_kept * (1 - number / params.passes),
        boost=params.boost,
        extra_load=params.extra_load if number == 0 else None,
        window=params.window,
    )


def search_of(params: StackParams, number: int) -> Search:
    """How the members of the groups of a pass are searched for."""
    first = number == 0
    return Search(
        patch_size=params.patch_sizes[number],
        depth=params.depths[number],
        radius=params.patch_distance,
        n_members=params.first_n_neighbors if first else params.n_neighbors,
        group=params.group,
        reflect_depth=params.kind == "Z" and params.group == "d4",
        factor=1.0 if first else params.match_factor,
        penalty=params.first_match_penalty if first else params.match_penalty,
        flat_energy=params.flat_energy if first else None,
    )


def _sites(params: StackParams, first: bool, sigma: float, pool: Pool) -> Sites:
    """Where members are searched for beyond their own plane."""
    if params.kind == "T":
        return Motion(noisy=first, sigma=sigma, pool=pool)
    if params.kind == "Z":
        return SamePlace()
    return Alike(params.reach, noisy=first)
