"""VNLR on stacks: movies, volumes and sets of images, whose groups draw members from many planes.

planes -> patches of one or several planes -> k nearest in the planes around -> ridge combination -> planes
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.planes import Frame, PlanesInFlight, Sweep, run_planes
from vnlem.estimate.ridge import PassSettings
from vnlem.kernels.numba.sheets import PADDING
from vnlem.methods.vnlr_params import LIMITS, PROFILES
from vnlem.neighbours.alike import Alike
from vnlem.neighbours.groups import TURNING
from vnlem.neighbours.motion import Motion
from vnlem.neighbours.planes import Part, PlaneMatcher, Search
from vnlem.neighbours.sites import SamePlace, Sites
from vnlem.pipeline import checks
from vnlem.pipeline.presets import check_preset
from vnlem.pipeline.workers import Pool

Plane = NDArray[np.float32]

GROUPS = ("identity", "c4", "d4")


@dataclass(frozen=True)
class StackParams:
    """Parameters of VNLR on a stack; lengths in pixels or planes."""

    profile: str
    kind: str  # "T", "Z" or "N"
    group: str
    patch_sizes: tuple[int, ...]  # of the first pass and of each pilot pass
    depth: int  # planes a patch spans
    reach: int  # planes before and after that members may begin in
    n_neighbors: int
    patch_distance: int  # radius of the window in every plane
    step: int
    plane_step: int
    passes: int
    rematch: tuple[int, ...]
    first_n_neighbors: int
    first_step: int
    boost: float
    noise_kept: float = 0.75
    extra_load: float = 0.25
    first_match_penalty: float = 0.6
    flat_energy: float = 1.25
    match_factor: float = 1.3
    match_penalty: float = 0.04


@dataclass(frozen=True)
class _Profile:
    """What a profile spends on one kind of stack."""

    first_patch: int
    patch: int
    depth: int
    reach: int
    n_neighbors: int
    patch_distance: int
    step: int
    plane_step: int
    passes: int
    first_n_neighbors: int
    first_step: int
    boost: float


_PROFILES = {
    ("T", "quality"): _Profile(7, 7, 2, 6, 80, 7, 4, 1, 5, 32, 4, 1.2),
    ("T", "balanced"): _Profile(7, 7, 2, 4, 64, 7, 5, 1, 4, 24, 4, 1.15),
    ("T", "fast"): _Profile(7, 7, 2, 2, 48, 7, 6, 1, 3, 20, 5, 1.15),
    ("Z", "quality"): _Profile(4, 5, 4, 5, 80, 7, 3, 2, 5, 32, 3, 1.2),
    ("Z", "balanced"): _Profile(4, 5, 4, 4, 64, 7, 3, 3, 4, 32, 3, 1.15),
    ("Z", "fast"): _Profile(4, 5, 4, 2, 48, 7, 4, 3, 3, 24, 3, 1.15),
    ("N", "quality"): _Profile(7, 8, 1, 20, 80, 22, 4, 1, 5, 24, 3, 1.2),
    ("N", "balanced"): _Profile(7, 8, 1, 12, 64, 20, 5, 1, 4, 20, 4, 1.15),
    ("N", "fast"): _Profile(7, 8, 1, 6, 64, 14, 6, 1, 3, 18, 5, 1.15),
}


def resolve_stack(
    kind: str,
    n_planes: int,
    *,
    profile: str = "balanced",
    group: str = "d4",
    patch_size: Any = None,
    patch_depth: Any = None,
    plane_distance: Any = None,
    n_neighbors: Any = None,
    patch_distance: Any = None,
    step: Any = None,
    passes: Any = None,
) -> StackParams:
    """Parameters for a stack of one kind and length.

    Examples
    --------
    >>> resolve_stack("T", 10).depth, resolve_stack("Z", 3).depth
    (2, 3)
    """
    checks.choice("profile", profile, PROFILES)
    if group in TURNING:
        raise ValueError(
            f"group={group!r} is not available for stacks; use group='d4', or denoise page by page"
        )
    checks.choice("group", group, GROUPS)
    given = _PROFILES[kind, profile]

    def whole(name: str, value: Any, default: int, smallest: int = 1) -> int:
        return default if value is None else checks.whole(name, value, smallest, LIMITS.get(name, 64))

    n_passes = whole("passes", passes, given.passes)
    if patch_size is None:
        sizes = (given.first_patch, *[given.patch] * n_passes)
    else:
        sizes = (whole("patch_size", patch_size, 7, 2),) * (n_passes + 1)
    if step is not None and whole("step", step, 1) > min(sizes):
        raise ValueError(
            f"step must be at most the smallest patch of the passes, {min(sizes)}, or pixels between the "
            f"patches would have no estimate; got {step!r}"
        )
    depth = min(whole("patch_depth", patch_depth, given.depth), n_planes)
    if kind == "N" and depth > 1:
        raise ValueError(f"patch_depth must be 1 for a set of images, got {patch_depth!r}")
    rematch = tuple(m for m in range(1, n_passes + 1) if m % 2 == 1) if profile != "fast" else (1,)
    return StackParams(
        profile=profile,
        kind=kind,
        group=group,
        patch_sizes=sizes,
        depth=depth,
        reach=whole("plane_distance", plane_distance, given.reach, 0),
        n_neighbors=whole("n_neighbors", n_neighbors, given.n_neighbors, 2),
        patch_distance=whole("patch_distance", patch_distance, given.patch_distance),
        step=whole("step", step, min(given.step, min(sizes[1:]))),
        plane_step=min(given.plane_step, depth),
        passes=n_passes,
        rematch=rematch,
        first_n_neighbors=given.first_n_neighbors,
        first_step=whole("step", step, min(given.first_step, sizes[0])),
        boost=given.boost,
    )


def prepare(
    kind: str,
    sizes: list[tuple[int, int]],
    sigma: float,
    *,
    workers: int,
    report: Callable[[int, int], object] | None,
    part: Part | None = None,
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
) -> tuple[StackParams, Callable[[Iterator[Plane]], Iterator[Plane]]]:
    """Check everything before the first page is read; the parameters, and what takes and gives the pages.

    Parameters
    ----------
    kind : {"T", "Z", "N"}
        Time, depth or several images.
    sizes : list of (int, int)
        Heights and widths of the pages.
    sigma : float
        Standard deviation of the noise in units of the clean pages' own.
    workers, report
        Threads, and a callback for progress or None.
    part : Part, optional
        Where the pages lie in a larger stack: what is further than :func:`halo` from the edges of the part
        has the bytes of the whole.
    preset, engine, profile, group, patch_size, n_neighbors, patch_distance, step, passes
        As in :func:`vnlem.denoise_vnlr`; the window of radius `patch_distance` is searched in every plane.
    patch_depth : int, optional
        Planes that a patch spans.
    plane_distance : int, optional
        Planes before and after in which members are sought; for a set, how many other images.
    """
    check_preset("vnlr", preset)
    checks.choice("engine", engine, ("fast", "reference"))
    params = resolve_stack(
        kind,
        len(sizes),
        profile=profile,
        group=group,
        patch_size=patch_size,
        patch_depth=patch_depth,
        plane_distance=plane_distance,
        n_neighbors=n_neighbors,
        patch_distance=patch_distance,
        step=step,
        passes=passes,
    )
    smallest = min(min(size) for size in sizes)
    if smallest < max(params.patch_sizes):
        raise ValueError(
            f"the smallest page is {smallest} pixels wide or high, less than the patch "
            f"({max(params.patch_sizes)}); pass a smaller patch_size or larger pages"
        )
    if engine == "reference":
        from vnlem.reference import vnlr_stack as reference

        return params, lambda planes: reference.denoise(planes, sigma, params)
    return params, lambda planes: solve_stack(planes, sizes, sigma, params, workers, report, part)


def solve_stack(
    planes: Iterator[Plane],
    sizes: list[tuple[int, int]],
    sigma: float,
    params: StackParams,
    workers: int,
    report: Callable[[int, int], object] | None = None,
    part: Part | None = None,
) -> Iterator[Plane]:
    """Denoise standardised planes one after the other; those in flight are held, no more.

    Parameters
    ----------
    planes : iterator of ndarray
        In order; all of one size unless they are a set of images.
    sizes : list of (int, int)
        Their heights and widths.
    sigma : float
        Standard deviation of the noise in the units of the planes.
    params : StackParams
    workers : int
    report : callable(done, total), optional
    part : Part, optional
        Where they lie in a larger stack.

    Yields
    ------
    ndarray
        The denoised planes, in order.
    """
    total = len(sizes)
    done = 0
    # A set of images is held as a whole: the images most alike may lie anywhere in it.
    reach = total if params.kind == "N" else params.reach
    sweeps = [
        Sweep(total, reach, params.step if number else params.first_step, params.plane_step, part)
        for number in range(params.passes + 1)
    ]
    n_parts = sum(len(sweep.planes(params.depth)) for sweep in sweeps)

    def one_done() -> None:
        nonlocal done
        done += 1
        if report is not None:
            report(done, n_parts)

    frames: Iterator[Frame] = (Frame(plane, plane, plane) for plane in planes)
    in_flight = sweeps[0].in_flight(0, params.depth)[1]
    shape = (in_flight, max(h for h, _ in sizes), max(w for _, w in sizes))
    if in_flight * shape[1] * (shape[2] + PADDING) > np.iinfo(np.int32).max:
        raise ValueError(
            f"{in_flight} planes of {shape[1]}x{shape[2]} pixels are too large to be held together; "
            "pass a smaller plane_distance, or denoise parts of the planes"
        )
    with Pool(workers) as pool:
        for number, sweep in enumerate(sweeps):
            first = number == 0
            search = _search(params, number)
            settings = PassSettings(
                tau=params.noise_kept * (1 - number / params.passes),
                boost=params.boost,
                extra_load=params.extra_load if first else None,
            )
            held = PlanesInFlight(shape, search, settings, sigma)
            matcher = None
            if first or number in params.rematch:
                noise = search.patch_size**2 * search.depth * sigma**2
                matcher = PlaneMatcher(shape, search, noise, _sites(params, first, sigma, pool))
            frames = run_planes(frames, held, matcher, sweep, search, pool, one_done)
        for frame in frames:
            yield frame.pilot


def halo(params: StackParams) -> tuple[int, int, int]:
    """How many planes, rows and columns around a part of a stack its result depends on.

    Zero rows and columns: planes are needed whole, because windows that follow motion may go anywhere.

    Examples
    --------
    >>> halo(resolve_stack("T", 100)), halo(resolve_stack("Z", 100))
    ((50, 0, 0), (60, 94, 94))
    """
    # A pass spreads what it does not know from a reference patch's farthest candidate to its farthest member.
    planes = (params.passes + 1) * (2 * params.reach + params.depth)
    side = sum(2 * params.patch_distance + size for size in params.patch_sizes)
    return (planes, side, side) if params.kind == "Z" else (planes, 0, 0)


def planes_in_flight(params: StackParams) -> int:
    """The most planes that are held, counted once for each pass that holds them.

    Examples
    --------
    >>> planes_in_flight(resolve_stack("T", 100))
    50
    """
    return (params.passes + 1) * (2 * params.reach + params.depth)


def _search(params: StackParams, number: int) -> Search:
    first = number == 0
    return Search(
        patch_size=params.patch_sizes[number],
        depth=params.depth,
        radius=params.patch_distance,
        n_members=params.first_n_neighbors if first else params.n_neighbors,
        group=params.group,
        reflect_depth=params.kind == "Z" and params.group == "d4",
        factor=1.0 if first else params.match_factor,
        penalty=params.first_match_penalty if first else params.match_penalty,
        flat_energy=params.flat_energy if first else None,
    )


def _sites(params: StackParams, first: bool, sigma: float, pool: Pool) -> Sites:
    """Where members are sought beyond their own plane."""
    if params.kind == "T":
        return Motion(noisy=first, sigma=sigma, pool=pool)
    if params.kind == "Z":
        return SamePlace()
    return Alike(params.reach, noisy=first)
