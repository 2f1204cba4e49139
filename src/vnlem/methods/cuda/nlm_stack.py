"""NLM on movies and volumes on a CUDA device: the planes within reach are held there."""

from collections.abc import Iterator

from vnlem.kernels.cuda import engine as engines
from vnlem.kernels.cuda.nlm import OF_STACK, nlm
from vnlem.methods.cuda.rolling import Rolling
from vnlem.methods.nlm_stack import NlmStackParams, rule_of
from vnlem.pipeline.device import DeviceMemoryError
from vnlem.pipeline.stack_task import Plane, StackTask


def solve_stack(
    planes: Iterator[Plane], task: StackTask, params: NlmStackParams, engine: engines.Engine | None = None
) -> Iterator[Plane]:
    """Denoise standardised planes one after another, as `vnlem.methods.nlm_stack.solve_stack` does.

    Planes may lie on the host or on the device; the results lie on the device.
    """
    engine = engine or engines.Engine()
    try:
        yield from _solve(planes, task, params, engine)
    except MemoryError as error:
        height, width = task.sizes[0]
        raise DeviceMemoryError(
            f"{2 * params.plane_distance + 1} planes of {height}x{width} pixels, held together, need "
            "more GPU memory than is free; pass a smaller plane_distance, or device='cpu'"
        ) from error


def _solve(
    planes: Iterator[Plane], task: StackTask, params: NlmStackParams, engine: engines.Engine
) -> Iterator[Plane]:
    total, reach = len(task.sizes), params.plane_distance
    window, decay = rule_of(task, params)
    held = Rolling(engine.xp, min(2 * reach + 1, total), total, task.sizes[0])
    first = 0
    for number in range(total):
        while first < number - reach:
            held.pop()
            first += 1
        while first + held.count < min(total, number + reach + 1):
            held.push()[...] = engine.xp.asarray(next(planes))
        yield nlm(engine, held.planes[:, None], number - first, window, decay, OF_STACK)[0]
        if task.report is not None:
            task.report(number + 1, total)
