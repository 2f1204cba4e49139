"""The picture of a noise model: noise against brightness, correlation, and spectrum or map."""

import os
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vnlem.io.atomic import whole_file
from vnlem.noise.levels import Levels, by_brightness, cut
from vnlem.noise.words import explain

if TYPE_CHECKING:
    from vnlem.noise.model import NoiseModel

REACH = 6  # pixels, of the drawn correlation
SHOWN = (0.001, 0.999)  # quantiles of the drawn brightness
LINE = 130  # characters of a line above the panels
FLAT = 0.05  # a spectrum that differs from one by less is flat


def draw(
    model: "NoiseModel",
    path: str | os.PathLike[str] | None = None,
    planes: NDArray[np.float64] | None = None,
) -> Any:
    """The picture as a matplotlib figure, written to `path` if given.

    `planes` (C, H, W): the noise that their blocks show is drawn as points next to the curve.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("the picture needs matplotlib: pip install matplotlib; the words do not") from None
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    curve, correlation, last = figure.subplots(1, 3)
    _draw_curve(curve, model, planes)
    shown = correlation.imshow(_mirrored(model.correlation(REACH)), vmin=-1, vmax=1, cmap="RdBu_r")
    shown.set_extent((-REACH - 0.5, REACH + 0.5, REACH + 0.5, -REACH - 0.5))
    correlation.set(title="noise shared with neighbours", xlabel="columns apart", ylabel="rows apart")
    figure.colorbar(shown, ax=correlation, label="correlation")
    _draw_maps(figure, last, model) if model.maps is not None else _draw_spectrum(last, model)
    words = [model.describe()] + ([] if planes is None else explain(model, planes)[:1])
    figure.suptitle("\n".join(line for text in words for line in wrap(text, LINE)), fontsize=10)
    if path is not None:
        with whole_file(Path(path)) as temporary:
            figure.savefig(temporary, dpi=110)
    return figure


def _draw_curve(axes: Any, model: "NoiseModel", planes: NDArray[np.float64] | None) -> None:
    """The model as lines over the brightness of the image, and what its flat areas show as dots."""
    colours = ("C3", "C2", "C0") if len(model.curves) == 3 else tuple(f"C{k}" for k in range(10))
    names = ("red", "green", "blue") if len(model.curves) == 3 else ()
    even = planes if planes is None or model.maps is None else model.maps.without_sigma.enter(planes)
    for channel, curve in enumerate(model.curves):
        colour = colours[channel % len(colours)]
        low, high = curve.levels[0], curve.levels[-1]
        seen = low, high
        if even is not None:
            plane = even[min(channel, len(even) - 1)]
            low, high = (float(end) for end in np.quantile(plane, SHOWN))
            found = _seen(plane, model)
            if found is not None:
                _draw_dots(axes, model, channel, found, colour)
                seen = float(found.brightness.min()), float(found.brightness.max())
        label = f"model, {names[channel]}" if names else "model" if channel == 0 else None
        beyond = "model, beyond what was seen" if channel == 0 and seen != (low, high) else None
        for ends, style, word in ((seen, "-", label), ((low, high), ":", beyond)):
            x = np.linspace(ends[0], ends[1] if ends[1] > ends[0] else ends[0] + 1, 200)
            axes.plot(x, np.sqrt(model.variance(x, channel)), style, color=colour, label=word)
    axes.set(xlabel="brightness (grey levels)", ylabel="noise, standard deviation (grey levels)")
    lines = len(axes.get_legend_handles_labels()[1])
    axes.set(title="noise against brightness", ylim=(0, (1 + 0.1 * lines) * axes.get_ylim()[1]))
    axes.legend(fontsize=8, loc="upper left")  # above all dots


def _seen(plane: NDArray[np.float64], model: "NoiseModel") -> Levels | None:
    """What classes of brightness show, relative to the map of the noise."""
    blocks = cut(plane) if min(plane.shape) >= 32 and plane.max() > plane.min() else None
    if blocks is not None and model.maps is not None and model.maps.sigma is not None:
        (down, across), (height, width) = blocks.grid, plane.shape
        rows, columns = blocks.row * height // down, blocks.column * width // across
        blocks = blocks.divided(model.maps.sigma[rows, columns].astype(np.float64))
    return None if blocks is None else by_brightness(blocks)


def _draw_dots(axes: Any, model: "NoiseModel", channel: int, found: Levels, colour: str) -> None:
    """Classes that look like noise are dots; those with texture are bars from the least to the most."""
    # Blocks show only the high frequencies; the model says what share of correlated noise that is.
    share = 1.0
    if model.is_correlated:
        share = float(np.median(found.high / model.variance(found.brightness, channel)))
        like_noise = np.ones(found.high.shape, bool)
    else:
        like_noise = found.like_noise()
    first = channel == 0
    x, most, least = found.brightness, np.sqrt(found.high / share), np.sqrt(found.least() / share)
    if like_noise.any():
        label = "flat areas of the image, with their errors" if first else None
        at, deviation, error = x[like_noise], most[like_noise], found.error[like_noise]
        axes.errorbar(
            at, deviation, deviation * error, fmt="o", color=colour, markersize=4, lw=1, label=label
        )
    textured = ~like_noise
    if textured.any():
        label = "areas with texture: between these" if first else None
        axes.vlines(x[textured], least[textured], most[textured], color=colour, alpha=0.35, lw=3, label=label)


def _draw_spectrum(axes: Any, model: "NoiseModel") -> None:
    """Power against frequency, along rows, along columns and along both."""
    power = np.asarray(model.spectra[0].power)
    power = power / power.mean()
    if power.size == 1 or model.spectra[0].is_white:
        power = np.ones((2, 2))
    frequency = np.linspace(0, 0.5, len(power))
    for values, name in (
        (power[0], "along rows"),
        (power[:, 0], "along columns"),
        (np.diag(power), "diagonal"),
    ):
        axes.plot(frequency, values, label=name)
    axes.set(xlabel="frequency (cycles per pixel)", ylabel="power (mean 1)", title="spectrum")
    top = max(2.0, 1.1 * float(power.max()))
    axes.set(ylim=(0, top), xlim=(0, 0.5))
    if np.ptp(power) < FLAT:
        axes.set(title="spectrum: flat, white noise")
    axes.legend(fontsize=8)


def _draw_maps(figure: Any, axes: Any, model: "NoiseModel") -> None:
    """What differs from place to place."""
    maps = model.maps
    assert maps is not None
    if maps.sigma is not None:
        shown = axes.imshow(model.sigma * maps.sigma, cmap="viridis")
        axes.set(title="noise over the image", xlabel="column", ylabel="row")
        figure.colorbar(shown, ax=axes, label="standard deviation (grey levels)")
    elif maps.sensor is not None:
        shown = axes.imshow(maps.sensor.offset, cmap="viridis", **_range(maps.sensor.offset))
        axes.set(title="offset of each pixel", xlabel="column", ylabel="row")
        figure.colorbar(shown, ax=axes, label="grey levels")
    else:
        for name, offsets, _ in maps.lines:
            if offsets is not None:
                axes.plot(offsets[0].ravel(), lw=0.8, label=f"{name}, in the order of the image")
        axes.set(title="offsets of lines", xlabel="line", ylabel="offset (grey levels)")
        axes.legend(fontsize=8)


def _range(values: NDArray[Any]) -> dict[str, float]:
    low, high = np.quantile(values, (0.01, 0.99))
    return {"vmin": float(low), "vmax": float(high)}


def _mirrored(quarter: NDArray[np.float64]) -> NDArray[np.float64]:
    """A quarter of a symmetric picture, completed."""
    lower = np.concatenate([quarter[:, :0:-1], quarter], axis=1)
    return np.concatenate([lower[:0:-1], lower])
