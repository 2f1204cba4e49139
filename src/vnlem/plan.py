"""The plan of a call: all decisions before the work begins, as one value.

    noise model -> rounds (several if photons are few)
                     -> sizes (the image, the image halved, ...) -> groups of channels

Each group has its units (`Scale`) and its resolved parameters. A plan is made once per call, from the image
or from a sample of a large one. It can be printed, pickled and compared; `vnlem.execute` carries it out on
the whole image or on any part of it, with the same bytes.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.halved import DOUBLE_REACH, FILTER_REACH, half_of
from vnlem.estimate.missing import Repair
from vnlem.estimate.runs import REACH
from vnlem.estimate.scales import check_scales, count_scales, halve_in_tiles
from vnlem.noise import parts, strips
from vnlem.noise.model import NoiseModel
from vnlem.noise.rounds import noise_in, rounds_for, stand_for_mixture
from vnlem.pipeline import units_on_gpu
from vnlem.pipeline.device import lies_on_gpu, namespace, placed, why_no_gpu
from vnlem.pipeline.image import constant
from vnlem.pipeline.method import Method
from vnlem.pipeline.run import NEGLIGIBLE
from vnlem.pipeline.scale import Scale
from vnlem.pipeline.sigma import halved_map, root_mean_square
from vnlem.pipeline.units_on_gpu import Statistics
from vnlem.pipeline.workers import Pool
from vnlem.registry import find_method

Float = NDArray[np.float64]

# Coarse pixels around a part that joining two sizes reads: filters of 3 in both directions, and half of the
# windows over which differences are averaged.
JOIN_REACH = 10
JOIN_REACH_IN_UNITS = 16
# Sums on a GPU are integers whose unit follows the brightest pixel. Pixels of a large image may be brighter
# than those of its sample by this factor, and pixels of a mixture than those it is planned from.
BRIGHTER_THAN_SAMPLE = 2.0**12
BRIGHTER_THAN_STAND_IN = 2.0**4


@dataclass(frozen=True)
class Group:
    """Channels that are denoised together: units of their pixels, parameters and halos for their noise."""

    channels: tuple[int, ...]
    scale: Scale
    params: Any
    halo: int = 0  # only if the image is denoised in parts
    work_halo: int = 0
    peak: float | None = None  # the largest absolute value in units of the scale, for solvers of a GPU

    @property
    def is_negligible(self) -> bool:
        """Whether there is almost no noise, and the pixels are not changed."""
        return self.scale.noise <= NEGLIGIBLE * self.scale.scale


@dataclass(frozen=True)
class Size:
    """One size of the image, and how its channels are denoised there."""

    groups: tuple[Group, ...]
    same: bool = False  # whether the channels of the only group are one picture, their mean
    grain: int = 1  # parts are read from multiples of this, for solvers whose sums restart there
    noise: NoiseModel | None = None  # of pixels that are not stabilised yet

    @property
    def level(self) -> float:
        """Standard deviation of the noise, if it is the same in all channels."""
        return self.groups[0].scale.noise

    @property
    def margin(self) -> int:
        """Extra pixels read around a part, to make its sums begin where those of the whole do.

        Beyond the halo: as far as the multiple of the grain before the part, and up to one before its halo.
        """
        return max(group.halo for group in self.groups) + 2 * (self.grain - 1)

    @property
    def work_halo(self) -> int:
        """Pixels around a part that are processed."""
        return max(group.work_halo for group in self.groups)

    @property
    def join_reach(self) -> int:
        """Coarse pixels around a part that joining this size with the next reads."""
        return JOIN_REACH if self.noise is None else JOIN_REACH_IN_UNITS


@dataclass(frozen=True)
class Round:
    """One denoising of several: how often the image is halved before, and the sizes from there on."""

    halvings: int
    sizes: tuple[Size, ...]
    share: float = 1.0  # of the image, in a mixture with the result of the round before


@dataclass(frozen=True)
class Plan:
    """What a call does with an image of known noise and units."""

    method: str
    engine: str
    device: str  # "cpu", "cuda" (the first GPU of the process that solves) or "cuda:N"
    noise: NoiseModel
    rounds: tuple[Round, ...]
    channels: str = "joint"  # or "separate" or "same"
    constant: tuple[int, ...] = ()  # channels that are left as they are
    repair: Repair | None = None  # if pixels may be missing
    limits: tuple[float, float] | None = None  # which the inverse of a transform must not leave

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The image itself in the last round, and halved for each further scale of the method."""
        return self.rounds[-1].sizes

    @property
    def stabilises_first(self) -> bool:
        """Whether noise is whitened once at the start instead of at each size."""
        return not self.noise.is_white and self.sizes[0].noise is None

    @property
    def halo(self) -> int:
        """Pixels around a part of the image that its result depends on."""
        filters = parts.halo(self.noise)
        return _reach_of_rounds(self.rounds, filters) + filters + (self.repair.halo if self.repair else 0)

    def work_halo(self, side: int) -> int:
        """Pixels around a part that are processed, as if it were one round, for parts of `side` pixels."""
        return _work_of_rounds(self.rounds, side, parts.halo(self.noise))

    def groups(self) -> list[Group]:
        """All groups of channels, in all rounds and sizes."""
        return [group for one in self.rounds for size in one.sizes for group in size.groups]

    def describe(self) -> dict[str, Any]:
        """Everything the result depends on, as plain values."""
        return {
            "method": self.method,
            "engine": self.engine,
            "device": self.device.partition(":")[0],
            "parameters": [asdict(group.params) for group in self.groups()],
            "scales": [group.scale._asdict() for group in self.groups()],
            "rounds": [one.halvings for one in self.rounds],
            "channels": self.channels,
            "noise": self.noise.describe(),
            "noise_model": self.noise.to_dict(),
            **({"repair": self.repair.describe()} if self.repair else {}),
        }


class Sample(NamedTuple):
    """The pixels that a plan is made from: those of the image, or some of a large one."""

    planes: Float  # (channels, height, width)
    shape: tuple[int, int]  # of the image
    is_all: bool = True
    sigma_map: Any = None  # (channels or 1, height or 1, width or 1): if the noise varies
    statistics: Statistics | None = None  # of planes on a GPU


def make_plan(
    method: str,
    params: dict[str, Any],
    sample: Sample,
    noise: NoiseModel,
    *,
    channels: str = "joint",
    device: str = "cpu",
    ndim: int = 2,
    in_parts: bool = False,
    warns: bool = True,
    pool: Pool | None = None,
) -> Plan:
    """Decide everything.

    params: all parameters of the method, as :meth:`Method.with_defaults` gives them.
    noise: white, of the root mean square, if the sample has a map of it.
    channels: "joint", "separate" or "same".
    ndim: 1 for a signal.
    in_parts: whether the image is denoised in parts, which need halos.
    warns: whether to warn about white noise that leaves nothing of the image.
    pool: the threads to use; they do not change the plan.

    >>> image = np.random.default_rng(0).normal(100, 20, (1, 128, 128))
    >>> params = find_method("vnlr").with_defaults({"scales": 2})
    >>> plan = make_plan("vnlr", params, Sample(image, (128, 128)), NoiseModel.white(15.0))
    >>> len(plan.rounds), len(plan.sizes), plan.sizes[1].level
    (1, 2, 7.5)
    """
    found = find_method(method)
    apart = constant(sample.planes) if channels == "joint" and not noise.ties_channels else ()
    of_call = channels, apart, device, ndim, in_parts, sample.is_all, warns, pool or Pool(1)
    decide = _Decide(found, params, *of_call)
    rounds = tuple(decide.rounds(sample, noise, check_scales(params.get("scales", 1))))
    limits = strips.limits(noise, sample.planes) if sample.is_all and not noise.is_white else None
    return Plan(method, params.get("engine", "fast"), device, noise, rounds, channels, apart, limits=limits)


def pictures(planes: Any, channels: str, apart: tuple[int, ...] = ()) -> list[tuple[tuple[int, ...], Any]]:
    """The pictures that planes (C, H, W), but those apart, are denoised as, each with its channels.

    >>> planes = np.zeros((3, 4, 5))
    >>> [(c, p.shape) for c, p in pictures(planes, "same")]
    [((0, 1, 2), (1, 4, 5))]
    >>> [c for c, _ in pictures(planes, "separate")]
    [(0,), (1,), (2,)]
    """
    every = tuple(channel for channel in range(len(planes)) if channel not in apart)
    if channels == "separate":
        return [((channel,), planes[channel : channel + 1]) for channel in every]
    joint = planes[list(every)] if apart else planes
    return [(every, planes.mean(axis=0, keepdims=True) if channels == "same" else joint)]


def map_of(sigma_map: Any, group: Group, same: bool = False) -> Any:
    """The part of a map of the noise for a group's channels; None if it is one number."""
    own = sigma_map
    if own is not None and len(own) > 1:
        own = own[:1] if same else own[list(group.channels)]
    return None if own is None or own.size == 1 else own


class _Decide(NamedTuple):
    """How the sizes of an image are prepared."""

    method: Method
    params: dict[str, Any]
    channels: str
    apart: tuple[int, ...]  # channels that are left as they are
    device: str
    ndim: int
    in_parts: bool
    is_all: bool
    warns: bool
    pool: Pool

    def rounds(self, sample: Sample, noise: NoiseModel, scales: int) -> Iterator[Round]:
        """What every round needs."""
        planes, shape = sample.planes, sample.shape
        # Noise that depends only on the brightness is whitened at each size separately.
        if noise.is_correlated or not noise.varies:
            stable = planes if noise.is_white else strips.stabilise(noise, planes, self.pool)
            level, spread, known = noise.sigma if noise.is_white else 1.0, sample.sigma_map, sample.statistics
            sizes = []
            for number in range(count_scales(*shape, scales)):
                if number:
                    stable, spread, known = self._halve(stable), halved_map(spread, self._halve), None
                sizes.append(
                    self._size(stable, level / 2**number, spread, known, warns=self.warns and noise.is_white)
                )
            yield Round(0, tuple(sizes))
            return
        for one in rounds_for(noise, planes, *shape):
            seen, size, sizes = planes, shape, []
            for _ in range(one.halvings):
                seen, size = self._halve(seen), half_of(size)
            for number in range(count_scales(*size, scales)):
                seen = self._halve(seen) if number else seen
                own = noise_in(noise, one).halved(number)
                if one.mixed:
                    stands = stand_for_mixture(own, seen, self.pool)
                else:
                    stands = strips.stabilise(own, seen, self.pool)
                sizes.append(self._size(stands, 1.0, noise=own, mixed=one.mixed, warns=False))
            yield Round(one.halvings, tuple(sizes), one.share)

    def _halve(self, planes: Any) -> Any:
        return halve_in_tiles(planes, self.pool)

    def _size(
        self,
        planes: Any,
        level: float,
        spread: Any = None,
        statistics: Statistics | None = None,
        *,
        noise: NoiseModel | None = None,
        mixed: bool = False,
        warns: bool = True,
    ) -> Size:
        """The size of these planes; `noise` if its pixels are not stabilised yet."""
        same, groups = self.channels == "same", []
        for chosen, picture in pictures(planes, self.channels, self.apart):
            own = level
            if spread is not None:
                few = spread if len(spread) == 1 else spread[:1] if same else spread[list(chosen)]
                own = root_mean_square(np.broadcast_to(few, picture.shape) if not lies_on_gpu(few) else few)
            known = statistics if picture is planes else None
            groups.append(self._group(chosen, *self._units(picture, own, known, mixed, warns)))
        return Size(tuple(groups), same, self.method.grain(self.device), noise)

    def _units(
        self, picture: Any, noise: float, statistics: Statistics | None, mixed: bool, warns: bool
    ) -> tuple[Scale, float | None]:
        """Scale and, for a GPU, the largest absolute value in its units: a solver would have to wait for it.

        Sums on a GPU have another order and the scale another last digit, so it is measured there if this
        machine has one.
        """
        # Sums follow the order of the numbers in memory.
        picture = namespace(picture).ascontiguousarray(picture)
        workers = self.pool.workers
        if self.device == "cpu":
            return Scale.measure(picture, noise, workers=workers, warns=warns), None
        if lies_on_gpu(picture):
            if statistics is None and units_on_gpu.usable(picture):
                statistics = units_on_gpu.statistics(picture)
            scale = Scale.measure(picture, noise, statistics, warns=warns)
            return scale, scale.peak(statistics)
        if why_no_gpu() is None and not mixed:
            with placed(picture, self.device) as place:
                scale = Scale.measure(place.array, noise, warns=warns)
        else:
            scale = Scale.measure(picture, noise, workers=workers, warns=warns)
        peak = float(np.abs(scale.standardise(picture)).max())
        if not self.is_all:
            return scale, BRIGHTER_THAN_SAMPLE * peak
        return scale, BRIGHTER_THAN_STAND_IN * peak if mixed else peak

    def _group(self, channels: tuple[int, ...], scale: Scale, peak: float | None) -> Group:
        negligible = scale.noise <= NEGLIGIBLE * scale.scale
        params = self.method.resolve(NEGLIGIBLE if negligible else scale.sigma, self.ndim, **self.params)
        if len(channels) == 3 and self.channels == "joint":
            params = self.method.in_colour(params)
        if not self.in_parts:
            return Group(channels, scale, params, peak=peak)
        if self.method.halo is None:
            raise ValueError(f"{self.method.name} needs the whole image at once")
        members = self.method.members(params)
        around = REACH if len(members) > 1 else 0
        halo = around + max(map(self.method.halo, members))
        work = around + max(map(self.method.work_halo or self.method.halo, members))
        return Group(channels, scale, params, halo, work, peak)


def reach(sizes: tuple[Size, ...], margin: int = 0) -> int:
    """Pixels around a part, grown by `margin`, that its result in one round depends on."""
    halo = sizes[0].margin
    if len(sizes) == 1:
        return margin + halo
    coarse = margin // 2 + 1 + sizes[0].join_reach
    return max(2 * coarse + 2 + halo, 2 * reach(sizes[1:], coarse) + FILTER_REACH)


def _work(sizes: tuple[Size, ...], side: int, margin: int) -> int:
    """Pixels around a part that are processed, as if it were one size: for parts of `side` pixels."""
    done = whole = 0.0
    for number, size in enumerate(sizes):
        own = 2 * (margin // 2 + 1 + size.join_reach) + 2 if number + 1 < len(sizes) else margin
        done += (side / 2**number + 2 * (own + size.work_halo)) ** 2
        whole += (side / 2**number) ** 2
        margin = own // 2
    return int(np.ceil(side / 2 * (np.sqrt(done / whole) - 1)))


def _reach_of_rounds(rounds: tuple[Round, ...], margin: int) -> int:
    """A later round needs the previous result around what it writes: the halos add up."""
    *before, last = rounds
    seen = reach(last.sizes, margin)
    if not before:
        return seen
    if before[-1].halvings == last.halvings:
        return _reach_of_rounds(tuple(before), seen)
    return 2 * _reach_of_rounds(tuple(before), seen // 2 + 1 + DOUBLE_REACH) + FILTER_REACH


def _work_of_rounds(rounds: tuple[Round, ...], side: int, margin: int) -> int:
    done = whole = 0.0
    halvings = rounds[-1].halvings
    for one in reversed(rounds):
        if one.halvings > halvings:
            margin, halvings = margin // 2 + 1 + DOUBLE_REACH, one.halvings
        length = side / 2**halvings
        done += (length + 2 * _work(one.sizes, round(length), margin)) ** 2
        whole += length**2
        margin = reach(one.sizes, margin)
    return int(np.ceil(side / 2 * (np.sqrt(done / whole) - 1)))
