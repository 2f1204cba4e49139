"""Pictures of a noise model: variance against brightness, correlation, spectrum."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.levels import by_brightness, cut

if TYPE_CHECKING:
    from vnlem.noise.model import NoiseModel

REACH = 6  # pixels, of the correlation that is drawn


def draw(
    model: "NoiseModel",
    path: str | os.PathLike[str] | None = None,
    planes: NDArray[np.float64] | None = None,
) -> Any:
    """The picture as a matplotlib figure, written to `path` where there is one.

    `planes` (C, H, W): what the blocks of the image say, drawn as points beside the curve.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("drawing needs matplotlib: pip install 'vnlem[bench]'") from None
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    curve, correlation, spectrum = figure.subplots(1, 3)
    _draw_curve(curve, model, planes)
    shown = correlation.imshow(_mirrored(model.correlation(REACH)), vmin=-1, vmax=1, cmap="RdBu_r")
    shown.set_extent((-REACH - 0.5, REACH + 0.5, REACH + 0.5, -REACH - 0.5))
    correlation.set(title="correlation", xlabel="columns apart", ylabel="rows apart")
    figure.colorbar(shown, ax=correlation)
    power = np.log10(np.asarray(model.spectra[0].power))
    shown = spectrum.imshow(power, origin="lower", extent=(0, 0.5, 0, 0.5), cmap="magma", vmin=-2, vmax=2)
    spectrum.set(title="power, log10", xlabel="cycles per pixel, along rows", ylabel="along columns")
    figure.colorbar(shown, ax=spectrum)
    figure.suptitle(model.describe(), fontsize=10)
    if path is not None:
        figure.savefig(path, dpi=110)
    return figure


def _draw_curve(axes: Any, model: "NoiseModel", planes: NDArray[np.float64] | None) -> None:
    colours = ("C3", "C2", "C0") if len(model.curves) == 3 else tuple(f"C{k}" for k in range(10))
    for channel, curve in enumerate(model.curves):
        colour = colours[channel % len(colours)]
        low, high = curve.levels[0], curve.levels[-1]
        if planes is not None:
            plane = planes[min(channel, len(planes) - 1)]
            low, high = float(plane.min()), float(plane.max())
            blocks = cut(plane) if min(plane.shape) >= 32 and high > low else None
            if blocks is not None:
                found = by_brightness(blocks)
                # Blocks see the high frequencies alone; the model says what part of the noise that is.
                share = np.median(found.high / model.variance(found.brightness, channel))
                axes.plot(found.brightness, np.sqrt(found.high / share), ".", color=colour)
        x = np.linspace(low, high if high > low else low + 1, 200)
        axes.plot(x, np.sqrt(model.variance(x, channel)), color=colour)
    axes.set(title="noise against brightness", xlabel="brightness", ylabel="sigma", ylim=(0, None))


def _mirrored(quarter: NDArray[np.float64]) -> NDArray[np.float64]:
    """A quarter of a symmetric picture, completed."""
    lower = np.concatenate([quarter[:, :0:-1], quarter], axis=1)
    return np.concatenate([lower[:0:-1], lower])
