"""VNLR: groups of patches that agree up to a rotation or reflection, combined by ridge weights, put back.

image -> square patches -> k nearest up to a symmetry -> ridge combination of the group -> aggregation
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.estimate import contrast
from vnlem.estimate.ridge import PassSettings, TileWork, run_pass
from vnlem.estimate.scales import check_scales
from vnlem.features.channels import CHANNELS
from vnlem.kernels.numba.sheets import Images
from vnlem.methods.channels import by_channels
from vnlem.methods.scales import denoise_at_scales
from vnlem.neighbours.groups import (
    GROUPS,
    SCALING,
    TURNING,
    Matching,
    needed_before,
    reach_of_copies,
    tile_groups,
)
from vnlem.neighbours.sheets import Reach
from vnlem.noise.white import estimate_sigma_of_planes
from vnlem.pipeline import checks
from vnlem.pipeline.choices import Aim, Group, Preset, Profile
from vnlem.pipeline.device import choose, where_it_is_asked
from vnlem.pipeline.first_call import repeatable
from vnlem.pipeline.presets import check_preset
from vnlem.pipeline.progress import Progress, ProgressCallback
from vnlem.pipeline.regions import Region
from vnlem.pipeline.run import Job, Result, run
from vnlem.pipeline.tiles import Tile
from vnlem.pipeline.workers import Pool
from vnlem.registry import find_solver

# From this noise on, in units of the clean standard deviation, late passes use patches of 8 instead of 7.
LARGE_NOISE = 0.35

# Group "similarity" searches a window of so many times the profile's radius.
SIMILARITY_DISTANCE = 3

# What the result is judged by. For the eye the last pass is made twice, with these factors on the noise
# energy in the ridge: a smoother and a sharper estimate, which `vnlem.estimate.contrast` blends.
AIMS = ("fidelity", "perception")
SMOOTHER, SHARPER = 2.2, 0.7

# The largest values that are accepted: beyond them a group's matrices outgrow any use.
LIMITS = {"patch_size": 32, "n_neighbors": 512, "patch_distance": 1024, "step": 32, "passes": 16}

# Orthonormal opponent colours: brightness, red against blue, green against both. White noise stays white.
OPPONENT = np.array([[1 / 3**0.5] * 3, [1 / 2**0.5, 0.0, -1 / 2**0.5], [1 / 6**0.5, -2 / 6**0.5, 1 / 6**0.5]])


@dataclass(frozen=True)
class VnlrParams:
    """Parameters of VNLR; lengths in pixels."""

    profile: str
    group: str
    patch_size: int  # of the last pass
    patch_sizes: tuple[int, ...]  # of the first pass and of each pilot pass
    n_neighbors: int  # patches per group in pilot passes
    patch_distance: int  # radius of the search window
    copied_distance: int  # the same in turned and scaled copies
    step: int  # between reference patches
    passes: int  # pilot passes after the first
    rematch: tuple[int, ...]  # pilot passes, from 1, that search for new groups
    first_n_neighbors: int
    first_patch_distance: int
    first_step: int
    noise_kept: float  # tau of the first pass; falls linearly to zero in the last
    boost: float  # factor on the noise energy in the ridge
    extra_load: float  # of the first pass, in units of the noise energy
    first_match_penalty: float  # in the first pass a turned patch ranks with d^2 + this * n sigma^2
    flat_energy: float  # first pass: with less than this * n sigma^2 about its mean a patch is only shifted
    match_factor: float  # in pilot passes with match_factor * d^2 + match_penalty * n sigma^2
    match_penalty: float
    aim: str  # what the result is judged by


@dataclass(frozen=True)
class _Profile:
    """What a profile spends: group size, search radius, steps, passes."""

    n_neighbors: int
    patch_distance: int
    step: int
    passes: int
    first_n_neighbors: int
    first_patch_distance: int
    first_step: int
    boost: float


_PROFILES = {
    "quality": _Profile(80, 26, 5, 5, 24, 18, 2, 1.2),
    "balanced": _Profile(64, 20, 5, 4, 20, 16, 4, 1.15),
    "fast": _Profile(64, 14, 6, 3, 18, 12, 5, 1.15),
}
PROFILES = tuple(_PROFILES)


def resolve(
    sigma: float,
    profile: str = "balanced",
    group: str = "d4",
    *,
    patch_size: Any = None,
    n_neighbors: Any = None,
    patch_distance: Any = None,
    step: Any = None,
    passes: Any = None,
    aim: str = "fidelity",
) -> VnlrParams:
    """Parameters for a noise level in units of the clean image's standard deviation.

    Examples
    --------
    >>> resolve(0.2).patch_sizes, resolve(0.5).patch_sizes
    ((6, 7, 7, 7, 7), (6, 7, 7, 8, 8))
    """
    checks.choice("profile", profile, PROFILES)
    checks.choice("group", group, GROUPS)
    checks.choice("aim", aim, AIMS)
    given = _PROFILES[profile]

    def whole(name: str, value: Any, default: int, smallest: int = 1) -> int:
        return default if value is None else checks.whole(name, value, smallest, LIMITS[name])

    n_passes = whole("passes", passes, given.passes)
    if patch_size is None:
        # Small patches first: they keep detail that later passes can still smooth, and not the other way
        # round.
        late = 7 if sigma < LARGE_NOISE else 8
        early = n_passes // 2 if profile != "fast" else 0
        sizes = (6, *[7] * early, *[late] * (n_passes - early))
    else:
        sizes = (whole("patch_size", patch_size, 7, 2),) * (n_passes + 1)
    if step is not None and whole("step", step, 1) > min(sizes):
        raise ValueError(
            f"step must be at most the smallest patch of the passes, {min(sizes)}, or pixels between the "
            f"patches would have no estimate; got {step!r}"
        )
    # What recurs at other sizes is rarer: it is looked for farther away, though not in the copies.
    farther = SIMILARITY_DISTANCE if group in SCALING else 1
    distance = whole("patch_distance", patch_distance, farther * given.patch_distance)
    # New groups whenever the patch changes, and in every second pass: in between the pilot hardly moves.
    often = 2 if profile != "fast" else n_passes
    rematch = tuple(m for m in range(1, n_passes + 1) if m % often == 1 % often or sizes[m] != sizes[m - 1])
    return VnlrParams(
        profile=profile,
        group=group,
        patch_size=sizes[-1],
        patch_sizes=sizes,
        n_neighbors=whole("n_neighbors", n_neighbors, given.n_neighbors, 2),
        patch_distance=distance,
        copied_distance=min(given.patch_distance, distance) if group in SCALING else distance,
        step=whole("step", step, min(given.step, min(sizes[1:]))),
        passes=n_passes,
        rematch=rematch,
        first_n_neighbors=given.first_n_neighbors,
        first_patch_distance=min(given.first_patch_distance, distance),
        first_step=whole("step", step, min(given.first_step, sizes[0])),
        noise_kept=0.75,
        boost=given.boost,
        extra_load=0.25,
        first_match_penalty=0.6,
        flat_energy=1.25,
        match_factor=1.3,
        match_penalty=0.04,
        aim=aim,
    )


@where_it_is_asked
def denoise_vnlr(
    image: ArrayLike,
    sigma: Any = None,
    *,
    group: Group = "d4",
    profile: Profile = "balanced",
    preset: Preset = "auto",
    engine: str = "fast",
    channel_axis: int | None = None,
    patch_size: int | None = None,
    n_neighbors: int | None = None,
    patch_distance: int | None = None,
    step: int | None = None,
    passes: int | None = None,
    scales: int = 1,
    workers: int | None = None,
    progress: Progress = False,
    return_info: bool = False,
    device: str | None = None,
    channels: str = "auto",
    aim: Aim = "fidelity",
) -> Result:
    """Vector non-local ridge: groups of patches that agree up to a rotation or reflection.

    Parameters
    ----------
    image : array_like
        Grey image (H, W), or colour image with `channel_axis` (any number of channels).
    sigma : float or array_like, optional
        Standard deviation of the noise in the units of the pixels: a number, one number per channel, or a
        map of the image's size. Estimated when None.
    group : {"d4", "identity", "c4", "so2", "similarity"}
        How a patch may be moved to agree with another: "identity" shifts only; "c4" also quarter turns; "d4"
        also reflections; "so2" any angle: besides the symmetries of "d4", copies of the image turned in
        steps of 15 degrees are searched (six times the matching; worth it for particles at random angles);
        "similarity" also any size: copies scaled by 0.5 to 0.84, and a window of three times the radius (for
        particles of mixed sizes; not on a GPU).
    profile : {"balanced", "quality", "fast"}
        How much work is done.
    preset : {"auto"}
        There is no preset "paper" for this method.
    engine : {"fast", "reference"}
        "reference" is plain NumPy, for checks on small images.
    channel_axis : int, optional
        Axis of the channels.
    patch_size, n_neighbors, patch_distance, step, passes : int, optional
        Side of a patch, patches per group, radius of the search window, distance between reference
        patches, pilot passes; from the profile and sigma when None.
    scales : int
        With 3 the image is denoised at half and at a quarter of its size too, and the low frequencies of flat
        and of smooth areas are taken from there: better where noise is strong beside the signal.
    workers : int, optional
        Threads; all cores when None. The result does not depend on it.
    progress : bool or callable(done, total)
        Show a bar, or report to a function of your own.
    return_info : bool
        Return (image, info); ``info.details["turned_share"]`` is the share of turned or reflected members in
        each pass.
    device : {None, "cpu", "cuda", "cuda:1", "auto"}
        Where to run, see :func:`vnlem.denoise`.
    channels : {"auto", "joint", "separate"}
        Whether channels share their groups of patches. "auto" decides by the image: channels with the same
        edges at the same places, as those of a photograph, are handled jointly, independent ones (stains,
        fluorescence) one by one, and channels that are one picture, noise included, as that picture. Three
        channels that are handled jointly are taken for RGB and compared in opponent colours.
    aim : {"fidelity", "perception"}
        "fidelity" makes the expected error small. "perception" is for images that are looked at: the last
        pass is made twice, the sharper of the two counts where structure was lost, and local contrast that
        is missing is put back. Gains in SSIM and FSIM, costs some hundredths of a decibel; not on a GPU.

    Returns
    -------
    ndarray, or (ndarray, Info) with `return_info`
        The denoised image in the units, dtype and layout of the input.

    Notes
    -----
    Each group's patches are aligned and become columns; each estimate is an affine combination of them, with
    the weights that minimise the expected error for the known noise: from Stein's unbiased estimate in the
    first pass, from the pilot in the later ones [1]_. The noise in the working image falls from pass to
    pass [2]_. Every member is put back at its own place and orientation, weighted by its noise gain to the
    power -3/2. So that noise does not choose the transforms, a patch moved by g ranks with d_g^2 + 0.6 n
    sigma^2 in the first pass (not at all where the reference looks flat) and with 1.3 d_g^2 + 0.04 n sigma^2
    on the pilot, and a group where fewer than one member in eight would be turned or reflected has none.
    Time is proportional to pixels / step^2 * ((2 patch_distance + 1)^2 * 8 patch_size^2 + n_neighbors^3) per
    pass.

    References
    ----------
    .. [1] S. Herbreteau, C. Kervrann, "Towards a unified view of unsupervised non-local methods for image
       denoising: the NL-Ridge approach", 2022. arXiv:2203.00570
    .. [2] S. Herbreteau, C. Kervrann, "Unsupervised linear and iterative combinations of patches for image
       denoising", 2022. arXiv:2212.00422

    Examples
    --------
    >>> import numpy as np, vnlem
    >>> y, x = np.mgrid[:48, :48]
    >>> clean = 100.0 * ((y - 24) ** 2 + (x - 24) ** 2 < 200)
    >>> noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    >>> result = vnlem.denoise_vnlr(noisy, 20, profile="fast")
    >>> bool(np.std(result - clean) < 0.4 * np.std(noisy - clean))
    True
    """
    check_preset("vnlr", preset)
    if check_scales(scales) > 1:
        return denoise_at_scales(
            denoise_vnlr,
            image,
            sigma,
            scales,
            group=group,
            profile=profile,
            engine=engine,
            channel_axis=channel_axis,
            patch_size=patch_size,
            n_neighbors=n_neighbors,
            patch_distance=patch_distance,
            step=step,
            passes=passes,
            workers=workers,
            progress=progress,
            return_info=return_info,
            device=device,
            channels=channels,
            aim=aim,
        )

    def parameters(standard_sigma: float) -> VnlrParams:
        return resolve(
            standard_sigma,
            profile,
            group,
            patch_size=patch_size,
            n_neighbors=n_neighbors,
            patch_distance=patch_distance,
            step=step,
            passes=passes,
            aim=aim,
        )

    def one(picture: Any, level: Any, axis: int | None, report: Progress) -> Result:
        return run(
            picture,
            level,
            method="vnlr",
            resolve=parameters,
            solve=find_solver("vnlr", engine, choose(device, image)),
            estimate=estimate_sigma_of_planes,
            channel_axis=axis,
            workers=workers,
            progress=report,
            return_info=return_info,
            device=device,
            sigma_maps=True,
            min_size=lambda params: max(params.patch_sizes),
        )

    checks.choice("channels", channels, CHANNELS)
    if channel_axis is not None and channels != "joint":
        return by_channels(one, image, sigma, channel_axis, progress, channels)
    return one(image, sigma, channel_axis, progress)


def halo(params: VnlrParams) -> int:
    """How many pixels around a part of an image its result depends on.

    In every pass a pixel depends on groups that reach it, and these on all pixels in their search windows.

    Examples
    --------
    >>> halo(resolve(0.2, "fast")), halo(resolve(0.2)), halo(resolve(0.2, "quality"))
    (131, 221, 331)
    """
    distance = 0
    for number in range(params.passes + 1):
        distance += sum(_reaches(params, number))
    return distance + _reach_of_aim(params)


def work_halo(params: VnlrParams) -> int:
    """How many pixels around a part of an image are worked on, in the mean over the passes.

    The last pass works hardly beyond what is written, the first almost as far as what is read.

    Examples
    --------
    >>> work_halo(resolve(0.2, "fast")), work_halo(resolve(0.2)), work_halo(resolve(0.2, "quality"))
    (71, 117, 176)
    """
    reaches = [_reaches(params, number) for number in range(params.passes + 1)]
    margins = [groups + sum(map(sum, reaches[number + 1 :])) for number, (groups, _) in enumerate(reaches)]
    return -(-sum(margins) // len(margins)) + _reach_of_aim(params)


def _reach_of_aim(params: VnlrParams) -> int:
    """How many pixels around a pixel must be right after the last pass."""
    return contrast.reach() if params.aim == "perception" else 0


def _reaches(params: VnlrParams, number: int) -> tuple[int, int]:
    """Distances from a pixel to the references of its groups, and from these to what they read."""
    radius = params.first_patch_distance if number == 0 else params.patch_distance
    size = params.patch_sizes[number]
    copied = reach_of_copies(_group_of(params, number), min(params.copied_distance, radius), size)
    return radius + size - 1, max(radius, copied)


def _group_of(params: VnlrParams, number: int) -> str:
    """Copies wait for a pilot: on noise their many times as many candidates only add chance."""
    return "d4" if number == 0 and params.group in TURNING else params.group


@repeatable
def solve(job: Job[VnlrParams]) -> NDArray[np.float32]:
    """The schedule of passes: first without a pilot, then with ever less noise left in the working image."""
    params = job.params
    region = job.region or Region.whole(*job.pixels.shape[1:])
    noisy, variance = _to_opponent(job)
    images = Images(noisy, noisy.copy(), noisy.copy(), variance)
    matchings = [
        matching_of(params, number, region, len(noisy), job.sigma) for number in range(params.passes + 1)
    ]
    areas = needed_areas(params, matchings, region)
    report = _PassProgress(job.progress, params.passes + 1)
    shares = []
    works: list[TileWork] = []
    smoother = None
    with Pool(job.workers) as pool:
        for number, matching in enumerate(matchings):
            first = number == 0
            if first or number in params.rematch:
                step = params.first_step if first else params.step
                works = [TileWork(groups) for groups in tile_groups(matching.reach, step, areas[number + 1])]
            else:
                parts = [work.needing(matching, areas[number + 1]) for work in works]
                works = [work for work in parts if work is not None]
            settings = PassSettings(
                tau=params.noise_kept * (1 - number / params.passes),
                boost=params.boost,
                extra_load=params.extra_load if first else None,
            )
            if number == params.passes and params.aim == "perception":
                smoother = Images(noisy, images.working.copy(), images.pilot.copy(), variance)
                smooth = replace(settings, boost=SMOOTHER)
                run_pass(smoother, works, matching, smooth, areas[number + 1], pool, keep=True)
                settings = replace(settings, boost=SHARPER)
            turned, total = run_pass(
                images,
                works,
                matching,
                settings,
                areas[number + 1],
                pool,
                report.of(number),
                keep=not first and number < params.passes and number + 1 not in params.rematch,
            )
            shares.append(turned / total)
    job.details["turned_share"] = shares
    pilot = images.pilot
    if smoother is not None:
        pilot = contrast.for_the_eye(smoother.pilot, pilot, noisy, variance)
    return _from_opponent(pilot)


def matching_of(params: VnlrParams, number: int, region: Region, channels: int, sigma: float) -> Matching:
    """How the groups of a pass are found."""
    first = number == 0
    size = params.patch_sizes[number]
    radius = params.first_patch_distance if first else params.patch_distance
    # A window is never larger than the image.
    reach = Reach(size, min(radius, max(region.shape) - size), region)
    return Matching(
        reach,
        _group_of(params, number),
        params.first_n_neighbors if first else params.n_neighbors,
        matching_weights(channels, first).ravel(),
        factor=1.0 if first else params.match_factor,
        penalty=params.first_match_penalty if first else params.match_penalty,
        flat_energy=params.flat_energy if first else 0.0,
        least_variance=_least_variance(sigma),
        copied_radius=params.copied_distance,
    )


def needed_areas(params: VnlrParams, matchings: list[Matching], region: Region) -> list[Tile]:
    """The pixels, of the whole image, that must be right before each pass and after the last."""
    areas = [Region.around(region.shape, region.write, _reach_of_aim(params)).read]
    for number, matching in reversed(list(enumerate(matchings))):
        reach = matching.reach
        step = params.first_step if number == 0 else params.step
        areas.insert(0, needed_before(reach, step, areas[0], matching.reach_of_copies()))
    needed, read = areas[0], region.read
    if not (
        read.top <= needed.top
        and needed.bottom <= read.bottom
        and read.left <= needed.left
        and needed.right <= read.right
    ):
        raise ValueError(
            f"the region reads {tuple(read)} and VNLR needs {tuple(needed)} (top, bottom, left, right); "
            "read `vnlem.methods.vnlr.halo(params)` pixels around what is written"
        )
    return areas


def solve_plainly(job: Job[VnlrParams]) -> NDArray[np.float32]:
    """The same with the NumPy reference."""
    from vnlem.reference import vnlr as reference

    noisy, variance = _to_opponent(job)
    weights = [matching_weights(len(noisy), first).astype(np.float64) for first in (True, False)]
    everywhere = np.broadcast_to(variance.astype(np.float64), noisy.shape)
    denoised, shares = reference.denoise(noisy.astype(np.float64), everywhere, job.params, weights)
    job.details["turned_share"] = shares
    return _from_opponent(denoised.astype(np.float32))


def _least_variance(sigma: float) -> float:
    """A patch with no noise at all, or with less than single precision knows, would make its weights 0/0."""
    return max(1e-6 * sigma**2, 1e-30)


def _to_opponent(job: Job[VnlrParams]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The image, and its noise variance, in the space where patches are compared and combined.

    The variance is (channels, H, W), or (channels, 1, 1) where it does not vary.
    """
    channels = len(job.pixels)
    sigma = np.asarray(job.sigma if job.sigma_map is None else job.sigma_map, np.float32)
    shape = job.pixels.shape if sigma.ndim == 3 and sigma.shape[2] > 1 else (channels, 1, 1)
    variance = np.broadcast_to(np.maximum(sigma**2, np.float32(_least_variance(job.sigma))), shape)
    if channels != 3:
        return job.pixels, np.ascontiguousarray(variance, np.float32)
    return _mixed(OPPONENT, job.pixels), _mixed(OPPONENT**2, variance)


def _from_opponent(planes: NDArray[np.float32]) -> NDArray[np.float32]:
    return planes if len(planes) != 3 else _mixed(OPPONENT.T, planes)


def _mixed(matrix: NDArray[np.float64], planes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Linear combinations of three channels, pixel by pixel: the same wherever a pixel lies in an array."""
    result = np.empty(planes.shape, np.float32)
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


class _PassProgress:
    """Progress over all passes from the progress of each."""

    def __init__(self, report: ProgressCallback | None, n_passes: int) -> None:
        self._report, self._n_passes = report, n_passes

    def of(self, number: int) -> ProgressCallback | None:
        report = self._report
        if report is None:
            return None
        return lambda done, total: report(number * total + done, self._n_passes * total)
