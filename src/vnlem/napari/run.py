"""A whole layer denoised, and the layers with the result."""

import time
from dataclasses import dataclass
from typing import Any

from napari.layers import Image
from napari.viewer import Viewer
from numpy.typing import NDArray

from vnlem.napari.layers import covers, lift_above, pixels, residual_layer, result_layer
from vnlem.napari.pages import Pages, Report, check_page, denoise_pages, read
from vnlem.napari.settings import Settings
from vnlem.napari.stacks import denoise_stack
from vnlem.noise import NoiseCheck, NoiseModel


@dataclass(frozen=True)
class Outcome:
    """A result, what it was made from and how."""

    layer: Image
    pages: Pages
    settings: Settings
    result: NDArray[Any]
    noise: dict[int, NoiseModel]  # per fluorescence channel
    sample: NDArray[Any]  # one page of the source
    check: NoiseCheck  # of the noise on that page
    seconds: float


def denoise_layer(layer: Image, pages: Pages, settings: Settings, report: Report) -> Outcome:
    """Denoise all pages of a layer, which help each other if possible; the layer itself is not changed."""
    begun = time.monotonic()
    data = pixels(layer)
    denoise = denoise_stack if pages.is_stack else denoise_pages
    result, noise = denoise(data, pages, settings, report)
    channel = min(noise)
    middle = pages.middle(channel)
    sample = read(data, middle)
    check = check_page(sample, result[middle], noise[channel], pages.channel_axis)
    return Outcome(layer, pages, settings, result, noise, sample, check, time.monotonic() - begun)


def add_results(viewer: Viewer, outcome: Outcome, *, residual: bool = False) -> Image:
    """Add the result as a layer above its source, and the residual as a hidden one if it is wanted.

    With additive blending, as between fluorescence channels, the source is hidden: its noise would be added
    to the result.
    """
    layer = outcome.layer
    made = []
    if residual:
        made.append(residual_layer(layer, outcome.result))
    made.append(
        (outcome.result, result_layer(layer, outcome.settings, outcome.pages.axes, outcome.noise)),
    )
    for data, options in made:
        added: Image = viewer.add_image(data, **options)
        if layer in viewer.layers:  # it may have been removed meanwhile
            lift_above(viewer, added, layer)
    if not covers(layer):
        layer.visible = False
    return added
