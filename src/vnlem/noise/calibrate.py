"""The maps of a sensor from dark frames and flat fields: photon transfer, pixel by pixel.

    offset        mean of the dark frames
    read noise    standard deviation of the dark frames
    gain          of the neighbourhood: variance of the flat fields over their brightness; and times how much
                  brighter the pixel is than its neighbourhood

A pixel's own variance would give its gain too, but only to 14 % from 100 frames. Its brightness relative to
its neighbours gives the gain to a fraction of a per cent. If there are few frames, single pixels are shrunk
towards the typical value.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.noise.curve import Curve
from vnlem.noise.maps import PixelMaps
from vnlem.noise.model import NoiseModel
from vnlem.noise.sensor import Sensor, check_sensor
from vnlem.pipeline import checks
from vnlem.pipeline.image import to_planes

Float = NDArray[np.float64]

FEWEST = 2  # frames of one level
SMOOTH = 12.0  # pixels over which the light of a flat field is even, and the gain of an amplifier
LEAST_RESPONSE, MOST_RESPONSE = 0.2, 5.0  # relative to the neighbourhood: a pixel outside is a defect
LEAST_LIGHT = 2.0  # times the read noise: flat fields with less light are not used
MOST_LOST = 0.5  # of the pixels may be saturated, or their dark frames clipped
STEPS = (8, 10, 12, 14, 16)  # bits of a converter: the last of its values is saturated


@dataclass(frozen=True)
class Moments:
    """Mean and variance of each pixel over some frames, and how many frames had it at a limit."""

    count: int
    mean: Float
    variance: Float
    lowest: NDArray[np.int64]
    highest: NDArray[np.int64]

    @classmethod
    def of(cls, name: str, frames: Iterable[Any], saturation: float | None = None) -> "Moments":
        """Of frames (H, W), one after the other.

        >>> Moments.of("darks", [np.zeros((2, 2)), np.full((2, 2), 2.0)]).variance.tolist()
        [[2.0, 2.0], [2.0, 2.0]]
        """
        count, found = 0, None
        for frame in frames:
            values = checks.finite(f"a frame of the {name}", frame)
            if values.ndim != 2:
                raise ValueError(f"the {name} must be grey frames (height, width), got shape {values.shape}")
            if found is None:
                found = (
                    [np.zeros(values.shape) for _ in range(2)],
                    [np.zeros(values.shape, int) for _ in range(2)],
                )
            if values.shape != found[0][0].shape:
                raise ValueError(
                    f"the {name} differ in shape: {found[0][0].shape} and {values.shape}; use one size"
                )
            (mean, squares), (lowest, highest) = found
            count += 1
            change = values - mean
            mean += change / count
            squares += change * (values - mean)
            lowest += values <= 0
            highest += values >= (np.inf if saturation is None else saturation)
        if found is None or count < FEWEST:
            raise ValueError(f"the {name} need at least {FEWEST} frames of one level, got {count}")
        (mean, squares), (lowest, highest) = found
        return cls(count, mean, squares / (count - 1), lowest, highest)


def calibrate_sensor(
    darks: Iterable[Any], flats: Sequence[Iterable[Any]], *, saturation: float | None = None
) -> NoiseModel:
    """The noise of a camera whose pixels differ, from frames without light and frames of even light.

    Parameters
    ----------
    darks : iterable of ndarray
        Frames (H, W) without light, at least 2; 100 are good.
    flats : sequence of iterables of ndarray
        One series of frames for each brightness, each at least 2 frames of the same even light.
    saturation : float, optional
        The value of a saturated pixel. When None, the largest value of the flat fields if it is the maximum
        of a converter of 8 to 16 bits.

    Returns
    -------
    NoiseModel
        With maps of offset, gain and read noise; for every image of the same camera and region of interest.

    Notes
    -----
    Pixels that are saturated in a flat field are left out of it. Pixels that hardly react to light, or far
    more than others, are defects: their read noise is infinite, and their neighbours replace them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> gain = rng.normal(2.0, 0.1, (64, 64))
    >>> darks = [100 + rng.normal(0, 3, gain.shape) for _ in range(50)]
    >>> flats = [100 + gain * rng.poisson(400, gain.shape) + rng.normal(0, 3, gain.shape) for _ in range(50)]
    >>> model = calibrate_sensor(darks, [flats])
    >>> bool(np.std(model.maps.sensor.gain - gain) < 0.05)
    True
    """
    dark = Moments.of("darks", darks)
    cut_off = float(np.median(dark.mean)) <= float(np.sqrt(np.median(dark.variance)))
    if cut_off and np.mean(dark.lowest > 0) > MOST_LOST:
        raise ValueError(
            "most dark pixels lie at zero, where read noise is cut off; raise the offset of the camera "
            "(black level) and take the darks again"
        )
    if not flats:
        raise ValueError("gain needs flat fields: frames of even light, at one brightness or at several")
    levels = []
    limit = saturation
    for number, frames in enumerate(flats, 1):
        kept = [np.asarray(frame) for frame in frames]
        limit = limit if saturation is not None else _last_value(kept, limit)
        levels.append((f"flats {number}", kept))
    found = [Moments.of(name, frames, limit) for name, frames in levels]
    for level in found:
        if level.mean.shape != dark.mean.shape:
            raise ValueError(
                f"the darks have {dark.mean.shape} pixels and the flats {level.mean.shape}; "
                "use the same region of interest for both"
            )
    read = _shrunk(dark.variance, dark.count)
    gain, response = _gain(found, dark.mean, read)
    defect = (response < LEAST_RESPONSE) | (response > MOST_RESPONSE)
    noise = np.where(defect, np.inf, np.sqrt(read))
    sensor = check_sensor(np.where(defect, np.median(gain), gain), dark.mean, noise, limit)
    return camera_of(sensor)


def camera_of(sensor: Sensor) -> NoiseModel:
    """The noise model of a sensor."""
    return NoiseModel((Curve.of_camera(sensor.usual),), maps=PixelMaps(sensor=sensor))


def _last_value(frames: list[NDArray[Any]], known: float | None) -> float | None:
    """The value of a saturated pixel, if frames of integers reach the last value of a converter."""
    if not frames or frames[0].dtype.kind not in "iu":
        return known
    largest = max(int(frame.max()) for frame in frames)
    return float(largest) if largest + 1 in [2**bits for bits in STEPS] else known


def _shrunk(variance: Float, count: int) -> Float:
    """Variances of single pixels, shrunk towards the usual one according to their scatter over few frames."""
    from scipy.special import polygamma, psi

    half = (
        count - 1
    ) / 2  # of the degrees of freedom: the logarithm of chi-squared has this mean and variance
    logs = np.log(np.maximum(variance, 1e-3 * max(float(np.median(variance)), 1e-300)))
    logs -= float(psi(half) - np.log(half))
    usual, chance = float(np.median(logs)), float(polygamma(1, half))
    kept = max(0.0, 1 - chance / max(float(np.var(logs)), 1e-300))
    return np.asarray(np.exp(usual + kept * (logs - usual)))


def _gain(levels: list[Moments], offset: Float, read: Float) -> tuple[Float, Float]:
    """Gain of each pixel, and its response to light relative to its neighbourhood."""
    from scipy.ndimage import gaussian_filter

    def smooth(values: Float, weights: Float) -> Float:
        above, below = (gaussian_filter(one, SMOOTH, mode="nearest") for one in (values * weights, weights))
        return np.asarray(above / np.maximum(below, 1e-12))

    transfer, light, response, weight = (np.zeros(offset.shape) for _ in range(4))
    dim = saturated = 0
    for level in levels:
        own = level.mean - offset
        seen = level.highest == 0
        if np.mean(seen) < 1 - MOST_LOST:
            saturated += 1
            continue
        if float(np.median(own)) < LEAST_LIGHT * float(np.sqrt(np.median(read))):
            dim += 1
            continue
        usable = seen & (own > 0)
        around = smooth(own, usable.astype(np.float64))
        # Weighted by the light of the level: brighter ones are more precise.
        transfer += np.where(usable, (level.variance - read) * own, 0.0)
        light += np.where(usable, own**2, 0.0)
        response += np.where(seen, own / np.maximum(around, 1e-300), 0.0) * around * level.count
        weight += np.where(seen, around * level.count, 0.0)
    if not weight.any():
        why = "saturated" if saturated else "as dark as the darks" if dim else "empty"
        cure = "take them with less light" if saturated else "take them with light"
        raise ValueError(f"all flat fields are {why}, so they do not show the gain; {cure}")
    beside = np.where(weight > 0, response / np.maximum(weight, 1e-300), 1.0)
    near = (weight > 0).astype(np.float64)
    gain = gaussian_filter(transfer * near, SMOOTH, mode="nearest") / np.maximum(
        gaussian_filter(light * near, SMOOTH, mode="nearest"), 1e-300
    )
    if not float(np.median(gain)) > 0:
        raise ValueError(
            "the flat fields vary no more than the darks, so there is no photon noise in them; "
            "pass single frames, not their means"
        )
    return np.maximum(gain, 0.05 * float(np.median(gain))) * beside, beside


def defect_map(dark: ArrayLike, limit: float = 6.0) -> NDArray[np.bool_]:
    """The hot, dead and stuck pixels of a camera, from a dark frame: `defects` of :func:`vnlem.denoise`.

    Parameters
    ----------
    dark : array_like
        A frame without light (H, W), or several (N, H, W), which are averaged.
    limit : float
        How many standard deviations of the frame a pixel must differ from the median around it.

    Returns
    -------
    ndarray of bool
        (H, W), True where a pixel is defective. It can be saved with ``numpy.save``.

    Examples
    --------
    >>> import vnlem
    >>> dark = np.random.default_rng(0).normal(100, 2, (64, 64))
    >>> dark[10, 20] = 180
    >>> np.argwhere(vnlem.noise.defect_map(dark)).tolist()
    [[10, 20]]
    """
    from scipy.ndimage import median_filter

    values = checks.finite("the dark frame", dark)
    if values.ndim not in (2, 3):
        raise ValueError(f"the dark frame must be (H, W), or (N, H, W) for several, got shape {values.shape}")
    limit = checks.real("limit", limit, 0, open_low=True)
    frame = to_planes(values if values.ndim == 2 else values.mean(axis=0)).data[0]
    apart = np.abs(frame - median_filter(frame, 5, mode="mirror"))
    # 1.4826 times the median is the standard deviation of normal values.
    sigma = 1.4826 * float(np.median(apart))
    return np.asarray(apart > limit * max(sigma, 1e-12 * float(np.abs(frame).max())))
