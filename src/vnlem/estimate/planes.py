"""One ridge pass over a stack, plane after plane: only the planes in flight are held.

A plane enters when it comes within reach of a reference patch and leaves, finished, when none can reach it
anymore. Passes are generators in a chain, so memory does not grow with the number of planes.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.ridge import PassSettings
from vnlem.kernels.cpu.declare import packed
from vnlem.kernels.cpu.ridge import (
    Corner,
    GroupImages,
    Ridge,
    box_of_members,
    filter_tile,
    join_planes_tile,
)
from vnlem.kernels.cpu.sheets import PADDING, Sums
from vnlem.kernels.patch_window import patch_window
from vnlem.neighbours.groups import Members, positions_in_part
from vnlem.neighbours.patches import blank_planes, drop_first, patch_sums, spread_over_patches
from vnlem.neighbours.planes import PlaneMatcher, Search, reference_tiles, symmetries_of_block
from vnlem.pipeline.stack_task import Part
from vnlem.pipeline.workers import Pool

Image = NDArray[np.float32]
AnyFrame = TypeVar("AnyFrame")
_GONE: Image = np.empty((0, 0, 0), np.float32)  # placeholder for an image held elsewhere
_SHARED: WeakValueDictionary[tuple[tuple[int, ...], float], Image] = WeakValueDictionary()


@dataclass
class Frame:
    """One plane in flight through the passes, (channels, H, W)."""

    noisy: Image
    working: Image
    pilot: Image
    variance: Image | None = None  # (H, W), of the noise of all channels, if it varies
    # The groups of the reference patches that begin in this plane. The pass that finds them may fill the
    # list after the plane has moved on to the next pass.
    groups: list[Members] = field(default_factory=list)


class Delay(NamedTuple):
    """How long a pass may wait for frames before it releases one."""

    ahead: int  # frames after a reference patch that its members may begin in
    wait: int  # frames whose reference patches may still improve one after all its own are done

    def planes_for(self, plane: int, depth: int) -> int:
        """How many planes must have arrived before the reference patches that begin in a plane are processed.

        Those of the first plane look less far ahead: only they cover it, and it must not wait longer.

        >>> Delay(ahead=1, wait=0).planes_for(0, depth=2), Delay(ahead=1, wait=0).planes_for(1, depth=2)
        (2, 4)
        """
        return plane + depth + self.ahead if plane else max(depth, self.ahead + 1)


@dataclass(frozen=True)
class Sweep:
    """How a pass goes through the stack."""

    total: int  # planes of the stack; not used with a delay
    reach: int  # planes before and after a reference patch that its members may begin in
    step: int  # pixels between reference patches
    plane_step: int  # planes between reference patches
    keep_groups: bool = False  # whether the next pass reuses the groups
    part: Part | None = None  # place of the stack in a larger one whose bytes it must match
    delay: Delay | None = None  # None: planes wait for all that can reach them

    def planes(self, depth: int) -> NDArray[np.int64]:
        """The planes that reference patches begin in."""
        first, whole = (0, self.total) if self.part is None else (self.part.first[0], self.part.whole[0])
        return positions_in_part(self.total - depth + 1, self.plane_step, first, whole - depth + 1)

    def in_flight(self, plane: int, depth: int) -> tuple[int, int]:
        """The oldest plane that is held for reference patches in one plane, and how many are held.

        At both ends the stack is searched further to the other side: groups find equally many planes.

        >>> sweep = Sweep(total=10, reach=2, step=5, plane_step=1)
        >>> [sweep.in_flight(plane, 1) for plane in (0, 4, 9)]
        [(0, 5), (2, 5), (5, 5)]
        """
        count = min(2 * self.reach + depth, self.total)
        return max(0, min(plane - self.reach, self.total - count)), count


class PlanesInFlight:
    """The images and accumulators of the planes that are held, the oldest first.

    shape: the most planes in flight, and the size of the largest.
    search: what a patch is.
    settings: how groups are combined.
    sigma: standard deviation of the noise, the same in all channels.
    channels: they share their groups but not the combination.
    matcher: finds the groups; None: the groups that come with the frames are reused.
    varies: whether frames have a map of the variance of their noise.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        search: Search,
        settings: PassSettings,
        sigma: float,
        channels: int,
        matcher: PlaneMatcher | None,
        *,
        varies: bool = False,
    ) -> None:
        self._search, self.matcher = search, matcher
        self._taps = patch_window(search.patch_size, settings.window)
        self.frames: list[Frame] = []
        blank = blank_planes(*shape)
        even = search.patch_size**2 * search.depth * sigma**2
        # Missing patches have a noise energy too, to avoid a division by zero.
        self._noise = np.full(blank.shape, even, np.float32) if varies else _everywhere(blank.shape, even)
        self._pilot, self._working, self._change = (
            np.zeros((channels, *blank.shape), np.float32) for _ in range(3)
        )
        planes, rows, stride = blank.shape
        pilot, working, change, noise = (
            image.reshape(-1, planes * rows, stride)
            for image in (self._pilot, self._working, self._change, self._noise)
        )
        self._images = packed(GroupImages(pilot, working, change, noise, rows))
        # Sums over patches of the last planes; a patch spans all of them.
        self._changes: deque[NDArray[np.float64]] = deque(maxlen=search.depth)
        self._variances: deque[NDArray[np.float64]] = deque(maxlen=search.depth)
        self._sums = np.zeros((channels, *shape, 2), np.float32)
        self._weights = np.zeros((channels, *shape), np.float32)
        transforms = symmetries_of_block(
            search.group, search.patch_size, search.depth, reflect_depth=search.reflect_depth
        )
        self._ridge = packed(Ridge(transforms, self._taps, settings.rule()))
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[Image, Image, Corner]] = {}
        self._next = 0

    def push(self, frame: Frame) -> None:
        """One plane more at the end."""
        index = len(self.frames)
        groups = frame.groups if self.matcher is None else []
        self.frames.append(replace(frame, working=_GONE, pilot=_GONE, groups=groups))
        if self.matcher is not None:
            self.matcher.push(frame.pilot, frame.variance)
        height, width = frame.noisy.shape[1:]
        self._pilot[:, index, :height, :width] = frame.pilot
        self._working[:, index, :height, :width] = frame.working
        self._changes.append(patch_sums(frame.noisy - frame.working, self._search.patch_size, squared=True))
        first = index - self._search.depth + 1
        if first >= 0:
            totals = np.sum(list(self._changes), axis=0)
            self._change[:, first, : totals.shape[1], : totals.shape[2]] = totals
        if frame.variance is not None:
            self._push_variance(frame.variance, first)

    def _push_variance(self, variance: Image, first: int) -> None:
        """All channels share the noise energies of patches."""
        self._variances.append(patch_sums(variance[None], self._search.patch_size)[0])
        if first >= 0:
            total = np.sum(list(self._variances), axis=0)
            self._noise[first, : total.shape[0], : total.shape[1]] = total

    def finished(self, index: int) -> Frame:
        """A plane with all its sums applied."""
        frame = self.frames[index]
        height, width = frame.noisy.shape[1:]
        weights = np.stack(
            [spread_over_patches(one[index], self._taps)[:height, :width] for one in self._weights]
        )
        if not weights.min() > 0:
            raise RuntimeError(
                f"{np.count_nonzero(~(weights > 0))} pixels are covered by no patch; this is a fault of vnlem"
            )
        changes, kept = np.moveaxis(self._sums[:, index, :height, :width], -1, 0)
        working = self._working[:, index, :height, :width]
        return replace(frame, working=working + kept / weights, pilot=working + changes / weights)

    def drop(self) -> None:
        """Remove the first plane."""
        frame = self.frames.pop(0)
        if self.matcher is not None:
            self.matcher.pop()
        for kept_sums in (self._changes, self._variances):
            if len(kept_sums) > len(self.frames):
                kept_sums.popleft()
        for held in (*self._pilot, *self._working, *self._change):
            drop_first(held)
        if frame.variance is not None:
            drop_first(self._noise)
        for sums in (*self._sums, *self._weights):
            drop_first(sums)
            sums[-1] = 0

    def add_tile(self, index: int, members: Members) -> None:
        """Estimate the groups of one tile; sums are added in the order of `index`, not of completion."""
        depth, patch_size = self._search.depth, self._search.patch_size
        channels, _, height, stride = self._pilot.shape
        box = np.empty((2, 3), np.int64)
        box_of_members(members.positions, height, stride, box)
        shape = tuple((box[1] - box[0] + (depth, patch_size, patch_size)).tolist())
        size = 2 * channels * math.prod(shape)
        sums = np.zeros(size + PADDING, np.float32)[:size].reshape(channels, *shape, 2)
        weights = np.zeros((channels, *shape), np.float32)
        plane, top, left = box[0].tolist()
        corner = Corner(plane, top, left, shape[1])
        tile = Sums(sums.reshape(channels, -1, shape[2], 2), weights.reshape(channels, -1, shape[2]))
        filter_tile(self._images, self._ridge, members.positions, members.transforms, corner, tile)
        with self._lock:
            self._waiting[index] = (sums, weights, corner)
            while self._next in self._waiting:
                join_planes_tile(*self._waiting.pop(self._next), depth, self._sums, self._weights)
                self._next += 1

    def start_plane(self) -> None:
        """Count tiles from zero again."""
        self._next = 0


def _everywhere(shape: tuple[int, ...], value: float) -> Image:
    """A read-only array of one value; passes share it while one of them holds it."""
    found = _SHARED.get((shape, value))
    if found is None:
        found = _SHARED[shape, value] = np.full(shape, value, np.float32)
    return found


class Held(Protocol[AnyFrame]):
    """The planes in flight of a pass, on the CPU or on a device."""

    @property
    def frames(self) -> Sequence[object]:
        """As many as there are planes."""

    def push(self, frame: AnyFrame) -> None:
        """One plane more at the end."""

    def finished(self, index: int) -> AnyFrame:
        """A plane with all its sums applied."""

    def drop(self) -> None:
        """Remove the first plane."""


def run_planes(
    frames: Iterator[AnyFrame],
    held: Held[AnyFrame],
    sweep: Sweep,
    depth: int,
    work: Callable[[int], None],
    report: Callable[[], None],
) -> Iterator[AnyFrame]:
    """Push every plane through one pass.

    frames: the planes, in order.
    depth: planes that a patch spans.
    work: estimates all groups whose reference patches begin in one of the planes in flight.
    report: called whenever the reference patches of a plane are done.

    Yields the planes in the same order, with a new pilot and a new working image.
    """
    if sweep.delay is not None:
        yield from _run_delayed(frames, held, sweep, sweep.delay, depth, work, report)
        return
    first = 0  # number of the oldest plane in flight
    for plane in sweep.planes(depth):
        oldest, count = sweep.in_flight(int(plane), depth)
        while first < oldest:
            yield held.finished(0)
            held.drop()
            first += 1
        while len(held.frames) < count:
            held.push(next(frames))
        work(int(plane) - first)
        report()
    while held.frames:
        yield held.finished(0)
        held.drop()


def _run_delayed(
    frames: Iterator[AnyFrame],
    held: Held[AnyFrame],
    sweep: Sweep,
    delay: Delay,
    depth: int,
    work: Callable[[int], None],
    report: Callable[[], None],
) -> Iterator[AnyFrame]:
    """The same with a delay: a plane leaves as soon as ``delay.ahead + delay.wait`` others have arrived.

    No frame is requested before it is needed: frames may come from a camera. A plane that has left is still
    held while reference patches may find members in it.
    """
    room = 2 * sweep.reach + depth
    come = worked = left = 0  # planes that arrived, whose reference patches are done, and that have left
    while True:
        frame = next(frames, None)
        if frame is not None:
            if len(held.frames) == room:
                held.drop()
            held.push(frame)
            come += 1
        first = come - len(held.frames)
        while come >= (delay.planes_for(worked, depth) if frame is not None else worked + depth):
            work(worked - first)
            report()
            worked += 1
            while left < worked + depth - 1 - delay.wait:
                yield held.finished(left - first)
                left += 1
        if frame is None:
            break
    while left < come:
        yield held.finished(left - first)
        left += 1


def work_on(held: PlanesInFlight, plane: int, sweep: Sweep, search: Search, pool: Pool) -> None:
    """Estimate all groups whose reference patches begin in one plane."""
    matcher, frame = held.matcher, held.frames[plane]
    height, width = frame.noisy.shape[1:]
    references = reference_tiles(height, width, search.patch_size, sweep.step, sweep.part)
    groups = list(frame.groups)
    found: dict[int, Members] = {}

    def work(index: int) -> None:
        members = groups[index] if matcher is None else matcher.match(plane, references[index])
        if sweep.keep_groups:
            found[index] = members
        held.add_tile(index, members)

    held.start_plane()
    pool.for_each(work, range(len(references)))
    frame.groups[:] = [found[index] for index in range(len(references))] if sweep.keep_groups else []
