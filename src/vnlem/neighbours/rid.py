"""The rotation-invariant distance (RID) of two patches, by their ring harmonics.

They give the distance at all angles from one set of sums; over several sizes it is the smallest distance to
scaled copies. The paper's formula on rotated pixels is in ``vnlem.reference``.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.features.orientation import DEFAULT_ARC, orientation
from vnlem.features.orientation import halo as orientation_halo
from vnlem.features.rings import LARGEST_UPSAMPLING, RingCoefficients, RingLayout, layout
from vnlem.neighbours.resize import resized
from vnlem.pipeline import checks

MOST_SCALES = 32
# Factors beyond these leave a patch of a few pixels, or need arrays far larger than the patch.
SMALLEST_SCALE, LARGEST_SCALE = 0.1, 10.0


def rid(
    patch_a: ArrayLike,
    patch_b: ArrayLike,
    *,
    patch_size: int | None = None,
    angles: str = "sift",
    angle_range: float = 30.0,
    angle_step: float = 5.0,
    try_unrotated: bool = True,
    scale: float = 1.0,
    upsample: int = 2,
    return_angle: bool = False,
    scales: Sequence[float] = (1.0,),
    return_scale: bool = False,
) -> Any:
    """Rotation-invariant distance of two round patches: the smallest over rotations of the second.

    With `scales` it is the smallest over rotations and dilations.

    Parameters
    ----------
    patch_a, patch_b : array_like, square, of one odd size
        Patches; larger than `patch_size` they carry their surroundings, which rotation and interpolation
        then use instead of the patch's own reflection.
    patch_size : int, odd, optional
        Diameter of the patches proper, about the arrays' centres; their whole size when None.
    angles : {"sift", "all"}
        Search around the difference of the SIFT orientations, or the whole circle.
    angle_range, angle_step : float
        Range and step of the search in degrees, as in :func:`vnlem.denoise_vnlem` (with "all" the range is
        ignored).
    try_unrotated : bool
        Whether the unrotated patch is tried too.
    scale : float
        Scale of the orientation, see :func:`vnlem.orientation`.
    upsample : int
        Factor of the upsampling (the paper's U_k).
    return_angle : bool
        Return the angle too: the rotation in radians that takes `patch_b` onto `patch_a`.
    scales : sequence of float
        Factors by which `patch_b` is made larger or smaller about its centre before it is compared. A factor
        below 1 needs an array of patch_size / factor pixels.
    return_scale : bool
        Return the best of the factors too.

    Returns
    -------
    distance : float
        Scaled by area to a square patch of patch_size^2 pixels.
    angle : float
        Only with `return_angle`.
    scale : float
        Only with `return_scale`.

    Examples
    --------
    >>> y, x = np.mgrid[-10:11, -10:11]
    >>> edge = np.tanh(x / 2.0)
    >>> turned = np.tanh((x * np.cos(0.6) + y * np.sin(0.6)) / 2.0)
    >>> distance, angle = rid(turned, edge, patch_size=13, return_angle=True)
    >>> bool(distance < 0.1 * np.sqrt(((turned - edge) ** 2).sum())), round(angle, 1)
    (True, 0.6)
    >>> wider = np.tanh((x * np.cos(0.6) + y * np.sin(0.6)) / 3.0)
    >>> distance, angle, factor = rid(
    ...     wider, edge, patch_size=9, scales=(1.0, 1.25, 1.5), return_angle=True, return_scale=True
    ... )
    >>> bool(distance < 0.3 * rid(wider, edge, patch_size=9)), round(angle, 1), factor
    (True, 0.6, 1.5)
    """
    a, b = _check_patch("patch_a", patch_a), _check_patch("patch_b", patch_b)
    if a.shape != b.shape:
        raise ValueError(f"patch_a and patch_b must have one shape, got {a.shape} and {b.shape}")
    size = checks.odd("patch_size", len(a) if patch_size is None else patch_size, 3)
    if size > len(a):
        raise ValueError(
            f"patch_size is {size} but the arrays are only {len(a)} pixels wide; pass larger arrays"
        )
    angle_range, angle_step = check_angles(angle_range, angle_step)
    upsample = checks.whole("upsample", upsample, largest=LARGEST_UPSAMPLING)
    whole_circle = checks.choice("angles", angles, ("sift", "all")) == "all"
    rings = layout(size, upsample)
    # Pixels farther from the middle are not used.
    reach = max(rings.halo, size // 2, 0 if whole_circle else orientation_halo(scale, size))
    own = _middle(a, reach)
    found: list[tuple[float, float, float]] = []
    for factor in check_scales(scales, size, len(a)):
        moved = _middle(b if factor == 1 else resized(b, factor), reach)
        if whole_circle:
            tried: NDArray[np.float64] = np.radians(np.arange(0, 360, angle_step))
        else:
            start = _central_orientation(own, size, scale) - _central_orientation(moved, size, scale)
            steps = search_angles(angle_range, angle_step)
            tried = start + np.concatenate([-steps[:0:-1], steps])
        if try_unrotated:
            tried = np.concatenate([[0.0], tried])
        squared = _by_rings(own, moved, rings, tried)
        best = int(squared.argmin())
        found.append((float(squared[best]), math.remainder(float(tried[best]), 2 * math.pi), factor))
    square, angle, factor = min(found, key=lambda one: one[0])
    asked = (True, return_angle, return_scale)
    answer = [
        value for value, wanted in zip((math.sqrt(square), angle, factor), asked, strict=True) if wanted
    ]
    return answer[0] if len(answer) == 1 else tuple(answer)


def check_scales(scales: Any, patch_size: int, width: int) -> tuple[float, ...]:
    """Factors of scaled copies of an array of `width` pixels, or a clear error.

    >>> check_scales([0.5, 1], 13, 41)
    (0.5, 1.0)
    """
    if isinstance(scales, str) or not np.iterable(scales):
        raise TypeError(f"scales must be a list of factors like (0.7, 1.0), got {scales!r}")
    given = list(scales)
    if not 1 <= len(given) <= MOST_SCALES:
        raise ValueError(f"scales must hold 1 to {MOST_SCALES} factors, got {len(given)}; leave some out")
    factors = tuple(checks.real("scales", factor, SMALLEST_SCALE, LARGEST_SCALE) for factor in given)
    smallest = min(factors)
    if smallest < 1 and patch_size / smallest > width:
        raise ValueError(
            f"scales holds {smallest:g}, for which a patch of {patch_size} pixels needs arrays of "
            f"{math.ceil(patch_size / smallest)} pixels, got {width}; pass larger arrays or leave it out"
        )
    return factors


def search_angles(angle_range: float, angle_step: float) -> NDArray[np.float64]:
    """The non-negative angles of the search set: 0, +-step, ... strictly inside +-range, in radians.

    A range of 180 degrees is the whole circle, and its end is one of the angles.

    >>> np.degrees(search_angles(30, 10)).round(6), np.degrees(search_angles(0, 10))
    (array([ 0., 10., 20.]), array([0.]))
    >>> np.degrees(search_angles(180, 60)).round(6)
    array([  0.,  60., 120., 180.])
    """
    steps = angle_range / angle_step
    count = math.floor(steps + 1e-9) if angle_range == 180 else math.ceil(steps - 1e-9) - 1
    angles: NDArray[np.float64] = np.radians(angle_step * np.arange(max(count, 0) + 1))
    return angles


def check_angles(angle_range: Any, angle_step: Any) -> tuple[float, float]:
    """A search range of 0 to 180 degrees and a step of at least 0.01 degrees, or a clear error.

    >>> check_angles(30, 5)
    (30.0, 5.0)
    """
    angle_range = checks.real("angle_range", angle_range, 0, 180)
    return angle_range, checks.real("angle_step", angle_step, 0.01, 180)


def _check_patch(name: str, patch: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(patch, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] % 2 == 0:
        raise ValueError(f"{name} must be a square array of odd size, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinite values; replace them first")
    return array


def _middle(patch: NDArray[np.float64], reach: int) -> NDArray[np.float64]:
    """This many pixels around the centre, or all if there are fewer."""
    rest = max(len(patch) // 2 - reach, 0)
    return patch[rest : len(patch) - rest, rest : len(patch) - rest]


def _central_orientation(patch: NDArray[np.float64], size: int, scale: float) -> float:
    found: Any = orientation(patch, scale, size, arc=DEFAULT_ARC)
    return float(found[len(patch) // 2, len(patch) // 2])


def _by_rings(
    a: NDArray[np.float64], b: NDArray[np.float64], rings: RingLayout, tried: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Squared distances of the patches in the middle of two arrays, at each angle."""
    # Both in one array, one above the other, each with its own reflection around it: one set of features.
    border = rings.halo
    stacked = np.concatenate([np.pad(patch, border, mode="symmetric") for patch in (a, b)])
    middle = border + len(a) // 2
    coefficients = RingCoefficients.of(stacked, rings)
    first, second = coefficients[middle, middle], coefficients[middle + len(stacked) // 2, middle]
    return first.squared_distances(second, tried)
