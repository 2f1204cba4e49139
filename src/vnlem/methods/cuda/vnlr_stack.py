"""VNLR on stacks on a CUDA device: the passes of `vnlem.methods.vnlr_stack`, planes and groups kept there."""

from collections.abc import Iterator

import numpy as np

from vnlem.estimate.planes import Sweep, run_planes
from vnlem.kernels.cuda import engine as engines
from vnlem.kernels.cuda.patches import largest_magnitude
from vnlem.kernels.cuda.ridge import Rule
from vnlem.methods.cuda.sites import sites_of
from vnlem.methods.cuda.vnlr_planes import Frame, PlanesOnDevice, Room, most_references
from vnlem.methods.vnlr_passes import matching_weights
from vnlem.methods.vnlr_stack import entering, leaving, schedule_of, search_of, settings_of
from vnlem.methods.vnlr_stack_params import StackParams
from vnlem.neighbours.motion import LONGEST
from vnlem.neighbours.planes import Search
from vnlem.pipeline.device import DeviceMemoryError, to_host
from vnlem.pipeline.stack_task import Plane, StackTask


def solve_stack(
    planes: Iterator[Plane], task: StackTask, params: StackParams, engine: engines.Engine | None = None
) -> Iterator[Plane]:
    """Denoise standardised planes one after another, as `vnlem.methods.vnlr_stack.solve_stack` does.

    Planes may lie on the host or on the device; the results lie on the device.

    The passes run in parallel, each a few planes behind the one before it. If the memory of the device is too
    small for that, they run one after another, and the planes wait on the host in between; with a delay,
    where planes must not wait, it is an error.
    """
    engine = engine or engines.Engine()
    _compile(engine, task, params)
    passes = _Passes(engine, task, params)
    frames = _frames(engine, planes)
    try:
        done = passes.together(frames)
    except MemoryError:
        done = None
    # Outside the handler the arrays of the failed attempt are freed.
    if done is None:
        if params.delays is not None:
            raise passes.too_large()
        engine.free()
        done = passes.one_by_one(frames)
    try:
        for frame in done:
            yield leaving(frame.pilot, task.channels)
    except MemoryError as error:
        raise passes.too_large() from error


def _compile(engine: engines.Engine, task: StackTask, params: StackParams) -> None:
    """Compile all kernels in parallel, by rehearsing a short stack of small pages."""
    # A window, and with it the size of a group, is never larger than a page.
    enough = 2 * params.patch_distance + 1 + max(params.patch_sizes)
    small = sorted({(min(h, enough), min(w, enough)) for h, w in task.sizes})
    small += [small[0]] * (max(params.depths) + 1 - len(small))

    def work() -> None:
        blank = (np.zeros((task.channels, *size), np.float32) for size in small)
        rehearsal = StackTask(task.kind, small, task.sigma, channels=task.channels)
        for _ in _Passes(engine, rehearsal, params).together(_frames(engine, blank)):
            pass

    engine.rehearse((__name__, repr(params), task.channels, tuple(small)), work)


class _Passes:
    """The passes over one stack."""

    def __init__(self, engine: engines.Engine, task: StackTask, params: StackParams) -> None:
        self._engine, self._task, self._params = engine, task, params
        self.schedule = schedule_of(task, params)

    def too_large(self) -> DeviceMemoryError:
        """The error for a device with too little memory."""
        in_flight, height, width = self.schedule.shape
        cure = "fewer images at a time" if self._params.kind == "N" else "a smaller plane_distance"
        return DeviceMemoryError(
            f"{in_flight} planes of {height}x{width} pixels, held together, need more GPU memory "
            f"than is free; pass {cure}, or device='cpu'"
        )

    def together(self, frames: Iterator[Frame]) -> Iterator[Frame]:
        """All of them in a chain; their memory is allocated at once."""
        passes = [self._planes_of(number) for number in range(len(self.schedule.sweeps))]
        # Memory for what frames bring, mainly their groups, is allocated as they arrive.
        self._engine.xp.empty(sum(held.bytes_of_groups() for held in passes), np.uint8)
        for held in passes:
            frames = self._run(frames, held)
        return frames

    def one_by_one(self, frames: Iterator[Frame]) -> Iterator[Frame]:
        """One after another; the planes wait on the host in between."""
        for number in range(len(self.schedule.sweeps)):
            waiting = [frame.moved(to_host) for frame in self._run(frames, self._planes_of(number))]
            frames = (frame.moved(self._engine.xp.asarray) for frame in waiting)
        yield from frames

    def _run(self, frames: Iterator[Frame], held: "PlanesOnDevice") -> Iterator[Frame]:
        return run_planes(frames, held, held.sweep, held.depth, held.work_on, self.schedule.one_done)

    def _planes_of(self, number: int) -> "PlanesOnDevice":
        engine, params, sigma, shape = self._engine, self._params, self._task.sigma, self.schedule.shape
        first, sweep = number == 0, self.schedule.sweeps[number]
        sites = None
        if first or number in params.rematch:
            sites = sites_of(engine, params, shape, sweep.total, noisy=first, sigma=sigma)
        search, settings = search_of(params, number), settings_of(params, number)
        rule = Rule(
            search.patch_size,
            settings.tau,
            settings.boost,
            settings.extra_load,
            search.depth,
            window=settings.window,
        )
        room = Room(_cover(params, search, sweep, shape), self._task.peak)
        return PlanesOnDevice(
            engine=engine,
            shape=shape,
            sweep=sweep,
            search=search,
            rule=rule,
            sites=sites,
            sigma=sigma,
            weights=matching_weights(self._task.channels, first).ravel(),
            room=room,
        )


def _cover(params: StackParams, search: Search, sweep: Sweep, shape: tuple[int, int, int]) -> int:
    """A bound of the members that cover a pixel.

    For movies and volumes it does not depend on the size or number of pages: parts of a stack have the units
    of the whole.
    """
    pixels = search.depth * search.patch_size**2
    planes = 4 * sweep.reach + 2 * search.depth
    if params.kind == "N":
        # Windows may lie anywhere in any image.
        planes, references = min(planes, sweep.total), most_references(shape, sweep.step)
    else:
        drift = LONGEST * (2 * sweep.reach + search.depth) if params.kind == "T" else 0
        references = (2 * (search.radius + search.patch_size + drift) // sweep.step + 2) ** 2
    return references * planes * min(search.n_members, pixels)


def _frames(engine: engines.Engine, planes: Iterator[Plane]) -> Iterator[Frame]:
    """Planes as the passes take them, (channels, H, W): three channels as opponent colours."""
    xp = engine.xp
    for plane in planes:
        there = xp.ascontiguousarray(entering(xp.asarray(plane)))
        yield Frame(there, there, there, largest_magnitude(engine, there))
