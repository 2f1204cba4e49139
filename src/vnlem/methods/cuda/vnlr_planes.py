"""The planes in flight of VNLR on a CUDA device: their images, groups and accumulators."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.planes import Sweep
from vnlem.kernels.cuda import engine as engines
from vnlem.kernels.cuda.match import Field, Members, References, match
from vnlem.kernels.cuda.patches import Sums, weighted_means
from vnlem.kernels.cuda.planes import plane_squares
from vnlem.kernels.cuda.ridge import Images, Rule, Symmetries, combine, units_of_sums
from vnlem.methods.cuda.rolling import Rolling
from vnlem.methods.cuda.sites import Sites
from vnlem.neighbours.planes import Search, noise_of_patch, reference_lines, symmetries_of_block

Array = Any  # of the engine's library


@dataclass
class Frame:
    """One plane in flight through the passes, (channels, H, W) on the device."""

    noisy: Array
    working: Array
    pilot: Array
    peak: float  # the largest magnitude of a pixel
    # The groups of reference patches that begin in this plane. The pass that finds them may add them after
    # the plane has moved on to the next pass.
    groups: list[Members] = field(default_factory=list)

    def moved(self, move: Callable[[Array], Array]) -> "Frame":
        """The same with its arrays moved to another memory."""
        groups = [Members(*map(move, found)) for found in self.groups]
        return Frame(move(self.noisy), move(self.working), move(self.pilot), self.peak, groups)


@dataclass
class Held:
    """What is known of a plane in flight, apart from its pixels."""

    size: tuple[int, int]
    peak: float
    groups: list[Members]


def most_references(shape: tuple[int, int, int], step: int) -> int:
    """A bound of the reference patches of a plane."""
    _, height, width = shape
    return (height // step + 2) * (width // step + 2)


class Room(NamedTuple):
    """What the sums of a pass must have room for."""

    cover: int  # members that cover a pixel
    peak: float  # the largest known magnitude of a pixel of the whole stack


class _Channel(NamedTuple):
    """The planes in flight of one channel."""

    pilot: Rolling
    working: Rolling
    noisy: Rolling
    residual: Rolling  # patch sums of (noisy - working)^2
    sums: Rolling
    weights: Rolling


class PlanesOnDevice:
    """The images and accumulators of the planes that a pass holds, the oldest first.

    shape: the most planes in flight, and the size of the largest.
    search: what a patch is, and how members are searched for.
    rule: how groups are combined.
    sites: where members are searched for; None: the groups that come with the frames are reused.
    sigma: standard deviation of the noise, the same in all channels.
    weights: of each channel in comparisons.
    """

    def __init__(
        self,
        engine: engines.Engine,
        shape: tuple[int, int, int],
        *,
        sweep: Sweep,
        search: Search,
        rule: Rule,
        sites: Sites | None,
        sigma: float,
        weights: NDArray[np.float32],
        room: Room,
    ) -> None:
        self._engine, self.sweep, self._search, self._rule, self._sites = engine, sweep, search, rule, sites
        self.depth = search.depth
        in_flight, height, width = self._shape = shape
        self.frames: list[Held] = []
        rolling = partial(Rolling, engine.xp, in_flight, sweep.total)
        self._channels = [
            _Channel(
                *(rolling((height, width)) for _ in range(4)),
                *(rolling((height, width, *more), np.int64) for more in ((2,), ())),
            )
            for _ in weights
        ]
        self._sizes = rolling((2,), np.int32)
        self._rolling = [*(held for channel in self._channels for held in channel), self._sizes]
        self._compared = [number for number, weight in enumerate(weights) if weight > 0]
        self._match_weights = [np.float32(weights[number]) for number in self._compared]
        if sites is not None:
            # Channels side by side; a single one is the pilot itself.
            self._seen = self._channels[0].pilot
            if len(self._compared) > 1:
                self._seen = rolling((len(self._compared), height, width))
                self._rolling.append(self._seen)
            self._energy = rolling((height, width))
            self._rolling.append(self._energy)
            if search.flat_energy is not None:
                self._about_mean = rolling((height, width))
                self._rolling.append(self._about_mean)
        self._noise = search.patch_size**2 * search.depth * sigma**2
        self._compared_noise = noise_of_patch(search, sigma, weights)
        self._symmetries = Symmetries.of(
            symmetries_of_block(
                search.group, search.patch_size, search.depth, reflect_depth=search.reflect_depth
            )
        )
        # A power of two that no pixel exceeds, even if single precision rounded it up.
        self._largest = 2.0 ** math.ceil(math.log2(max(room.peak, 1.0)) + 1e-6)
        self._unit, self._weight_unit, self._most = units_of_sums(search.n_members, room.cover, self._largest)

    def push(self, frame: Frame) -> None:
        """One plane more at the end."""
        search = self._search
        height, width = size = frame.noisy.shape[1:]
        self.frames.append(Held(size, frame.peak, frame.groups if self._sites is None else []))
        for held in self._rolling:
            held.push()
        for number, channel in enumerate(self._channels):
            for rolling, image in zip(channel, (frame.pilot, frame.working, frame.noisy), strict=False):
                rolling.planes[-1, :height, :width] = image[number]
        self._sizes.planes[-1] = self._engine.constant(np.array([height, width], np.int32))
        self._make_room(frame.peak)
        first = len(self.frames) - search.depth
        if self._sites is not None:
            self._push_compared(frame, size)
        if first < 0:
            return
        patch = (search.patch_size, search.depth)
        if self._rule.extra_load is None:
            for channel in self._channels:
                noisy, less = (held.planes[first:, None] for held in (channel.noisy, channel.working))
                into = channel.residual.planes[first]
                plane_squares(self._engine, noisy, patch, size, into, less=less)
        if self._sites is not None:
            about_mean = None if search.flat_energy is None else self._about_mean.planes[first]
            into, seen = self._energy.planes[first], self._image()[first:]
            plane_squares(self._engine, seen, patch, size, into, about_mean=about_mean)

    def _push_compared(self, frame: Frame, size: tuple[int, int]) -> None:
        """The values in which patches of the newest plane are compared, and its sites."""
        height, width = size
        if len(self._compared) > 1:
            for to, number, weight in zip(
                self._seen.planes[-1], self._compared, self._match_weights, strict=True
            ):
                to[:height, :width] = weight * frame.pilot[number]
        assert self._sites is not None
        if len(frame.pilot) in (1, 3):
            self._sites.push(self._channels[0].pilot.planes[-1], size)
            return
        bright = self._engine.xp.zeros(self._shape[1:], np.float32)
        bright[:height, :width] = frame.pilot.sum(axis=0) / np.float32(len(frame.pilot) ** 0.5)
        self._sites.push(bright, size)

    def _image(self) -> Array:
        """The values in which patches are compared, (planes, channels, H, stride)."""
        planes = self._seen.planes
        return planes if planes.ndim == 4 else planes[:, None]

    def finished(self, index: int) -> Frame:
        """A plane with all its sums applied."""
        frame, xp = self.frames[index], self._engine.xp
        height, width = frame.size
        own = (0, slice(height), slice(width))
        pilots, blended, noisy = [], [], []
        for channel in self._channels:
            sums, weights, before, came = (
                held.planes[index : index + 1]
                for held in (channel.sums, channel.weights, channel.working, channel.noisy)
            )
            taken = Sums(sums, weights, self._unit, self._weight_unit, self._most)
            pilot, working = weighted_means(self._engine, taken, before, self._rule.taps())
            pilots.append(pilot[own])
            blended.append(working[own])
            noisy.append(came[own])
        images = [xp.stack(planes) for planes in (noisy, blended, pilots)]
        return Frame(images[0], images[1], images[2], frame.peak, frame.groups)

    def drop(self) -> None:
        """Remove the first plane."""
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
        rows, stride = self._channels[0].pilot.planes.shape[1:]
        # Channels share their groups but not the combination.
        for channel in self._channels:
            pilot, working, residual = (
                held.planes.reshape(1, -1, stride)
                for held in (channel.pilot, channel.working, channel.residual)
            )
            images = Images(pilot, working, residual, None, self._noise, rows)
            sums = Sums(
                channel.sums.planes.reshape(1, -1, stride, 2),
                channel.weights.planes.reshape(1, -1, stride),
                self._unit,
                self._weight_unit,
                self._most,
            )
            combine(self._engine, images, groups, self._symmetries, self._rule, sums)
        if not self.sweep.keep_groups:
            frame.groups.clear()

    def _match(self, plane: int, sites: Sites) -> Members:
        search = self._search
        height, width = self.frames[plane].size
        references = self.references(height, width)
        centres = sites.centres(plane, references, len(self.frames) - search.depth + 1, search.patch_size)
        even_penalty = search.penalty * self._compared_noise
        penalty = None
        if search.flat_energy is not None:
            about_mean = self._about_mean.planes[plane]
            penalty = self._engine.xp.full(about_mean.shape, even_penalty, np.float32)
            penalty[about_mean < np.float32(search.flat_energy * self._compared_noise)] = np.inf
        field = Field(
            image=self._image(),
            sizes=self._sizes.planes,
            energy=self._energy.planes,
            penalty=penalty,
            back=self._symmetries.back,
            patch_size=search.patch_size,
            radius=search.radius,
            factor=search.factor,
            depth=search.depth,
            even_penalty=even_penalty,
        )
        return match(self._engine, field, references, self._group_size(height, width), centres=centres)

    def references(self, height: int, width: int) -> References:
        """The reference patches of a plane."""
        sweep = self.sweep
        lines = reference_lines((height, width), self._search.patch_size, sweep.step, sweep.part)
        return References(*(self._engine.constant(line.astype(np.int32)) for line in lines))

    def _group_size(self, height: int, width: int) -> int:
        """Members of a group, fewer if a page is small."""
        side, border = 2 * self._search.radius + 1, self._search.patch_size - 1
        return min(self._search.n_members, min(side, height - border) * min(side, width - border))

    def bytes_of_groups(self) -> int:
        """A bound of what the groups of all planes in flight take."""
        references = most_references(self._shape, self.sweep.step)
        return 5 * self._shape[0] * references * self._search.n_members

    def _make_room(self, peak: float) -> None:
        """Make the unit of the sums large enough for pixels up to `peak`."""
        if peak <= self._largest:
            return
        doublings = math.ceil(math.log2(peak / self._largest))
        self._largest *= 2.0**doublings
        self._unit /= 2.0**doublings
        for channel in self._channels:
            planes = channel.sums.planes
            planes >>= doublings
