"""Which noise is this? The estimate that `denoise` makes where the user says nothing."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.noise import blocks as block
from vnlem.noise.classes import PLAINLY_WHITE, Classes, measure
from vnlem.noise.correlated import (
    SIDE,
    SMALLEST_IMAGE,
    PowerEstimate,
    Spectrum,
    estimate_power,
    mid_over_high,
)
from vnlem.noise.curve import Curve
from vnlem.noise.fit import LEAST_RATIO, fit, gain_of_planes, given_model
from vnlem.noise.model import NoiseModel, to_components
from vnlem.noise.white import estimate_sigma_of_planes
from vnlem.pipeline import checks
from vnlem.pipeline.image import Planes, to_planes
from vnlem.pipeline.sigma import check_sigma
from vnlem.pipeline.warn import warn
from vnlem.pipeline.workers import Pool, check_workers

Float = NDArray[np.float64]

KINDS = ("auto", "gaussian", "poisson-gaussian", "correlated")
SMALLEST_FOR_A_CURVE = 32
MOST_CLIPPED = 0.95  # of the pixels at the limits: more hide the noise
# Noise counts as correlated when its middle frequencies are so much stronger than its high ones. Texture
# hardly gets there: flat blocks have little of it, and that at low frequencies.
CORRELATED = 2.0
# Correlated noise is told from texture by its evenness, so a line through it may vary by less than one
# through noise that may be texture.
LEAST_RATIO_CORRELATED = 1.4
# Of the contrast: with less noise than this at high frequencies what lies at the middle ones is a smooth
# image, and to call it noise would take it away.
LEAST_CORRELATED = 0.01
# The energies of flat blocks scatter about as those of noise do, by a factor of no more than this; texture
# scatters more. What claims more of the image to be noise must look more like it: the limit falls by so much
# times the share of the contrast that would be noise.
MOST_UNEVEN, UNEVEN_BY_SHARE, LARGE_SHARE = 1.75, 1.5, 0.2
LEAST_FLAT = 0.09  # of the blocks must look like noise and nothing else
# What is said where two models are about as likely: the one that removes less is taken.
TEXTURED = "hardly an area is flat: more may be noise, and the safer level is taken"
SHARED = "more may be noise that the colours share, or texture; the safer of both, texture, is taken"
UNLIKE_NOISE = "more may be correlated noise or texture, and the safer of both, texture, is taken"
# Coefficients of correlated noise are not quite independent, so the blocks that were chosen have a little
# less of it than the others; and too little is worse than too much.
CHOSEN_LOW = 1.2
# Of a photograph the brightness has texture everywhere, which counts as noise and more than outweighs this.
CHOSEN_LOW_IN_COLOUR = np.array([0.85, 1.2, 1.2])
# Components count as equally noisy when their variances differ by less.
SAME_STRENGTH = 1.5
WHITE = 1.25  # middle frequencies of white noise are no stronger than this beside its high ones
MOST_WORKERS = 4  # more would wait for Python's lock: the steps are short
MANY_FLAT = 0.3  # of the blocks: the noise of the brightness itself is plain to see


def estimate_noise(
    image: ArrayLike, channel_axis: int | None = None, *, kind: str = "auto", workers: int | None = None
) -> NoiseModel:
    """What noise an image has: how strong at each brightness, and whether neighbouring pixels share it.

    Parameters
    ----------
    image : array_like
        A grey image, a signal (one dimension), or a colour image with `channel_axis`.
    channel_axis : int, optional
        The axis of the channels.
    kind : {"auto", "gaussian", "poisson-gaussian", "correlated"}
        What to look for. "gaussian": white noise of one level. "poisson-gaussian": photon and read noise.
        "correlated": any dependence on the brightness, and correlation, whether it is plain or not. "auto":
        the simplest of these that the image does not contradict.
    workers : int, optional
        Number of threads, at most four of them; they do not change the result.

    Returns
    -------
    NoiseModel
        Its `describe()` says in words what was found, `confidence` how sure that is. It can be saved and
        given to :func:`vnlem.denoise` for every image of the same detector and settings.

    Notes
    -----
    Blocks of 8x8 pixels are sorted by brightness; the flat ones of each class give its variance, and the
    simplest curve that explains the classes is taken: one level, a line (photon noise), a bent curve. The
    image is stabilised with it, and the flat blocks of 16x16 pixels give the power of the noise at every
    frequency. Flat blocks are chosen by other coefficients than those that are read, so the choice
    has no bias. Clipped, saturated and painted areas are left out.

    Where noise and texture are about as likely, the model that removes less is taken, and `doubt` says so.
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
    planes = to_planes(image, channel_axis, signals=True)
    return estimate_of_planes(planes, kind, workers)


def estimate_of_planes(planes: Planes, kind: str = "auto", workers: int | None = None) -> NoiseModel:
    """:func:`estimate_noise` of an image that is laid out as planes."""
    data = planes.data
    if float(np.ptp(data)) == 0:
        return NoiseModel.white(0.0, confidence=min(1.0, min(data.shape[1:]) / 64))
    unclipped = _unclipped(data)
    with _pool(workers) as pool:
        model = _estimate(data, unclipped, kind, pool)
    share = 1.0 - np.count_nonzero(unclipped) / unclipped.size
    if share > MOST_CLIPPED and data[0].size >= SMALLEST_FOR_A_CURVE**2 and model.sigma > 0:
        warn(
            f"{100 * share:.0f} % of the pixels lie at the image's smallest or largest value: the noise can "
            "hardly be seen; give sigma or a noise model"
        )
    return model


def _pool(workers: int | None) -> Pool:
    return Pool(min(check_workers(workers), MOST_WORKERS))


def _estimate(data: Float, unclipped: NDArray[np.bool_], kind: str, pool: Pool) -> NoiseModel:
    smallest = min(data.shape[1:])
    white = cache(partial(estimate_sigma_of_planes, data, pool))
    if kind == "poisson-gaussian":
        camera = gain_of_planes(data, pool)
        return NoiseModel((Curve.of_camera(camera),), confidence=_confidence(data, 1.0))
    if kind == "gaussian" or smallest < SMALLEST_FOR_A_CURVE:
        return NoiseModel.white(white(), confidence=min(1.0, smallest / 64))
    classes = [measure(plane, pool=pool) for plane in data]
    curves = _curves(data, classes)
    if any(max(curve.variances) <= 1e-26 * float(np.abs(data).max()) ** 2 for curve in curves):
        return NoiseModel.white(white(), confidence=0.5)
    if smallest < SMALLEST_IMAGE:
        return _simplest(curves, 0.4, white)
    stable = _stable(data, curves)
    found = estimate_power(to_components(stable), unclipped, pool)
    confidence = _confidence(data, found.share)
    if kind == "auto" and len(data) == 3 and not _same_in_all_colours(found):
        sigma = _sigma_of_colours(data, found, pool)
        if sigma is not None:
            return NoiseModel.white(sigma, confidence, SHARED)
    # Correlated noise is so at every brightness. Where a twentieth of the classes has no more energy at low
    # frequencies than white noise, all else is structure.
    looks_correlated = (
        float(np.median([mid_over_high(plane) for plane in found.power])) > CORRELATED
        and float(np.median([np.quantile(seen.tilt, 0.05) for seen in classes])) > PLAINLY_WHITE
        and white() > LEAST_CORRELATED * float(data.std())
    )
    if kind == "correlated" or (looks_correlated and _is_noise(found, stable)):
        lines = _curves(data, classes, LEAST_RATIO_CORRELATED)
        if lines != curves:
            curves = lines
            found = estimate_power(to_components(_stable(data, lines)), unclipped, pool)
        return _correlated(curves, found.power, confidence)
    if found.share < LEAST_FLAT and (looks_correlated or any(len(curve.levels) > 1 for curve in curves)):
        # Hardly a block is flat: all that was seen may be texture. The quietest blocks bound the noise.
        return NoiseModel.white(white(), confidence, TEXTURED)
    return _simplest(curves, confidence, white, found.power, UNLIKE_NOISE if looks_correlated else "")


def _curves(data: Float, classes: list[Classes], least_ratio: float = LEAST_RATIO) -> list[Curve]:
    return [fit(seen, least_ratio)[0].for_pixels(plane) for seen, plane in zip(classes, data, strict=True)]


def _stable(data: Float, curves: list[Curve]) -> Float:
    return np.stack([curve.stabilise(plane) for curve, plane in zip(curves, data, strict=True)])


def _correlated(curves: list[Curve], power: Float, confidence: float) -> NoiseModel:
    strengths = power.mean(axis=(1, 2)) * (CHOSEN_LOW if len(power) != 3 else CHOSEN_LOW_IN_COLOUR)
    spectra = tuple(map(Spectrum.of, power))
    return NoiseModel(tuple(curves), spectra, tuple(map(float, strengths)), confidence)


def find_noise(
    planes: Planes,
    sigma: Any,
    noise_model: Any,
    camera: dict[str, Any],
    *,
    plain: bool = False,
    workers: int | None = None,
) -> NoiseModel | None:
    """The model `denoise` is to use, from its arguments; None where sigma says it all, e.g. as a map.

    Parameters
    ----------
    planes : Planes
    sigma, noise_model
        As in :func:`vnlem.denoise`.
    camera : dict
        gain, offset and read_noise, None where not given.
    plain : bool
        Estimate white noise where nothing is said.
    workers : int, optional
        Number of threads, at most four of them.

    Examples
    --------
    >>> find_noise(to_planes(np.zeros((8, 8))), 3.0, "gaussian", {}).describe()
    'white noise, sigma 3'
    """
    some = [name for name, value in camera.items() if value is not None]
    if isinstance(noise_model, NoiseModel):
        if sigma is not None or some:
            extra = some[0] if some else "sigma"
            raise ValueError(f"a NoiseModel holds all there is to say of the noise; leave {extra} out")
        noise_model.check(planes)
        return noise_model
    if not isinstance(noise_model, str):
        raise TypeError(f"noise_model must be a name or a NoiseModel, got {noise_model!r}")
    checks.choice("noise_model", noise_model, KINDS)
    if some and noise_model not in ("auto", "poisson-gaussian"):
        raise ValueError(f"{some[0]} belongs to noise_model='poisson-gaussian'; pass that too")
    if sigma is not None:
        if noise_model in ("poisson-gaussian", "correlated") or some:
            raise ValueError(
                "sigma is for white noise, and this noise is not described by one number; leave sigma out, "
                f"got {checks.shown(sigma)}"
            )
        if np.ndim(sigma) > 0:
            return None
        level = check_sigma(sigma)
        if noise_model == "auto":
            _say_if_contradicted(planes, level, workers)
        return NoiseModel.white(level)
    if some:
        found = given_model(**camera)
        return NoiseModel.camera(found.gain, found.offset, found.read_noise)
    kind = "gaussian" if plain and noise_model == "auto" else noise_model
    return estimate_of_planes(planes, kind, workers)


def _say_if_contradicted(planes: Planes, sigma: float, workers: int | None) -> None:
    """One warning where the image plainly has other noise than was said.

    Structure raises the estimate, so a larger one counts only where most of the image is flat.
    """
    if min(planes.data.shape[1:]) < SMALLEST_IMAGE or sigma == 0:
        return
    with _pool(workers) as pool:
        if 0.5 <= estimate_sigma_of_planes(planes.data, pool) / sigma <= 2:
            return
        model = _estimate(planes.data, _unclipped(planes.data), "auto", pool)
    levels = np.concatenate([np.asarray(curve.levels) for curve in model.curves])
    deviations = np.sqrt(model.variance(levels))
    too_small = deviations.min() > 2 * sigma and model.confidence >= 0.5
    too_large = 0 < deviations.max() < sigma / 2
    if too_small or too_large:
        warn(
            f"sigma {sigma:g} was given, but the image seems to have {model.describe()}; "
            "check the units of sigma, or leave it out"
        )


def _simplest(
    curves: list[Curve],
    confidence: float,
    white: Callable[[], float],
    power: Float | None = None,
    doubt: str = "",
) -> NoiseModel:
    """White noise of one level where nothing speaks against it; else the curves, and unlike components.

    white: the level that the quietest blocks show.
    """
    strengths: tuple[float, ...] = (1.0,)
    if power is not None and len(power) == 3:
        # At high frequencies, where the components hold the least of the image.
        high = power[:, block.frequency(power.shape[1]) >= 0.5].mean(axis=1)
        if high.max() > SAME_STRENGTH * high.min():
            strengths = tuple(map(float, high))
    if all(len(curve.levels) == 1 for curve in curves):
        levels = np.sqrt([curve.variances[0] for curve in curves])
        # Blocks without structure may still have the grain of a film.
        sigma = min(white(), float(np.mean(levels)))
        if len(strengths) == 1 and levels.max() < SAME_STRENGTH**0.5 * levels.min():
            return NoiseModel.white(sigma, confidence, doubt)
    return NoiseModel(tuple(curves), strengths=strengths, confidence=confidence, doubt=doubt)


def _is_noise(found: PowerEstimate, stable: Float) -> bool:
    """Whether what was found in the flat blocks is noise rather than the texture of an image without any."""
    share = np.sqrt(found.power.mean()) / max(float(stable.std(axis=(1, 2)).mean()), 1e-300)
    limit = MOST_UNEVEN - UNEVEN_BY_SHARE * min(share, LARGE_SHARE)
    return found.share >= LEAST_FLAT and found.unevenness < limit


def _same_in_all_colours(found: PowerEstimate) -> bool:
    """Whether the brightness has the noise of the colours, or noise of its own that is no texture."""
    high = found.power[:, block.frequency(SIDE) >= 0.5].mean(axis=1)
    alike = bool(high[0] < SAME_STRENGTH * high[1:].mean())
    plain = mid_over_high(found.power[0]) < WHITE and found.unevenness < WHITE and found.share >= MANY_FLAT
    return (alike and mid_over_high(found.power[0]) < WHITE) or plain


def _sigma_of_colours(data: Float, found: PowerEstimate, pool: Pool) -> float | None:
    """Level of white noise that the differences of the colours show, which have little texture; else None."""
    if any(mid_over_high(plane) > WHITE for plane in found.power[1:]):
        return None
    parts = to_components(data)
    curves = [fit(measure(part, parts[0], pool))[0] for part in parts[1:]]
    levels = [curve.variances[0] for curve in curves]
    if any(len(curve.levels) > 1 for curve in curves) or max(levels) > SAME_STRENGTH * min(levels):
        return None
    return float(np.sqrt(np.mean(levels)))


def _unclipped(data: Float) -> NDArray[np.bool_]:
    """Pixels away from the limits of every channel, (H, W)."""
    low, high = data.min(axis=(1, 2), keepdims=True), data.max(axis=(1, 2), keepdims=True)
    return np.asarray(((data > low) & (data < high)).all(axis=0))


def _confidence(data: Float, share: float) -> float:
    """More with more pixels and with more flat blocks."""
    size = min(1.0, data.shape[1] * data.shape[2] / 128**2)
    return float(np.clip(size * min(1.0, share / 0.2), 0.05, 1.0))
