"""The noise of three channels. Their differences contain little texture, so they show the noise best."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.components import to_components
from vnlem.noise.curve import Curve
from vnlem.noise.evidence import Seen
from vnlem.noise.fit import SAME_STRENGTH, Demands, fit_in_colours
from vnlem.noise.levels import Differences
from vnlem.noise.model import NoiseModel
from vnlem.pipeline.image import Planes
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

LEAST_UNCLIPPED = 0.5  # of the pixels, for clipped ones to be left out
PLAINLY_SHARED = 6.0  # factor between components of weak noise, which may be film grain
MANY_LIKE_NOISE = 0.6  # of the classes: the noise of the brightness itself is obvious

SHARED = "the brightness may have more noise than the colours, or texture; the lower level is used"


def parts_of_colours(planes: Planes, pool: Pool) -> list[Seen | None]:
    """What the brightness of three channels and their two differences show."""
    data, unclipped = planes.data, planes.unclipped()
    known = None
    parts = []
    for part in to_components(data):
        # A mixture of channels does not show which of its pixels were clipped in one of them.
        if _has_unclipped(unclipped):
            known = Differences(part, data.mean(axis=0), np.where(unclipped, 0, -1).astype(np.int8))
        parts.append(Seen.of(part, pool, known))
    return parts


def _has_unclipped(unclipped: NDArray[np.bool_]) -> bool:
    return bool(np.mean(unclipped) > LEAST_UNCLIPPED)


def curves_of_colours(
    planes: Planes, channels: list[Seen], parts: list[Seen | None], support: float
) -> tuple[Curve, ...] | None:
    """The curves that the colour differences show, one for all channels or one each; None if they do not.

    support: share of the classes of brightness that must look like noise.
    """
    brightness, *differences = parts
    if brightness is None or None in differences or not _has_unclipped(planes.unclipped()):
        return None
    of_differences, of_channels = ([one.levels for one in some if one] for some in (differences, channels))
    return fit_in_colours(brightness.levels, of_differences, of_channels, support)


def white_of_colours(
    data: Float,
    levels: list[float],
    parts: list[Seen | None],
    caution: str,
    demands: Demands,
    confidence: float,
    doubt: str,
) -> NoiseModel:
    """White noise, of one level or of different ones for the channels or components."""
    if any(part is None for part in parts):
        return NoiseModel.white(float(np.mean(np.sqrt(levels))), confidence, doubt)
    brightness, *differences = cast(list[Seen], parts)
    found = np.array([part.level(caution) for part in (brightness, *differences)], np.float64)
    lowest, mean = float(found.min()), float(found.mean())
    if float(found.max()) <= SAME_STRENGTH * lowest:
        # One picture has three estimates of one level; texture raises that of the brightness.
        level = min(mean, float(found[1:].mean()))
    else:
        weak = np.sqrt(mean) < demands.weak * brightness.contrast
        plain = not weak or float(found.max()) > PLAINLY_SHARED * lowest
        if brightness.share >= MANY_LIKE_NOISE and plain and lowest > 0:
            curve = Curve((float(data.mean()),), (mean,))
            return NoiseModel((curve,), strengths=tuple(map(float, found / mean)), confidence=confidence)
        level, doubt = lowest, SHARED
    least, most = min(levels), max(levels)
    if most > SAME_STRENGTH * least > 0 and not doubt:
        whole = (Curve((float(plane.mean()),), (own,)) for plane, own in zip(data, levels, strict=True))
        return NoiseModel(tuple(whole), confidence=confidence)
    return NoiseModel.white(float(np.sqrt(level)), confidence, doubt)
