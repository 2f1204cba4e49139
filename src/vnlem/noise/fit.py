"""The simplest curve of the noise's variance against brightness that the levels of an image support.

Sensors follow few laws: one level; a line that rises with the brightness (photons and read noise); a smooth
bend (cameras with a tone curve). A brightness that shows only texture does not count: the curve is extended
from where noise was seen.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.noise.curve import LEAST_SHARE, Curve
from vnlem.noise.levels import SIDE, SMALLEST, USUAL_LEAK, Levels, by_brightness, cut
from vnlem.noise.median import median
from vnlem.noise.poisson_gaussian import GainModel, gain_of_line, with_read_noise
from vnlem.pipeline.image import to_planes
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

# Variances that differ by less than this factor over the brightness count as one level: stabilising would
# gain little, and texture can cause as much.
LEAST_RATIO, LEAST_WEAK_RATIO, LEAST_BENT_RATIO = 1.6, 2.2, 2.5
# Correlated noise is distinguished from texture by its shape, so its curve may vary less; line, bent curve.
LEAST_RATIO_CORRELATED = (1.4, 1.7)
# Colour differences contain little texture: their curve may vary less if it explains them this much better.
LEAST_RATIO_IN_COLOURS, LEAST_GAIN_IN_COLOURS = 1.6, 1.5
SAME_STRENGTH = 1.5  # variances that differ by less than this factor count as equal
# Obvious bends: least support and ratio of variances (from the darkest to the brightest, and of any two),
# largest misfit, the same relative to that of one level, and least ratio of middle to high frequencies.
# Photographs with white noise of sigma 2 to 20 stay outside.
OBVIOUS_SUPPORT, OBVIOUS_FALL, OBVIOUS_RATIO = 0.65, 2.0, 3.5
OBVIOUS_MISFIT, OBVIOUS_GAIN, OBVIOUS_TILT = 0.1, 0.35, 0.9
# A bent curve must explain the levels this much better than a line: at most half the misfit.
BEND_GAIN = 0.5
# A line that ends above this share of the range of brightness does not describe a camera.
LARGEST_OFFSET = 0.05
TEXTURE_ERROR = 1.0  # relative, of the variance of a class with texture
MOST_KNOTS = 8
FEWEST_CLASSES = 4  # for a curve
SAME_LINE = 1e-14  # of the variance: less than this is rounding, which never ends
SAME_BRIGHTNESS = 4.0  # standard errors of a block's mean
# Largest mean relative difference of variances from a line that begins in the dark, and how much larger than
# that from one level it may be.
DARK_MISFIT, DARK_LOSS = 0.4, 0.1
# Levels of correlated noise count while they are not much more uneven than most: compression and demosaicking
# make noise itself uneven.
MOST_UNEVEN, UNEVEN_BESIDE, MOST_UNEVEN_BESIDE = 2.0, 1.6, 3.0


class Demands(NamedTuple):
    """What a curve must show before it is accepted."""

    support: float  # share of the classes of brightness that must look like noise
    weak_support: float  # the same if the noise is weak compared with the contrast
    bent_support: float  # the same for bent and falling curves, which follow whatever texture does
    weak: float  # noise below this share of the contrast is weak: there is little to gain and much to lose
    misfit: float  # mean relative difference of variances from the curve, if noise is weak
    significance: float  # of the slope of a line, in standard errors
    weak_significance: float  # the same if the noise is weak
    weakest_bend: float  # noise of at least this share of the contrast may follow an obvious bend


def fit(levels: Levels, contrast: float, demands: Demands, dark: float | None = None) -> Curve | None:
    """The curve that the levels support; None if they are one level, texture or both.

    levels: by brightness.
    contrast: standard deviation of the image.
    dark: a brightness that is known to have no noise.

    >>> x = np.linspace(10, 200, 24)
    >>> levels = Levels(x, 4 + 2 * x, 4 + 2 * x, np.ones(24), np.full(24, 0.05))
    >>> curve = fit(levels, 50.0, Demands(0.3, 0.6, 0.8, 0.1, 0.1, 6.0, 9.0, 0.06))
    >>> curve.variance([10.0, 200.0]).round(6).tolist()
    [24.0, 404.0]
    """
    like_noise = levels.like_noise()
    share = np.count_nonzero(like_noise) / like_noise.size
    seen = levels.some(like_noise)
    if seen.brightness.size < FEWEST_CLASSES or share < demands.support:
        return None
    # This is clearly noise, so slightly too much costs less than slightly too little.
    variance = seen.high
    doubt = _doubt(seen)
    pure = _from_dark(seen.brightness, variance, dark)
    if pure is not None:
        return pure
    strength = float(np.sqrt(np.mean(variance))) / max(contrast, 1e-300)
    weak = strength < demands.weak
    may_bend = bool(share >= demands.bent_support) and not weak
    darkest = float(levels.brightness[0])
    curve, ratio = _through(seen.brightness, variance, doubt, darkest, may_bend)
    if curve.gain is None:
        found = may_bend and ratio >= LEAST_BENT_RATIO
    else:
        significance = _significance(seen.brightness, variance, doubt, curve)
        found = ratio >= LEAST_RATIO and significance >= demands.significance
        if found and weak:
            found = bool(
                share >= demands.weak_support
                and significance >= demands.weak_significance
                and ratio >= LEAST_WEAK_RATIO
                # Texture adds to photon noise at middle frequencies; scanned grain may have less there.
                and median(seen.middle / seen.high) >= 1.0
                and _misfit(variance, curve.variance(seen.brightness)) <= demands.misfit
            )
    if found:
        return curve
    if share < OBVIOUS_SUPPORT or strength < demands.weakest_bend:
        return None
    return _obvious_bend(seen, doubt, darkest)


def _obvious_bend(seen: Levels, doubt: Float, darkest: float) -> Curve | None:
    """The curve of a camera with a tone curve, whose noise is weaker where it is bright; None if in doubt."""
    curve, ratio = _through(seen.brightness, seen.high, doubt, darkest)
    falls = OBVIOUS_FALL * curve.variances[-1] <= curve.variances[0]
    misfit = _misfit(seen.high, curve.variance(seen.brightness))
    of_one_level = _misfit(seen.high, np.full_like(seen.high, median(seen.high)))
    different = _merged(seen.brightness, seen.high)[0]
    obvious = (
        curve.gain is None
        and different.size >= 2 * FEWEST_CLASSES
        and falls
        and ratio >= OBVIOUS_RATIO
        and misfit <= min(OBVIOUS_MISFIT, OBVIOUS_GAIN * of_one_level)
        and median(seen.middle / seen.high) >= OBVIOUS_TILT
    )
    return curve if obvious else None


def _from_darkest(x: Float, y: Float) -> Curve | None:
    """The rising line from the darkest classes on; None if it explains too little."""
    few = max(1, x.size // 8)
    dark, level = float(x[:few].mean()), float(y[:few].mean())
    slope = median((y[few:] - level) / (x[few:] - dark))
    if not (slope > 0 and level > 0):
        return None
    line = Curve((dark, float(x[-1])), (level, level + slope * (float(x[-1]) - dark)))
    return line if _misfit(y, line.variance(x)) < DARK_MISFIT else None


def _doubt(levels: Levels) -> Float:
    """Relative error of variances: chance, and half of the possible leak of texture."""
    leaked = (levels.high - levels.least()) / np.maximum(levels.high, 1e-300)
    return np.asarray(np.hypot(levels.error, leaked / 2))


def _from_dark(x: Float, y: Float, dark: float | None) -> Curve | None:
    """The line of pure counts, which begins where there is no noise; None if it explains too little."""
    if dark is None or not (x > dark).any():
        return None
    counted = x > dark
    ratios, level = y[counted] / (x[counted] - dark), y[counted]
    gain = median(ratios)
    misfit = [_misfit(values, np.full(values.size, median(values))) for values in (ratios, level)]
    # One level explains a dark border around noise of one level.
    if not gain > 0 or misfit[0] > min(DARK_MISFIT, misfit[1] + DARK_LOSS):
        return None
    return Curve.of_camera(GainModel(gain, dark, 0.0))


def fit_correlated(levels: Levels) -> Curve:
    """The simplest curve through the levels of correlated noise."""
    usual = UNEVEN_BESIDE * float(np.quantile(levels.unevenness, 0.2))
    even = levels.unevenness <= np.clip(usual, MOST_UNEVEN, MOST_UNEVEN_BESIDE)
    seen = levels.some(even) if np.count_nonzero(even) >= max(FEWEST_CLASSES, even.size // 4) else levels
    x, y = seen.brightness, seen.high
    if x.size >= FEWEST_CLASSES:
        curve, ratio = _through(x, y, seen.error, float(levels.brightness[0]))
        if ratio >= LEAST_RATIO_CORRELATED[len(curve.levels) > 2]:
            return curve
    return Curve((float(x.mean()),), (float(np.average(y, weights=1 / (y + median(y) + 1e-300))),))


def fit_in_colours(
    brightness: Levels, differences: Sequence[Levels], channels: Sequence[Levels], support: float
) -> tuple[Curve, ...] | None:
    """The curve of three channels, or one for each, as their differences show it; None if they do not.

    brightness, differences: of the components of the channels, all by brightness.
    support: share of the classes that must look like noise.

    >>> x = np.linspace(10, 200, 24)
    >>> levels = Levels(x, 250 - x, 250 - x, np.ones(24), np.full(24, 0.05))
    >>> (curve,) = fit_in_colours(levels, [levels, levels], [levels] * 3, 0.8)
    >>> curve.variance([50.0, 150.0]).round(-1).tolist()
    [200.0, 100.0]
    """
    like_noise = [levels.like_noise() for levels in differences]
    if min(float(np.mean(chosen)) for chosen in like_noise) < support:
        return None
    seen = [levels.some(chosen) for levels, chosen in zip(differences, like_noise, strict=True)]
    # Noise of unequal channels differs between the differences, but the mean is that of the channels.
    own = np.array([median(levels.high) for levels in seen])
    x = np.concatenate([levels.brightness for levels in seen])
    y = np.concatenate([levels.high * own.mean() / level for levels, level in zip(seen, own, strict=True)])
    doubt = np.concatenate([_doubt(levels) for levels in seen])
    order = np.argsort(x, kind="stable")
    x, y, doubt = x[order], y[order], doubt[order]
    curve, ratio = _through(x, y, doubt, float(x[0]))
    flat = Curve((float(x.mean()),), (float(own.mean()),))
    gain = _misfit(y, flat.variance(x)) / max(_misfit(y, curve.variance(x)), 1e-300)
    if ratio < LEAST_RATIO_IN_COLOURS or gain < LEAST_GAIN_IN_COLOURS:
        curve = flat
    # The brightness has the same noise and texture, unless a camera smoothed it.
    if _relative(brightness, curve) * SAME_STRENGTH < 1:
        return None
    relative = np.array([_relative(levels, curve) for levels in channels])
    relative /= relative.mean()
    expected = np.array(((relative[0] + relative[2]) / 2, (relative @ (1, 4, 1)) / 6))
    if relative.max() < SAME_STRENGTH * relative.min():
        return (curve,)
    if abs(np.log(expected[0] / expected[1] * own[1] / own[0])) > np.log(SAME_STRENGTH):
        return None
    return tuple(curve.scaled(float(share)) for share in relative)


def _relative(levels: Levels, curve: Curve) -> float:
    """Usual variance relative to a curve, where the levels look like noise; else their lower quartile."""
    variance, like_noise = curve.variance(levels.brightness), levels.like_noise()
    if np.count_nonzero(like_noise) >= FEWEST_CLASSES:
        return median(levels.high[like_noise] / variance[like_noise])
    return float(np.quantile(levels.least(USUAL_LEAK) / variance, 0.25))


def _through(x: Float, y: Float, error: Float, darkest: float, may_bend: bool = True) -> tuple[Curve, float]:
    """A line or a bent curve, and its largest over its least value between the first and the last x."""
    line = fit_line(x, y, error)
    if len(line.levels) == 1:
        return line, 1.0
    if _ends_within(line, darkest, float(x[-1])):
        # There is noise in the dark. The line begins there, and edges made some classes look noisier.
        line = _from_darkest(x, y) or line
    bent = _fit_bent(x, y)
    at, seen = _merged(x, y)
    misfit = [median(np.abs(np.log(np.maximum(seen, 1e-300) / c.variance(at)))) for c in (line, bent)]
    falls = line.variances[1] < line.variances[0] or _ends_within(line, darkest, float(x[-1]))
    bends = misfit[1] < BEND_GAIN * misfit[0] and misfit[0] > (0.1 if may_bend else DARK_MISFIT)
    curve = bent if falls or bends else line
    values = curve.variance(np.linspace(x[0], x[-1], 50))
    return curve, float(values.max() / max(float(values.min()), 1e-300))


def _merged(x: Float, y: Float) -> tuple[Float, Float]:
    """Classes that differ by no more than the noise of a block's mean are one brightness: a background."""
    starts = [0]
    for number in range(1, x.size):
        first = starts[-1]
        if x[number] - x[first] > SAME_BRIGHTNESS * np.sqrt(max(float(y[first]), 0.0)) / SIDE:
            starts.append(number)
    counts = np.diff([*starts, x.size])
    return np.add.reduceat(x, starts) / counts, np.add.reduceat(y, starts) / counts


def _significance(x: Float, y: Float, error: Float, line: Curve) -> float:
    """Slope of a line over its standard error."""
    fitted = np.maximum(line.variance(x), 1e-300)
    weights = 1 / (np.maximum(error, 0.02) * fitted) ** 2
    about = x - float(weights @ x) / float(weights.sum())
    spread = float(weights @ about**2)
    slope = float(weights @ (about * y)) / spread if spread > 0 else 0.0
    return slope * float(np.sqrt(spread))


def _line(x: Float, y: Float, weights: Float) -> tuple[float, float]:
    """Slope and value at zero of the line with the least weighted squares."""
    weights = weights / weights.sum()
    x_mean, y_mean = float(weights @ x), float(weights @ y)
    about = weights * (x - x_mean)
    spread = float(about @ (x - x_mean))
    slope = float(about @ (y - y_mean)) / spread if spread > 0 else 0.0
    return slope, y_mean - slope * x_mean


def _misfit(found: Float, fitted: Float) -> float:
    """Mean relative difference of variances."""
    return float(np.mean(np.abs(np.log(np.maximum(found, 1e-300) / np.maximum(fitted, 1e-300)))))


def _ends_within(line: Curve, darkest: float, brightest: float) -> bool:
    """Whether a rising line would mean no noise at a brightness of the image."""
    camera = line.gain
    return camera is not None and camera.offset - darkest > LARGEST_OFFSET * (brightest - darkest)


def fit_line(x: Float, y: Float, error: Float) -> Curve:
    """A robust line through variances y at brightness x: relative residuals, weights 1 / |residual|.

    Texture raises the variance of a class and nothing lowers it, so residuals above the line count half.
    """
    floor = LEAST_SHARE * float(y.max()) + 1e-140
    centre, spread = float(x.mean()), max(float(np.ptp(x)), 1e-300)
    u = (x - centre) / spread
    scale = np.maximum(y, floor)
    weights = np.ones_like(x)
    middle = median(y)
    slope, level = 0.0, middle
    for _ in range(50):
        before = slope, level
        slope, level = _line(u, y, weights / scale**2)
        if abs(slope - before[0]) + abs(level - before[1]) <= SAME_LINE * middle:
            break
        fitted = slope * u + level
        scale = np.maximum(fitted, 0.05 * middle + 1e-140)
        residual = (y - fitted) / scale
        weights = np.where(residual > 0, 0.5, 1.0) / np.maximum(np.abs(residual), error)
    ends = (float(x[0]), float(x[-1]))
    values = [max(slope * (end - centre) / spread + level, floor) for end in ends]
    if ends[0] == ends[1]:
        return Curve(ends[:1], (values[0],))
    return Curve(ends, (values[0], values[1]))


def _fit_bent(x: Float, y: Float) -> Curve:
    """A piecewise linear curve through medians of neighbouring classes."""
    # The ends are separate knots: often the curve is steep there, and classes lie far apart.
    inner = np.arange(1, x.size - 1)
    parts = [np.array([0]), *np.array_split(inner, min(MOST_KNOTS - 2, max(1, inner.size // 3)))]
    parts.append(np.array([x.size - 1]))
    levels = np.array([x[part].mean() for part in parts])
    values = np.array([median(y[part]) for part in parts])
    keep = np.concatenate([[True], np.diff(levels) > 1e-9 * np.ptp(x)])
    values = np.maximum(values, LEAST_SHARE * values.max() + 1e-300)
    return Curve(tuple(map(float, levels[keep])), tuple(map(float, values[keep])))


def estimate_gain(image: ArrayLike, channel_axis: int | None = None) -> GainModel:
    """Gain, offset and read noise from one image, for pixels that follow the model of this module.

    Parameters
    ----------
    image : array_like
        A grey image, or a colour image with `channel_axis`, whose channels share one model.
    channel_axis : int, optional
        The axis of the channels.

    Returns
    -------
    GainModel
        One image shows only how the variance grows with the mean, a line: its slope is the gain; its value at
        zero is read_noise^2 - gain * offset. One of the two is set to zero, unless there are pixels below
        such an offset: then the offset is the darkest brightness. Denoising needs only the line.

    Notes
    -----
    Blocks of 8x8 pixels are sorted into classes of equal brightness. The flattest blocks of each class give
    its variance at high frequencies, minus the leak of texture into them. A line through the classes is
    fitted by iteratively reweighted least squares.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> photons = np.repeat(np.linspace(5, 100, 256)[None], 256, axis=0)
    >>> model = estimate_gain(2.0 * rng.poisson(photons) + rng.normal(0, 4.0, photons.shape))
    >>> bool(abs(model.gain - 2.0) < 0.2)
    True
    """
    model = gain_of_planes(to_planes(image, channel_axis).data)
    if model is None:
        raise ValueError("the image has no noise from which a gain could be estimated; pass gain= or sigma=")
    return model


def gain_of_planes(planes: Float, pool: Pool | None = None) -> GainModel | None:
    """:func:`estimate_gain` of planes (C, H, W); None if no noise is visible.

    pool: the threads to use, which do not change the result.
    """
    if min(planes.shape[1:]) < SMALLEST:
        raise ValueError(
            f"the image ({planes.shape[1]}x{planes.shape[2]}) is too small to estimate a gain; "
            f"pass gain=, or an image of at least {SMALLEST}x{SMALLEST}"
        )
    blocks = cut(planes.reshape(-1, planes.shape[2]), pool=pool)
    if blocks is None:
        return None
    levels = by_brightness(blocks)
    like_noise = levels.like_noise()
    # Classes with texture count if no other class has their brightness.
    variance = np.where(like_noise, levels.high, levels.least(USUAL_LEAK))
    pure = _from_dark(levels.brightness, variance, blocks.dark)
    if pure is not None:
        return pure.camera
    line = fit_line(levels.brightness, variance, np.where(like_noise, levels.error, TEXTURE_ERROR))
    (dark, *rest), (first, *others) = line.levels, line.variances
    bright, last = (rest[0], others[0]) if rest else (dark, first)
    # A line that does not rise is white noise: the smallest gain that arithmetic distinguishes from 0.
    least = 1e-6 * max(first, last, 1e-300) / max(abs(dark), abs(bright), 1e-300)
    slope = (last - first) / (bright - dark) if bright > dark else 0.0
    if slope <= least:
        return gain_of_line(least, max((first + last) / 2 - least * dark, 0.0), min(dark, 0.0))
    return with_read_noise(gain_of_line(slope, first - slope * dark, dark), dark, planes)
