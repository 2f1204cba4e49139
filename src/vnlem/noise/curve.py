"""Noise whose variance depends on the brightness: the curve, its estimate, and the transform that removes it.

A curve is piecewise linear in the brightness. One knot is white noise. Two knots are a line: photon and read
noise, for which the generalised Anscombe transform and its exact unbiased inverse are used. More knots serve
cameras that bend their values (sRGB), where the transform is the integral of 1 / standard deviation.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.noise import blocks as block
from vnlem.noise.poisson_gaussian import (
    GainModel,
    check_model,
    gain_of_line,
    stabilise,
    unstabilise,
    with_read_noise,
)

Float = NDArray[np.float64]

BLOCK_SIDE = 8
CLASSES = 24  # of equal numbers of blocks, by brightness
FLAT_SHARE = 0.15  # of the blocks of a class, by their energy at low frequencies
FEWEST_IN_CLASS = 48
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
# The energies of flat blocks scatter as a chi-squared variable does if they hold noise alone. Classes where
# they scatter this much more hold texture: their variance is no more than a bound.
MOST_UNEVEN = 2.0
# Compression and demosaicking make noise itself uneven: a class counts while it is not much worse than the
# even ones of its image, up to the second limit.
UNEVEN_BESIDE, MOST_UNEVEN_BESIDE = 1.6, 3.0
PLAINLY_EVEN = 1.4
MOST_TILTED = 1.5  # excess at low frequencies in classes of white noise
LEAST_PLAIN = 0.4  # of the classes must lie below it for the others to be left out
LEAST_EVEN = 0.25  # of the classes: with fewer the image shows no more than one level
LEAST_SHARE = 1e-3  # of the largest variance: the curve does not fall below


@dataclass(frozen=True)
class Curve:
    """Variance of the noise against brightness.

    Parameters
    ----------
    levels : tuple of float
        Brightness of the knots, rising.
    variances : tuple of float
        Variance there, positive. A line goes on beyond its two knots, where it stays positive; a bent curve
        keeps its last value.
    camera : GainModel, optional
        The camera whose line this is, where it is known.

    Examples
    --------
    >>> Curve((0.0, 100.0), (4.0, 204.0)).variance([0.0, 50.0, 200.0]).tolist()
    [4.0, 104.0, 404.0]
    """

    levels: tuple[float, ...]
    variances: tuple[float, ...]

    camera: GainModel | None = None

    @classmethod
    def of_camera(cls, model: GainModel) -> "Curve":
        """The line of a camera, from its offset to a thousand photons.

        Examples
        --------
        >>> Curve.of_camera(GainModel(2.0, 10.0, 3.0)).levels
        (10.0, 2010.0)
        """
        levels = (model.offset, model.offset + 1000 * model.gain)
        return cls(levels, (model.read_noise**2, model.read_noise**2 + 1000 * model.gain**2), model)

    @property
    def gain(self) -> GainModel | None:
        """The camera a rising line describes; None for white noise and for bent curves."""
        if self.camera is not None or len(self.levels) != 2:
            return self.camera
        (a, b), (u, v) = self.levels, self.variances
        slope = (v - u) / (b - a)
        return gain_of_line(slope, u - slope * a, a) if slope > 0 else None

    def variance(self, brightness: ArrayLike) -> Float:
        """Noise variance at a brightness."""
        x = np.asarray(brightness, np.float64)
        camera = self.gain
        if camera is not None:
            floor = LEAST_SHARE * max(self.variances)
            return np.maximum(np.asarray(camera.variance(x), np.float64), floor)
        return np.asarray(np.interp(x, self.levels, self.variances))

    def for_pixels(self, plane: Float) -> "Curve":
        """The curve with the camera that explains the pixels it was found in, also those below the offset."""
        camera = self.gain
        if camera is None:
            return self
        return Curve(self.levels, self.variances, with_read_noise(camera, self.levels[0], plane))

    def with_share(self, share: float) -> "Curve":
        """The curve of share * pixel + (1 - share) * its mean."""
        camera = self.camera
        if camera is not None:
            camera = GainModel(share**2 * camera.gain, camera.offset, share * camera.read_noise)
        return Curve(self.levels, tuple(share**2 * value for value in self.variances), camera)

    def stabilise(self, values: ArrayLike) -> Float:
        """Values whose noise has standard deviation one at every brightness.

        Examples
        --------
        >>> Curve((0.0,), (4.0,)).stabilise([0.0, 2.0]).tolist()
        [0.0, 1.0]
        """
        x = np.asarray(values, np.float64)
        if len(self.levels) == 1:
            return np.asarray(x / np.sqrt(self.variances[0]))
        camera = self.gain
        return stabilise(x, camera) if camera is not None else self._integral(x)

    def unstabilise(self, values: ArrayLike) -> Float:
        """Mean pixel values from means of stabilised values.

        Examples
        --------
        >>> bent = Curve((0.0, 50.0, 100.0), (4.0, 9.0, 4.0))
        >>> bent.unstabilise(bent.stabilise([20.0, 80.0])).round(1).tolist()
        [20.0, 80.0]
        """
        y = np.asarray(values, np.float64)
        if len(self.levels) == 1:
            return np.asarray(y * np.sqrt(self.variances[0]))
        camera = self.gain
        if camera is not None:
            return unstabilise(y, camera)
        levels = np.asarray(self.levels)
        reach = 10 * np.sqrt(max(self.variances))
        grid = np.concatenate(
            [[levels[0] - reach], np.linspace(levels[0], levels[-1], 2000), [levels[-1] + reach]]
        )
        # To second order the mean of t(x + noise) is t(x) + t''(x) variance(x) / 2. A knot's corner is no
        # part of the noise: the slope is taken over the width of the noise.
        width = np.sqrt(self.variance(grid))
        slope = (self.variance(grid + width) - self.variance(grid - width)) / (2 * width)
        means = np.maximum.accumulate(self._integral(grid) - slope / (4 * np.sqrt(self.variance(grid))))
        means += np.arange(means.size) * 1e-12 * max(float(np.ptp(means)), 1e-300)
        inside = np.interp(y, means, grid)
        below = grid[0] + (y - means[0]) * np.sqrt(self.variances[0])
        above = grid[-1] + (y - means[-1]) * np.sqrt(self.variances[-1])
        return np.asarray(np.where(y < means[0], below, np.where(y > means[-1], above, inside)))

    def _integral(self, x: Float) -> Float:
        """Integral of 1 / standard deviation from the first knot; straight beyond the knots."""
        levels, variances = np.asarray(self.levels), np.asarray(self.variances)
        deviations = np.sqrt(variances)
        # The integral of 1/sqrt(line) over a piece is twice its length over the sum of the deviations.
        pieces = 2 * np.diff(levels) / (deviations[1:] + deviations[:-1])
        starts = np.concatenate([[0.0], np.cumsum(pieces)])
        which = np.clip(np.searchsorted(levels, x, side="right") - 1, 0, len(levels) - 2)
        within = np.clip(x, levels[0], levels[-1])
        inside = starts[which] + 2 * (within - levels[which]) / (
            deviations[which] + np.sqrt(np.interp(within, levels, variances))
        )
        below = np.minimum(x - levels[0], 0.0) / deviations[0]
        above = np.maximum(x - levels[-1], 0.0) / deviations[-1]
        result: Float = inside + below + above
        return result


@dataclass(frozen=True)
class Classes:
    """What the blocks of one brightness say."""

    brightness: Float
    variance: Float
    error: Float  # standard error of the variance, relative
    unevenness: Float  # scatter of the blocks' energies over that of noise: about one
    tilt: Float  # energy at low frequencies over that at high ones: about one for white noise

    def even(self) -> NDArray[np.bool_]:
        """Classes whose blocks hold noise alone.

        Examples
        --------
        >>> unevenness = np.array([1.0, 1.1, 0.9, 5.0])
        >>> Classes(np.arange(4.0), np.ones(4), np.ones(4), unevenness, np.ones(4)).even()
        array([ True,  True,  True, False])
        """
        usual = UNEVEN_BESIDE * float(np.quantile(self.unevenness, 0.2))
        even = np.asarray(self.unevenness <= np.clip(usual, MOST_UNEVEN, MOST_UNEVEN_BESIDE))
        # Where white noise is plain to see, structure shows as an excess at low frequencies. Small objects
        # have it too; their noise is even, and nothing else shows the noise of bright pixels.
        plain = even & ((self.tilt <= MOST_TILTED) | (self.unevenness <= PLAINLY_EVEN))
        return plain if np.count_nonzero(plain) >= max(4, LEAST_PLAIN * self.tilt.size) else even

    def some(self, chosen: NDArray[Any]) -> "Classes":
        """Some of the classes."""
        return Classes(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def measure(plane: Float, brightness: Float | None = None) -> Classes:
    """Variance at high frequencies in the flat blocks of every class of brightness.

    Parameters
    ----------
    plane : ndarray
        (H, W)
    brightness : ndarray, optional
        (H, W), what the blocks are sorted by; the plane itself when None.

    Examples
    --------
    >>> noisy = np.random.default_rng(0).normal(100, 5, (128, 128))
    >>> bool(abs(measure(noisy).variance.mean() / 25 - 1) < 0.1)
    True
    """
    low, high = float(plane.min()), float(plane.max())
    found = block.cut(plane, BLOCK_SIDE, BLOCK_SIDE // 2)
    usable = block.usable(found, low, high, FEWEST_IN_CLASS)
    coefficients = block.cosine(found[usable])
    means = coefficients[:, 0, 0] / BLOCK_SIDE
    if brightness is not None:
        means = block.cut(brightness, BLOCK_SIDE, BLOCK_SIDE // 2)[usable].mean(axis=(1, 2))
    is_high = block.frequency(BLOCK_SIDE) >= 0.5
    is_low = ~is_high
    is_low[0, 0] = False
    texture = np.sum(coefficients[:, is_low] ** 2, axis=1)
    order = np.argsort(means, kind="stable")
    parts = np.array_split(order, max(1, min(CLASSES, means.size // FEWEST_IN_CLASS)))
    flats = []
    for part in parts:
        count = max(8, int(FLAT_SHARE * part.size))
        flats.append(part[np.argsort(texture[part], kind="stable")[:count]])
    energies = [coefficients[flat][:, is_high] ** 2 for flat in flats]
    # Half of each block is shared with its neighbours, in both directions.
    error = [np.sqrt(2.0 / (is_high.sum() * max(flat.size / 4, 1.0))) for flat in flats]
    return Classes(
        np.array([means[flat].mean() for flat in flats]),
        np.array([energy.mean() for energy in energies]),
        np.array(error),
        _unevenness(energies),
        np.array(
            [
                texture[flat].mean() / is_low.sum() / max(float(energy.mean()), 1e-300)
                for flat, energy in zip(flats, energies, strict=True)
            ]
        ),
    )


def _unevenness(energies: list[Float]) -> Float:
    """Scatter of the energy of the blocks of each class, over that of normal noise.

    Coefficients are weighed by their usual energy, so that correlated noise, which has little at the highest
    frequencies, scatters like white noise.
    """
    means = [energy.mean(axis=0) / max(float(energy.mean()), 1e-300) for energy in energies]
    usual = np.maximum(np.median(means, axis=0), 0.05)
    relative = [(energy / usual).mean(axis=1) for energy in energies]
    expected = np.sqrt(2.0 / usual.size)
    return np.array([np.std(r) / max(float(r.mean()), 1e-300) / expected for r in relative])


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
        root = np.sqrt(weights) / y
        design = np.stack([texture, np.ones_like(y)], axis=1) * root[:, None]
        share, level = (float(v) for v in np.linalg.lstsq(design, y * root, rcond=None)[0])
        if not 0 < share < MOST_LEAKING:
            share = min(max(share, 0.0), MOST_LEAKING)
            level = float(np.average(y - share * texture, weights=root**2))
        weights = 1 / np.maximum(np.abs(y - level - share * texture) / y, classes.error)
    if not level > 0:
        return None
    # One class without texture that has more noise than the others is enough to say so.
    bounded = bool((y < LEAST_RATIO * (level + MOST_LEAKING * texture)).all())
    explained = _misfit(y, level + share * texture) < max(most_misfit, float(classes.error[0]))
    return level if bounded and explained else None


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
        root = np.sqrt(weights) / scale
        design = np.stack([u, np.ones_like(u)], axis=1) * root[:, None]
        slope, level = (float(v) for v in np.linalg.lstsq(design, y * root, rcond=None)[0])
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


def check_curve(levels: Any, variances: Any, camera: Any = None) -> Curve:
    """A valid curve, or a clear error.

    Examples
    --------
    >>> check_curve([0], [4])
    Curve(levels=(0.0,), variances=(4.0,), camera=None)
    """
    x, y = np.atleast_1d(np.asarray(levels, np.float64)), np.atleast_1d(np.asarray(variances, np.float64))
    if x.ndim != 1 or x.shape != y.shape or not x.size:
        raise ValueError(f"a noise curve needs one variance per level, got {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("a noise curve must hold finite numbers; estimate the noise again")
    if (np.diff(x) <= 0).any():
        raise ValueError("the levels of a noise curve must rise; sort them and their variances")
    if (y < 0).any() or (y.size > 1 and y.max() == 0):
        raise ValueError(f"variances must be positive, got {y.min():g}; estimate the noise again")
    model = None if camera is None else check_model(**camera)
    return Curve(tuple(map(float, x)), tuple(map(float, y)), model)
