"""A noise model in words."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from vnlem.noise.model import NoiseModel


def describe(model: "NoiseModel") -> str:
    """One sentence without a full stop: kind, size, correlation, and doubt where there is some."""
    if model.sigma == 0:
        return "no noise found"
    parts = [_size(model)]
    if model.is_correlated:
        first = model.correlation(1)
        parts.append(
            f"correlated between neighbours ({first[0, 1]:.2f} along rows, {first[1, 0]:.2f} along columns)"
        )
    strengths = np.asarray(model.strengths)
    if strengths.size == 3 and strengths[0] > 1.5 * strengths[1:].mean():
        parts.append("shared between the colours")
    if model.doubt:
        parts.append(model.doubt)
    elif model.confidence < 0.5:
        parts.append("uncertain: the image has few flat areas or is small")
    return "; ".join(parts)


def _size(model: "NoiseModel") -> str:
    law = model.curves[0].law
    if law is not None:
        return law.describe()
    varying = [curve for curve in model.curves if len(curve.levels) > 1]
    if not varying:
        kind = "noise of one level" if model.is_correlated else "white noise"
        levels = [np.sqrt(float(model.variance(0.0, c))) for c in range(len(model.curves))]
        if len(levels) > 1 and max(levels) > 1.05 * min(levels):
            return f"{kind}, sigma {', '.join(f'{level:.3g}' for level in levels)} in the channels"
        return f"{kind}, sigma {model.sigma:.3g}"
    camera = model.gain
    if camera is not None:
        return (
            f"photon noise (Poisson-Gaussian), gain {camera.gain:.3g}, offset {camera.offset:.3g}, "
            f"read noise {camera.read_noise:.3g}"
        )
    # The channel whose noise varies the most says it for all.
    spreads = [max(curve.variances) / max(min(curve.variances), 1e-300) for curve in model.curves]
    channel = int(np.argmax(spreads))
    curve = model.curves[channel]
    deviations = np.sqrt(model.variance(np.asarray(curve.levels), channel))
    low, high = int(np.argmin(deviations)), int(np.argmax(deviations))
    return (
        f"noise that depends on the brightness, sigma {deviations[low]:.3g} at {curve.levels[low]:.4g} "
        f"to {deviations[high]:.3g} at {curve.levels[high]:.4g}"
    )
