"""Blocks of images larger than memory: the plan of the whole, from a sample, executed on each of them."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.execute import execute
from vnlem.features.channels import handling
from vnlem.large.blocks import BYTES_ALWAYS, USUAL_SIDE, Block, BlockSolver
from vnlem.large.gpu import find_device, one_at_a_time
from vnlem.large.sample import SourceSample, is_all
from vnlem.large.sources import Source
from vnlem.large.stack_solver import stack_solver
from vnlem.noise.advice import advise
from vnlem.noise.find import ABOUT_NOISE, find_noise
from vnlem.noise.model import NoiseModel
from vnlem.noise.pages import NOT_IN_PARTS
from vnlem.pipeline.image import Planes, check_smallest, check_values
from vnlem.pipeline.sigma import check_sigma
from vnlem.pipeline.workers import check_workers
from vnlem.plan import Plan, Sample, make_plan
from vnlem.registry import check_preset, find_method, methods_with

# Bytes for each pixel of a block at several scales, where most of what is read is not solved at full size.
BYTES_OF_SIZES = 70
BYTES_OF_NOISE = 30  # more where the noise is made white before
BYTES_OF_ROUND = 15  # more for each round after the first
CURE = "allow more memory"
_NOISE_OPTIONS = ("noise_model", *ABOUT_NOISE)


@dataclass(frozen=True)
class ImageSolver:
    """A plan for all blocks of an image."""

    plan: Plan
    axes: tuple[str, ...]
    dtype: str

    @property
    def halo(self) -> tuple[int, ...]:
        """What is read around a block."""
        return self._along_axes(self.plan.halo)

    @property
    def work_halo(self) -> tuple[int, ...]:
        """What is worked on around a block."""
        return self._along_axes(self.plan.work_halo(USUAL_SIDE))

    def _along_axes(self, halo: int) -> tuple[int, ...]:
        return (0, halo, halo)[-len(self.axes) :]

    def solve(self, pixels: NDArray[Any], block: Block, workers: int | None) -> NDArray[Any]:
        """The denoised pixels of ``block.write`` from those of ``block.read``."""
        colour = "c" in self.axes
        planes = pixels.astype(np.float64)
        if not colour:
            planes = planes[None]
        with one_at_a_time(self.plan.device):
            result = execute(self.plan, planes, block.region, workers=check_workers(workers))
        given = Planes(planes, np.dtype(self.dtype), 0 if colour else None, pixels.ndim)
        return given.restore(result)

    def memory(self, shape: tuple[int, ...]) -> int:
        """Bytes that the solution of a block of this shape takes."""
        if len(self.plan.sizes) > 1:
            each = BYTES_OF_SIZES
        else:
            each = find_method(self.plan.method).bytes_per_pixel
            each += BYTES_OF_ROUND * (len(self.plan.rounds) - 1)
        return BYTES_ALWAYS + (each + (0 if self.plan.noise.is_white else BYTES_OF_NOISE)) * prod(shape)

    @property
    def cure(self) -> str:
        """What helps where the smallest unit takes too much memory."""
        if len(self.plan.sizes) == 1:
            return CURE
        return f"{CURE}, or take scales=1 (--set scales=1): its halo is smaller"

    def describe(self) -> dict[str, Any]:
        """Everything the result depends on, as plain values."""
        return self.plan.describe()


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

    With `stack` the frames of a movie and the slices of a volume help each other, where the method can do so.
    With `elsewhere` others solve the blocks, so that a GPU that is asked for need not be here.
    """
    params = dict(params)
    found = find_method(method)
    device = find_device(params.pop("device", None), elsewhere=elsewhere)
    together = stack_solver(source, sigma, method, dict(params), device) if stack else None
    if together is not None:
        return together
    options = {name: params.pop(name) for name in _NOISE_OPTIONS if name in params}
    params = found.with_defaults(params)
    check_preset(found, params["preset"])
    found.solver(params["engine"], device)
    if found.halo is None:
        able = ", ".join(methods_with(lambda one: one.halo is not None))
        raise ValueError(f"{found.name} needs the whole image at once; in parts there are {able}")
    planes = _as_image(sample.planes, source.colour)
    check_values(planes)
    noise = _noise(planes, sigma, options, plain=params["preset"] == "paper")
    if not noise.is_white and is_all(source) and float(np.ptp(planes.data)) == 0:
        noise = NoiseModel.white(0.0)  # as in memory: there is no noise to remove
    advise(noise, planes, rounded=source.rounded)
    channels = "joint"
    if source.colour and len(planes.data) > 1:
        channels = params.get("channels", "joint")
        if channels == "auto":
            channels = handling("auto", *noise.seen_in(planes.data), shared_noise=noise.ties_channels)
    height, width = source.shape[-2:]
    seen = Sample(planes.data, (height, width), is_all(source))
    plan = make_plan(found.name, params, seen, noise, channels=channels, device=device, in_parts=True)
    smallest = max(found.min_size(group.params) for group in plan.sizes[0].groups)
    check_smallest((height, width), smallest)
    return ImageSolver(plan, ("c", "y", "x") if source.colour else ("y", "x"), source.result_dtype.str)


def _noise(planes: Planes, sigma: Any, options: dict[str, Any], *, plain: bool) -> NoiseModel:
    """What `vnlem.denoise` would take for the noise of this image."""
    level = None if sigma is None else check_sigma(sigma)
    given = {name: options.get(name) for name in _NOISE_OPTIONS[1:]}
    kind = options.get("noise_model", "auto")
    model = find_noise(planes, level, kind, given, plain=plain, in_place=False)
    assert model is not None  # sigma is one number
    if model.maps is not None or kind == "field" or given["lines"] is True:
        raise ValueError(NOT_IN_PARTS)
    return model


def _as_image(planes: NDArray[Any], colour: bool) -> Planes:
    """The planes of a sample as one image, one below the other."""
    if colour:
        count, channels, height, width = planes.shape
        data = planes.transpose(1, 0, 2, 3).reshape(channels, count * height, width)
    else:
        data = planes.reshape(1, prod(planes.shape[:-1]), planes.shape[-1])
    return Planes(data.astype(np.float64), planes.dtype, 0 if colour else None, 3 if colour else 2)
