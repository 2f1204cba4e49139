"""Which noise is this? The estimate of `denoise` if no noise is given.

The two possible errors differ in cost: mistaking texture for noise loses up to 20 dB, leaving noise costs at
most 2 to 5 dB. So a model that removes more needs better evidence, and if the evidence is weak, the model
with the least regret is used:

| model | it claims | evidence it needs | fallback |
|---|---|---|---|
| none | nothing | too few blocks that are neither painted nor constant | |
| white | the lower envelope over space, frequency and direction | none: little can be lost | |
| line | photon noise, which rises with the brightness | classes that look like white noise | white |
| bent curve | any smooth dependence on the brightness | nearly all classes, or an obvious bend | white |
| Rician | magnitudes without signal | air of their distribution, nothing darker | the above |
| field | a strength that varies over the image | cells like noise, on a smooth surface | the above |
| correlated | power at low frequencies | odds that take the costs into account | white |

The numbers are in `DEMANDS`, a row for each `caution`, and in :mod:`vnlem.noise.odds`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.noise.advice import check_copies
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
from vnlem.noise.shape import Evidence
from vnlem.noise.squares import is_drawn
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
    "safe": Demands(
        0.8, 0.95, 0.95, weak=0.3, misfit=0.1, significance=10, weak_significance=20, weakest_bend=np.inf
    ),
    "auto": Demands(
        0.3, 0.6, 0.8, weak=0.22, misfit=0.12, significance=6, weak_significance=9, weakest_bend=0.06
    ),
    "strong": Demands(
        0.15, 0.3, 0.5, weak=0.08, misfit=0.3, significance=4, weak_significance=6, weakest_bend=0.03
    ),
}

# Log odds that correlated noise needs, by caution. They contain what a wrong choice costs.
LEAST_ODDS = {"safe": np.inf, "auto": 1.5, "strong": -1.5}

# The variance of white noise, as a share of the largest possible one. Noise of that strength covers texture,
# so that most classes look like noise; halftone, dithered and line drawings reach 0.07 to 0.9, with few such.
MOST_OF_POSSIBLE, LEAST_LIKE_NOISE = 0.05, 0.45
# The estimate contains some texture, whose loss costs more than the noise that is left. Noise without high
# frequencies is easier to separate, and differences of colours contain hardly any texture.
TAKEN, TAKEN_IF_SOFT, TAKEN_OF_COLOURS = 0.85, 1.0, (0.85, 1.2, 1.2)
SOFT_FLOOR = 0.05
CLOSER_LOOK = 1.3  # at correlation: power at middle frequencies over that at high ones
MOST_WORKERS = 4  # more would wait for Python's lock: the steps are short

# Messages for cases where two models are about equally likely: the one that removes less is used.
NOTHING = "nearly all areas that are not constant have structure, so noise cannot be distinguished from it"
DRAWING = "pixels around strokes are equal, as in a drawing without noise"
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
    if warns and model.sigma == 0:
        check_copies(planes)
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
    if kind == "auto" and caution != "strong" and all(map(is_drawn, data, *planes.limits)):
        return NoiseModel.white(0.0, confidence=0.5, doubt=DRAWING)
    channels = channels_of(planes, pool)
    if not channels:
        return NoiseModel.white(0.0, 0.5, NOTHING)
    if differences is not None and min(differences[0].noise.shape) >= SMALLEST_FOR_A_CURVE:
        channels = [one.or_less(own, pool) for one, own in zip(channels, differences, strict=True)]
    if kind == "auto" and in_place and smallest >= SMALLEST:
        height, width = data.shape[1:]
        blocks = [one.blocks for one in channels if one.blocks is not None]
        surface = find_field([Cells.of(one, (height, width)) for one in blocks])
        if surface is not None:
            return with_surface(surface, blocks, height, width)
    parts = cache(partial(parts_of_colours, planes, pool))  # takes long, and few images need it
    doubt = ""
    may_be = kind == "correlated" or _may_be_correlated(channels, parts if differences is None else None)
    found = correlated(planes, channels, pool) if may_be and smallest >= SMALLEST_IMAGE else None
    if found is not None:
        model, evidence = found
        odds = evidence.odds()
        if kind == "correlated" or odds > LEAST_ODDS[caution]:
            return model
        unsure = odds > LEAST_ODDS["strong"] or all(one.is_tilted for one in channels)
        doubt = UNLIKE_NOISE if unsure else ""
    return uncorrelated(planes, channels, size, caution, doubt, parts)


def channels_of(planes: Planes, pool: Pool) -> list[Seen]:
    """What each channel shows; one without visible noise follows the others. Empty if none shows noise."""
    seen = [Seen.of(plane, pool, limits=own) for plane, own in zip(planes.data, planes.limits.T, strict=True)]
    return [one or next(filter(None, seen)) for one in seen] if any(seen) else []


def _may_be_correlated(channels: list[Seen], parts: Callable[[], list[Seen | None]] | None) -> bool:
    """A first look: whether every class of brightness, or both colour differences, lack high frequencies."""
    if all(one.least_tilt > CLOSER_LOOK for one in channels):
        return True
    if parts is None or len(channels) != 3:
        return False
    return all(part is not None and part.tilt > CLOSER_LOOK for part in parts()[1:])


def correlated(planes: Planes, channels: list[Seen], pool: Pool) -> tuple[NoiseModel, Evidence] | None:
    """The model of noise that neighbouring pixels share, and the evidence; None if there is no noise."""
    data = planes.data
    curves = [fit_correlated(one.levels).for_pixels(plane) for one, plane in zip(channels, data, strict=True)]
    if any(not max(curve.variances) > 0 for curve in curves):
        return None
    stable = np.stack([curve.stabilise(plane) for curve, plane in zip(curves, data, strict=True)])
    found = estimate_power(to_components(stable), planes.unclipped(), pool)
    size = min(1.0, data[0].size / 128**2)
    confidence = float(np.clip(size * min(1.0, found.share / 0.2), 0.05, 1.0))
    model = _with_power(NoiseModel(tuple(curves), confidence=confidence), found.power)
    possible = min(
        one.share_of_possible(model.variance(one.levels.brightness, number), limits)
        for number, (one, limits) in enumerate(zip(channels, planes.limits.T, strict=True))
    )
    evidence = Evidence.of(found, data, stable, channels, possible)
    power = found.power
    if evidence.is_smoothed and power[0].mean() > power[1:].mean():
        # What the brightness has beyond the colours is texture.
        power = np.broadcast_to(power[1:].mean(axis=0), power.shape)
    if evidence.is_smoothed or (len(data) != 3 and evidence.floor > SOFT_FLOOR):
        return _with_power(model, TAKEN * power), evidence
    taken = np.array(TAKEN_OF_COLOURS if len(data) == 3 else (TAKEN_IF_SOFT,))
    return _with_power(model, taken[:, None, None] * power), evidence


def _with_power(model: NoiseModel, power: Float) -> NoiseModel:
    """The model with this power (C, SIDE, SIDE) of its components."""
    strengths = tuple(map(float, power.mean(axis=(1, 2))))
    return replace(model, spectra=tuple(map(Spectrum.of, power)), strengths=strengths)


def uncorrelated(
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
    varies = shown is not None and (len(shown) > 1 or len(shown[0].levels) > 1)
    curves = [fit(one.levels, one.contrast, DEMANDS[caution], one.dark) for one in channels]
    # A channel's own curve is more exact: classes of mean brightness mix pixels of different colours.
    if shown is not None and varies and None in curves:
        whole = [curve.for_pixels(plane) for curve, plane in zip(each(shown, 3), data, strict=True)]
        return NoiseModel(tuple(whole), confidence=confidence)
    if (shown is None or varies) and sum(curve is not None for curve in curves) > len(curves) / 2:
        whole = [
            curve.for_pixels(plane) if curve is not None else Curve((float(plane.mean()),), (one.white,))
            for curve, one, plane in zip(curves, channels, data, strict=True)
        ]
        return NoiseModel(tuple(whole), confidence=confidence)
    levels = [one.level(caution) for one in channels]
    shares = [
        one.share_of_possible(level, limits)
        for one, level, limits in zip(channels, levels, planes.limits.T, strict=True)
        if one.share < LEAST_LIKE_NOISE
    ]
    if caution == "auto" and len(shares) == len(levels) and min(shares) > MOST_OF_POSSIBLE:
        return NoiseModel.white(0.0, confidence, DRAWN)
    if len(data) == 3:
        return white_of_colours(data, levels, parts(), caution, DEMANDS[caution], confidence, doubt)
    if not doubt and confidence < 0.5:
        doubt = TEXTURED
    return NoiseModel.white(float(np.mean(np.sqrt(levels))), confidence, doubt)
