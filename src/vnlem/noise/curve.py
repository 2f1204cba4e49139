"""Noise whose variance depends on the brightness: the curve, and the transform that stabilises it.

A curve is piecewise linear in the brightness. One knot is white noise. Two knots are a line: photon and read
noise, for which the generalised Anscombe transform and its exact unbiased inverse are used. More knots serve
cameras that bend their values (sRGB), where the transform is the integral of 1 / standard deviation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.noise.poisson_gaussian import (
    GainModel,
    check_model,
    gain_of_line,
    stabilise,
    unstabilise,
    with_read_noise,
)
from vnlem.noise.rician import Rician, check_rician
from vnlem.noise.speckle import Speckle, check_speckle

Float = NDArray[np.float64]

LAWS: dict[str, Callable[..., Rician | Speckle]] = {"rician": check_rician, "speckle": check_speckle}
LEAST_SHARE = 1e-3  # of the largest variance: the least value of the curve


@dataclass(frozen=True)
class Curve:
    """Variance of the noise against brightness.

    levels: brightness of the knots, rising.
    variances: variance there, positive. A line goes on beyond its two knots, where it stays positive; a bent
        curve keeps its last value.
    camera: the camera whose line this is, if known.
    law: the law that replaces the knots, with its own transform.

    >>> Curve((0.0, 100.0), (4.0, 204.0)).variance([0.0, 50.0, 200.0]).tolist()
    [4.0, 104.0, 404.0]
    """

    levels: tuple[float, ...]
    variances: tuple[float, ...]

    camera: GainModel | None = None
    law: Rician | Speckle | None = None

    @classmethod
    def of_camera(cls, model: GainModel) -> "Curve":
        """The line of a camera, from its offset to a thousand photons.

        >>> Curve.of_camera(GainModel(2.0, 10.0, 3.0)).levels
        (10.0, 2010.0)
        """
        levels = (model.offset, model.offset + 1000 * model.gain)
        return cls(levels, (model.read_noise**2, model.read_noise**2 + 1000 * model.gain**2), model)

    @classmethod
    def of_law(cls, law: Rician | Speckle) -> "Curve":
        """The curve of a law, drawn between its levels."""
        return cls(law.levels, tuple(map(float, law.variance(law.levels))), law=law)

    @property
    def gain(self) -> GainModel | None:
        """The camera a rising line describes; None for white noise and for bent curves."""
        if self.camera is not None or self.law is not None or len(self.levels) != 2:
            return self.camera
        (a, b), (u, v) = self.levels, self.variances
        slope = (v - u) / (b - a)
        return gain_of_line(slope, u - slope * a, a) if slope > 0 else None

    def variance(self, brightness: ArrayLike) -> Float:
        """Noise variance at a brightness."""
        x = np.asarray(brightness, np.float64)
        if self.law is not None:
            return self.law.variance(x)
        camera = self.gain
        if camera is not None:
            floor = LEAST_SHARE * max(self.variances)
            return np.maximum(np.asarray(camera.variance(x), np.float64), floor)
        return np.asarray(np.interp(x, self.levels, self.variances))

    def for_pixels(self, plane: Float) -> "Curve":
        """The curve with the camera that explains the plane's pixels, including those below the offset."""
        camera = self.gain
        if camera is None:
            return self
        return Curve(self.levels, self.variances, with_read_noise(camera, self.levels[0], plane))

    def with_share(self, share: float) -> "Curve":
        """The curve of share * pixel + (1 - share) * its mean."""
        if self.law is not None:
            return Curve.of_law(self.law.with_share(share))
        camera = self.camera
        if camera is not None:
            camera = GainModel(share**2 * camera.gain, camera.offset, share * camera.read_noise)
        return Curve(self.levels, tuple(share**2 * value for value in self.variances), camera)

    def scaled(self, factor: float) -> "Curve":
        """The curve with each variance times a factor.

        >>> Curve((0.0, 9.0), (4.0, 2.0)).scaled(2.0).variances
        (8.0, 4.0)
        """
        return Curve(self.levels, tuple(factor * value for value in self.variances))

    def halved(self, times: int) -> "Curve":
        """The curve of the image halved this often: the mean of four pixels has half of their noise."""
        if self.law is not None:
            return Curve.of_law(self.law.halved(times))
        return self.with_share(0.5**times)

    def stabilise(self, values: ArrayLike) -> Float:
        """Values whose noise has standard deviation one at every brightness.

        >>> Curve((0.0,), (4.0,)).stabilise([0.0, 2.0]).tolist()
        [0.0, 1.0]
        """
        x = np.asarray(values, np.float64)
        if self.law is not None:
            return self.law.stabilise(x)
        if len(self.levels) == 1:
            return np.asarray(x / np.sqrt(self.variances[0]))
        camera = self.gain
        return stabilise(x, camera) if camera is not None else self._integral(x)

    def unstabilise(self, values: ArrayLike) -> Float:
        """Mean pixel values from means of stabilised values.

        >>> bent = Curve((0.0, 50.0, 100.0), (4.0, 9.0, 4.0))
        >>> bent.unstabilise(bent.stabilise([20.0, 80.0])).round(1).tolist()
        [20.0, 80.0]
        """
        y = np.asarray(values, np.float64)
        if self.law is not None:
            return self.law.unstabilise(y)
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
        # To second order the mean of t(x + noise) is t(x) + t''(x) variance(x) / 2. The corner at a knot is
        # an artefact: the slope is measured over the width of the noise.
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


def check_curve(levels: Any, variances: Any, camera: Any = None, law: Any = None) -> Curve:
    """A valid curve, or a clear error.

    >>> check_curve([0], [4])
    Curve(levels=(0.0,), variances=(4.0,), camera=None, law=None)
    """
    if law is not None:
        known = dict(law)
        return Curve.of_law(LAWS[known.pop("name")](**known))
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
