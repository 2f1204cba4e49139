"""A method: the median of the central pixels of VNLEM's neighbours."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vnlem.features.canonical import Extended, whole_region
from vnlem.methods.vnlem_params import VnlemParams, check_params, make_rule, rings_of, search_of
from vnlem.neighbours.window import find_neighbours
from vnlem.pipeline.method import Method
from vnlem.pipeline.progress import Progress
from vnlem.pipeline.run import Job


def denoise_median(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    preset: str = "auto",
    patch_size: int = 5,
    engine: str = "fast",
    channel_axis: int | None = None,
    workers: int | None = None,
    progress: Progress = False,
    return_info: bool = False,
    device: str | None = None,
) -> Any:
    """The public function: its keyword arguments are the list of the method's parameters."""
    return METHOD.denoise(**locals())


def resolve(noise: float, ndim: int, *, preset: str, engine: str, patch_size: int) -> VnlemParams:
    """All parameters, checked, for a noise level in units of the clean image's standard deviation."""
    return check_params(patch_size=patch_size, patch_distance=3, n_neighbors=40)


def solve(job: Job[VnlemParams]) -> Any:
    """The denoised pixels (channels, height, width) of a standardised image."""
    rings = rings_of(job.params, len(job.pixels))
    image = Extended.of(job.pixels, rings, job.params.scale)
    region = whole_region(image, rings, job.params.scale, job.params.arc, job.workers)
    search, rule = search_of(job.params, rings, image.shape), make_rule(job.params, job.sigma, rings)
    found = find_neighbours(region, search, rule, (0, 0), image.shape)
    values = region.pixels.reshape(-1, len(job.pixels))[found.position]
    values[np.arange(search.n_neighbors) >= found.counts[..., None]] = np.nan
    return np.moveaxis(np.nanmedian(values, axis=2), -1, 0).astype(np.float32)


METHOD = Method(
    name="median",
    function="vnlem_example.median:denoise_median",
    resolve=resolve,
    engines={"fast": "vnlem_example.median:solve"},
)
