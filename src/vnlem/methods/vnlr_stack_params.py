"""Parameters of VNLR on stacks: what a profile spends on a movie, a volume or a set of images."""

import math
from dataclasses import dataclass, replace
from typing import Any

from vnlem.estimate import transients
from vnlem.estimate.scales import check_scales
from vnlem.methods.vnlr_params import PROFILES, WINDOW, FixedParams, steps_within, whole
from vnlem.neighbours.groups import COPIES, GROUPS
from vnlem.pipeline import checks
from vnlem.pipeline.stack_task import SeriesParams

# `noise_kept` of volumes and of movies in colour. Grey movies gain nothing by it.
MUCH_NOISE_KEPT = 0.92


@dataclass(frozen=True, kw_only=True)
class StackParams(FixedParams, SeriesParams):
    """Parameters of VNLR on a stack; lengths in pixels or planes."""

    profile: str
    kind: str  # "T", "Z" or "N"
    group: str
    patch_sizes: tuple[int, ...]  # of the first pass and of each pilot pass
    depths: tuple[int, ...]  # planes a patch spans, in the same passes
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
    window: float  # how much less the border of a patch counts than its centre: Kaiser's beta
    scales: int
    delays: tuple[tuple[int, int], ...] | None = None  # of each pass: frames ahead, and frames it waits for
    transients_ahead: int | None = None


@dataclass(frozen=True)
class _Profile:
    """What a profile spends on one kind of stack."""

    first_patch: int
    patch: int
    first_depth: int
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


# first_patch, patch, first_depth, depth, reach, n_neighbors, patch_distance, step, plane_step, passes,
# first_n_neighbors, first_step, boost. On noise, patches of two frames match more reliably; on a pilot, those
# of single frames are enough, and irregular motion finds more members.
_PROFILES = {
    ("T", "quality"): _Profile(8, 8, 2, 1, 6, 80, 7, 4, 1, 5, 32, 4, 1.2),
    ("T", "balanced"): _Profile(8, 8, 2, 1, 4, 64, 7, 5, 1, 4, 24, 4, 1.15),
    ("T", "fast"): _Profile(8, 8, 2, 1, 2, 48, 7, 6, 1, 3, 20, 5, 1.15),
    ("Z", "quality"): _Profile(4, 5, 4, 4, 5, 80, 7, 3, 2, 5, 32, 3, 1.2),
    ("Z", "balanced"): _Profile(4, 5, 4, 4, 4, 64, 7, 3, 3, 4, 32, 3, 1.15),
    ("Z", "fast"): _Profile(4, 5, 4, 4, 2, 48, 7, 4, 3, 3, 24, 3, 1.15),
    ("N", "quality"): _Profile(7, 8, 1, 1, 20, 80, 22, 4, 1, 5, 24, 3, 1.2),
    ("N", "balanced"): _Profile(7, 8, 1, 1, 12, 64, 20, 5, 1, 4, 20, 4, 1.15),
    ("N", "fast"): _Profile(7, 8, 1, 1, 6, 64, 14, 6, 1, 3, 18, 5, 1.15),
}


# Movies gain in flat areas from half and quarter size; volumes, whose patches are small, lose detail.
_SCALES = {"T": 3, "Z": 1, "N": 1}


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
    scales: Any = None,
    delay: Any = None,
) -> StackParams:
    """Parameters for a stack of one kind and length.

    >>> resolve_stack("T", 10, passes=2).depths, resolve_stack("Z", 3, passes=1).depths
    ((2, 1, 1), (3, 3))
    >>> resolve_stack("T", 10, profile="fast", delay=2).delays
    ((1, 0), (1, 0))
    """
    checks.choice("profile", profile, PROFILES)
    if group in COPIES:
        raise ValueError(
            f"group={group!r} is not available for stacks; use group='d4', or denoise page by page"
        )
    checks.choice("group", group, tuple(name for name in GROUPS if name not in COPIES))
    # "best" differs from "quality" only for single images.
    given = _PROFILES[kind, "quality" if profile == "best" else profile]
    reach = whole("plane_distance", plane_distance, given.reach, 0)
    most_passes = given.passes
    if delay is not None:
        _check_delay(delay, kind, n_planes)
        # Frames ahead are worth more than passes, among which they are divided.
        most_passes = max(1, min(given.passes, delay // max(reach, 1) - 1))
        first_depth, depth = (min(planes, delay + 1) for planes in (given.first_depth, given.depth))
        given = replace(given, first_depth=first_depth, depth=depth)
    n_passes = whole("passes", passes, most_passes)
    if patch_size is None:
        sizes = (given.first_patch, *[given.patch] * n_passes)
    else:
        sizes = (whole("patch_size", patch_size, 7, 2),) * (n_passes + 1)
    steps = steps_within(sizes, step, given.first_step, given.step)
    wanted = (given.first_depth, *[given.depth] * n_passes)
    if patch_depth is not None:
        wanted = (whole("patch_depth", patch_depth, 1),) * (n_passes + 1)
    depths = tuple(min(depth, n_planes) for depth in wanted)
    if kind == "N" and max(wanted) > 1:
        raise ValueError(f"patch_depth must be 1 for a set of images, got {patch_depth!r}")
    rematch = tuple(m for m in range(1, n_passes + 1) if m % 2 == 1) if profile != "fast" else (1,)
    return StackParams(
        profile=profile,
        kind=kind,
        group=group,
        patch_sizes=sizes,
        depths=depths,
        reach=reach,
        n_neighbors=whole("n_neighbors", n_neighbors, given.n_neighbors, 2),
        patch_distance=whole("patch_distance", patch_distance, given.patch_distance),
        step=steps[1],
        plane_step=min(given.plane_step, *depths),
        passes=n_passes,
        rematch=rematch,
        first_n_neighbors=given.first_n_neighbors,
        first_step=steps[0],
        boost=given.boost,
        window=WINDOW,
        noise_kept=MUCH_NOISE_KEPT if kind == "Z" else StackParams.noise_kept,
        scales=_SCALES[kind] if scales is None else check_scales(scales),
        delays=None if delay is None else delays_of(delay, depths, reach),
        transients_ahead=_transients_ahead(kind, delay),
    )


def _transients_ahead(kind: str, delay: int | None) -> int | None:
    if kind != "T":
        return None
    # The passes use the whole delay: later frames are not denoised yet when one must leave.
    return transients.AROUND if delay is None else 0


def _check_delay(delay: Any, kind: str, n_planes: int) -> None:
    if kind != "T":
        raise ValueError(
            f"delay is for movies (axis T), got delay={delay!r} for a stack along {kind}; leave it out"
        )
    if n_planes <= checks.whole("delay", delay, 0):
        raise ValueError(
            f"delay={delay} needs a movie of at least {delay + 1} frames, got {n_planes}; "
            "pass a smaller delay, or leave it out"
        )


def delays_of(delay: int, depths: tuple[int, ...], reach: int) -> tuple[tuple[int, int], ...]:
    """For each pass how many frames it looks ahead, and for how many more it waits.

    The frames of the delay are divided evenly, first as frames ahead. All passes but the first look equally
    far, because they may use each other's groups.

    >>> delays_of(5, (2, 2), 2), delays_of(3, (2, 2, 2), 2), delays_of(0, (1, 1), 2)
    (((2, 0), (2, 1)), ((1, 0), (1, 0), (1, 0)), ((0, 0), (0, 0)))
    """
    n_passes, depth = len(depths), depths[-1]
    most = [2 * reach + planes - 1 for planes in depths]
    if not max(depths) - 1 <= delay <= sum(most):
        raise ValueError(
            f"delay must be from {max(depths) - 1} to {sum(most)} with {n_passes} passes of "
            f"plane_distance={reach} and patch_depth={max(depths)}, got {delay}; change these parameters, or "
            "the delay"
        )
    # The first frame needs all frames that a patch spans, but must not wait for them in every pass: the last
    # pass always has that much of the delay.
    ahead = min(reach, -(-delay // n_passes))
    while ahead * (n_passes - 1) + max(0, depth - 1 - ahead) > delay:
        ahead -= 1
    wait = max(0, depth - 1 - ahead)
    first = min(reach, delay - ahead * (n_passes - 1) - wait)
    passes = [(first, 0), *[(ahead, 0)] * (n_passes - 2), (ahead, wait)]
    for _ in range(delay - sum(map(sum, passes))):
        free = [number for number in range(n_passes) if sum(passes[number]) < most[number]]
        least = min(free, key=lambda number: (sum(passes[number]), -number))
        passes[least] = (passes[least][0], passes[least][1] + 1)
    return tuple(passes)


def halo(params: StackParams) -> tuple[int, int, int]:
    """How many planes, rows and columns around a part of a stack its result depends on.

    Zero rows and columns: planes are needed whole, because windows that follow motion may go anywhere, and
    because parts are not halved.

    >>> halo(resolve_stack("T", 100)), halo(resolve_stack("Z", 100))
    ((56, 0, 0), (60, 94, 94))
    """
    # In a pass, missing data spread from a reference patch's farthest candidate to its farthest member.
    planes = sum(2 * params.reach + depth for depth in params.depths)
    if params.transients_ahead is not None:
        planes += transients.reach()
    side = sum(2 * params.patch_distance + size for size in params.patch_sizes)
    return (planes, side, side) if params.kind == "Z" and params.scales == 1 else (planes, 0, 0)


def planes_in_flight(params: StackParams) -> int:
    """The most planes that are held, counted once per pass that holds them, smaller ones by their size.

    >>> planes_in_flight(resolve_stack("T", 100, scales=1)), planes_in_flight(resolve_stack("T", 100))
    (52, 67)
    """
    planes = sum(2 * params.reach + depth for depth in params.depths)
    others = 0 if params.transients_ahead is None else transients.PLANES_HELD
    return others + math.ceil(planes * sum(0.25**level for level in range(params.scales)))
