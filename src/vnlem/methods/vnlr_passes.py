"""The passes of VNLR: first without a pilot, then with ever less noise left in the working image."""

from dataclasses import replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate import change, contrast, flux
from vnlem.estimate.ridge import KnownGroups, Pass, PassSettings, run_passes
from vnlem.kernels.cpu.sheets import Images
from vnlem.methods.vnlr_params import VnlrParams
from vnlem.neighbours.groups import COPIES, Matching, TileGrid, needed_before, reach_of_copies
from vnlem.neighbours.sheets import Copies, Reach
from vnlem.noise.components import OPPONENT
from vnlem.pipeline.device import namespace
from vnlem.pipeline.progress import ProgressCallback
from vnlem.pipeline.regions import Region
from vnlem.pipeline.run import Job
from vnlem.pipeline.tiles import Tile
from vnlem.pipeline.workers import Pool

# For perception the last pass runs twice, with these factors on the noise energy in the ridge: a smoother and
# a sharper estimate, which `vnlem.estimate.contrast` blends.
SMOOTHER, SHARPER = 2.2, 0.7


def halo(params: VnlrParams) -> int:
    """How many pixels around a part of an image its result depends on.

    In every pass a pixel depends on groups that reach it, and these on all pixels in their search windows.

    >>> from vnlem.methods.vnlr_params import resolve
    >>> halo(resolve(0.2, "fast")), halo(resolve(0.2)), halo(resolve(0.2, "quality"))
    (139, 229, 339)
    """
    distance = 0
    for number in range(params.passes + 1):
        distance += sum(_reaches(params, number))
    return distance + _reach_of_end(params)


def work_halo(params: VnlrParams) -> int:
    """How many pixels around a part of an image are processed, averaged over the passes.

    The last pass hardly goes beyond what is written, the first goes almost as far as what is read.

    >>> from vnlem.methods.vnlr_params import resolve
    >>> work_halo(resolve(0.2, "fast")), work_halo(resolve(0.2)), work_halo(resolve(0.2, "quality"))
    (79, 125, 184)
    """
    reaches = [_reaches(params, number) for number in range(params.passes + 1)]
    margins = [groups + sum(map(sum, reaches[number + 1 :])) for number, (groups, _) in enumerate(reaches)]
    return -(-sum(margins) // len(margins)) + _reach_of_end(params)


def _reach_of_end(params: VnlrParams) -> int:
    """How many pixels around a pixel must be right after the last pass."""
    return change.REACH + {"perception": contrast.reach(), "flux": flux.reach()}.get(params.aim, 0)


def _reaches(params: VnlrParams, number: int) -> tuple[int, int]:
    """Distances from a pixel to the references of its groups, and from these to what they read."""
    radius = params.first_patch_distance if number == 0 else params.patch_distance
    size = params.patch_sizes[number]
    copied = reach_of_copies(_copies_of(params, number), min(params.copied_distance, radius), size)
    return radius + size - 1, max(radius, copied)


def _copies_of(params: VnlrParams, number: int) -> tuple[Copies, ...]:
    """Copies are used once there is a pilot: on noise their many candidates only add chance matches."""
    return () if number == 0 else COPIES.get(params.group, ())


def solve(job: Job[VnlrParams]) -> NDArray[np.float32]:
    """The schedule of passes: first without a pilot, then with ever less noise left in the working image."""
    params = job.params
    region = job.region or Region.whole(*job.pixels.shape[1:])
    noisy, variance = _in_opponent(job)
    matchings = [
        matching_of(params, number, region, len(noisy), job.sigma) for number in range(params.passes + 1)
    ]
    passes = _passes(params, matchings, needed_areas(params, matchings, region))
    twice: list[Pass] = []
    smoother = None
    if params.aim == "perception":
        twice = _made_twice(passes.pop())
    with Pool(job.workers) as pool:
        images = Images(noisy, _copy(noisy, pool), _copy(noisy, pool), variance)
        report = _Progress(job.progress, [passes, *([one] for one in twice)])
        counts = run_passes(images, passes, pool, report.of(0))
        if params.aim == "perception":
            smoother = Images(noisy, _copy(images.working, pool), _copy(images.pilot, pool), variance)
            run_passes(smoother, twice[:1], pool, report.of(1))
            counts += run_passes(images, twice[1:], pool, report.of(2))
        pilot = images.pilot
        if smoother is not None:
            pilot = contrast.restore_contrast(smoother.pilot, pilot, noisy, variance, contrast.smooth)
        if params.aim == "flux":
            pilot = flux.restore_flux(pilot, noisy, variance, contrast.smooth)
        result = change.shrink_change_in_strips(noisy, pilot, variance, pool)
    job.details["turned_share"] = [turned / total for turned, total in counts]
    return from_opponent(result)


def _copy(planes: NDArray[np.float32], pool: Pool) -> NDArray[np.float32]:
    """On all workers, because new memory is slow to write."""
    copied = np.empty_like(planes)

    def copy(top: int) -> None:
        copied[:, top : top + change.STRIP] = planes[:, top : top + change.STRIP]

    pool.for_each(copy, range(0, planes.shape[1], change.STRIP))
    return copied


def _passes(params: VnlrParams, matchings: list[Matching], areas: list[Tile]) -> list[Pass]:
    """All passes. One that does not search for new groups uses those of the pass before."""
    passes: list[Pass] = []
    for number, matching in enumerate(matchings):
        first, needed = number == 0, areas[number + 1]
        known = None if first or number in params.rematch else passes[-1].kept
        if known is None:
            step = params.first_step if first else params.step
            grid = TileGrid.of(matching.reach, step, needed, matching.tile_side())
        else:
            grid = passes[-1].grid.needing(needed)
        settings = PassSettings(
            tau=params.noise_kept * (1 - number / params.passes),
            boost=params.boost,
            colour_boost=params.colour_boost,
            extra_load=params.extra_load if first else None,
            window=params.window,
        )
        keeps = number < params.passes and number + 1 not in params.rematch
        passes.append(Pass(grid, matching, settings, needed, known, {} if keeps else None))
    return passes


def _made_twice(last: Pass) -> list[Pass]:
    """The last pass, smoother and then sharper, with the same groups."""
    found: KnownGroups = {}
    smoother = replace(last, settings=replace(last.settings, boost=SMOOTHER), kept=found)
    settings = replace(last.settings, boost=SHARPER)
    return [smoother, replace(last, settings=settings, grid=last.grid.needing(last.needed), known=found)]


def matching_of(params: VnlrParams, number: int, region: Region, channels: int, sigma: float) -> Matching:
    """How the groups of a pass are found."""
    first = number == 0
    size = params.patch_sizes[number]
    radius = params.first_patch_distance if first else params.patch_distance
    # A window is never larger than the image.
    reach = Reach(size, min(radius, max(region.shape) - size), region)
    return Matching(
        reach,
        params.group,
        params.first_n_neighbors if first else params.n_neighbors,
        matching_weights(channels, first).ravel(),
        factor=1.0 if first else params.match_factor,
        penalty=params.first_match_penalty if first else params.match_penalty,
        flat_energy=params.flat_energy if first else 0.0,
        least_variance=_least_variance(sigma),
        copies=_copies_of(params, number),
        copied_radius=params.copied_distance,
        pattern=params.pattern,
    )


def needed_areas(params: VnlrParams, matchings: list[Matching], region: Region) -> list[Tile]:
    """The pixels, of the whole image, that must be right before each pass and after the last."""
    if region.write == Tile(0, region.shape[0], 0, region.shape[1]):
        return [region.write] * (len(matchings) + 1)
    areas = [region.write.grown(_reach_of_end(params), region.shape)]
    for number, matching in reversed(list(enumerate(matchings))):
        reach = matching.reach
        step = params.first_step if number == 0 else params.step
        areas.insert(0, needed_before(reach, step, areas[0], matching.reach_of_copies()))
    needed, read = areas[0], region.read
    if not read.contains(needed):
        raise ValueError(
            f"the region reads {tuple(read)} and VNLR needs {tuple(needed)} (top, bottom, left, right); "
            "read `vnlem.methods.vnlr.halo(params)` pixels around what is written"
        )
    return areas


def solve_plainly(job: Job[VnlrParams]) -> NDArray[np.float32]:
    """The same with the NumPy reference."""
    from vnlem.reference import vnlr as reference

    noisy, variance = _in_opponent(job)
    weights = [matching_weights(len(noisy), first).astype(np.float64) for first in (True, False)]
    everywhere = np.broadcast_to(variance.astype(np.float64), noisy.shape)
    denoised, shares = reference.denoise(noisy.astype(np.float64), everywhere, job.params, weights)
    job.details["turned_share"] = shares
    return from_opponent(denoised.astype(np.float32))


def _least_variance(sigma: float) -> float:
    """A patch without noise, or with less than single precision resolves, would make its weights 0/0."""
    return max(1e-6 * sigma**2, 1e-30)


def _in_opponent(job: Job[VnlrParams]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The image, and its noise variance, in the space where patches are compared and combined.

    The variance is (channels, H, W), or (channels, 1, 1) if it does not vary.
    """
    channels = len(job.pixels)
    sigma = np.asarray(job.sigma if job.sigma_map is None else job.sigma_map, np.float32)
    shape = job.pixels.shape if sigma.ndim == 3 and sigma.shape[2] > 1 else (channels, 1, 1)
    variance = np.broadcast_to(np.maximum(sigma**2, np.float32(_least_variance(job.sigma))), shape)
    if channels != 3:
        return job.pixels, np.ascontiguousarray(variance, np.float32)
    return to_opponent(job.pixels), _mixed(OPPONENT**2, variance)


def to_opponent(planes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Three channels as opponent colours; any other number of channels unchanged."""
    return planes if len(planes) != 3 else _mixed(OPPONENT, planes)


def from_opponent(planes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Undo :func:`to_opponent`."""
    return planes if len(planes) != 3 else _mixed(OPPONENT.T, planes)


def _mixed(matrix: NDArray[np.float64], planes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Linear combinations of three channels, pixel by pixel: they do not depend on a pixel's place."""
    result: NDArray[np.float32] = namespace(planes).empty(planes.shape, np.float32)
    for row, to in zip(matrix.astype(np.float32), result, strict=True):
        np.multiply(planes[0], row[0], out=to)
        to += planes[1] * row[1]
        to += planes[2] * row[2]
    return result


def matching_weights(channels: int, first: bool) -> NDArray[np.float32]:
    """Weight of each channel, (channels, 1, 1), in the comparison of patches."""
    weights = np.ones((channels, 1, 1), np.float32)
    if channels == 3:
        weights[1:] = 0.0 if first else 0.7
    return weights


class _Progress:
    """Progress over all runs of passes from the progress of each."""

    def __init__(self, report: ProgressCallback | None, runs: list[list[Pass]]) -> None:
        self._report = report
        tiles = [sum(len(one.grid.rows) * len(one.grid.columns) for one in run) for run in runs]
        self._before = [0, *accumulate(tiles)]

    def of(self, number: int) -> ProgressCallback | None:
        report, before, total = self._report, self._before[number], self._before[-1]
        if report is None:
            return None
        return lambda done, _: report(before + done, total)
