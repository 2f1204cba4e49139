"""What every method does around its kernels: check the input, standardise it, run, map the result back.

A method's public function hands its own part (which parameters, which solver) to :func:`run`; the rest of
the contract (units in = units out, dtype kept, sigma estimated, one clear sentence for bad input) is here.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem import checks
from vnlem.tiles import ProgressCallback, available_cores

Progress = bool | ProgressCallback
Result = NDArray[Any] | tuple[NDArray[Any], "Info"]  # the image, or with return_info=True the image and Info
Params = TypeVar("Params")

# Beyond this a float64 sum of squares could overflow however carefully it is scaled.
LARGEST_VALUE = 1e300


@dataclass(frozen=True)
class Info:
    """What a call used and found: returned as second value with ``return_info=True``."""

    method: str
    sigma: float
    parameters: dict[str, Any]
    timings: dict[str, float]
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class Job(Generic[Params]):
    """The standardised problem a solver gets."""

    pixels: NDArray[np.float32]  # (channels, height, width), mean 0, clean standard deviation about 1
    sigma: float  # noise standard deviation in the units of `pixels`
    params: Params
    workers: int
    progress: ProgressCallback | None
    details: dict[str, Any] = field(default_factory=dict)  # what the solver wants to report in Info
    # (channels, height, width) or broadcastable to it, where the noise is not the same everywhere; `sigma` is
    # then its root mean square.
    sigma_map: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Planes:
    """An image as float64 channel planes, with what is needed to give it back as it came."""

    data: NDArray[np.float64]  # (channels, height, width)
    dtype: np.dtype[Any]
    channel_axis: int | None
    ndim: int

    def restore(self, planes: NDArray[Any]) -> NDArray[Any]:
        """Planes back in the input's layout and dtype; integers are rounded and clipped."""
        if self.channel_axis is not None:
            image = np.moveaxis(planes, 0, self.channel_axis)
        else:
            image = planes[0] if self.ndim == 2 else planes[0, 0]
        return self.like(image)

    def like(self, image: NDArray[Any]) -> NDArray[Any]:
        """An image in the input's layout, in the input's dtype."""
        if self.dtype.kind in "iu":
            limits = np.iinfo(self.dtype)
            image = np.clip(np.rint(image), limits.min, limits.max)
        return np.ascontiguousarray(image.astype(self.dtype))


def to_planes(image: ArrayLike, channel_axis: int | None = None, *, signals: bool = False) -> Planes:
    """Check an image and lay it out as float64 channel planes (C, H, W).

    Parameters
    ----------
    image : array_like
        Two dimensions, or three with `channel_axis`.
    channel_axis : int, optional
        The axis of the channels.
    signals : bool
        Accept one-dimensional input, laid out as an image of one row.

    Examples
    --------
    >>> to_planes(np.zeros((4, 5, 3)), channel_axis=-1).data.shape
    (3, 4, 5)
    """
    array = np.asarray(image)
    if array.dtype.kind == "b":
        raise TypeError("the image is boolean; convert it to a grey scale first, e.g. image.astype(float)")
    if channel_axis is not None:
        if not -array.ndim <= channel_axis < array.ndim:
            raise ValueError(
                f"channel_axis {channel_axis} does not exist in an array of shape {array.shape}; "
                f"it must lie between {-array.ndim} and {array.ndim - 1}"
            )
        channel_axis %= array.ndim
        if array.ndim != 3:
            raise ValueError(
                f"with channel_axis the image must have three dimensions, got shape {array.shape}; "
                "loop over the pages of a stack"
            )
    elif array.ndim > 2:
        raise ValueError(
            f"the image has {array.ndim} dimensions (shape {array.shape}): for colour pass channel_axis "
            "(e.g. channel_axis=-1), for a stack loop over its pages"
        )
    elif array.ndim < (1 if signals else 2):
        raise ValueError(f"the image must have two dimensions, got {array.ndim} (shape {array.shape})")
    values = checks.finite("the image", array)
    if np.abs(values).max() > LARGEST_VALUE:
        raise ValueError(f"the image holds values beyond {LARGEST_VALUE:g}; divide it by a constant first")
    if channel_axis is not None:
        planes = np.moveaxis(values, channel_axis, 0)
    else:
        planes = values.reshape((1, 1, -1) if array.ndim == 1 else (1, *array.shape))
    return Planes(np.ascontiguousarray(planes), array.dtype, channel_axis, array.ndim)


def check_sigma(sigma: Any) -> float:
    """A noise level as a float, or a clear error."""
    if not np.isscalar(sigma) and np.ndim(sigma) != 0:
        raise ValueError(f"sigma must be a single number, got an array of shape {np.shape(sigma)}")
    try:
        value = float(sigma)
    except (TypeError, ValueError):
        raise TypeError(f"sigma must be a number, got {sigma!r}") from None
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"sigma must be finite and not negative, got {sigma!r}")
    return value


def check_sigma_map(sigma: Any, planes: "Planes") -> NDArray[np.float64]:
    """A noise level per channel or per pixel, broadcastable to the planes (C, H, W), or a clear error."""
    values = np.asarray(sigma)
    if values.dtype.kind not in "iuf":
        raise TypeError(f"sigma must hold numbers, got dtype {values.dtype}")
    values = values.astype(np.float64)
    channels, height, width = planes.data.shape
    if planes.channel_axis is not None and values.shape == (channels,):
        laid_out = values.reshape(channels, 1, 1)
    elif values.shape == (height, width):
        laid_out = values[None]
    elif planes.channel_axis is not None and values.ndim == 3:
        laid_out = np.moveaxis(values, planes.channel_axis, 0)
    else:
        laid_out = values
    if laid_out.ndim != 3 or laid_out.shape not in (
        (channels, 1, 1),
        (1, height, width),
        (channels, height, width),
    ):
        per_channel = f", one number per channel ({channels})" if planes.channel_axis is not None else ""
        raise ValueError(
            f"sigma must be a number{per_channel} or a map of the image's size ({height}x{width}), "
            f"got an array of shape {values.shape}"
        )
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(
            "sigma must be finite and not negative everywhere; the map holds "
            f"{int((~np.isfinite(values)).sum())} NaN or infinite "
            f"and {int((values < 0).sum())} negative values"
        )
    return laid_out


def check_workers(workers: int | None) -> int:
    """The number of threads: all cores for None."""
    if workers is None:
        return available_cores()
    if isinstance(workers, bool) or int(workers) != workers or workers < 1:
        raise ValueError(f"workers must be a positive whole number or None (all cores), got {workers!r}")
    return int(workers)


def standard_scale(planes: NDArray[np.float64], sigma: float) -> tuple[float, float]:
    """Mean of the image and the standard deviation its clean version seems to have.

    The clean variance is var(noisy) - sigma^2; it is clamped at (sigma/10)^2, with a warning, where the
    noise leaves nothing of it.

    Examples
    --------
    >>> mean, scale = standard_scale(np.array([[[0.0, 10.0]]]), sigma=3.0)
    >>> mean, scale
    (5.0, 4.0)
    """
    peak = float(np.abs(planes).max()) or 1.0
    mean = float(np.mean(planes / peak)) * peak
    spread = float(np.abs(planes - mean).max())
    noisy = spread * float(np.sqrt(np.mean(((planes - mean) / spread) ** 2))) if spread > 0 else 0.0
    if sigma == 0:
        return mean, noisy
    signal_to_noise = (noisy / sigma) ** 2 - 1
    if signal_to_noise < 0.01:
        warnings.warn(
            f"sigma {sigma:g} accounts for all of the image's own standard deviation {noisy:g}: "
            "there may be nothing but noise; check the units of sigma",
            stacklevel=4,
        )
    return mean, sigma * math.sqrt(max(signal_to_noise, 0.01))


def run(
    image: ArrayLike,
    sigma: Any,
    *,
    method: str,
    resolve: Callable[[float], Params],
    solve: Callable[[Job[Params]], NDArray[np.float32]],
    channel_axis: int | None = None,
    workers: int | None = None,
    progress: Progress = False,
    return_info: bool = False,
    signals: bool = False,
    sigma_maps: bool = False,
    min_size: Callable[[Params], int] = lambda params: getattr(params, "patch_size", 1),
) -> Result:
    """Denoise with one method.

    Parameters
    ----------
    image, sigma, channel_axis, workers, progress, return_info
        As in :func:`vnlem.denoise`.
    method : str
        Name for Info and the progress bar.
    resolve : callable
        Standardised sigma -> the method's parameters (a dataclass), validated.
    solve : callable
        Job -> denoised planes (C, H, W).
    signals : bool
        Whether one-dimensional input is accepted.
    sigma_maps : bool
        Whether sigma may differ between channels or pixels.
    min_size : callable
        Parameters -> the smallest height and width (length, for a signal) the method can work on.
    """
    begun = time.perf_counter()
    planes = to_planes(image, channel_axis, signals=signals)
    threads = check_workers(workers)
    noise_map: NDArray[np.float64] | None = None
    if sigma is None:
        from vnlem.noise import estimate_sigma_of_planes

        noise = estimate_sigma_of_planes(planes.data)
    elif sigma_maps and np.ndim(sigma) > 0:
        noise_map = check_sigma_map(sigma, planes)
        noise = float(np.sqrt(np.mean(np.broadcast_to(noise_map, planes.data.shape) ** 2)))
    else:
        noise = check_sigma(sigma)
    estimated = time.perf_counter()
    if noise == 0:
        # Parameters are still checked, so that a wrong one does not pass unseen.
        params = resolve(1e-6)
        result, details = planes.restore(planes.data), {}
    else:
        mean, scale = standard_scale(planes.data, noise)
        params = resolve(noise / scale)
        _check_size(planes, min_size(params))
        pixels = ((planes.data - mean) / scale).astype(np.float32)
        with reporting(progress, method) as report:
            job = Job(pixels, noise / scale, params, threads, report)
            if noise_map is not None:
                job.sigma_map = (noise_map / scale).astype(np.float32)
            denoised = solve(job)
        details = job.details
        result = planes.restore(denoised.astype(np.float64) * scale + mean)
    if not return_info:
        return result
    ended = time.perf_counter()
    timings = {"estimate_sigma": estimated - begun, "denoise": ended - estimated, "total": ended - begun}
    parameters: dict[str, Any] = asdict(params)  # type: ignore[call-overload]
    return result, Info(method, noise, parameters, timings, details)


def _check_size(planes: Planes, smallest: int) -> None:
    height, width = planes.data.shape[1:]
    if min(height if planes.ndim > 1 else width, width) < smallest:
        shape = f"{height}x{width}" if planes.ndim > 1 else f"{width} samples long"
        raise ValueError(
            f"the image ({shape}) is smaller than the patch ({smallest}); "
            "pass a smaller patch_size or a larger image"
        )


@contextmanager
def reporting(progress: Progress, title: str) -> Iterator[ProgressCallback | None]:
    """Turn the `progress` argument into a callback: none, a bar on stderr, or the caller's own.

    Examples
    --------
    >>> with reporting(False, "nlm") as report:
    ...     report is None
    True
    """
    if callable(progress):
        yield progress
    elif not isinstance(progress, bool | np.bool_):
        raise TypeError(f"progress must be False, True or a callable(done, total), got {progress!r}")
    elif not progress:
        yield None
    else:
        from vnlem.progress import progress_bar

        with progress_bar(title) as report:
            yield lambda done, total: report(done / total)
