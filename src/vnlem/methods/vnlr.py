"""VNLR: groups of patches that agree up to a rotation or reflection, ridge combination, aggregation, pilot passes.

image -> square patches -> k nearest up to a symmetry -> ridge combination of the group -> aggregation
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem import checks
from vnlem.estimate.groups import GROUPS, Matcher, Members, reference_tiles
from vnlem.estimate.aggregate import patch_sums
from vnlem.estimate.ridge import PassSettings, RidgePass, run_pass
from vnlem.estimate.turn import TurnedCopies
from vnlem.frame import Job, Progress, Result, run
from vnlem.tiles import ProgressCallback

PROFILES = ("quality", "balanced", "fast")

# Angles of the turned copies that "so2" searches beside the image; the symmetries of the square do the rest.
TURNS = (15.0, 30.0, 45.0, 60.0, 75.0)

# Orthonormal opponent colours: brightness, red against blue, green against both. White noise stays white.
OPPONENT = np.array([[1 / 3**0.5] * 3, [1 / 2**0.5, 0.0, -1 / 2**0.5], [1 / 6**0.5, -2 / 6**0.5, 1 / 6**0.5]])


@dataclass(frozen=True)
class VnlrParams:
    """Parameters of VNLR; lengths in pixels."""

    profile: str
    group: str
    patch_size: int
    n_neighbors: int  # patches per group in pilot passes
    patch_distance: int  # radius of the search window
    step: int  # between reference patches
    passes: int  # pilot passes after the first
    rematch: tuple[int, ...]  # pilot passes (from 1) that search for new groups
    first_patch_size: int
    first_n_neighbors: int
    first_patch_distance: int
    first_step: int
    noise_kept: float  # tau of the first pass; falls linearly to zero in the last
    boost: float  # factor on the noise energy in the ridge
    extra_load: float  # of the first pass, in units of the noise energy
    match_factor: float  # a turned patch ranks with match_factor * d^2 + match_penalty * n sigma^2
    match_penalty: float


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
) -> VnlrParams:
    """Parameters for a noise level in units of the clean image's standard deviation."""
    checks.choice("profile", profile, PROFILES)
    checks.choice("group", group, GROUPS)
    size = patch_size if patch_size is not None else (7 if sigma < 0.3 else 8)
    settings: dict[str, dict[str, Any]] = {
        "quality": dict(k=64, distance=20, step=3, passes=4, first_step=3, first_distance=18),
        "balanced": dict(k=64, distance=16, step=4, passes=3, first_step=4, first_distance=14),
        "fast": dict(k=48, distance=11, step=5, passes=2, first_step=5, first_distance=9),
    }
    chosen = settings[profile]
    n_passes = checks.whole("passes", chosen["passes"] if passes is None else passes)
    return VnlrParams(
        profile=profile,
        group=group,
        patch_size=checks.whole("patch_size", size, 2),
        n_neighbors=checks.whole("n_neighbors", chosen["k"] if n_neighbors is None else n_neighbors, 2),
        patch_distance=checks.whole(
            "patch_distance", chosen["distance"] if patch_distance is None else patch_distance
        ),
        step=checks.whole("step", chosen["step"] if step is None else step),
        passes=n_passes,
        rematch=tuple(range(1, n_passes + 1)),
        first_patch_size=7 if patch_size is None else size,
        first_n_neighbors=18,
        first_patch_distance=chosen["first_distance"] if patch_distance is None else patch_distance,
        first_step=chosen["first_step"] if step is None else step,
        noise_kept=0.75,
        boost=1.1,
        extra_load=0.25,
        match_factor=1.2,
        match_penalty=0.02,
    )


def denoise_vnlr(
    image: ArrayLike,
    sigma: Any = None,
    *,
    group: str = "d4",
    profile: str = "balanced",
    preset: str = "auto",
    engine: str = "fast",
    channel_axis: int | None = None,
    patch_size: int | None = None,
    n_neighbors: int | None = None,
    patch_distance: int | None = None,
    step: int | None = None,
    passes: int | None = None,
    workers: int | None = None,
    progress: Progress = False,
    return_info: bool = False,
) -> Result:
    """Denoise."""
    if preset == "paper":
        raise ValueError('preset "paper" exists for nlem, vnlem and vnlem-dd; vnlr takes profile= instead')
    checks.choice("preset", preset, ("auto",))
    checks.choice("engine", engine, ("fast", "reference"))

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
        )

    return run(
        image,
        sigma,
        method="vnlr",
        resolve=parameters,
        solve=_solve if engine == "fast" else _solve_plainly,
        channel_axis=channel_axis,
        workers=workers,
        progress=progress,
        return_info=return_info,
        sigma_maps=True,
        min_size=lambda params: max(params.patch_size, params.first_patch_size),
    )


def _solve(job: Job[VnlrParams]) -> NDArray[np.float32]:
    """The schedule of passes: first without a pilot, then with ever less noise left in the working image."""
    params = job.params
    noisy, variance = _to_opponent(job)
    channels, height, width = noisy.shape
    pilot = working = noisy
    shares = []
    report = _PassProgress(job.progress, params.passes + 1)
    kept: list[Members | None] = []
    for number in range(params.passes + 1):
        first = number == 0
        size = params.first_patch_size if first else params.patch_size
        group = "identity" if first else params.group
        copies = TurnedCopies(height, width, TURNS) if group == "so2" else None
        references = reference_tiles(height, width, size, params.first_step if first else params.step)
        ridge = RidgePass(
            noisy,
            working,
            pilot,
            variance,
            group=group,
            settings=PassSettings(
                patch_size=size,
                tau=params.noise_kept * (1 - number / params.passes),
                boost=params.boost,
                extra_load=params.extra_load if first else None,
            ),
            copies=copies,
        )
        groups: Matcher | list[Members]
        if first or number in params.rematch:
            shown = pilot * _matching_weights(channels, first)
            groups = Matcher(
                shown,
                copies,
                patch_size=size,
                radius=params.first_patch_distance if first else params.patch_distance,
                n_members=params.first_n_neighbors if first else params.n_neighbors,
                group=group,
                factor=params.match_factor,
                penalty=params.match_penalty * patch_sums(variance.sum(axis=0), size),
            )
            kept = [None] * len(references)
        else:
            groups = [members for members in kept if members is not None]
        reused = number + 1 <= params.passes and number + 1 not in params.rematch
        pilot, working, (turned, total) = run_pass(
            ridge, references, groups, job.workers, report.of(number), kept if reused and not first else None
        )
        shares.append(turned / total)
    job.details["turned_share"] = shares
    return _from_opponent(pilot)


def _solve_plainly(job: Job[VnlrParams]) -> NDArray[np.float32]:
    """The same with the NumPy reference."""
    from vnlem.reference import vnlr as reference

    noisy, variance = _to_opponent(job)
    weights = [_matching_weights(len(noisy), first).astype(np.float64) for first in (True, False)]
    denoised, shares = reference.denoise(
        noisy.astype(np.float64), variance.astype(np.float64), job.params, weights
    )
    job.details["turned_share"] = shares
    return _from_opponent(denoised.astype(np.float32))


def _to_opponent(job: Job[VnlrParams]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The image, and its noise variance per pixel, in the space where patches are compared and combined."""
    sigma: Any = job.sigma if job.sigma_map is None else job.sigma_map
    variance = np.broadcast_to(np.asarray(sigma, np.float32) ** 2, job.pixels.shape)
    # A patch with no noise at all would make its own weights 0/0.
    variance = np.maximum(variance, np.float32(1e-6 * job.sigma**2))
    if job.pixels.shape[0] != 3:
        return job.pixels, variance
    turned = np.tensordot(OPPONENT, job.pixels, axes=1).astype(np.float32)
    return turned, np.tensordot(OPPONENT**2, variance, axes=1).astype(np.float32)


def _from_opponent(planes: NDArray[np.float32]) -> NDArray[np.float32]:
    if planes.shape[0] != 3:
        return planes
    return np.tensordot(OPPONENT.T, planes, axes=1).astype(np.float32)


def _matching_weights(channels: int, first: bool) -> NDArray[np.float32]:
    """Weight of each channel in the comparison of patches."""
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
