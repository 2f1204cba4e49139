"""Noise of cameras and microscopes: photons counted with a gain, plus read noise.

    pixel = offset + gain * Poisson(photons) + Normal(0, read_noise^2)

The variance is then gain * (mean - offset) + read_noise^2. The generalised Anscombe transform makes it one
everywhere, any method for white noise can denoise the transformed image, and the exact unbiased inverse
takes the result back: the inverse of the transform's MEAN, which the algebraic inverse is not.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.pipeline import checks

Float = NDArray[np.float64]

# Beyond this many photons the closed form is as good as the table.
TABLE_END = 300.0
# Read noise is integrated over this many points of a Gauss-Hermite rule.
NODES = 64
# This many times the read noise below the offset, the mean of the transform is a straight line.
BELOW = 8.0
LARGEST = 1e60  # gain, offset or read noise, whose products neither overflow nor vanish
MOST_SPREAD = 1e8  # read noise in photons above which all noise counts as white


@dataclass(frozen=True)
class GainModel:
    """Gain, offset and read noise of a camera, in the units of the pixels.

    Examples
    --------
    >>> float(GainModel(gain=2.0, offset=100.0, read_noise=3.0).variance(110.0))
    29.0
    """

    gain: float
    offset: float = 0.0
    read_noise: float = 0.0

    def variance(self, mean: Any) -> Any:
        """Noise variance at a mean pixel value."""
        return self.gain * np.maximum(mean - self.offset, 0.0) + self.read_noise**2


def check_model(gain: Any, offset: Any, read_noise: Any) -> GainModel:
    """A valid model, or a clear error.

    >>> check_model(1, 0, 2)
    GainModel(gain=1.0, offset=0.0, read_noise=2.0)
    """
    return GainModel(
        checks.real("gain", gain, 1 / LARGEST, LARGEST),
        checks.real("offset", offset, -LARGEST, LARGEST),
        checks.real("read_noise", read_noise, 0, LARGEST),
    )


def stabilise(image: ArrayLike, model: GainModel) -> Float:
    """Generalised Anscombe transform: noise of standard deviation about one at every brightness.

    image: pixels that follow `model`.

    .. [1] J.-L. Starck, F. Murtagh, A. Bijaoui, "Image Processing and Data Analysis: The Multiscale
       Approach", Cambridge University Press, 1998, section 2.

    >>> counts = np.random.default_rng(0).poisson(20.0, 100000)
    >>> round(float(stabilise(counts, GainModel(1.0)).std()), 1)
    1.0
    """
    values = np.asarray(image, np.float64) - model.offset
    if _is_white(model):
        return np.asarray(values / model.read_noise)
    return _root(values / model.gain, model.read_noise / model.gain)


def _is_white(model: GainModel) -> bool:
    """Whether read noise hides the photons, and double precision with them."""
    return model.read_noise > MOST_SPREAD * model.gain


def _root(photons: Float, spread: float) -> Float:
    """2 sqrt(photons + 3/8 + spread^2), continued as a straight line below zero photons.

    Photon counts are never below zero, but read noise and images with a subtracted background are. Clipped at
    zero, their noise would have a mean above zero; and the root itself is so steep near its end that single
    pixels would stand out from the noise.
    """
    lift = 0.375 + spread**2
    root: Float = 2.0 * np.sqrt(np.maximum(photons, 0.0) + lift)
    root += np.minimum(photons, 0.0) / np.sqrt(lift)
    return root


def unstabilise(stabilised: ArrayLike, model: GainModel) -> Float:
    """Exact unbiased inverse of :func:`stabilise` for denoised values.

    stabilised: denoised values, i.e. estimates of the mean of the stabilised pixels.

    Returns the mean pixel values. Below the offset, where there are no photon counts, the inverse is the
    transform's straight line: values there are kept.

    The mean of the transform is tabulated up to 300 photons by summing over the Poisson distribution and
    over a Gauss-Hermite rule for the read noise, and inverted by interpolation (error below 1e-3 photons).
    From there on the expansion of [1]_, photons = D^2/4 - 1/8 - s^2 + sqrt(3/2)/(4 D), is used, whose
    error is below 1e-3 photons.

    .. [1] M. Makitalo, A. Foi, "Optimal inversion of the generalized Anscombe transformation for
       Poisson-Gaussian noise", IEEE Transactions on Image Processing 22, 2013.
       :DOI:`10.1109/TIP.2012.2202675`

    >>> model = GainModel(1.0)
    >>> counts = np.random.default_rng(0).poisson(2.0, 400000)
    >>> mean_of_transform = stabilise(counts, model).mean()
    >>> round(float(unstabilise(mean_of_transform, model)), 2)
    2.0
    """
    values = np.asarray(stabilised, np.float64)
    if _is_white(model):
        return np.asarray(values * model.read_noise + model.offset)
    spread = model.read_noise / model.gain
    means, photons = _table(spread)
    safe = np.maximum(values, means[-1])
    far = safe**2 / 4 - 0.125 - spread**2 + np.sqrt(1.5) / (4 * safe)
    # The two pieces meet without a step.
    far += photons[-1] - (means[-1] ** 2 / 4 - 0.125 - spread**2 + np.sqrt(1.5) / (4 * means[-1]))
    # Below the table the transform's straight line continues: subtracted backgrounds are negative.
    near = np.interp(values, means, photons) + np.sqrt(0.375 + spread**2) * np.minimum(values - means[0], 0.0)
    result: Float = np.where(values <= means[-1], near, far)
    return np.asarray(result * model.gain + model.offset)


@lru_cache(maxsize=32)
def _table(spread: float) -> tuple[Float, Float]:
    """Mean of the transform at photon numbers up to TABLE_END, for read noise `spread` in photons.

    Below zero photons there is only read noise.
    """
    from scipy import stats

    photons = np.concatenate(
        [[0.0], np.geomspace(1e-4, 1.0, 120), np.linspace(1.0, TABLE_END**0.5, 1200)[1:] ** 2]
    )
    counts = np.arange(int(TABLE_END + 12 * TABLE_END**0.5))
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    transformed = _root(counts[:, None] + spread * nodes[None, :], spread) @ weights
    means = stats.poisson.pmf(counts[None, :], photons[:, None]) @ transformed
    if spread == 0:
        return means, photons
    below = -spread * np.linspace(BELOW, 0.0, 400)[:-1]
    means_below = _root(below[:, None] + spread * nodes[None, :], spread) @ weights
    return np.concatenate([means_below, means]), np.concatenate([below, photons])


def gain_of_line(slope: float, level: float, darkest: float) -> GainModel:
    """The camera whose variance is slope * brightness + level, for pixels from `darkest` on.

    Many pairs of offset and read noise describe the same line. If the line is positive at zero and there are
    no negative pixels, the offset is zero; else it is where the line or the image ends.

    >>> gain_of_line(2.0, -60.0, 35.0)
    GainModel(gain=2.0, offset=30.0, read_noise=0.0)
    """
    if not slope >= 1 / LARGEST or not np.isfinite(level):  # an image without noise has no line
        return GainModel(1 / LARGEST, min(darkest, 0.0), 0.0)
    end = -level / slope
    lowest = end if 0 < end <= darkest else darkest
    offset = 0.0 if end <= 0 <= darkest else lowest
    return GainModel(slope, float(offset), float(np.sqrt(max(slope * offset + level, 0.0))))


def with_read_noise(model: GainModel, darkest: float, pixels: Float) -> GainModel:
    """The same line with the offset at the darkest brightness, if pixels lie below a smaller offset.

    Counts are never below the offset, which may be wrong by half a photon. So there is read noise, and the
    pixels of the background spread about their mean.

    >>> dark = np.random.default_rng(0).normal(10, 4, (64, 64))
    >>> with_read_noise(GainModel(2.0, 2.0, 0.0), 10.0, dark)
    GainModel(gain=2.0, offset=10.0, read_noise=4.0)
    """
    if darkest <= model.offset or pixels.min() >= model.offset - model.gain / 2:
        return model
    return GainModel(model.gain, darkest, float(np.sqrt(model.variance(darkest))))


def given_model(gain: Any, offset: Any = None, read_noise: Any = None) -> GainModel:
    """The model from its given parameters; offset and read noise are 0 if None.

    >>> given_model(2.0, read_noise=3.0)
    GainModel(gain=2.0, offset=0.0, read_noise=3.0)
    """
    return check_model(*with_defaults(gain, offset, read_noise))


def with_defaults(gain: Any, offset: Any = None, read_noise: Any = None) -> tuple[Any, Any, Any]:
    """Gain, offset and read noise, numbers or maps; offset and read noise are 0 if None."""
    if gain is None:
        raise ValueError(
            "offset and read_noise need gain too; pass gain=, or none of them to estimate all three"
        )
    return gain, 0.0 if offset is None else offset, 0.0 if read_noise is None else read_noise


def are_maps(camera: dict[str, Any]) -> bool:
    """Whether gain, offset or read noise is a map instead of a number.

    >>> are_maps({"gain": 2.0, "offset": None}), are_maps({"gain": np.ones((4, 4))})
    (False, True)
    """
    return any(value is not None and np.ndim(value) > 0 for value in camera.values())
