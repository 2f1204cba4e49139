"""The methods as engines: units of the pixels, noise and parameters, fixed once for every block."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.scales import check_scales, count_scales, halve
from vnlem.features.channels import handling
from vnlem.large.engine import BYTES_ALWAYS, Engine, Place
from vnlem.large.gpu import Units, find_device, kind_of, one_at_a_time
from vnlem.large.halved import half_of
from vnlem.large.rounds import RoundOfParts, reach_of_rounds, solve_in_rounds, work_of_rounds
from vnlem.large.sample import Sample, is_all
from vnlem.large.scales import Group, Size, pictures
from vnlem.large.sources import Source
from vnlem.large.stack_engine import stack_engine
from vnlem.large.units import USUAL_SIDE
from vnlem.noise import parts
from vnlem.noise.advice import advise
from vnlem.noise.auto import ABOUT_NOISE, find_noise
from vnlem.noise.model import NoiseModel
from vnlem.noise.rounds import noise_in, rounds_for, stand_for_mixture
from vnlem.pipeline.image import Planes, check_values
from vnlem.pipeline.recipes import Recipe, recipe_of
from vnlem.pipeline.run import NEGLIGIBLE
from vnlem.pipeline.scale import Scale
from vnlem.pipeline.settings import parameters_of
from vnlem.pipeline.sigma import check_sigma
from vnlem.pipeline.warn import silent
from vnlem.pipeline.workers import check_workers
from vnlem.registry import DEFAULT_SCALES, find_halo, find_method, find_solver, find_work_halo

# Bytes that solving takes for each pixel of a block in every channel, from benchmarks/large_memory.py. A
# method that is not here is taken to need as much as the one that needs most.
BYTES_PER_PIXEL = {"vnlr": 90, "vnlem": 175, "nlem": 65, "nlpr": 65, "nlm": 65}
# The same at several scales, where most of what is read is not solved at full size.
BYTES_OF_SIZES = 70
BYTES_OF_NOISE = 30  # more where the noise is made white before
BYTES_OF_ROUND = 15  # more for each round after the first
CURE = "allow more memory"
_NOISE_OPTIONS = ("noise_model", *ABOUT_NOISE)


@dataclass(frozen=True)
class MethodEngine:
    """A method with its parameters, for an image of which mean, scale and noise are known."""

    method: str
    solver: Callable[[Any], NDArray[np.float32]]
    rounds: tuple[RoundOfParts, ...]  # one, or several where photons are few
    noise: NoiseModel
    axes: tuple[str, ...]
    halo: tuple[int, ...]
    work_halo: tuple[int, ...]
    dtype: str
    channels: str = "joint"  # or "separate" or "same": how channels are denoised
    device: str = "cpu"  # or "cuda", the first GPU of whoever solves, or "cuda:N"

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The image itself in the last round, and halved as often as the method works at several scales."""
        return self.rounds[-1].sizes

    def solve(self, pixels: NDArray[Any], place: Place, workers: int | None) -> NDArray[Any]:
        """The denoised pixels of ``place.write`` from those of ``place.read``."""
        colour = "c" in self.axes
        planes = pixels.astype(np.float64)
        if not colour:
            planes = planes[None]
        before, solved, after = parts.steps(self.noise, place.region)
        # Where it depends on the brightness alone, noise is made white at each size by itself.
        ready = self.noise.is_white or self.sizes[0].noise is not None
        stable = planes if ready else self.noise.stabilise(planes, region=before)
        with one_at_a_time(self.device):
            result = solve_in_rounds(stable, solved, self.rounds, self.solver, check_workers(workers))
        if not ready:
            result = self.noise.unstabilise(result, after)
        given = Planes(planes, np.dtype(self.dtype), 0 if colour else None, pixels.ndim)
        return given.restore(result)

    def memory(self, shape: tuple[int, ...]) -> int:
        """Bytes that the solution of a block of this shape takes."""
        if len(self.sizes) > 1:
            each = BYTES_OF_SIZES
        else:
            each = BYTES_PER_PIXEL.get(self.method, max(BYTES_PER_PIXEL.values()))
            each += BYTES_OF_ROUND * (len(self.rounds) - 1)
        return BYTES_ALWAYS + (each + (0 if self.noise.is_white else BYTES_OF_NOISE)) * prod(shape)

    @property
    def cure(self) -> str:
        """What helps where the smallest unit takes too much memory."""
        return (
            CURE
            if len(self.sizes) == 1
            else f"{CURE}, or take scales=1 (--set scales=1): its halo is smaller"
        )

    def describe(self) -> dict[str, Any]:
        """Everything the result depends on, as plain values."""
        return {
            "method": self.method,
            "device": kind_of(self.device),
            "solver": f"{self.solver.__module__}.{self.solver.__name__}",
            "parameters": [asdict(group.params) for group in self._groups()],
            "scales": [group.scale._asdict() for group in self._groups()],
            "rounds": [one.halvings for one in self.rounds],
            "channels": self.channels,
            "noise": self.noise.describe(),
            "noise_model": self.noise.to_dict(),
        }

    def _groups(self) -> list[Group]:
        return [group for one in self.rounds for size in one.sizes for group in size.groups]


def find_engine(
    source: Source,
    sample: Sample,
    sigma: float | None,
    method: str,
    params: dict[str, Any],
    *,
    stack: bool,
    elsewhere: bool = False,
) -> Engine:
    """The engine for a source: noise and units are those of the sample.

    With `stack` the frames of a movie and the slices of a volume help each other, where the method can do so.
    With `elsewhere` others solve the blocks, so that a GPU that is asked for need not be here.
    """
    params = dict(params)
    function = find_method(method)
    device = find_device(params.pop("device", None), elsewhere=elsewhere)
    together = stack_engine(source, sigma, method, dict(params), device) if stack else None
    if together is not None:
        return together
    options = {name: params.pop(name) for name in _NOISE_OPTIONS if name in params}
    known = [*parameters_of(function), "preset", "profile"]
    unknown = [name for name in params if name not in known]
    if unknown:
        raise TypeError(f"method {method!r} has no parameter {unknown[0]!r}; it has {', '.join(known)}")
    usual = DEFAULT_SCALES if sigma is None or options.get("noise_model") == "rician" else 1
    scales = params.pop("scales", usual) if "scales" in known else 1
    recipe = recipe_of(function, **params)
    wanted = params.get("channels", "auto" if "channels" in known else "joint")
    if device != "cpu":
        recipe = recipe._replace(solve=find_solver(recipe.method, params.get("engine", "fast"), device))
    planes = _as_image(sample.planes, source.colour)
    check_values(planes)
    noise = _noise(planes, sigma, options, plain=params.get("preset") == "paper")
    if not noise.is_white and is_all(source) and float(np.ptp(planes.data)) == 0:
        noise = NoiseModel.white(0.0)  # as in memory: nothing is there to be taken away
    advise(noise, planes, rounded=source.rounded)
    white = noise.is_white
    channels = "joint"
    if source.colour and len(planes.data) > 1:
        channels = wanted
        if wanted == "auto":
            channels = handling("auto", *noise.seen_in(planes.data), shared_noise=noise.ties_channels)
    height, width = source.shape[-2:]
    # Of noise that was made white there is no sigma to be warned of.
    with nullcontext() if white else silent():
        units = Units(device, is_all(source))
        sizing = _Sizing(recipe, units, channels)
        rounds = tuple(_rounds(sizing, planes.data, noise, (height, width), check_scales(scales)))
    _check_size(source, max(recipe.min_size(group.params) for group in rounds[-1].sizes[0].groups))
    axes = ("c", "y", "x") if source.colour else ("y", "x")
    filters = parts.halo(noise)
    halo, work = reach_of_rounds(rounds, filters) + filters, work_of_rounds(rounds, USUAL_SIDE, filters)
    return MethodEngine(
        method=recipe.method,
        solver=recipe.solve,
        rounds=rounds,
        noise=noise,
        axes=axes,
        halo=(0, halo, halo)[-len(axes) :],
        work_halo=(0, work, work)[-len(axes) :],
        dtype=source.result_dtype.str,
        channels=channels,
        device=device,
    )


def _rounds(
    sizing: "_Sizing", planes: NDArray[np.float64], noise: NoiseModel, shape: tuple[int, int], scales: int
) -> Iterator[RoundOfParts]:
    """What every round must know, from a sample of an image of this shape."""
    # Where it depends on the brightness alone, noise is made white at each size by itself.
    if noise.is_correlated or not noise.varies:
        stable = planes if noise.is_white else noise.stabilise(planes)
        level = noise.sigma if noise.is_white else 1.0
        sizes = []
        for number in range(count_scales(*shape, scales)):
            stable = halve(stable) if number else stable
            sizes.append(sizing.of(stable, level / 2**number))
        yield RoundOfParts(0, tuple(sizes))
        return
    for one in rounds_for(noise, planes, *shape):
        seen, size, sizes = planes, shape, []
        for _ in range(one.halvings):
            seen, size = halve(seen), half_of(size)
        for number in range(count_scales(*size, scales)):
            seen = halve(seen) if number else seen
            own = noise_in(noise, one).halved(number)
            stands = stand_for_mixture(own, seen) if one.mixed else own.stabilise(seen)
            sizes.append(sizing.of(stands, 1.0, own, mixed=one.mixed))
        yield RoundOfParts(one.halvings, tuple(sizes), one.share)


class _Sizing(NamedTuple):
    """How one size of an image is prepared."""

    recipe: Recipe
    units: Units
    channels: str

    def of(
        self,
        planes: NDArray[np.float64],
        level: float,
        noise: NoiseModel | None = None,
        *,
        mixed: bool = False,
    ) -> Size:
        """The size whose planes these are, or stand for; noise of pixels that are yet to be stabilised."""
        measure = self.units.by if mixed else self.units.of
        return Size(
            tuple(
                # Sums follow the order of the numbers in memory.
                self._group(chosen, *measure(np.ascontiguousarray(picture), level))
                for chosen, picture in pictures(planes, self.channels)
            ),
            same=self.channels == "same",
            grain=getattr(self.recipe.solve, "grain", 1),
            noise=noise,
        )

    def _group(self, channels: tuple[int, ...], scale: Scale, peak: float | None) -> Group:
        negligible = scale.noise <= NEGLIGIBLE * scale.scale
        params = self.recipe.resolve(NEGLIGIBLE if negligible else scale.sigma)
        halo, work = (find(self.recipe.method)(params) for find in (find_halo, find_work_halo))
        return Group(channels, scale, params, halo, work, peak)


def _noise(planes: Planes, sigma: Any, options: dict[str, Any], *, plain: bool) -> NoiseModel:
    """What `vnlem.denoise` would take for the noise of this image."""
    level = None if sigma is None else check_sigma(sigma)
    given = {name: options.get(name) for name in _NOISE_OPTIONS[1:]}
    model = find_noise(planes, level, options.get("noise_model", "auto"), given, plain=plain)
    assert model is not None  # sigma is one number
    return model


def _as_image(planes: NDArray[Any], colour: bool) -> Planes:
    """The planes of a sample as one image, one below the other."""
    if colour:
        count, channels, height, width = planes.shape
        data = planes.transpose(1, 0, 2, 3).reshape(channels, count * height, width)
    else:
        data = planes.reshape(1, prod(planes.shape[:-1]), planes.shape[-1])
    return Planes(data.astype(np.float64), planes.dtype, 0 if colour else None, 3 if colour else 2)


def _check_size(source: Source, smallest: int) -> None:
    height, width = source.shape[-2:]
    if min(height, width) < smallest:
        raise ValueError(
            f"the image ({height}x{width}) is smaller than the patch ({smallest}); "
            "pass a smaller patch_size or a larger image"
        )
