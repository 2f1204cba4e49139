"""Layers of napari: their pixels, the part that is in sight, and what a result inherits from its source."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from napari.layers import Image
from napari.utils.transforms import Affine
from napari.viewer import Viewer
from numpy.typing import NDArray

import vnlem
from vnlem.napari.as_code import as_python
from vnlem.napari.axes import guess_axes
from vnlem.napari.pages import Index, Pages
from vnlem.napari.settings import Settings
from vnlem.noise import NoiseModel


def pixels(layer: Image) -> Any:
    """The array of a layer at full resolution."""
    return layer.data[0] if layer.multiscale else layer.data


def unwrapped(layer: Any) -> Any:
    """The layer itself: napari hands plugins a new wrapper around it each time."""
    return getattr(layer, "__wrapped__", layer)


def layer_axes(layer: Image) -> str:
    """The likely meaning of the layer's dimensions."""
    return guess_axes(pixels(layer).shape, rgb=layer.rgb, labels=layer.axis_labels)


def layer_pages(layer: Image, axes: str) -> Pages:
    """The pages of a layer."""
    shape = tuple(int(size) for size in pixels(layer).shape)
    if layer.rgb and not axes.upper().endswith("C"):
        raise ValueError(
            f"the layer holds colours in its last dimension, so axes must end with C; got {axes!r}"
        )
    return Pages(axes.strip().upper(), shape, bool(layer.rgb))


@dataclass(frozen=True)
class Crop:
    """A part of one page: what picks it from the array, and where it begins in the layer's dimensions."""

    index: Index
    origin: tuple[int, ...]


def visible_crop(layer: Image, pages: Pages, point: Any, side: int) -> Crop:
    """The part of the current page that is in sight, at most `side` pixels high and wide.

    `point` is the position of the viewer's sliders, in world coordinates.
    """
    corners = np.asarray(layer.corner_pixels, np.float64)
    if layer.multiscale:
        corners = corners * np.asarray(layer.downsample_factors)[layer.data_level]
    place = np.asarray(layer.world_to_data(np.asarray(point)[-layer.ndim :]))
    index: list[int | slice] = []
    origin = []
    for axis, letter in enumerate(pages.axes[: layer.ndim]):
        size = pages.shape[axis]
        if letter not in "YX":
            here = int(np.clip(np.rint(place[axis]), 0, size - 1))
            index.append(here)
            origin.append(here)
            continue
        low, high = int(corners[0, axis]), int(np.ceil(corners[1, axis])) + 1
        if not 0 <= low < high - 1:  # not drawn yet, or this dimension is not displayed
            low, high = 0, size
        high = min(high, size)
        if high - low > side:
            low = (low + high - side) // 2
            high = low + side
        index.append(slice(low, high))
        origin.append(low)
    if layer.rgb:
        index.append(slice(None))
    return Crop(tuple(index), tuple(origin))


def crop_layer(layer: Image, crop: Crop, part: NDArray[Any]) -> tuple[NDArray[Any], dict[str, Any]]:
    """Pixels and options of a layer that shows a denoised crop at its place."""
    thick = [axis for axis, choice in enumerate(crop.index) if isinstance(choice, int)]
    options = _inherited(layer)
    flat = Affine(scale=layer.scale, rotate=layer.rotate, shear=layer.shear, translate=layer.translate)
    options["translate"] = flat(np.asarray(crop.origin, np.float64))
    if not covers(layer):
        options["blending"] = "translucent"
    return np.expand_dims(part, tuple(thick)), options


def covers(layer: Image) -> bool:
    """Whether a layer of the same blending hides what lies below it, e.g. its noisy source."""
    return str(layer.blending).startswith(("translucent", "opaque"))


def is_result(layer: Image) -> bool:
    """Whether a layer was made by vnlem."""
    return "vnlem" in layer.metadata


def lift_above(viewer: Viewer, layer: Image, source: Image) -> None:
    """Move a layer to where it is seen instead of its source.

    It goes right above what hides the source. Channels with additive blending stay above it, to keep a
    composite intact. If the source itself is additive, the layer goes to the top.
    """
    layers = viewer.layers
    place = len(layers) - 1
    if covers(source):
        others = [other for other in layers if other != layer]
        hiding = [
            number
            for number, other in enumerate(others)
            if other == source or (isinstance(other, Image) and other.visible and covers(other))
        ]
        place = max(hiding) + 1
    here = layers.index(layer)
    if here != place:
        layers.move(here, place if place < here else place + 1)


def result_layer(layer: Image, settings: Settings, axes: str, noise: dict[int, NoiseModel]) -> dict[str, Any]:
    """Options of the layer that holds the result: place, units, contrast and colours of its source."""
    options = _inherited(layer)
    profile = settings.method_arguments().get("profile")
    options["name"] = f"{layer.name} ({settings.method}{f' {profile}' if profile else ''})"
    options["metadata"] = {**layer.metadata, "vnlem": how_it_was_made(layer, settings, axes, noise)}
    return options


def residual_layer(layer: Image, result: NDArray[Any]) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """What was removed, as a grey layer around zero; colours are averaged."""
    residual = np.empty(result.shape, np.float32)
    source = pixels(layer)
    for number in np.ndindex(result.shape[: max(0, layer.ndim - 2)]):
        residual[number] = np.asarray(source[number], np.float32) - result[number].astype(np.float32)
    if layer.rgb:
        residual = residual[..., :3].mean(axis=-1, dtype=np.float32)
    spread = 3 * float(residual.std()) or 1.0
    options = {
        **{name: value for name, value in _inherited(layer).items() if name in _SPATIAL},
        "name": f"{layer.name} (residual)",
        "contrast_limits": (-spread, spread),
        "colormap": "gray",
        "visible": False,
        "metadata": {"vnlem": {"residual_of": layer.name}},
    }
    return residual, options


def how_it_was_made(
    layer: Image, settings: Settings, axes: str, noise: dict[int, NoiseModel]
) -> dict[str, Any]:
    """What the metadata of a result says about how it was made."""
    return {
        "version": vnlem.__version__,
        "source": layer.name,
        "axes": axes,
        "settings": asdict(settings),
        "noise": [noise[channel].describe() for channel in sorted(noise)],
        "noise_models": [noise[channel].to_dict() for channel in sorted(noise)],
        "python": as_python(settings, image_expression(layer), axes, colours(layer)),
    }


def colours(layer: Image) -> int:
    """How many colours the last dimension of an RGB layer holds; 0 for other layers."""
    return int(pixels(layer).shape[-1]) if layer.rgb else 0


def image_expression(layer: Image) -> str:
    """Python that gives the layer's pixels, in napari's console."""
    return f"viewer.layers[{layer.name!r}].data{'[0]' if layer.multiscale else ''}"


_SPATIAL = ("scale", "translate", "rotate", "shear", "affine", "units", "axis_labels")


def _inherited(layer: Image) -> dict[str, Any]:
    _, options, _ = layer.as_layer_data_tuple()
    for name in ("multiscale", "metadata", "name", "cache"):
        options.pop(name, None)
    return {**options, "visible": True}
