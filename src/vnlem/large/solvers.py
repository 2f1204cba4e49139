"""Blocks of images larger than memory: the plan of the whole, from a sample, executed on each of them."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.missing import first_guess
from vnlem.execute import execute
from vnlem.features.channels import handling_for
from vnlem.large.blocks import BYTES_ALWAYS, USUAL_SIDE, Block, BlockSolver
from vnlem.large.gpu import find_device, one_at_a_time
from vnlem.large.sample import SourceSample, is_all, sample_of_map
from vnlem.large.sources import Source
from vnlem.large.stack_solver import stack_solver
from vnlem.noise.advice import advise
from vnlem.noise.find import ABOUT_NOISE, find_noise
from vnlem.noise.impulses import ImpulseRule
from vnlem.noise.model import NoiseModel
from vnlem.noise.pages import NOT_IN_PARTS
from vnlem.pipeline.image import Planes, check_smallest, check_values
from vnlem.pipeline.regions import Region
from vnlem.pipeline.sigma import check_sigma
from vnlem.pipeline.workers import check_workers
from vnlem.plan import Plan, Sample, make_plan
from vnlem.registry import check_preset, find_method, methods_with
from vnlem.repair import (
    EVERY_PIXEL,
    PixelOptions,
    check_options,
    finish,
    impulse_rule,
    with_repair,
    without_impulses,
    without_missing,
)

# Bytes per pixel of a block at several scales, where most of the input is not solved at full size.
BYTES_OF_SIZES = 70
BYTES_OF_NOISE = 30  # in addition, if the noise is whitened before
BYTES_OF_ROUND = 15  # in addition, for each round after the first
BYTES_OF_HOLES = 80  # in addition, if pixels may be missing
CURE = "allow more memory"
_NOISE_OPTIONS = ("noise_model", *ABOUT_NOISE)


@dataclass(frozen=True)
class ImageSolver:
    """A plan for all blocks of an image."""

    plan: Plan
    axes: tuple[str, ...]
    dtype: str
    pixels: PixelOptions = EVERY_PIXEL
    rule: ImpulseRule | None = None

    @property
    def fills(self) -> bool:
        """Whether pixels may be NaN."""
        return self.plan.repair is not None

    @property
    def halo(self) -> tuple[int, ...]:
        """What is read around a block."""
        return self._along_axes(self.plan.halo)

    @property
    def work_halo(self) -> tuple[int, ...]:
        """What is processed around a block."""
        return self._along_axes(self.plan.work_halo(USUAL_SIDE))

    def _along_axes(self, halo: int) -> tuple[int, ...]:
        return (0, halo, halo)[-len(self.axes) :]

    def solve(self, pixels: NDArray[Any], block: Block, workers: int | None) -> NDArray[Any]:
        """The denoised pixels of ``block.write`` from those of ``block.read``."""
        colour = "c" in self.axes
        planes = _doubles(pixels)
        if not colour:
            planes = planes[None]
        region = block.region
        planes, missing, holes = self._without_holes(planes, region)
        rows, columns = region.written()
        if holes is None and all(group.is_negligible for group in self.plan.groups()):
            result = planes[:, rows, columns]  # unchanged, as in memory: not even rounded
        else:
            with one_at_a_time(self.plan.device):
                result = execute(self.plan, planes, region, workers=check_workers(workers), missing=holes)
        if self.pixels.keeps_input:
            protect = self.pixels.protect
            protect = None if protect is None else protect[region.write.slices][None]
            gone = None if holes is None else holes[:, rows, columns]
            result = finish(planes[:, rows, columns], result, self.pixels, gone, protect)
        given = Planes(planes, np.dtype(self.dtype), 0 if colour else None, pixels.ndim)
        restored = given.restore(result)
        if missing is None or self.pixels.fill:
            return restored
        came = pixels[..., rows, columns].astype(restored.dtype)
        return np.where(given.layout(missing[:, rows, columns]), came, restored)

    def _without_holes(self, planes: Any, region: Region) -> tuple[Any, Any, Any]:
        """Planes without NaN; the missing pixels that may stay so; and all missing pixels."""
        nan = np.isnan(planes)
        if not self.fills:
            if nan.any():
                raise ValueError(
                    f"{int(nan.sum())} pixels of a part are NaN, and the sample showed none; pass a mask, "
                    "even one that is all False, so that missing pixels are expected"
                )
            return planes, None, None
        planes = np.where(nan, 0.0, planes)
        missing = nan if self.pixels.mask is None else nan | self.pixels.mask[region.read.slices]
        holes = missing
        if self.pixels.defects is not None:
            holes = holes | self.pixels.defects[region.read.slices]
        if self.rule is not None:
            assert self.plan.repair is not None
            holes = holes | self.rule.find(first_guess(planes, holes, self.plan.repair.level))
        return planes, missing, holes

    def memory(self, shape: tuple[int, ...]) -> int:
        """Bytes that the solution of a block of this shape takes."""
        if len(self.plan.sizes) > 1:
            each = BYTES_OF_SIZES
        else:
            each = find_method(self.plan.method).bytes_per_pixel
            each += BYTES_OF_ROUND * (len(self.plan.rounds) - 1)
        each += 0 if self.plan.noise.is_white else BYTES_OF_NOISE
        each += 0 if self.plan.repair is None else BYTES_OF_HOLES
        return BYTES_ALWAYS + each * prod(shape)

    @property
    def varied(self) -> tuple[int, ...] | None:
        """The plan says which channels of a picture are constant."""
        return None

    @property
    def cure(self) -> str:
        """Advice if the smallest unit takes too much memory."""
        if len(self.plan.sizes) == 1:
            return CURE
        return f"{CURE}, or take scales=1 (--set scales=1): its halo is smaller"

    def describe(self) -> dict[str, Any]:
        """Everything the result depends on, as plain values."""
        told = self.plan.describe()
        if self.rule is not None:
            told["impulses"] = self.rule.describe()
        if self.pixels.keeps_input or self.plan.repair is not None:
            told |= self.pixels.describe()
        return told


def find_solver(
    source: Source,
    sample: SourceSample,
    sigma: float | None,
    method: str,
    params: dict[str, Any],
    *,
    stack: bool,
    elsewhere: bool = False,
) -> BlockSolver:
    """The solver for a source, with the noise and the units of the sample.

    With `stack` the frames of a movie and the slices of a volume help each other, if the method can do so.
    With `elsewhere` other machines solve the blocks: a requested GPU is not needed here.
    """
    params = dict(params)
    found = find_method(method)
    device = find_device(params.pop("device", None), elsewhere=elsewhere)
    pixels = params.pop("pixels", None) or _pixel_options(params)
    _check_maps(pixels, source)
    together = stack_solver(source, sigma, method, dict(params), device, pixels) if stack else None
    if together is not None:
        return together
    options = {name: params.pop(name) for name in _NOISE_OPTIONS if name in params}
    params = found.with_defaults(params)
    check_preset(found, params["preset"])
    found.solver(params["engine"], device)
    if found.halo is None:
        able = ", ".join(methods_with(lambda one: one.halo is not None))
        raise ValueError(
            f"{found.name} needs the whole image at once; methods for images in parts are {able}"
        )
    planes = _as_image(sample.planes, source.colour)
    missing = _missing(planes, pixels, source)
    plain = params["preset"] == "paper"

    def find(seen: Planes) -> NoiseModel:
        return _noise(seen, sigma, options, plain=plain)

    estimate = None if sigma is not None else find
    if missing is not None and missing.all():
        raise ValueError("all sampled pixels are NaN or masked; there is nothing to denoise")
    holes = None
    if missing is not None:
        planes = replace(planes, data=np.where(np.isnan(planes.data), 0.0, planes.data))
        planes, holes = without_missing(planes, missing, estimate)
    check_values(planes)
    noise = find(planes)
    gone = None if holes is None else holes.missing
    rule = impulse_rule(planes, gone, noise, pixels.impulses, estimate)
    if rule is not None:
        found_holes = without_impulses(planes, holes, rule, estimate)
        if found_holes is not None:
            planes, holes = found_holes
            noise = find(planes)
        elif is_all(source):
            rule = None
    if not noise.is_white and is_all(source) and float(np.ptp(planes.data)) == 0:
        noise = NoiseModel.white(0.0)  # as in memory: there is no noise to remove
    advise(noise, planes, rounded=source.rounded)
    channels = handling_for(noise, params.get("channels", "joint"), len(planes.data), lambda: planes.data)
    height, width = source.shape[-2:]
    seen = Sample(planes.data, (height, width), is_all(source))

    def plan_with(other: dict[str, Any]) -> Plan:
        chosen = params | {name: value for name, value in other.items() if name in params}
        return make_plan(found.name, chosen, seen, noise, channels=channels, device=device, in_parts=True)

    plan = plan_with({})
    if holes is not None:
        plan = with_repair(plan, holes.filled, holes.missing, plan_with)
    elif rule is not None or pixels.mask is not None or pixels.defects is not None:
        plan = with_repair(plan, planes.data, None, plan_with)
    smallest = max(found.min_size(group.params) for group in plan.sizes[0].groups)
    check_smallest((height, width), smallest)
    axes = ("c", "y", "x") if source.colour else ("y", "x")
    return ImageSolver(plan, axes, source.result_dtype.str, pixels, rule)


def _pixel_options(params: dict[str, Any]) -> PixelOptions:
    """The options for single pixels, taken out of the parameters."""
    usual = vars(PixelOptions(impulses="auto"))
    return check_options(**{name: params.pop(name, value) for name, value in usual.items()})


def _check_maps(pixels: PixelOptions, source: Source) -> None:
    """In parts, all pages and channels share one map."""
    size = source.shape[-2:]
    for name, values in pixels.maps.items():
        if values.shape != size:
            raise ValueError(
                f"{name} of an image in parts must be one map of {size[0]}x{size[1]} pixels for all pages "
                f"and channels, got shape {values.shape}"
            )


def _missing(planes: Planes, pixels: PixelOptions, source: Source) -> Any:
    """The missing pixels of the sample, as planes; None if all are valid."""
    found = np.isnan(planes.data)
    for values in (pixels.mask, pixels.defects):
        if values is not None:
            laid_out = sample_of_map(source, values)
            found |= laid_out.reshape(1, -1, laid_out.shape[-1])
    return found if found.any() else None


def _noise(planes: Planes, sigma: Any, options: dict[str, Any], *, plain: bool) -> NoiseModel:
    """The noise that `vnlem.denoise` would use for this image."""
    level = None if sigma is None else check_sigma(sigma)
    given = {name: options.get(name) for name in _NOISE_OPTIONS[1:]}
    kind = options.get("noise_model", "auto")
    model = find_noise(planes, level, kind, given, plain=plain, in_place=False)
    assert model is not None  # sigma is one number
    if model.maps is not None or kind == "field" or given["lines"] is True:
        raise ValueError(NOT_IN_PARTS)
    return model


def _as_image(planes: NDArray[Any], colour: bool) -> Planes:
    """The planes of a sample as one image, one below another."""
    if colour:
        count, channels, height, width = planes.shape
        data = planes.transpose(1, 0, 2, 3).reshape(channels, count * height, width)
    else:
        data = planes.reshape(1, prod(planes.shape[:-1]), planes.shape[-1])
    return Planes(_doubles(data), planes.dtype, 0 if colour else None, 3 if colour else 2)


def _doubles(pixels: NDArray[Any]) -> NDArray[np.float64]:
    """The same values; a NaN of any kind is a missing pixel."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return pixels.astype(np.float64)
