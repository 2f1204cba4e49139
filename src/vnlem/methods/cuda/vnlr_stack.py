"""VNLR on stacks on a CUDA device: the passes of `vnlem.methods.vnlr_stack`, planes and groups kept there."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from vnlem.estimate.planes import Sweep, run_planes
from vnlem.kernels.cuda import engine as engines
from vnlem.kernels.cuda.match import References
from vnlem.kernels.cuda.patches import Sums, largest_magnitude, weighted_means
from vnlem.kernels.cuda.plane_match import Field, Members, match_planes
from vnlem.kernels.cuda.planes import plane_squares
from vnlem.kernels.cuda.ridge import Images, Rule, combine, units_of_sums
from vnlem.methods.cuda.rolling import Rolling
from vnlem.methods.cuda.sites import Sites, sites_of
from vnlem.methods.vnlr_stack import schedule_of, search_of, settings_of
from vnlem.methods.vnlr_stack_params import StackParams
from vnlem.neighbours.groups import positions_in_part
from vnlem.neighbours.motion import LONGEST
from vnlem.neighbours.planes import Search, symmetries_of_block
from vnlem.pipeline.device import DeviceMemoryError, to_host
from vnlem.pipeline.stack_task import Plane, StackTask

Array = Any  # of the engine's library


@dataclass
class Frame:
    """One plane on its way through the passes, (H, W) on the device."""

    noisy: Array
    working: Array
    pilot: Array
    peak: float  # the largest magnitude of a pixel
    # Of the reference patches that begin in this plane, if they are known. The pass that finds them may add
    # them after the plane has gone on to the next pass.
    groups: list[Members] = field(default_factory=list)

    def moved(self, move: Callable[[Array], Array]) -> "Frame":
        """The same with its arrays moved to another memory."""
        groups = [Members(*map(move, found)) for found in self.groups]
        return Frame(move(self.noisy), move(self.working), move(self.pilot), self.peak, groups)


@dataclass
class Held:
    """What is known of a plane in flight beside its pixels."""

    size: tuple[int, int]
    peak: float
    groups: list[Members]


def solve_stack(
    planes: Iterator[Plane], task: StackTask, params: StackParams, engine: engines.Engine | None = None
) -> Iterator[Plane]:
    """Denoise standardised planes one after the other, as `vnlem.methods.vnlr_stack.solve_stack` does.

    Planes may lie on the host or on the device; what comes back lies on the device.

    The passes go on side by side, each a few planes behind the one before it. Where the memory of the device
    does not suffice for that, they go one after the other, and the planes wait on the host in between; with
    a delay, where planes must not wait, it is an error.
    """
    engine = engine or engines.Engine()
    _compile(engine, task, params)
    passes = _Passes(engine, task, params)
    frames = _entering(engine, planes)
    try:
        done = passes.together(frames)
    except MemoryError:
        done = None
    # Outside of the handler the arrays of the failed attempt are gone.
    if done is None:
        if params.delays is not None:
            raise passes.too_large()
        engine.free()
        done = passes.one_by_one(frames)
    try:
        for frame in done:
            yield frame.pilot
    except MemoryError as error:
        raise passes.too_large() from error


def _compile(engine: engines.Engine, task: StackTask, params: StackParams) -> None:
    """Compile all kernels side by side, as a short stack of small pages asks for them."""
    # A window, and with it the size of a group, is never larger than a page.
    enough = 2 * params.patch_distance + 1 + max(params.patch_sizes)
    small = sorted({(min(h, enough), min(w, enough)) for h, w in task.sizes})
    small += [small[0]] * (params.depth + 1 - len(small))

    def work() -> None:
        blank = (np.zeros(size, np.float32) for size in small)
        rehearsal = StackTask(task.kind, small, task.sigma)
        for _ in _Passes(engine, rehearsal, params).together(_entering(engine, blank)):
            pass

    engine.rehearse((__name__, repr(params), tuple(small)), work)


class _Passes:
    """The passes over one stack."""

    def __init__(self, engine: engines.Engine, task: StackTask, params: StackParams) -> None:
        self._engine, self._task, self._params = engine, task, params
        self.schedule = schedule_of(task, params)

    def too_large(self) -> DeviceMemoryError:
        """What to say where the memory of the device does not suffice."""
        in_flight, height, width = self.schedule.shape
        cure = "fewer images at a time" if self._params.kind == "N" else "a smaller plane_distance"
        return DeviceMemoryError(
            f"{in_flight} planes of {height}x{width} pixels, held together, need more GPU memory "
            f"than is free; pass {cure}, or device='cpu'"
        )

    def together(self, frames: Iterator[Frame]) -> Iterator[Frame]:
        """All of them in a chain; their memory is taken at once."""
        passes = [self._planes_of(number) for number in range(len(self.schedule.sweeps))]
        # What frames bring along, their groups above all, is taken as they come.
        self._engine.xp.empty(sum(held.bytes_of_groups() for held in passes), np.uint8)
        for held in passes:
            frames = self._run(frames, held)
        return frames

    def one_by_one(self, frames: Iterator[Frame]) -> Iterator[Frame]:
        """One after the other; the planes wait on the host in between."""
        for number in range(len(self.schedule.sweeps)):
            waiting = [frame.moved(to_host) for frame in self._run(frames, self._planes_of(number))]
            frames = (frame.moved(self._engine.xp.asarray) for frame in waiting)
        yield from frames

    def _run(self, frames: Iterator[Frame], held: "PlanesOnDevice") -> Iterator[Frame]:
        return run_planes(frames, held, held.sweep, self._params.depth, held.work_on, self.schedule.one_done)

    def _planes_of(self, number: int) -> "PlanesOnDevice":
        engine, params, sigma, shape = self._engine, self._params, self._task.sigma, self.schedule.shape
        first, sweep = number == 0, self.schedule.sweeps[number]
        sites = None
        if first or number in params.rematch:
            sites = sites_of(engine, params, shape, sweep.total, noisy=first, sigma=sigma)
        search, settings = search_of(params, number), settings_of(params, number)
        rule = Rule(search.patch_size, settings.tau, settings.boost, settings.extra_load, search.depth)
        room = Room(_cover(params, search, sweep, shape), self._task.peak)
        return PlanesOnDevice(
            engine=engine,
            shape=shape,
            sweep=sweep,
            search=search,
            rule=rule,
            sites=sites,
            sigma=sigma,
            room=room,
        )


def _cover(params: StackParams, search: Search, sweep: Sweep, shape: tuple[int, int, int]) -> int:
    """A bound of the members that cover a pixel.

    For movies and volumes it does not depend on how large the pages are or how many, so that parts of a stack
    have the units of the whole.
    """
    pixels = search.depth * search.patch_size**2
    planes = 4 * sweep.reach + 2 * search.depth
    if params.kind == "N":
        # Windows may lie anywhere in any image.
        planes, references = min(planes, sweep.total), _most_references(shape, sweep.step)
    else:
        drift = LONGEST * (2 * sweep.reach + search.depth) if params.kind == "T" else 0
        references = (2 * (search.radius + search.patch_size + drift) // sweep.step + 2) ** 2
    return references * planes * min(search.n_members, pixels)


def _most_references(shape: tuple[int, int, int], step: int) -> int:
    """A bound of the reference patches of a plane."""
    _, height, width = shape
    return (height // step + 2) * (width // step + 2)


def _entering(engine: engines.Engine, planes: Iterator[Plane]) -> Iterator[Frame]:
    for plane in planes:
        there = engine.xp.ascontiguousarray(engine.xp.asarray(plane))
        yield Frame(there, there, there, largest_magnitude(engine, there))


class Room(NamedTuple):
    """What the sums of a pass must have room for."""

    cover: int  # members that cover a pixel
    peak: float  # the largest magnitude of a pixel of the whole stack, as far as it is known


class PlanesOnDevice:
    """The images and accumulators of the planes that a pass holds, the oldest first.

    Parameters
    ----------
    engine : Engine
    shape : (int, int, int)
        The most planes in flight, and the size of the largest.
    sweep : Sweep
    search : Search
        What a patch is, and how members are sought.
    rule : Rule
        How groups are combined.
    sites : Sites or None
        Where members are sought; None: the groups that come with the frames are used again.
    sigma : float
        Standard deviation of the noise.
    room : Room
    """

    def __init__(
        self,
        engine: engines.Engine,
        shape: tuple[int, int, int],
        sweep: Sweep,
        search: Search,
        rule: Rule,
        sites: Sites | None,
        sigma: float,
        room: Room,
    ) -> None:
        self._engine, self.sweep, self._search, self._rule, self._sites = engine, sweep, search, rule, sites
        in_flight, height, width = self._shape = shape
        self.frames: list[Held] = []
        rolling = partial(Rolling, engine.xp, in_flight, sweep.total)
        self._pilot, self._working, self._noisy, self._residual = (rolling((height, width)) for _ in range(4))
        self._sums = rolling((height, width, 2), np.int64)
        self._weights = rolling((height, width), np.int64)
        self._sizes = rolling((2,), np.int32)
        self._rolling = [self._pilot, self._working, self._noisy, self._residual]
        self._rolling += [self._sums, self._weights, self._sizes]
        if sites is not None:
            self._energy = rolling((height, width))
            self._rolling.append(self._energy)
            if search.flat_energy is not None:
                self._about_mean = rolling((height, width))
                self._rolling.append(self._about_mean)
        self._noise = search.patch_size**2 * search.depth * sigma**2
        self._permutations = symmetries_of_block(
            search.group, search.patch_size, search.depth, reflect_depth=search.reflect_depth
        )
        # A power of two that no pixel exceeds, though single precision may have rounded it up.
        self._largest = 2.0 ** math.ceil(math.log2(max(room.peak, 1.0)) + 1e-6)
        self._unit, self._weight_unit, self._most = units_of_sums(search.n_members, room.cover, self._largest)

    def push(self, frame: Frame) -> None:
        """One plane more at the end."""
        search = self._search
        height, width = size = frame.noisy.shape
        self.frames.append(Held(size, frame.peak, frame.groups if self._sites is None else []))
        for held in self._rolling:
            held.push()
        for held, image in (
            (self._pilot, frame.pilot),
            (self._working, frame.working),
            (self._noisy, frame.noisy),
        ):
            held.planes[-1, :height, :width] = image
        self._sizes.planes[-1] = self._engine.xp.asarray(np.array([height, width], np.int32))
        self._make_room(frame.peak)
        first = len(self.frames) - search.depth
        if self._sites is not None:
            self._sites.push(self._pilot.planes, size)
        if first < 0:
            return
        patch = (search.patch_size, search.depth)
        if self._rule.extra_load is None:
            less, into = self._working.planes[first:], self._residual.planes[first]
            plane_squares(self._engine, self._noisy.planes[first:], patch, size, into, less=less)
        if self._sites is not None:
            about_mean = None if search.flat_energy is None else self._about_mean.planes[first]
            into = self._energy.planes[first]
            plane_squares(self._engine, self._pilot.planes[first:], patch, size, into, about_mean=about_mean)

    def finished(self, index: int) -> Frame:
        """A plane with all that was added up for it."""
        frame = self.frames[index]
        height, width = frame.size
        sums, weights, before, noisy = (
            held.planes[index : index + 1] for held in (self._sums, self._weights, self._working, self._noisy)
        )
        taken = Sums(sums, weights, self._unit, self._weight_unit, self._most)
        pilot, working = weighted_means(self._engine, taken, before, self._rule.patch_size)
        own = (0, slice(height), slice(width))
        return Frame(noisy[own].copy(), working[own].copy(), pilot[own].copy(), frame.peak, frame.groups)

    def drop(self) -> None:
        """The first plane goes."""
        del self.frames[0]
        for held in self._rolling:
            held.pop()
        if self._sites is not None:
            self._sites.pop()

    def work_on(self, plane: int) -> None:
        """Estimate all groups whose reference patches begin in one plane."""
        frame = self.frames[plane]
        if self._sites is not None:
            frame.groups[:] = [self._match(plane, self._sites)]
        [groups] = frame.groups
        rows, stride = self._pilot.planes.shape[1:]
        pilot, working, residual = (
            held.planes.reshape(1, -1, stride) for held in (self._pilot, self._working, self._residual)
        )
        images = Images(pilot, working, residual, None, self._noise, rows)
        sums = Sums(
            self._sums.planes.reshape(1, -1, stride, 2),
            self._weights.planes.reshape(1, -1, stride),
            self._unit,
            self._weight_unit,
            self._most,
        )
        combine(self._engine, images, groups, self._permutations, self._rule, sums)
        if not self.sweep.keep_groups:
            frame.groups.clear()

    def _match(self, plane: int, sites: Sites) -> Members:
        search = self._search
        height, width = self.frames[plane].size
        references = self.references(height, width)
        centres = sites.centres(plane, references, len(self.frames) - search.depth + 1, search.patch_size)
        flat = search.flat_energy is not None
        field = Field(
            image=self._pilot.planes,
            energy=self._energy.planes,
            about_mean=self._about_mean.planes[plane] if flat else None,
            sizes=self._sizes.planes,
            back=np.argsort(self._permutations, axis=1).astype(np.int16),
            patch_size=search.patch_size,
            depth=search.depth,
            radius=search.radius,
            factor=search.factor,
            penalty=search.penalty * self._noise,
            flat=(search.flat_energy or 0.0) * self._noise,
        )
        return match_planes(self._engine, field, references, centres, self._group_size(height, width))

    def references(self, height: int, width: int) -> References:
        """The reference patches of a plane."""
        part = self.sweep.part
        _, top, left = (0, 0, 0) if part is None else part.first
        _, whole_height, whole_width = (0, height, width) if part is None else part.whole
        border, step = self._search.patch_size - 1, self.sweep.step
        lines = (
            positions_in_part(height - border, step, top, whole_height - border),
            positions_in_part(width - border, step, left, whole_width - border),
        )
        return References(*(self._engine.xp.asarray(line.astype(np.int32)) for line in lines))

    def _group_size(self, height: int, width: int) -> int:
        """Members of a group: a small page does not hold as many."""
        side, border = 2 * self._search.radius + 1, self._search.patch_size - 1
        return min(self._search.n_members, min(side, height - border) * min(side, width - border))

    def bytes_of_groups(self) -> int:
        """A bound of what the groups of all planes in flight take."""
        references = _most_references(self._shape, self.sweep.step)
        return 5 * self._shape[0] * references * self._search.n_members

    def _make_room(self, peak: float) -> None:
        """Make the unit of the sums so large that pixels up to `peak` do not overflow them."""
        if peak <= self._largest:
            return
        doublings = math.ceil(math.log2(peak / self._largest))
        self._largest *= 2.0**doublings
        self._unit /= 2.0**doublings
        planes = self._sums.planes
        planes >>= doublings
