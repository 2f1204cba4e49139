"""What every method does around its kernels: check the input, standardise it, run, map the result back.

A method's public function hands its own part (which parameters, which solver) to :func:`run`; the rest of
the contract (units in = units out, dtype kept, sigma estimated, one clear sentence for bad input) is here.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.pipeline.device import namespace, to_host, where_it_is_asked
from vnlem.pipeline.image import Planes, to_planes
from vnlem.pipeline.progress import Progress, ProgressCallback, reporting
from vnlem.pipeline.recipes import Recipe, Unseen
from vnlem.pipeline.regions import Region
from vnlem.pipeline.scale import Scale
from vnlem.pipeline.sigma import check_sigma, check_sigma_map
from vnlem.pipeline.stand_in import StandIn
from vnlem.pipeline.workers import Pool, check_workers

Result = NDArray[Any] | tuple[NDArray[Any], "Info"]  # the image, or with return_info=True the image and Info
Params = TypeVar("Params")

# Noise below this share of the clean image's standard deviation is left alone: kernels work in single
# precision, whose own rounding is no smaller.
NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class Info:
    """What a call used and found: returned as second value with ``return_info=True``.

    Attributes
    ----------
    method : str
    sigma : float
        Standard deviation of the noise in the units of the image, given or estimated.
    parameters : dict
        All parameters of the method, in the units it works in.
    timings : dict
        Seconds, by what they were spent on; "total" is all.
    details : dict
        What a method found besides, and for stacks the noise and the order of the pages.
    device : str
        Where it ran: "cpu", "cuda:0", ...
    noise : NoiseModel or None
        The model that was used; None where a method was called with sigma.
    noise_check : NoiseCheck or None
        Whether noise of that model, put back on the result, looks like the image: its `verdict` is "yes",
        "mostly", "no" or "unknown", its `reason` says why, `describe()` says both. The channel of a stack
        that looks the least like it counts, by its middle page. See :func:`vnlem.noise.predictive_check`.

    Examples
    --------
    >>> import numpy as np
    >>> import vnlem
    >>> noisy = np.arange(32) + np.random.default_rng(0).normal(100, 5, (32, 32))
    >>> _, info = vnlem.denoise(noisy, 5.0, method="nlm", return_info=True)
    >>> info.method, info.sigma, info.device, info.parameters["patch_size"]
    ('nlm', 5.0, 'cpu', 5)
    """

    method: str
    sigma: float
    parameters: dict[str, Any]
    timings: dict[str, float]
    details: dict[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    noise: Any = None
    noise_check: Any = None


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
    # What part of the whole image `pixels` is; None for all of it. A solver gives back as many pixels as it
    # got, of which those that the region writes are right.
    region: Region | None = None
    # The largest absolute value of the whole image, or what it cannot exceed, where it is known; a solver of
    # a GPU asks for it.
    peak: float | None = None


@where_it_is_asked
def run(
    image: ArrayLike,
    sigma: Any,
    *,
    method: str,
    resolve: Callable[[float], Params],
    solve: Callable[[Job[Params]], NDArray[np.float32]],
    estimate: Callable[[NDArray[np.float64], Pool], float],
    channel_axis: int | None = None,
    workers: int | None = None,
    progress: Progress = False,
    return_info: bool = False,
    device: str | None = None,
    signals: bool = False,
    sigma_maps: bool = False,
    min_size: Callable[[Params], int] = lambda params: getattr(params, "patch_size", 1),
) -> Result:
    """Denoise with one method.

    Parameters
    ----------
    image, sigma, channel_axis, workers, progress, return_info, device
        As in :func:`vnlem.denoise`; sigma may also be a StandIn, which says what to take units from.
    method : str
        Name for Info and the progress bar.
    resolve : callable
        Standardised sigma -> the method's parameters (a dataclass), validated.
    solve : callable
        Job -> denoised planes (C, H, W).
    estimate : callable
        Planes (C, H, W), threads -> noise level, asked where sigma is None.
    signals : bool
        Whether one-dimensional input is accepted.
    sigma_maps : bool
        Whether sigma may differ between channels or pixels.
    min_size : callable
        Parameters -> the smallest height and width (length, for a signal) the method can work on.
    """
    if isinstance(image, Unseen):
        return image.take(Recipe(method, resolve, solve, min_size))
    begun = time.perf_counter()
    planes = to_planes(image, channel_axis, signals=signals)
    threads = check_workers(workers)
    noise_map: NDArray[np.float64] | None = None
    if isinstance(sigma, StandIn):
        noise = sigma.noise
    elif sigma is None:
        with Pool(threads) as pool:
            noise = estimate(to_host(planes.data), pool)
    elif sigma_maps and np.ndim(sigma) > 0:
        noise_map = check_sigma_map(sigma, planes)
        noise = _root_mean_square(np.broadcast_to(noise_map, planes.data.shape))
    else:
        noise = check_sigma(sigma)
    estimated = time.perf_counter()
    peak: float | None = None
    if isinstance(sigma, StandIn):
        scale, peak = sigma.units()
    else:
        scale = Scale.measure(planes.data, noise, planes.statistics, threads)
    if noise <= NEGLIGIBLE * scale.scale:
        # Parameters are still checked, so that a wrong one does not pass unseen.
        params = resolve(NEGLIGIBLE)
        details = {}
        result: NDArray[Any] = namespace(image).array(image, order="C")
    else:
        params = resolve(scale.sigma)
        _check_size(planes, min_size(params))
        pixels = scale.standardise(planes.data, threads)
        with reporting(progress, method) as report:
            job = Job(pixels, scale.sigma, params, threads, report, peak=peak)
            if noise_map is not None:
                job.sigma_map = (noise_map / scale.scale).astype(np.float32)
            denoised = solve(job)
        details = job.details
        result = planes.restore(scale.restore(planes.data, pixels, denoised, planes.dtype, threads))
    if not return_info:
        return result
    ended = time.perf_counter()
    timings = {"estimate_sigma": estimated - begun, "denoise": ended - estimated, "total": ended - begun}
    parameters: dict[str, Any] = asdict(params)  # type: ignore[call-overload]
    return result, Info(method, noise, parameters, timings, details, device or "cpu")


def solve_region(
    planes: NDArray[Any],
    region: Region,
    scale: Scale,
    params: Params,
    solve: Callable[[Job[Params]], NDArray[np.float32]],
    *,
    sigma_map: NDArray[Any] | None = None,
    workers: int = 1,
    progress: ProgressCallback | None = None,
    peak: float | None = None,
) -> NDArray[np.float64]:
    """Denoise a part of an image that is never held as a whole.

    With the same scale and parameters for every part, parts that are written side by side are the bytes of
    the whole, for methods whose tiles are anchored at the whole image.

    Parameters
    ----------
    planes : ndarray
        (channels, height, width), the pixels of ``region.read``.
    region : Region
        ``Region.around(shape, write, halo)`` with the method's halo.
    scale : Scale
        Of the whole image, or of a sample of it.
    params : dataclass
        The method's parameters, resolved for ``scale.sigma``.
    solve : callable
        The method's solver, as in :func:`run`.
    sigma_map : ndarray, optional
        Noise of every pixel of ``region.read``, in the units of the pixels, broadcastable to `planes`.
    workers, progress
        As in :func:`vnlem.denoise`.
    peak : float, optional
        For solvers of a GPU: the largest absolute value of the whole image in units of `scale`.

    Returns
    -------
    ndarray
        (channels, height, width) of ``region.write``, in the units of the pixels.

    Examples
    --------
    >>> from vnlem.methods.vnlr import halo, resolve, solve
    >>> from vnlem.pipeline.tiles import Tile
    >>> image = np.random.default_rng(0).normal(100, 20, (1, 96, 80))
    >>> scale = Scale.measure(image, 15.0)
    >>> params = resolve(scale.sigma, "fast", patch_distance=4, passes=1)
    >>> region = Region.around((96, 80), Tile(0, 40, 0, 80), halo(params))
    >>> solve_region(image[:, : region.read.bottom], region, scale, params, solve).shape
    (1, 40, 80)
    """
    rows, columns = region.written()
    data = np.asarray(planes, np.float64)
    if scale.noise <= NEGLIGIBLE * scale.scale:
        return data[:, rows, columns].copy()
    pixels = scale.standardise(data)
    job = Job(pixels, scale.sigma, params, workers, progress, region=region, peak=peak)
    if sigma_map is not None:
        job.sigma_map = (np.asarray(sigma_map, np.float64) / scale.scale).astype(np.float32)
    denoised = solve(job)
    return scale.restore(data[:, rows, columns], pixels[:, rows, columns], denoised[:, rows, columns])


def _root_mean_square(values: NDArray[np.float64]) -> float:
    peak = float(values.max())
    return peak * float(np.sqrt(np.mean((values / peak) ** 2))) if peak > 0 else 0.0


def _check_size(planes: Planes, smallest: int) -> None:
    height, width = planes.data.shape[1:]
    if min(height if planes.ndim > 1 else width, width) < smallest:
        shape = f"{height}x{width}" if planes.ndim > 1 else f"{width} samples long"
        raise ValueError(
            f"the image ({shape}) is smaller than the patch ({smallest}); "
            "pass a smaller patch_size or a larger image"
        )
