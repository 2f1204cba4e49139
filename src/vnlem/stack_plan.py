"""The plan of a stack: which pages and channels are denoised together, and with which noise.

It is made once for all pages, of a stack in memory or in parts, or of the first frames of a stream.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from vnlem.features.channels import CHANNELS, handling_for
from vnlem.noise.model import NoiseModel
from vnlem.noise.pages import Pages, StackNoise, has_maps, mosaic, sampled_pages
from vnlem.pipeline import checks
from vnlem.pipeline.axes import PageSeries, PagesOf, series_of
from vnlem.registry import stack_method
from vnlem.series import first_pages


class GivenNoise(NamedTuple):
    """What the user passed about the noise of a stack."""

    sigmas: Any  # a number, or None, for each channel
    model: Any
    others: dict[str, Any]  # ABOUT_NOISE, None for unknown values
    plain: bool = False  # whether white noise is estimated if nothing else is given


class StackPlan(NamedTuple):
    """What is denoised together."""

    handling: str  # of the channels: "joint", "separate" or "same"
    series: list[PageSeries]
    noises: dict[int, StackNoise]  # by the channel of a series
    denoised: Sequence[int] = (0,)  # channels; the others are constant, and left as they are
    n_channels: int = 1  # with the constant ones

    @property
    def sigmas(self) -> list[float]:
        """The standard deviation of the noise of each channel that is denoised."""
        if self.handling != "separate":
            return self.noises[0].levels(len(self.denoised))
        return [self.noises[channel].model.sigma for channel in self.denoised]

    def describe(self, models: Sequence[NoiseModel]) -> dict[str, Any]:
        """What Info says of the channels; models: of the noise, one for each series of channels."""
        if self.handling == "separate":
            models = self._of_all(models, NoiseModel.white(0.0))
        levels = self._of_all(self.sigmas, 0.0)
        return {"channels": self.handling, "sigma_per_channel": levels, "noise_models": list(models)}

    def _of_all(self, values: Sequence[Any], constant: Any) -> list[Any]:
        found = dict(zip(self.denoised, values, strict=True))
        return [found.get(channel, constant) for channel in range(self.n_channels)]


def plan_stack(
    array: Any,
    letters: str,
    kind: str,
    varied: Sequence[int] | None,
    method: str,
    params: dict[str, Any],
    given: GivenNoise,
    *,
    dtype: np.dtype[Any] | None = None,
    in_parts: bool = False,
) -> StackPlan:
    """Decide how the channels are denoised, and find the noise; with a delay, on the first pages of a series.

    array, letters, dtype: as for :class:`PagesOf`.
    kind: the axis along which pages help each other; "" for pages alone.
    varied: the channels to denoise; all when None.
    params: of the method; "channels" is removed.
    in_parts: whether pages are denoised part by part.
    """
    sigmas, model, others, plain = given
    count = len(sigmas)
    denoised = range(count) if varied is None else varied
    if varied is not None:
        model = _noise_of_channels(model, varied)

    def seen(series: list[PageSeries]) -> list[Pages]:
        return [first_pages(PagesOf(array, letters, one, dtype), params.get("delay")) for one in series]

    series = series_of(letters, array.shape, kind, joint=True, channels=varied)
    own = GivenNoise([sigmas[channel] for channel in denoised], model, others, plain)
    handling, common = channels_of_stack(method, kind, seen(series), params, own, in_parts=in_parts)
    if common is not None:
        return StackPlan(handling, series, {0: common}, denoised, count)
    series = series_of(letters, array.shape, kind, channels=varied)
    noises = {}
    for channel in denoised:
        pages = seen([one for one in series if one.channel == channel])
        noises[channel] = StackNoise.of(pages, sigmas[channel], model, others, plain=plain, in_parts=in_parts)
    return StackPlan(handling, series, noises, denoised, count)


def varied_channels(array: Any, letters: str, noise_model: Any, delay: Any = None) -> tuple[int, ...] | None:
    """The channels of a stack that are denoised if others have one value on all pages; None for all.

    As in a single image, all are denoised if all are constant, and with a model of noise that they share. A
    channel is read page by page, and only until a pixel differs.

    array: has a shape, and gives whole pages by their index.
    delay: of a stream; only its first `delay` + 1 frames decide.

    >>> varied_channels(np.stack([np.eye(4), np.zeros((4, 4))])[None], "TCYX", "auto")
    (0,)
    """
    count = array.shape[letters.index("C")] if "C" in letters else 1
    if count == 1 or (isinstance(noise_model, NoiseModel) and noise_model.ties_channels):
        return None
    most = None if delay is None else checks.whole("delay", delay, 0) + 1
    pages: list[list[tuple[Any, ...]]] = [[] for _ in range(count)]
    for one in series_of(letters, array.shape, "T" if "T" in letters else ""):
        pages[one.channel] += one.pages[:most]
    found = tuple(channel for channel, own in enumerate(pages) if not _is_constant(array, own))
    return found if 0 < len(found) < count else None


def _is_constant(array: Any, pages: list[tuple[Any, ...]]) -> bool:
    first = None
    for index in pages:
        page = array[index]
        first = page[0, 0] if first is None else first
        # Values that are not finite are refused later.
        if page.dtype.kind not in "iuf" or not (page == first).all() or not math.isfinite(first):
            return False
    return True


def _noise_of_channels(noise_model: Any, channels: Sequence[int]) -> Any:
    """The noise of some channels, if it was given as a model of all."""
    if not isinstance(noise_model, NoiseModel):
        return noise_model

    def of_channels(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return values if len(values) == 1 else tuple(values[channel] for channel in channels)

    curves, strengths = of_channels(noise_model.curves), of_channels(noise_model.strengths)
    return replace(noise_model, curves=curves, strengths=strengths)


def channels_of_stack(
    method: str,
    kind: str,
    series: list[Pages],
    params: dict[str, Any],
    given: GivenNoise,
    *,
    in_parts: bool = False,
) -> tuple[str, StackNoise | None]:
    """How the channels of a stack are denoised, decided once for all of it, and their common noise.

    method, kind: of the series.
    series: with all channels; some of their pages decide.
    params: "channels" is removed from it.
    in_parts: whether pages are denoised part by part.

    Returns "joint", "separate" or "same", and the noise; None if channels have separate noise.
    """
    wanted = params.pop("channels", "auto")
    checks.choice("channels", wanted, CHANNELS)
    sigmas, noise_model, about_noise, plain = given
    together = stack_method(method, kind) if kind else None
    if wanted == "separate" or len(sigmas) == 1:
        return "separate", None
    if together is None or not together.channels:
        if wanted != "auto":
            raise ValueError(
                f"method {method!r} denoises the channels of a stack one by one, so channels={wanted!r} is "
                "not possible; leave channels out, or use method='vnlr'"
            )
        return "separate", None
    noise = StackNoise.of_channels(series, sigmas, noise_model, about_noise, plain=plain, in_parts=in_parts)
    if noise is None:
        if wanted != "auto" and has_maps(noise_model, about_noise):
            raise ValueError(
                "with maps of the noise the channels of a stack are denoised one by one, so "
                f"channels={wanted!r} is not possible; leave channels out"
            )
        return "separate", None
    channels = handling_for(noise.model, wanted, len(sigmas), lambda: mosaic(sampled_pages(series)))
    return channels, None if channels == "separate" else noise
