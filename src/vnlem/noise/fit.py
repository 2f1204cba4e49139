"""The simplest curve of the noise's variance against brightness that explains the classes of an image."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.noise.classes import BLOCK_SIDE, MOST_TILTED, Classes, measure
from vnlem.noise.curve import LEAST_SHARE, Curve
from vnlem.noise.poisson_gaussian import GainModel, check_model, gain_of_line, with_read_noise
from vnlem.pipeline.image import to_planes
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

# Variances between the 5 % darkest and the 5 % brightest blocks that differ by less are taken for one: to
# stabilise would gain little, and texture can feign as much.
LEAST_RATIO = 1.6
LEAST_BENT_RATIO = 1.7  # the same for bent curves, which follow whatever texture does
# The same where the variances differ by no more than the square of a small share of the contrast: so do the
# grain of a film and fine texture.
GRAIN_RATIO, GRAIN = 2.2, 0.15
# Of the energy that texture has at low frequencies no more than this share is found at high ones; and white
# noise with texture has to explain the classes about as well as a line does. A bent curve follows whatever
# there is, so it is beaten more easily.
MOST_LEAKING, TEXTURE_MISFIT, BENT_MISFIT = 0.35, 1.25, 2.0
# A line that would end above so much of the range of the brightness describes no camera.
LARGEST_OFFSET = 0.05
# A bent curve has to explain the classes so much better than a line: half the squared error, at least.
BEND_GAIN = 0.5
MOST_KNOTS = 8
LEAST_EVEN = 0.25  # of the classes: with fewer the image shows no more than one level


def fit(classes: Classes, least_ratio: float = LEAST_RATIO) -> tuple[Curve, float]:
    """The simplest curve that explains the classes, and how much it varies: its largest over least value.

    A line that varies by less than `least_ratio` is taken for one level.

    Examples
    --------
    >>> x = np.linspace(10, 200, 24)
    >>> curve, ratio = fit(Classes(x, 4 + 2 * x, np.full(24, 0.03), np.ones(24), np.ones(24)))
    >>> len(curve.levels), round(ratio, 1)
    (2, 16.8)
    """
    even = classes.even()
    darkest = float(classes.brightness[0])
    if np.count_nonzero(even) < max(4, LEAST_EVEN * even.size) <= even.size:
        # Texture at every brightness: the quietest classes bound the noise, and nothing tells more.
        quiet = np.sort(classes.variance)[: max(1, even.size // 4)]
        return Curve((float(classes.brightness.mean()),), (float(quiet.mean()),)), 1.0
    classes = classes.some(even) if even.any() else classes
    x, y = classes.brightness, classes.variance
    level = float(np.median(y))
    if not level > 0 or x.size < 4 or np.ptp(x) <= 1e-9 * max(float(np.abs(x).max()), 1e-300):
        return Curve((float(np.mean(x)),), (max(level, 0.0),)), 1.0
    line = fit_line(classes)
    bent = _fit_bent(classes)
    span = np.linspace(x[0], x[-1], 50)
    misfit = [np.median(np.abs(np.log(np.maximum(y, 1e-300) / c.variance(x)))) for c in (line, bent)]
    falls = line.variances[1] < line.variances[0] or _ends_within(line, darkest, float(x[-1]))
    chosen = bent if falls or (misfit[1] < BEND_GAIN * misfit[0] and misfit[0] > 0.1) else line
    values = chosen.variance(span)
    ratio = float(values.max() / values.min())
    middle = float(np.mean(x))
    if ratio < (least_ratio if chosen is line else LEAST_BENT_RATIO):
        return Curve((middle,), (float(np.average(y, weights=1 / (y + level))),)), ratio
    allowed = (TEXTURE_MISFIT if chosen is line else BENT_MISFIT) * _misfit(y, chosen.variance(x))
    plain = _beside_texture(classes, allowed)
    if plain is not None:
        return Curve((middle,), (plain,)), ratio
    if (
        np.ptp(values) < (GRAIN * float(np.std(x))) ** 2
        and ratio < GRAIN_RATIO
        and least_ratio >= LEAST_RATIO
    ):
        quiet = np.sort(y)[: max(1, y.size // 4)]
        return Curve((middle,), (float(quiet.mean()),)), ratio
    return chosen, ratio


def _beside_texture(classes: Classes, most_misfit: float) -> float | None:
    """Variance of white noise where texture explains why some classes have more of it; else None.

    Texture has most of its energy at low frequencies, and the same share of that reaches the high ones.
    """
    least = float(np.quantile(classes.tilt, 0.1))
    if least > MOST_TILTED:
        return None
    y = classes.variance
    texture = np.maximum(classes.tilt - least, 0.0) * y
    weights = np.ones_like(y)
    share, level = 0.0, 0.0
    for _ in range(50):
        relative = weights / y**2
        share, level = _line(texture, y, relative)
        if not 0 < share < MOST_LEAKING:
            share = min(max(share, 0.0), MOST_LEAKING)
            level = float(np.average(y - share * texture, weights=relative))
        weights = 1 / np.maximum(np.abs(y - level - share * texture) / y, classes.error)
    if not level > 0:
        return None
    # One class without texture that has more noise than the others is enough to say so.
    bounded = bool((y < LEAST_RATIO * (level + MOST_LEAKING * texture)).all())
    explained = _misfit(y, level + share * texture) < max(most_misfit, float(classes.error[0]))
    return level if bounded and explained else None


def _line(x: Float, y: Float, weights: Float) -> tuple[float, float]:
    """Slope and value at zero of the line with the least weighted squares."""
    weights = weights / weights.sum()
    x_mean, y_mean = float((weights * x).sum()), float((weights * y).sum())
    about = x - x_mean
    spread = float((weights * about**2).sum())
    slope = float((weights * about * (y - y_mean)).sum()) / spread if spread > 0 else 0.0
    return slope, y_mean - slope * x_mean


def _misfit(found: Float, fitted: Float) -> float:
    """Mean relative difference of variances; a few classes may be all that speaks against a fit."""
    return float(np.mean(np.abs(np.log(np.maximum(found, 1e-300) / fitted))))


def _ends_within(line: Curve, darkest: float, brightest: float) -> bool:
    """Whether a rising line says that there is no noise at a brightness the image has."""
    camera = line.gain
    return camera is not None and camera.offset - darkest > LARGEST_OFFSET * (brightest - darkest)


def fit_line(classes: Classes) -> Curve:
    """A robust line through the classes: relative residuals, weights 1 / |residual|.

    Texture raises the variance of a class and nothing lowers it, so residuals above the line count half.
    """
    x, y = classes.brightness, classes.variance
    floor = LEAST_SHARE * float(y.max()) + 1e-300
    centre, spread = float(x.mean()), max(float(np.ptp(x)), 1e-300)
    u = (x - centre) / spread
    scale = np.maximum(y, floor)
    weights = np.ones_like(x)
    slope, level = 0.0, float(np.median(y))
    for _ in range(50):
        slope, level = _line(u, y, weights / scale**2)
        fitted = slope * u + level
        scale = np.maximum(fitted, 0.05 * float(np.median(y)) + 1e-300)
        residual = (y - fitted) / scale
        weights = np.where(residual > 0, 0.5, 1.0) / np.maximum(np.abs(residual), classes.error)
    ends = (float(x[0]), float(x[-1]))
    values = [max(slope * (end - centre) / spread + level, floor) for end in ends]
    return Curve(ends, (values[0], values[1]))


def _fit_bent(classes: Classes) -> Curve:
    """A piecewise linear curve through medians of neighbouring classes."""
    x, y = classes.brightness, classes.variance
    # The ends are knots of their own: often the curve is steep there, and classes lie far apart.
    inner = np.arange(1, x.size - 1)
    parts = [np.array([0]), *np.array_split(inner, min(MOST_KNOTS - 2, max(1, inner.size // 3)))]
    parts.append(np.array([x.size - 1]))
    levels = np.array([x[part].mean() for part in parts])
    values = np.array([np.median(y[part]) for part in parts])
    keep = np.concatenate([[True], np.diff(levels) > 1e-9 * np.ptp(x)])
    values = np.maximum(values, LEAST_SHARE * values.max())
    return Curve(tuple(map(float, levels[keep])), tuple(map(float, values[keep])))


def estimate_gain(image: ArrayLike, channel_axis: int | None = None) -> GainModel:
    """Gain, offset and read noise from one image, for pixels that follow the model of this module.

    Parameters
    ----------
    image : array_like
        A grey image, or a colour image with `channel_axis`, whose channels are taken to share one model.
    channel_axis : int, optional
        The axis of the channels.

    Returns
    -------
    GainModel
        One image shows only how the variance grows with the mean, a line: its slope is the gain; its value
        at zero is read_noise^2 - gain * offset. One of the two is set to zero, unless there are pixels below
        such an offset: then it is the darkest brightness. Denoising needs the line alone.

    Notes
    -----
    Blocks of 8x8 pixels are sorted into classes of equal brightness. In each class the blocks with the least
    energy at low frequencies are taken to be flat, and the energy of their high frequencies is the variance
    of the class. A line through the classes is fitted by iteratively reweighted least squares.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> photons = np.repeat(np.linspace(5, 100, 256)[None], 256, axis=0)
    >>> model = estimate_gain(2.0 * rng.poisson(photons) + rng.normal(0, 4.0, photons.shape))
    >>> bool(abs(model.gain - 2.0) < 0.2)
    True
    """
    return gain_of_planes(to_planes(image, channel_axis).data)


def gain_of_planes(planes: Float, pool: Pool | None = None) -> GainModel:
    """:func:`estimate_gain` of planes (C, H, W); pool: the threads to use, which do not change the result."""
    if min(planes.shape[1:]) < 2 * BLOCK_SIDE:
        raise ValueError(
            f"the image ({planes.shape[1]}x{planes.shape[2]}) is too small to estimate a gain; "
            f"pass gain=, or an image of at least {2 * BLOCK_SIDE}x{2 * BLOCK_SIDE}"
        )
    line = fit_line(measure(planes.reshape(-1, planes.shape[2]), pool=pool))
    (dark, bright), (first, last) = line.levels, line.variances
    # A line that does not rise is white noise: the least gain that arithmetic can tell from none.
    least = 1e-6 * max(first, last, 1e-300) / max(abs(dark), abs(bright), 1e-300)
    slope = (last - first) / (bright - dark) if bright > dark else 0.0
    if slope <= least:
        return gain_of_line(least, max((first + last) / 2 - least * dark, 0.0), min(dark, 0.0))
    return with_read_noise(gain_of_line(slope, first - slope * dark, dark), dark, planes)


def given_model(gain: Any, offset: Any = None, read_noise: Any = None) -> GainModel:
    """The model from its given parameters; offset and read noise are 0 where they are None.

    Examples
    --------
    >>> given_model(2.0, read_noise=3.0)
    GainModel(gain=2.0, offset=0.0, read_noise=3.0)
    """
    if gain is None:
        raise ValueError(
            "offset and read_noise need gain too; pass gain=, or none of them to estimate all three"
        )
    return check_model(gain, 0.0 if offset is None else offset, 0.0 if read_noise is None else read_noise)
