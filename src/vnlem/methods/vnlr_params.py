"""Parameters of VNLR: what a profile spends, and what follows from the noise."""

from dataclasses import dataclass, replace
from typing import Any

from vnlem.neighbours.groups import GROUPS
from vnlem.pipeline import checks

# What RGB images do differently, see `in_colour`; chosen on clean photographs of polyu and photo_pairs.
COLOUR_BOOST, COLOUR_NOISE_KEPT, COLOUR_EARLY_PATCH = 1.4, 0.85, 6
# From this noise on, in units of the clean standard deviation, late passes use patches of 8 instead of 7.
LARGE_NOISE = 0.35
# How much less the border of a patch counts than its centre: the beta of a Kaiser window. At 2.5 the mean of
# Set12 gains a little more, but single images lose.
WINDOW = 1.5
# Below this noise all pixels of a patch have equal weight: a window gains nothing there, and smooths texture
# more if sigma is estimated too high.
SMALL_NOISE = 0.1

# Group "similarity" is "so2" in a window of this many times the profile's radius.
SIMILARITY_DISTANCE = 3

# What the result is judged by.
AIMS = ("fidelity", "perception", "flux")

# The largest accepted values: beyond them a group's matrices are too large to be useful.
LIMITS = {
    "patch_size": 32,
    "patch_depth": 64,
    "n_neighbors": 512,
    "patch_distance": 1024,
    "plane_distance": 64,
    "step": 32,
    "passes": 16,
}


@dataclass(frozen=True, kw_only=True)
class FixedParams:
    """What no profile changes, for images and for stacks."""

    noise_kept: float = 0.75  # tau of the first pass; falls linearly to zero in the last
    extra_load: float = 0.25  # of the first pass, in units of the noise energy
    first_match_penalty: float = 0.6  # in the first pass a turned patch ranks with d^2 + this * n sigma^2
    # In the first pass a patch with less energy about its mean than this * n sigma^2 is only shifted.
    flat_energy: float = 1.25
    match_factor: float = 1.3  # in pilot passes with match_factor * d^2 + match_penalty * n sigma^2
    match_penalty: float = 0.04


@dataclass(frozen=True, kw_only=True)
class VnlrParams(FixedParams):
    """Parameters of VNLR; lengths in pixels."""

    profile: str
    group: str
    patch_size: int  # of the last pass
    patch_sizes: tuple[int, ...]  # of the first pass and of each pilot pass
    n_neighbors: int  # patches per group in pilot passes
    patch_distance: int  # radius of the search window
    copied_distance: int  # the same in turned copies
    step: int  # between reference patches
    passes: int  # pilot passes after the first
    rematch: tuple[int, ...]  # pilot passes, from 1, that search for new groups
    first_n_neighbors: int
    first_patch_distance: int
    first_step: int
    boost: float  # factor on the noise energy in the ridge
    window: float  # how much less the border of a patch counts than its centre: Kaiser's beta
    aim: str  # what the result is judged by
    # Factor on `boost` for the second and the third of three opponent colours: differences of colours are
    # smooth, so more of what looks like noise in them is noise.
    colour_boost: float = 1.0
    pattern: tuple[str, ...] = ()  # colours of the pixels of a cell, row by row; one colour when empty
    others: tuple["VnlrParams", ...] = ()  # of a second run, with larger patches: the result is their mean


@dataclass(frozen=True)
class _Run:
    """What a run spends: group size, search radius, steps, passes."""

    n_neighbors: int
    patch_distance: int
    step: int
    passes: int
    first_n_neighbors: int
    first_patch_distance: int
    first_step: int
    boost: float
    first_patch: int = 6  # side of a patch in the first pass
    early_patch: int = 7  # side of a patch in the first half of the pilot passes
    larger_late: int = 0  # pixels added to the usual side in the second half
    noise_kept: float = FixedParams.noise_kept
    window: float = WINDOW


# n_neighbors, patch_distance, step, passes, first_n_neighbors, first_patch_distance, first_step, boost
_QUALITY = _Run(80, 26, 5, 5, 24, 18, 2, 1.2)
# Runs that err differently: small patches keep texture, large ones leave less noise in flat areas.
_SMALL = replace(_QUALITY, patch_distance=52, step=4, boost=1.6, early_patch=5, larger_late=-1)
_LARGE = replace(_QUALITY, patch_distance=40, step=4, first_patch=8, early_patch=5, larger_late=2)
# The runs of each profile. If there are two, each counts most where it is better.
_PROFILES = {
    "best": (replace(_SMALL, noise_kept=1.0, window=4.0), replace(_LARGE, noise_kept=0.9)),
    "quality": (_QUALITY,),
    "balanced": (_Run(64, 20, 5, 4, 20, 16, 4, 1.15),),
    "fast": (_Run(64, 14, 6, 3, 18, 12, 5, 1.15),),
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

    >>> resolve(0.2).patch_sizes, resolve(0.5).patch_sizes
    ((6, 7, 7, 7, 7), (6, 7, 7, 8, 8))
    """
    checks.choice("profile", profile, PROFILES)
    checks.choice("group", group, GROUPS)
    checks.choice("aim", aim, AIMS)
    # Its radius is used in copies; "similarity" enlarges it in the image.
    usual = _QUALITY if profile == "best" else _PROFILES[profile][0]
    wide = group == "similarity"  # in the image, not in its copies

    def params_of(run: _Run) -> VnlrParams:
        n_passes = whole("passes", passes, run.passes)
        if patch_size is None:
            # Small patches first: they keep detail that later passes can still smooth, not vice versa.
            late = (7 if sigma < LARGE_NOISE else 8) + run.larger_late
            early = n_passes // 2 if profile != "fast" else 0
            sizes = (run.first_patch, *[run.early_patch] * early, *[late] * (n_passes - early))
        else:
            sizes = (whole("patch_size", patch_size, 7, 2),) * (n_passes + 1)
        steps = steps_within(sizes, step, run.first_step, run.step)
        farther = SIMILARITY_DISTANCE if wide else 1
        distance = whole(
            "patch_distance", patch_distance, max(farther * usual.patch_distance, run.patch_distance)
        )
        in_copies = patch_distance is None or wide
        # New groups whenever the patch changes, and in every second pass: in between the pilot is stable.
        often = 2 if profile != "fast" else n_passes
        return VnlrParams(
            noise_kept=run.noise_kept,
            profile=profile,
            group=group,
            patch_size=sizes[-1],
            patch_sizes=sizes,
            n_neighbors=whole("n_neighbors", n_neighbors, run.n_neighbors, 2),
            patch_distance=distance,
            copied_distance=min(usual.patch_distance, distance) if in_copies else distance,
            step=steps[1],
            passes=n_passes,
            rematch=tuple(
                m for m in range(1, n_passes + 1) if m % often == 1 % often or sizes[m] != sizes[m - 1]
            ),
            first_n_neighbors=run.first_n_neighbors,
            first_patch_distance=min(run.first_patch_distance, distance),
            first_step=steps[0],
            boost=run.boost,
            window=run.window if sigma >= SMALL_NOISE else 0.0,
            aim=aim,
        )

    first, *others = map(params_of, _PROFILES[profile])
    return replace(first, others=tuple(others))


def members(params: VnlrParams) -> tuple[VnlrParams, ...]:
    """The parameters of all runs whose mean is the result.

    >>> [run.patch_distance for run in members(resolve(0.2, "best"))]
    [52, 40]
    """
    return params, *params.others


def in_colour(params: VnlrParams) -> VnlrParams:
    """The parameters for three channels that are denoised jointly, as opponent colours.

    Early patches are smaller, unless one size was given for all passes.

    >>> colour = in_colour(resolve(0.2))
    >>> colour.patch_sizes, colour.noise_kept, colour.colour_boost
    ((6, 6, 6, 7, 7), 0.85, 1.4)
    """
    sizes, half = params.patch_sizes, params.passes // 2
    if len(set(sizes)) > 1 and params.profile != "fast":
        early = (min(size, COLOUR_EARLY_PATCH) for size in sizes[: half + 1])
        sizes = (*early, *sizes[half + 1 :])
    again = {m for m in range(1, params.passes + 1) if sizes[m] != sizes[m - 1]}
    return replace(
        params,
        patch_sizes=sizes,
        rematch=tuple(sorted(again.union(params.rematch))),
        noise_kept=max(params.noise_kept, COLOUR_NOISE_KEPT),
        colour_boost=COLOUR_BOOST,
        others=tuple(map(in_colour, params.others)),
    )


def whole(name: str, value: Any, default: int, smallest: int = 1) -> int:
    """A whole number within its limits; the default when None."""
    return default if value is None else checks.whole(name, value, smallest, LIMITS[name])


def steps_within(sizes: tuple[int, ...], step: Any, first: int, later: int) -> tuple[int, int]:
    """Steps between the reference patches of the first pass and of all others: those given, or these two.

    >>> steps_within((4, 7, 7), None, 5, 6), steps_within((4, 7, 7), 3, 5, 6)
    ((4, 6), (3, 3))
    """
    if step is not None and whole("step", step, 1) > min(sizes):
        raise ValueError(
            f"step must be at most the smallest patch of the passes, {min(sizes)}, or pixels between the "
            f"patches would have no estimate; got {step!r}"
        )
    return whole("step", step, min(first, sizes[0])), whole("step", step, min(later, *sizes[1:]))
