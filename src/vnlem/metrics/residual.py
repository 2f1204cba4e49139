"""Is what was removed noise? A check for images without a clean version.

What a denoiser removed, input - result, should be pure noise: as strong as the noise at every brightness, no
more correlated than the noise, and without a trace of the image. The input is stabilised first: one number
then describes all brightnesses.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.noise.auto import estimate_noise
from vnlem.noise.model import NoiseModel
from vnlem.pipeline.image import to_planes

# White noise of a megapixel stays far inside; what lies outside can be seen in the residual.
MOST_CORRELATION = 0.1
MOST_STRUCTURE = 0.1
LOW_FLOOR = 0.05  # of the mean power: all frequencies with some noise count
LEAST_VARIANCE, MOST_VARIANCE = 0.6, 1.25


@dataclass(frozen=True)
class Residual:
    """What was removed, in units of the noise.

    Attributes
    ----------
    variance : float
        Relative to that of the noise: one if all the noise and nothing else was removed.
    correlation : float
        Between neighbouring pixels, the strongest of right, below and diagonal.
    structure : float
        Correlation with the fine detail of the result, beyond what noise left in the result explains:
        positive where detail was weakened, negative where it was exaggerated.
    verdict : str
        What these say, in words.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.tile(np.linspace(0, 100, 64), (64, 1))
    >>> found = residual_check(clean + rng.normal(0, 5, clean.shape), clean, NoiseModel.white(5.0))
    >>> abs(found.variance - 1) < 0.1
    True
    """

    variance: float
    correlation: float
    structure: float
    verdict: str


def residual_check(
    noisy: ArrayLike,
    denoised: ArrayLike,
    noise: NoiseModel | None = None,
    channel_axis: int | None = None,
) -> Residual:
    """Whether what was removed is noise: its strength, its correlation, and traces of the image in it.

    Parameters
    ----------
    noisy, denoised : array_like
        The image before and after, of one shape.
    noise : NoiseModel, optional
        What the noise is; estimated from `noisy` when None.
    channel_axis : int, optional
        The axis of the channels; the worst of them counts.

    Returns
    -------
    Residual
        Its `verdict` is a sentence.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.repeat(np.linspace(0, 200, 128)[None], 128, axis=0)
    >>> noisy = clean + rng.normal(0, 10, clean.shape)
    >>> residual_check(noisy, clean).verdict
    'what was removed looks like the noise'
    >>> residual_check(noisy, noisy).verdict
    'noise was left: 0 % of its variance was removed'
    """
    before, after = to_planes(noisy, channel_axis), to_planes(denoised, channel_axis)
    if before.data.shape != after.data.shape:
        raise ValueError(
            f"the images differ in shape: {np.shape(noisy)} and {np.shape(denoised)}; "
            "compare an image with its own result"
        )
    model = estimate_noise(noisy, channel_axis) if noise is None else noise
    if model.sigma == 0:
        return Residual(0.0, 0.0, 0.0, "no noise was found, so there is nothing to compare with")
    model.check(before)
    stable, result = (model.stabilise(planes.data, floor=LOW_FLOOR) for planes in (before, after))
    parts = [_measure(a - b, b) for a, b in zip(stable, result, strict=True)]
    variance = float(np.mean([part[0] for part in parts]))
    correlation = max((part[1] for part in parts), key=abs)
    structure = max((part[2] for part in parts), key=abs)
    return Residual(variance, correlation, structure, _verdict(variance, correlation, structure))


def _measure(removed: Any, kept: Any) -> tuple[float, float, float]:
    from scipy import ndimage

    removed = removed - removed.mean()
    variance = float(np.mean(removed**2))
    if variance == 0:
        return 0.0, 0.0, 0.0
    lags = [
        float(np.mean(removed[a:, b:] * removed[: removed.shape[0] - a, : removed.shape[1] - b])) / variance
        for a, b in ((0, 1), (1, 0), (1, 1))
        if min(removed.shape[0] - a, removed.shape[1] - b) > 0
    ]
    detail = kept - ndimage.uniform_filter(kept, 5, mode="reflect")
    spread = float(np.sqrt(np.mean(detail**2)))
    if spread < 1e-3:  # detail far below the noise is rounding, not a trace of the image
        return variance, max(lags, key=abs), 0.0
    covariance = float(np.mean(removed * detail))
    # Every result keeps a share of the noise, which correlates with the removed rest without any detail being
    # lost. Noise n, error e of the result: variance = 1 + <e, e> - 2 <n, e>, so <n, e> is at least this.
    left = max(0.0, (1 - variance) / 2)
    covariance -= min(left, max(covariance, 0.0))
    return variance, max(lags, key=abs), covariance / (spread * variance**0.5)


def _verdict(variance: float, correlation: float, structure: float) -> str:
    if variance < LEAST_VARIANCE:
        return f"noise was left: {100 * variance:.0f} % of its variance was removed"
    if variance > MOST_VARIANCE:
        return f"more than the noise was removed: {100 * variance:.0f} % of its variance"
    if structure < -MOST_STRUCTURE:
        return f"fine detail was exaggerated: what was removed is its negative ({structure:.2f})"
    if structure > MOST_STRUCTURE:
        return f"fine detail was weakened: it correlates with what was removed ({structure:.2f})"
    if abs(correlation) > MOST_CORRELATION:
        return f"neighbours in what was removed are correlated ({correlation:.2f}): structure, or other noise"
    return "what was removed looks like the noise"


def residual_statistics(residual: NDArray[np.float64]) -> dict[str, float | None]:
    """What was removed, described: white Gaussian noise has skewness, kurtosis and correlation 0.

    `residual_correlation` is that of neighbouring pixels, the mean of both directions.

    >>> residual = np.random.default_rng(0).normal(0, 10, (100, 100))
    >>> found = residual_statistics(residual)
    >>> round(found["residual_std"], 1), bool(abs(found["residual_correlation"]) < 0.05)
    (10.0, True)
    """
    mean, std = float(residual.mean()), float(residual.std())
    if std == 0:
        none = dict.fromkeys(("residual_skewness", "residual_kurtosis", "residual_correlation"))
        return {"residual_mean": mean, "residual_std": 0.0, **none}
    unit = (residual - mean) / std
    along = [(unit[1:] * unit[:-1]).mean(), (unit[:, 1:] * unit[:, :-1]).mean()]
    return {
        "residual_mean": mean,
        "residual_std": std,
        "residual_skewness": float((unit**3).mean()),
        "residual_kurtosis": float((unit**4).mean() - 3),
        "residual_correlation": float(np.mean(along)),
    }
