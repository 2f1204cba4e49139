"""Movies and volumes in parts: frames or slices help each other, with the same bytes as in the whole."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.missing import next_guess
from vnlem.large.blocks import BYTES_ALWAYS, Block
from vnlem.large.boxes import extent, grown, inside, slices
from vnlem.large.gpu import kind_of, one_at_a_time
from vnlem.large.sample import MOST_PIXELS
from vnlem.large.sources import Source
from vnlem.large.stack_repair import ReadInPages, repaired, repairs_of
from vnlem.noise import parts
from vnlem.noise.advice import advise
from vnlem.noise.find import ABOUT_NOISE
from vnlem.noise.model import NoiseModel
from vnlem.noise.pages import StackNoise, checked_page, sampled_pages
from vnlem.noise.stack_holes import (
    REACH,
    LevelsWithHoles,
    PageRepair,
    count_rounds,
)
from vnlem.noise.stack_units import StackUnits, units_of
from vnlem.pipeline.axes import PageSeries, PagesOf, helpful_axis
from vnlem.pipeline.device import choose, current, why_no_gpu
from vnlem.pipeline.dtypes import as_dtype, readable_as
from vnlem.pipeline.lazy import load
from vnlem.pipeline.run import NEGLIGIBLE
from vnlem.pipeline.sigma import check_sigma
from vnlem.pipeline.stack_task import Part, StackTask
from vnlem.registry import check_stack_params, stack_method
from vnlem.repair import EVERY_PIXEL, PixelOptions, finish_pages
from vnlem.series import denoise_series, takes_sigma_maps, units_on
from vnlem.stack_plan import GivenNoise, plan_stack, varied_channels

# Bytes per pixel of a plane that a pass holds, from benchmarks/stack_memory.py.
BYTES_IN_FLIGHT = 65
BYTES_OF_HOLES = 28  # per pixel of a block if some may be missing: filled, as floats, and masks
# Pixels of a large stack may be brighter than those of its sample by this factor; the last bits of even
# brighter pixels may depend on the part. Sums on a GPU are integers in units of the brightest pixel.
BRIGHTER = 2.0**6
CURE = "allow more memory, take profile='fast', or denoise page by page (stack=False, --page-by-page)"


@dataclass(frozen=True)
class StackSolver:
    """A method on stacks, with the noise of every channel and the units of every series."""

    method: str
    params: dict[str, Any]
    resolved: list[dict[str, Any]]  # all parameters, for each set of units, for the record
    kind: str  # "T" or "Z"
    channels: str  # "separate", or how all channels of a page are denoised together
    noises: dict[int, NoiseModel]  # by the channel, or one for all
    others: tuple[str, ...]  # axes that count series
    units: dict[
        tuple[int, ...], StackUnits
    ]  # by the position along these; only by the channel in a large source
    axes: tuple[str, ...]
    halo_of_round: tuple[int, ...]
    in_flight: int
    dtype: str
    device: str = "cpu"  # or "cuda", the first GPU of the process that solves, or "cuda:N"
    grain: int = 1  # parts of pages begin at multiples of this
    pixels: PixelOptions = EVERY_PIXEL
    repairs: tuple[PageRepair, ...] = ()  # one for each channel of the source; empty if nothing is repaired
    rounds: int = 1
    varied: tuple[int, ...] | None = None  # the channels that are denoised if others are constant

    @property
    def fills(self) -> bool:
        """Whether pixels may be NaN."""
        return bool(self.repairs)

    @property
    def halo(self) -> tuple[int, ...]:
        """What is read around a block: for each round, and to fill holes."""
        if not self.repairs:
            return self.halo_of_round
        *planes, down, across = (self.rounds * by for by in self.halo_of_round)
        return (*planes, down + REACH, across + REACH)

    @property
    def work_halo(self) -> tuple[int, ...]:
        """All passes process everything that is read."""
        return self.halo

    def solve(self, pixels: NDArray[Any], block: Block, workers: int | None) -> NDArray[Any]:
        """The denoised pixels of ``block.write`` from those of ``block.read``."""
        written, tile = slices(inside(block.write, block.read)), block.region.write
        given, missing, gone = pixels[written], None, None
        if self.repairs:
            filled, missing, holes = self._without_holes(pixels, block)
            given, missing, gone = filled[written], missing[written], holes[written]
            result = self._in_rounds(filled, holes, block, workers)
        else:
            result = self._solved(pixels, block, workers)
        own = self.pixels.each(lambda _, values: values[tile.slices])
        return finish_pages(result, given, pixels[written], gone, missing, own)

    def _in_rounds(self, filled: NDArray[Any], holes: Any, block: Block, workers: int | None) -> NDArray[Any]:
        """What a block writes, from pixels with a guess in their holes."""
        # What each round writes, from the last to the first; and what the first reads.
        wanted = [block.write]
        for _ in range(self.rounds):
            wanted.append(grown(wanted[-1], self.halo_of_round, block.whole))
        read, *turns = reversed(wanted)
        filled, holes = (values[slices(inside(read, block.read))] for values in (filled, holes))
        for number, write in enumerate(turns, 1):
            result = self._solved(filled, replace(block, read=read, write=write), workers, holes)
            if number < len(turns):
                filled, holes = (values[slices(inside(write, read))] for values in (filled, holes))
                better = next_guess(filled.astype(np.float64), result, holes)
                filled, read = as_dtype(better, filled.dtype), write
        return result

    def _without_holes(self, pixels: NDArray[Any], block: Block) -> tuple[NDArray[Any], Any, Any]:
        """The input, filled; the missing pixels that may stay so; and all missing pixels."""
        at = self.axes.index("c") if "c" in self.axes else None
        filled = pixels.copy()
        missing, holes = np.zeros(pixels.shape, bool), np.zeros(pixels.shape, bool)
        for index in np.ndindex(pixels.shape[:-2]):
            repair = self.repairs[block.at.get("c", 0) if at is None else index[at]]
            filled[index], missing[index], holes[index] = repaired(
                pixels[index], self.pixels, repair, block.region
            )
        return filled, missing, holes

    def _solved(
        self, pixels: NDArray[Any], block: Block, workers: int | None, holes: Any = None
    ) -> NDArray[Any]:
        """The same for pixels without holes, or with a guess there."""
        pixels, block, holes = self._from_grain(pixels, block, holes)
        channel = block.at.get("c", 0)
        wanted = np.dtype(self.dtype)
        result = np.empty(extent(block.write), wanted)
        chosen: Any = slice(None)
        if self.varied is not None:
            # Constant channels stay as they are.
            result[...] = as_dtype(pixels[slices(inside(block.write, block.read))], wanted)
            if "c" in self.axes:
                chosen = list(self.varied)
            elif channel not in self.varied:
                return result
        series = tuple(block.at.get(name, 0) for name in self.others)
        along = self.axes.index(self.kind.lower())
        first, last = inside(block.write, block.read)[along]
        known = parts.steps(self.noises[channel], block.region).stabilise.write
        whole = (block.whole[along], block.whole[-2], block.whole[-1])
        part = Part((block.read[along][0], known.top, known.left), whole)
        in_order = np.moveaxis(result, along, 0)
        given = pixels.astype(readable_as(pixels.dtype, wanted)) if wanted != pixels.dtype else pixels
        noise, device = StackNoise(self.noises[channel], block.region), choose(self.device)
        levels: Any = None
        if holes is not None and takes_sigma_maps(self.method, self.kind, whole[0], noise, device):
            levels = LevelsWithHoles([page[chosen] for page in np.moveaxis(holes, along, 0)], noise)
        pages = denoise_series(
            [page[chosen] for page in np.moveaxis(given, along, 0)],
            self.kind,
            noise,
            method=self.method,
            workers=workers,
            report=None,
            info=[],
            units=self.units.get(series) or self.units[channel,],
            part=part,
            device=device,
            same=self.channels == "same",
            sigma_map=levels,
            **self.params,
        )
        with one_at_a_time(self.device), closing(pages):
            for number, page in enumerate(pages):
                if number >= last:
                    break
                if number >= first:
                    in_order[number - first, chosen] = as_dtype(page, wanted)
        return result

    def _from_grain(self, pixels: NDArray[Any], block: Block, holes: Any) -> tuple[NDArray[Any], Block, Any]:
        """The input, from a multiple of the grain on."""
        *planes, (top, bottom), (left, right) = block.read
        start = tuple(-(-line // self.grain) * self.grain for line in (top, left))
        read = (*planes, (start[0], bottom), (start[1], right))
        kept = np.s_[..., start[0] - top :, start[1] - left :]
        return pixels[kept], replace(block, read=read), None if holes is None else holes[kept]

    def memory(self, shape: tuple[int, ...]) -> int:
        """Bytes that the solution of a block of this shape takes: that of the planes in flight."""
        sizes = dict(zip(self.axes, shape, strict=True))
        page = sizes["y"] * sizes["x"] * sizes.get("c", 1)
        holes = BYTES_OF_HOLES * prod(shape) if self.repairs else 0
        return BYTES_ALWAYS + BYTES_IN_FLIGHT * self.in_flight * page + holes

    @property
    def cure(self) -> str:
        """Advice if the smallest unit takes too much memory."""
        return CURE

    def describe(self) -> dict[str, Any]:
        """Everything the result depends on, as plain values."""
        told: dict[str, Any] = {
            "method": self.method,
            "device": kind_of(self.device),
            "solver": f"stack along {self.kind}",
            "channels": self.channels,
            "parameters": self.resolved,
            "scales": [[*key, *value] for key, value in self.units.items()],
            "noise": "; ".join(noise.describe() for noise in self.noises.values()),
            "noise_model": [noise.to_dict() for noise in self.noises.values()],
        }
        if self.varied is not None:
            told["denoised_channels"] = list(self.varied)
        if self.repairs or self.pixels.keeps_input:
            told |= {"repair": [one.describe() for one in self.repairs], **self.pixels.describe()}
        return told


def stack_solver(
    source: Source,
    sigma: Any,
    method: str,
    params: dict[str, Any],
    device: str = "cpu",
    pixels: PixelOptions = EVERY_PIXEL,
) -> StackSolver | None:
    """The solver for a movie or a volume on a device; None if pages are independent."""
    if source.guessed:
        return None
    letters = "".join(source.axes).upper()
    repairs, surveys = repairs_of(source, letters, sigma, pixels)
    reads = ReadInPages(source, pixels, repairs)
    noise_model = params.pop("noise_model", "auto")
    varied = varied_channels(reads, letters, noise_model)
    kind = helpful_axis(reads, letters, varied)
    together = stack_method(method, kind)
    if not kind or together is None:
        return None
    if params.get("delay") is not None:
        raise ValueError(
            f"delay is for movies in memory and vnlem.Stream, got delay={params['delay']!r} for a movie in "
            "parts; leave it out"
        )
    prepare = load(together.prepare)
    about_noise = {name: params.pop(name, None) for name in ABOUT_NOISE}
    level = None if sigma is None else check_sigma(sigma)
    given = GivenNoise([level] * len(surveys), noise_model, about_noise, params.get("preset") == "paper")
    channels, all_series, noises, kept, _ = plan_stack(
        reads, letters, kind, varied, method, params, given, in_parts=True
    )
    check_stack_params(prepare, method, params)
    for channel, noise in noises.items():
        first = next(one for one in all_series if one.channel == channel)
        page = checked_page(PagesOf(reads, letters, first), 0)
        advise(noise.model, page, rounded=source.rounded)
    together_axes = {kind.lower(), "y", "x", *(() if channels == "separate" else "c")}
    others = tuple(name for name in source.axes if name not in together_axes)
    solved = tuple(name for name in source.axes if name in together_axes)
    units, used = {}, []
    size, count = (source.shape[-2], source.shape[-1]), len(all_series[0].pages)
    for key, channel, measured in _units(reads, letters, all_series, noises, device):
        units[key] = measured
        level = max(noises[channel].sigma / measured.scale, NEGLIGIBLE)
        joint = len(kept) if channels == "joint" else 1
        found, _ = prepare(StackTask(kind, [size] * count, level, device=device, channels=joint), **params)
        if found not in used:  # parameters may follow the noise
            used.append(found)
    planes, *around = (max(by) for by in zip(*map(load(together.halo), used), strict=True))
    filters = max(parts.halo(noise.model) for noise in noises.values())
    grain = 1 if device == "cpu" else together.cuda_grain
    around = [by + 2 * (filters + grain - 1) for by in around] if any(around) else list(size)
    return StackSolver(
        method=method,
        params=params,
        resolved=[asdict(found) for found in used],
        kind=kind,
        channels=channels,
        noises={channel: noise.model for channel, noise in noises.items()},
        others=others,
        units=units,
        axes=solved,
        halo_of_round=tuple({kind.lower(): planes, "c": 0}[name] for name in solved[:-2]) + tuple(around),
        in_flight=max(map(load(together.planes_in_flight), used)),
        dtype=source.result_dtype.str,
        device=device,
        grain=grain,
        pixels=pixels,
        repairs=repairs,
        rounds=count_rounds([surveys[channel] for channel in kept]),
        varied=varied,
    )


def _units(
    reads: ReadInPages,
    letters: str,
    all_series: list[PageSeries],
    noises: dict[int, StackNoise],
    device: str,
) -> Iterator[tuple[tuple[int, ...], int, StackUnits]]:
    """The units of every series, or of a sample of each channel if there is too much to read.

    Yields the key of the units, the channel and the units.
    """
    where = choose(device) if why_no_gpu() is None else "cpu"
    if prod(reads.shape) > MOST_PIXELS:
        for channel, noise in noises.items():
            pages = [PagesOf(reads, letters, one) for one in all_series if one.channel == channel]
            found = units_of(sampled_pages(list(pages)), noise)
            yield (channel,), channel, found._replace(peak=BRIGHTER * found.peak)
        return
    for one in all_series:
        at = dict(zip(letters.lower(), one.pages[0], strict=True))
        key = tuple(
            number
            for name, number in at.items()
            if name != one.kind.lower() and not isinstance(number, slice)
        )
        with current(where):
            found = units_on(where, PagesOf(reads, letters, one), noises[one.channel])
        yield key, one.channel, found
