"""NLM on movies and volumes: the window continues in the planes around.

planes -> square patches of one plane -> whole windows of the planes around -> weighted mean of central pixels
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vnlem.estimate.weights import inverse_square
from vnlem.kernels.cpu.patch_distance import Decay, Window
from vnlem.methods.nlm import TILE, auto_params
from vnlem.methods.window import WindowParams, check_params, pad
from vnlem.pipeline import checks
from vnlem.pipeline.stack_task import Plane, SeriesParams, StackSolver, StackTask
from vnlem.pipeline.tiles import Tile, grid
from vnlem.pipeline.workers import Pool
from vnlem.registry import check_preset, find_method, stack_solver

PLANE_DISTANCE = 2
MOST_PLANES = 20


@dataclass(frozen=True)
class NlmStackParams(SeriesParams):
    """Parameters of NLM on a stack, in standardised units."""

    window: WindowParams
    plane_distance: int  # planes before and after in which the window continues


def prepare(
    task: StackTask,
    *,
    preset: str = "auto",
    engine: str = "fast",
    patch_size: int | None = None,
    patch_distance: int | None = None,
    plane_distance: int | None = None,
    bandwidth: float | None = None,
    noise_correction: bool = True,
) -> tuple[NlmStackParams, StackSolver]:
    """Check everything before the first page is read; the parameters, and what takes and gives the pages.

    task: the pages of one series. Time and depth are treated alike; a part of a larger stack always has its
        bytes beyond :func:`halo`.
    preset, engine, patch_size, patch_distance, bandwidth, noise_correction: as in :func:`vnlem.denoise_nlm`;
        the window of radius `patch_distance` is searched in every plane.
    plane_distance: planes before and after in which the window continues, 2 when None.
    """
    check_preset(find_method("nlm"), preset)
    checks.choice("engine", engine, ("fast", "reference"))
    given = {"patch_size": patch_size, "patch_distance": patch_distance, "bandwidth": bandwidth}
    chosen = auto_params(task.sigma) | {name: value for name, value in given.items() if value is not None}
    window = check_params(task.sigma, 2, **chosen, gamma=2.0, noise_correction=noise_correction)
    if window.patch_size > 1 and min(height for height, _ in task.sizes) == 1:
        # Their borders would be those of a signal, without rows above and below.
        raise ValueError(
            f"the pages of the stack have one row, less than the patch ({window.patch_size}); "
            "pass patch_size=1, or denoise each row as a signal"
        )
    distance = PLANE_DISTANCE if plane_distance is None else plane_distance
    reach = checks.whole("plane_distance", distance, 0, MOST_PLANES)
    params = NlmStackParams(window, min(reach, len(task.sizes) - 1))
    if task.device != "cpu":
        on_device = stack_solver("nlm", engine)
        return params, lambda planes: on_device(planes, task, params)
    if engine == "reference":
        from vnlem.reference.window import nlm_stack

        return params, lambda planes: nlm_stack(list(planes), task.sigma, window, params.plane_distance)
    return params, lambda planes: solve_stack(planes, task, params)


def solve_stack(planes: Iterator[Plane], task: StackTask, params: NlmStackParams) -> Iterator[Plane]:
    """Denoise standardised planes one after another; only those within reach of one are held."""
    from vnlem.kernels.cpu.nlm import PiledPlanes, nlm_planes_tile

    total, (height, width) = len(task.sizes), task.sizes[0]
    reach, size = params.plane_distance, params.window.patch_size
    window, decay = rule_of(task, params)
    tiles = grid(height, width, *TILE)
    held: list[Plane] = []  # with their borders
    first = 0
    with Pool(task.workers) as pool:
        for number in range(total):
            while first < number - reach:
                held.pop(0)
                first += 1
            while first + len(held) < min(total, number + reach + 1):
                held.append(pad(next(planes)[None], size)[0])
            tall = PiledPlanes(np.concatenate(held)[None], height, len(held), number - first)
            out = np.empty((height, width), np.float32)

            def work(tile: Tile, tall: PiledPlanes = tall, out: Plane = out) -> None:
                nlm_planes_tile(tall, tile, window, decay, out)

            pool.for_each(work, tiles)
            if task.report is not None:
                task.report(number + 1, total)
            yield out


def rule_of(task: StackTask, params: NlmStackParams) -> tuple[Window, Decay]:
    """Half sizes of patches and windows, and how weights fall with patch distance."""
    height, width = task.sizes[0]
    size, distance = params.window.patch_size, params.window.patch_distance
    floor = 2 * task.sigma**2 * size**2 if params.window.noise_correction else 0.0
    return (
        Window(size // 2, size // 2, min(distance, height - 1), min(distance, width - 1)),
        Decay(float(inverse_square(params.window.bandwidth)), floor),
    )


def halo(params: NlmStackParams) -> tuple[int, int, int]:
    """How many planes, rows and columns around a part of a stack its result depends on.

    >>> halo(prepare(StackTask("T", [(40, 40)] * 9, 0.2), plane_distance=1)[0])
    (1, 7, 7)
    """
    side = params.window.patch_distance + params.window.patch_size // 2
    return params.plane_distance, side, side


def planes_in_flight(params: NlmStackParams) -> int:
    """The most planes that are held."""
    return 2 * params.plane_distance + 1
