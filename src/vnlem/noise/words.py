"""A noise model in words: what it is, and what it means for an image."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from vnlem.noise.model import NoiseModel

LEAST_CORRELATION = 0.1  # of the brightness, to be named
FEW_PHOTONS = 6.0  # at the brightest: as in `vnlem.noise.rounds`


def describe(model: "NoiseModel") -> str:
    """One sentence without a full stop: kind, size, correlation, and doubt if there is some."""
    if model.sigma == 0:
        return "no noise found"
    parts = [_size(model)]
    if model.is_correlated:
        parts.append(f"correlated between neighbours {_correlation(model)}")
    strengths = np.asarray(model.strengths)
    if strengths.size == 3 and strengths[0] > 1.5 * strengths[1:].mean():
        parts.append("shared between the colours")
    if model.maps is not None:
        parts += model.maps.describe()
    if model.doubt:
        parts.append(model.doubt)
    elif model.confidence < 0.5:
        parts.append("uncertain: the image has few flat areas or is small")
    return "; ".join(parts)


def _correlation(model: "NoiseModel") -> str:
    """Of the brightness, or of a colour difference if only these share noise, as in many JPEG files."""
    first, colour = (model.correlation(1, component) for component in (0, 1))
    only_colours = max(first[0, 1], first[1, 0]) < LEAST_CORRELATION
    shown, where = (colour, "in the colours ") if only_colours and len(model.spectra) > 1 else (first, "")
    return f"{where}({shown[0, 1]:.2f} along rows, {shown[1, 0]:.2f} along columns)"


def explain(model: "NoiseModel", planes: NDArray[np.float64]) -> list[str]:
    """What the noise means for planes (C, H, W): sentences with units, and advice.

    >>> from vnlem.noise.model import NoiseModel
    >>> explain(NoiseModel.camera(2.0, 100.0), np.full((1, 8, 8), 200.0))[0]
    'about 50 photons at the brightest, 50 in the middle; a pixel of 200 grey levels has noise of 14'
    """
    if model.sigma == 0:
        return ["denoise leaves the image unchanged; if it is noisy, pass sigma or --caution strong"]
    words = []
    evened = planes if model.maps is None else model.maps.without_sigma.enter(planes)
    middle, bright = (float(np.quantile(evened[0], share)) for share in (0.5, 0.999))
    camera, law, maps = model.gain, model.curves[0].law, model.maps
    if camera is not None:
        most, usual = (max(value - camera.offset, 0.0) / camera.gain for value in (bright, middle))
        at = f"a pixel of {bright:.3g} grey levels has noise of {np.sqrt(float(model.variance(bright))):.2g}"
        words.append(f"about {_count(most)} photons at the brightest, {_count(usual)} in the middle; {at}")
        if most < FEW_PHOTONS:
            words.append("few photons: denoise works in several rounds; use --dtype float32")
    elif law is None:
        contrast = float(evened.std(axis=(1, 2)).mean())
        level = float(np.sqrt(np.mean(model.variance(middle))))
        words.append(
            f"noise of {level:.3g} grey levels, image contrast {contrast:.3g} (both standard deviations)"
        )
    else:
        level = float(np.sqrt(np.mean(model.variance(bright))))
        words.append(f"a pixel of {bright:.3g} grey levels has noise of {level:.2g}")
        if law.name == "rician":
            words.append("noise lifts the background above zero: denoise corrects this")
    for name, offsets, gains in () if maps is None else maps.lines:
        if offsets is not None:
            words.append(
                f"{name} differ by {offsets.std():.2g} grey levels, {np.ptp(offsets):.2g} at most: denoise "
                "removes the offsets (--no-lines keeps them)"
            )
        if gains is not None:
            words.append(
                f"{name} differ by {100 * gains.std():.2g} % in their gains: denoise corrects them "
                "(--no-lines does not)"
            )
    if maps is not None and maps.sigma is not None:
        row, column = np.unravel_index(int(np.argmax(maps.sigma)), maps.sigma.shape)
        words.append(
            f"the noise is strongest at row {row}, column {column}: denoise filters more there; "
            "--noise-model gaussian uses one level everywhere"
        )
    if model.is_correlated:
        words.append(
            "neighbouring pixels share noise, as after demosaicking, resampling, compression or a blur"
        )
    return words


def _count(photons: float) -> str:
    """Photons, rounded to the precision of the estimate."""
    return f"{photons:.2g}" if photons < 100 else f"{round(photons, -int(np.log10(photons)) + 1):.0f}"


def _size(model: "NoiseModel") -> str:
    law = model.curves[0].law
    if model.maps is not None and model.maps.sigma is not None and law is None:
        low, high = (model.sigma * float(end(model.maps.sigma)) for end in (np.min, np.max))
        return f"white noise that varies over the image, sigma {low:.3g} to {high:.3g}"
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
        # A fit seldom gives exactly zero: less than a thousandth of a photon is none.
        read_noise = camera.read_noise if camera.read_noise > 1e-3 * camera.gain else 0.0
        return (
            f"photon noise (Poisson-Gaussian), gain {camera.gain:.3g}, offset {camera.offset:.3g}, "
            f"read noise {read_noise:.3g}"
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
