"""A method at several scales: the image, the image at half its size, and so on, joined coarse to fine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vnlem.estimate import scales as on_host
from vnlem.noise.white import estimate_sigma_of_planes
from vnlem.pipeline.device import lies_on_gpu, namespace, to_host
from vnlem.pipeline.image import to_planes
from vnlem.pipeline.progress import reporting
from vnlem.pipeline.run import Result
from vnlem.pipeline.sigma import check_sigma, check_sigma_map
from vnlem.pipeline.workers import Pool, check_workers


def denoise_at_scales(
    method: Callable[..., Result], image: ArrayLike, sigma: Any, scales: int, **options: Any
) -> Result:
    """Denoise with `method` at several scales.

    Parameters
    ----------
    method : callable(image, sigma, **options)
        What denoises one scale.
    image, sigma
        As the method takes them.
    scales : int
        How many, each half the size of the one before. Fewer where the image would become too small.
    **options
        Of the method.

    Returns
    -------
    ndarray, or (ndarray, Info)
        With ``info.details["scales"]``, their number.
    """
    progress, return_info = options.pop("progress", False), options.pop("return_info", False)
    planes = to_planes(image, options.get("channel_axis"))
    xp = namespace(planes.data)
    noise: Any
    if sigma is None:
        with Pool(check_workers(options.get("workers"))) as pool:
            noise = estimate_sigma_of_planes(to_host(planes.data), pool)
    elif np.ndim(sigma) > 0:
        noise = check_sigma_map(sigma, planes)
    else:
        noise = check_sigma(sigma)
    levels = [(planes.data, noise)]
    with _tools(planes.data, options.get("workers")) as (halve, _):
        while len(levels) < scales and min(levels[-1][0].shape[1:]) >= 2 * on_host.SMALLEST:
            levels.append((halve(levels[-1][0]), _halved_noise(levels[-1][1], halve)))
    results, infos = [], []
    # A scale has a quarter of the pixels of the one before.
    work = np.cumsum([0.25**number for number in range(len(levels))])
    with reporting(progress, "vnlr") as report:
        for number, (data, spread) in enumerate(levels):
            start, whole = work[number] - 0.25**number, work[-1]

            def part(
                done: int, total: int, start: float = start, size: float = 0.25**number, whole: float = whole
            ) -> None:
                if report is not None:
                    report(int(1e6 * (start + size * done / max(total, 1)) / whole), 1_000_000)

            level = spread
            if np.ndim(spread) > 0:
                level = planes.layout(xp.ascontiguousarray(xp.broadcast_to(spread, data.shape)))
            one, info = method(
                planes.layout(data),
                level,
                progress=False if report is None else part,
                return_info=True,
                **options,
            )
            results.append(to_planes(one, planes.channel_axis).data)
            infos.append(info)
    joined = results.pop()
    with _tools(planes.data, options.get("workers")) as (_, join):
        while results:
            joined = join(results.pop(), joined, levels[len(results)][1])
    result = planes.restore(joined)
    if not return_info:
        return result
    timings = {name: sum(info.timings[name] for info in infos) for name in infos[0].timings}
    details = {**infos[0].details, "scales": len(levels)}
    return result, replace(infos[0], timings=timings, details=details)


@contextmanager
def _tools(planes: Any, workers: int | None) -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
    """How planes are halved and joined where they lie."""
    if lies_on_gpu(planes):
        from vnlem.methods.cuda import scales as on_device

        yield on_device.halve, on_device.join
        return
    with Pool(check_workers(workers)) as pool:
        yield partial(on_host.halve_in_tiles, pool=pool), partial(on_host.join_in_tiles, pool=pool)


def _halved_noise(noise: Any, halve: Callable[..., Any]) -> Any:
    """Standard deviation at half the size of a noise level or a map of it."""
    if np.ndim(noise) == 0 or 1 in noise.shape[1:]:
        return noise / 2
    return namespace(noise).sqrt(halve(noise**2).clip(0.0)) / 2
