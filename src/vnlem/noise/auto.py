"""Which noise is this? The estimate of `denoise` if no noise is given.

The two possible errors differ in cost: mistaking texture for noise loses up to 20 dB, leaving noise costs at
most 2 to 5 dB. So a model that removes more needs better evidence, and if the evidence is weak, the model
with the least regret is used:

| model | it claims | evidence it needs | fallback |
|---|---|---|---|
| none | nothing | too few blocks that are neither painted nor constant | |
| white | the lower envelope over space, frequency and direction | none: little can be lost | |
| line | photon noise, which rises with the brightness | classes that look like white noise | white |
| bent curve | any smooth dependence on the brightness | nearly all classes | white |
| Rician | magnitudes without signal | air of their distribution, nothing darker | the above |
| field | a strength that varies over the image | cells like noise, on a smooth surface | the above |
| correlated | power at low frequencies | a spectrum that texture does not have, or evenness | white |

The numbers are in `DEMANDS`, a row for each `caution`, and in :mod:`vnlem.noise.shape`.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.noise.air import recognise_rician
from vnlem.noise.colours import SHARED, curves_of_colours, parts_of_colours, white_of_colours
from vnlem.noise.components import to_components
from vnlem.noise.correlated import SMALLEST_IMAGE, Spectrum, estimate_power
from vnlem.noise.curve import Curve
from vnlem.noise.evidence import SMALLEST_FOR_A_CURVE, Seen, of_varied
from vnlem.noise.field import SMALLEST, Cells, field_of, find_field, with_surface
from vnlem.noise.fit import Demands, fit, fit_correlated, gain_of_planes
from vnlem.noise.instruments import INSTRUMENTS, check_options, estimate_instrument
from vnlem.noise.levels import Differences
from vnlem.noise.lines import with_lines, without_lines
from vnlem.noise.model import NoiseModel, each
from vnlem.noise.shape import EVEN_TILT, SMOOTHED_TILT, Evidence, looks_like_noise
from vnlem.noise.white import estimate_sigma_of_planes
from vnlem.pipeline import checks
from vnlem.pipeline.image import Planes, check_values, to_planes
from vnlem.pipeline.run import NEGLIGIBLE
from vnlem.pipeline.warn import warn
from vnlem.pipeline.workers import Pool, check_workers

Float = NDArray[np.float64]

KINDS = ("auto", "gaussian", "poisson-gaussian", "correlated", "field", *INSTRUMENTS)
MOST_CLIPPED = 0.95  # of the pixels at the limits: more would hide the noise

# Evidence that a curve needs, by caution. Chosen on photographs with white noise of sigma 0 to 20, which have
# no curve, and on frames with real and simulated photon noise, which have one. In the first at most 30 % of
# the classes look like noise that rises with the brightness, in the second 33 to 100 %. The hardest case is
# film grain: it rises too, but by at most 8 standard errors; with 100 to 10,000 photons it rises by 7 to 40.
# Real photon noise is 23 % of the contrast of its frame or more, grain 5 to 13 %.
DEMANDS = {
    "safe": Demands(0.8, 0.95, 0.95, weak=0.3, misfit=0.1, significance=10, weak_significance=20),
    "auto": Demands(0.3, 0.6, 0.8, weak=0.22, misfit=0.12, significance=6, weak_significance=9),
    "strong": Demands(0.15, 0.3, 0.5, weak=0.08, misfit=0.3, significance=4, weak_significance=6),
}

# Limits as shares of the largest possible variance. Text, fingerprints and gratings reach 0.18 to 1.2,
# correlated noise 0.08 and clipped noise 0.18. White noise of that strength covers texture, so that most
# classes look like noise; halftone and dithered pictures reach 0.07 to 0.9 with few such classes.
MOST_OF_POSSIBLE, MOST_OF_POSSIBLE_CLIPPED, MOST_OF_POSSIBLE_TEXTURED = 0.15, 0.25, 0.05
# Coefficients of correlated noise are not quite independent, so the chosen blocks have slightly less of it
# than the others; and too little is worse than too much.
CHOSEN_LOW = 1.2
# The brightness of a photograph has texture everywhere, which counts as noise and outweighs this.
CHOSEN_LOW_IN_COLOUR = np.array([0.85, 1.2, 1.2])
CHOSEN_LOW_IF_SMOOTHED = 0.85  # what is left of the noise costs less than what is lost of the texture
MOST_WORKERS = 4  # more would wait for Python's lock: the steps are short

# Messages for cases where two models are about equally likely: the one that removes less is used.
NOTHING = "nearly all areas that are not constant have structure, so noise cannot be distinguished from it"
DRAWN = "what varies may be noise, but also dots, letters or dithering, which are assumed"
TEXTURED = "there is texture almost everywhere, part of which may be noise; the lower level is used"
UNLIKE_NOISE = "it may also be correlated noise or texture; the safer choice, texture, is assumed"
MAY_BE_MORE = (SHARED, UNLIKE_NOISE)  # strong caution often finds much more noise


def estimate_noise(
    image: ArrayLike,
    channel_axis: int | None = None,
    *,
    kind: str = "auto",
    caution: str = "auto",
    coils: int | None = None,
    looks: float | None = None,
    domain: str | None = None,
    lines: bool | str = "auto",
    workers: int | None = None,
) -> NoiseModel:
    """Estimate the noise of an image: its strength at each brightness, and whether neighbouring pixels share
    it.

    Parameters
    ----------
    image : array_like
        A grey image, a signal (one dimension), or a colour image with `channel_axis`.
    channel_axis : int, optional
        The axis of the channels.
    kind : {"auto", "gaussian", "poisson-gaussian", "correlated", "field", "rician", "speckle"}
        What to estimate. "gaussian": white noise of one level. "poisson-gaussian": photon and read noise.
        "correlated": any dependence on the brightness, and correlation, obvious or not. "field": white noise
        that is stronger in some parts of the image, obvious or not. "rician": magnitudes of complex images
        (MRI). "speckle": OCT, ultrasound, radar. "auto": the simplest of these that fits the image; Rician
        noise only if it clearly shows air, a field only if it is obvious, never speckle.
    caution : {"auto", "safe", "strong"}
        If texture could be noise, for `kind` "auto": "safe" assumes the least noise that explains the image,
        so that texture stays; "strong" the most, for images known to be noisy; "auto" is in between.
    coils : int, optional
        For "rician": number of coils whose squares were summed; one when None.
    looks, domain : optional
        For "speckle", as in :func:`vnlem.denoise`.
    lines : {"auto", True, False}
        Find offsets of rows and columns, and estimate the noise without them. "auto": if they are obvious,
        for `kind` "auto".
    workers : int, optional
        Number of threads, at most four of them; they do not change the result.

    Returns
    -------
    NoiseModel
        Its `describe()` says in words what was found, `confidence` how certain it is. Save it and pass it to
        :func:`vnlem.denoise` for every image of the same detector and settings.

    Notes
    -----
    Blocks of 8x8 pixels are ranked by their texture. The flattest show the noise, at high and at middle
    frequencies: white noise has equal power at both, texture has more at middle ones. So each brightness
    class bounds its noise from below and from above. The level of white noise is the lower envelope over all
    blocks and directions. A line or a bent curve is accepted if enough classes look like noise, correlation
    if the spectrum has a shape that texture does not have, or if flat blocks differ only by chance. Clipped,
    constant and painted areas are left out.

    If noise and texture are about equally likely, the model that removes less is used, and `doubt` says so.
    An image too small for a curve or a spectrum gets a simpler model, with less confidence.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> photons = np.repeat(np.linspace(5, 100, 256)[None], 256, axis=0)
    >>> model = estimate_noise(2.0 * rng.poisson(photons) + 100)
    >>> model.kind, round(model.gain.gain)
    ('poisson-gaussian', 2)
    """
    checks.choice("kind", kind, KINDS)
    checks.choice("caution", caution, tuple(DEMANDS))
    planes = to_planes(image, channel_axis, signals=True)
    options = check_options(kind, {"coils": coils, "looks": looks, "domain": domain})
    found, rest = without_lines(planes, lines, kind == "auto", workers)
    return with_lines(estimate_of_planes(rest, kind, workers, caution, options=options), found)


def estimate_of_planes(
    planes: Planes,
    kind: str = "auto",
    workers: int | None = None,
    caution: str = "auto",
    differences: Sequence[Differences] | None = None,
    options: dict[str, Any] | None = None,
    *,
    warns: bool = True,
    in_place: bool = True,
) -> NoiseModel:
    """:func:`estimate_noise` of an image that is laid out as planes, or of some pages of a stack.

    in_place: whether pixels have their places in the image; only then can it have a field.
    """
    check_values(planes)
    data = planes.data
    if planes.limits[0].min() == planes.limits[1].max():
        return NoiseModel.white(0.0, confidence=min(1.0, min(data.shape[1:]) / 64))
    if kind in INSTRUMENTS:
        with pool_for(workers) as pool:
            return estimate_instrument(data, kind, options or {}, pool)
    with pool_for(workers) as pool:
        if kind == "field":
            found = field_of(list(data), pool, sure=True) if in_place else None
            return found or NoiseModel.white(estimate_sigma_of_planes(data, pool))
        model = of_varied(_estimate, planes, differences, kind, pool, caution, in_place)
    looks = warns and data[0].size >= SMALLEST_FOR_A_CURVE**2 and (model.sigma > 0 or model.doubt == DRAWN)
    share = _clipped_share(planes) if looks else 0.0
    if share > MOST_CLIPPED:
        warn(
            f"{100 * share:.0f} % of the pixels lie at the image's smallest or largest value: the noise can "
            "hardly be seen; give sigma or a noise model"
        )
    return model


def pool_for(workers: int | None) -> Pool:
    """The threads that an estimate can use."""
    return Pool(min(check_workers(workers), MOST_WORKERS))


def _clipped_share(planes: Planes) -> float:
    """Share of the pixels at the limits of a channel, or less if that is at most MOST_CLIPPED."""
    size = planes.data[0].size
    few = np.count_nonzero(planes.unclipped(np.s_[: planes.data.shape[1] // 16]))
    if few >= (1 - MOST_CLIPPED) * size:
        return MOST_CLIPPED
    return 1 - float(np.mean(planes.unclipped()))


def _estimate(
    planes: Planes,
    differences: Sequence[Differences] | None,
    kind: str,
    pool: Pool,
    caution: str,
    in_place: bool,
) -> NoiseModel:
    data = planes.data
    smallest = min(data.shape[1:])
    size = min(1.0, data.shape[1] * data.shape[2] / 128**2)
    if kind == "gaussian" or smallest < SMALLEST_FOR_A_CURVE:
        return NoiseModel.white(estimate_sigma_of_planes(data, pool), confidence=min(1.0, smallest / 64))
    if kind == "poisson-gaussian":
        camera = gain_of_planes(data, pool)
        if camera is None or camera.variance(float(data.max())) <= (NEGLIGIBLE * np.ptp(data)) ** 2:
            return NoiseModel.white(0.0, 0.5, NOTHING)
        return NoiseModel((Curve.of_camera(camera),), confidence=max(size, 0.05))
    positive = kind == "auto" and planes.limits.min() >= 0
    magnitudes = recognise_rician(data, pool) if positive else None
    if magnitudes is not None:
        return magnitudes
    seen = [Seen.of(plane, pool, limits=own) for plane, own in zip(data, planes.limits.T, strict=True)]
    if not any(seen):
        return NoiseModel.white(0.0, 0.5, NOTHING)
    # A channel without visible noise follows the others.
    channels = [one or next(filter(None, seen)) for one in seen]
    if differences is not None and min(differences[0].noise.shape) >= SMALLEST_FOR_A_CURVE:
        channels = [one.or_less(own, pool) for one, own in zip(channels, differences, strict=True)]
    if kind == "auto" and in_place and smallest >= SMALLEST:
        height, width = data.shape[1:]
        blocks = [one.blocks for one in channels if one.blocks is not None]
        surface = find_field([Cells.of(one, (height, width)) for one in blocks])
        if surface is not None:
            return with_surface(surface, blocks, height, width)
    parts = cache(partial(parts_of_colours, planes, pool))  # takes long, and few images need it
    tilted = all(one.is_tilted for one in channels)
    may_be = all(one.least_tilt > EVEN_TILT for one in channels)
    if not may_be and len(data) == 3 and differences is None:
        may_be = all(
            part is not None and (part.is_tilted or part.tilt > SMOOTHED_TILT) for part in parts()[1:]
        )
    doubt = ""
    if smallest >= SMALLEST_IMAGE and (kind == "correlated" or may_be):
        sure = kind == "correlated" or (caution == "strong" and tilted)
        model = _correlated(planes, channels, pool, size, sure)
        if model is not None and (caution != "safe" or kind == "correlated"):
            return model
        doubt = UNLIKE_NOISE if kind == "correlated" or tilted else ""
    return _uncorrelated(planes, channels, size, caution, doubt, parts)


def _correlated(
    planes: Planes, channels: list[Seen], pool: Pool, size: float, sure: bool
) -> NoiseModel | None:
    """The model of noise that neighbouring pixels share; None if it may be texture."""
    data = planes.data
    curves = [fit_correlated(one.levels).for_pixels(plane) for one, plane in zip(channels, data, strict=True)]
    if any(not max(curve.variances) > 0 for curve in curves):
        return None
    stable = np.stack([curve.stabilise(plane) for curve, plane in zip(curves, data, strict=True)])
    unclipped = planes.unclipped()
    found = estimate_power(to_components(stable), unclipped, pool)
    tilt = float(np.median([one.tilt for one in channels]))
    least_tilt = min(one.least_tilt for one in channels)
    seen = Evidence.of(found, float(stable.std(axis=(1, 2)).mean()), tilt, least_tilt)
    if not (sure or looks_like_noise(seen, len(data))):
        return None
    power, chosen_low = found.power, CHOSEN_LOW if len(data) != 3 else CHOSEN_LOW_IN_COLOUR
    if seen.is_smoothed:
        chosen_low = CHOSEN_LOW_IF_SMOOTHED
        if power[0].mean() > power[1:].mean():
            # What the brightness has beyond the colours is texture.
            power = np.broadcast_to(power[1:].mean(axis=0), power.shape)
    strengths = power.mean(axis=(1, 2)) * chosen_low
    confidence = float(np.clip(size * min(1.0, found.share / 0.2), 0.05, 1.0))
    model = NoiseModel(
        tuple(curves), tuple(map(Spectrum.of, power)), tuple(map(float, strengths)), confidence
    )
    shares = [
        one.share_of_possible(model.variance(one.levels.brightness, number), limits)
        for number, (one, limits) in enumerate(zip(channels, planes.limits.T, strict=True))
    ]
    most = MOST_OF_POSSIBLE if np.mean(unclipped) > 0.999 else MOST_OF_POSSIBLE_CLIPPED
    return model if sure or min(shares) <= most else None


def _uncorrelated(
    planes: Planes,
    channels: list[Seen],
    size: float,
    caution: str,
    doubt: str,
    parts: Callable[[], list[Seen | None]],
) -> NoiseModel:
    """White noise of one level unless the evidence is against it; else curves, or unequal components."""
    data = planes.data
    confidence = float(
        np.clip(size * min(1.0, 3 * float(np.mean([one.share for one in channels]))), 0.05, 1.0)
    )
    shown = None
    if len(data) == 3:
        shown = curves_of_colours(planes, channels, parts(), DEMANDS[caution].bent_support)
        if shown is not None and (len(shown) > 1 or len(shown[0].levels) > 1):
            whole = [curve.for_pixels(plane) for curve, plane in zip(each(shown, 3), data, strict=True)]
            return NoiseModel(tuple(whole), confidence=confidence)
    curves = [fit(one.levels, one.contrast, DEMANDS[caution], one.dark) for one in channels]
    if shown is None and sum(curve is not None for curve in curves) > len(curves) / 2:
        whole = [
            curve.for_pixels(plane) if curve is not None else Curve((float(plane.mean()),), (one.white,))
            for curve, one, plane in zip(curves, channels, data, strict=True)
        ]
        return NoiseModel(tuple(whole), confidence=confidence)
    levels = [one.level(caution) for one in channels]
    shares = [
        one.share_of_possible(level, limits)
        for one, level, limits in zip(channels, levels, planes.limits.T, strict=True)
        if one.share < DEMANDS[caution].support
    ]
    if caution == "auto" and len(shares) == len(levels) and min(shares) > MOST_OF_POSSIBLE_TEXTURED:
        return NoiseModel.white(0.0, confidence, DRAWN)
    if len(data) == 3:
        return white_of_colours(data, levels, parts(), caution, DEMANDS[caution], confidence, doubt)
    if not doubt and confidence < 0.5:
        doubt = TEXTURED
    return NoiseModel.white(float(np.mean(np.sqrt(levels))), confidence, doubt)
