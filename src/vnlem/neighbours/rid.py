"""The rotation-invariant distance (RID) of two patches, by their ring harmonics.

They give the distance at all angles from one set of sums. The paper's formula on rotated pixels is in
``vnlem.reference``.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.features.orientation import DEFAULT_ARC, orientation
from vnlem.features.rings import LARGEST_UPSAMPLING, RingCoefficients, RingLayout, layout
from vnlem.pipeline import checks


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
) -> Any:
    """Rotation-invariant distance of two round patches: the smallest over rotations of the second.

    Parameters
    ----------
    patch_a, patch_b : array_like, square, of one odd size
        Patches; larger than `patch_size` they carry what lies around them, which rotation and interpolation
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

    Returns
    -------
    distance : float
        Scaled by area to a square patch of patch_size^2 pixels.
    angle : float
        Only with `return_angle`.

    Examples
    --------
    >>> y, x = np.mgrid[-10:11, -10:11]
    >>> edge = np.tanh(x / 2.0)
    >>> turned = np.tanh((x * np.cos(0.6) + y * np.sin(0.6)) / 2.0)
    >>> distance, angle = rid(turned, edge, patch_size=13, return_angle=True)
    >>> bool(distance < 0.1 * np.sqrt(((turned - edge) ** 2).sum())), round(angle, 1)
    (True, 0.6)
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
    if checks.choice("angles", angles, ("sift", "all")) == "all":
        tried: NDArray[np.float64] = np.radians(np.arange(0, 360, angle_step))
    else:
        start = _central_orientation(a, size, scale) - _central_orientation(b, size, scale)
        steps = search_angles(angle_range, angle_step)
        tried = start + np.concatenate([-steps[:0:-1], steps])
    if try_unrotated:
        tried = np.concatenate([[0.0], tried])
    squared = _by_rings(a, b, layout(size, upsample), tried)
    best = int(squared.argmin())
    distance, angle = math.sqrt(squared[best]), math.remainder(float(tried[best]), 2 * math.pi)
    return (distance, angle) if return_angle else distance


def search_angles(angle_range: float, angle_step: float) -> NDArray[np.float64]:
    """The non-negative angles of the search set: 0, +-step, ... strictly inside +-range, in radians.

    A range of 180 degrees is the whole circle, and its end is one of the angles.

    Examples
    --------
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
    """A search range of 0 to 180 degrees and a positive step, or one clear sentence.

    Examples
    --------
    >>> check_angles(30, 5)
    (30.0, 5.0)
    """
    angle_range = checks.real("angle_range", angle_range, 0, 180)
    return angle_range, checks.real("angle_step", angle_step, 0, 180, open_low=True)


def _check_patch(name: str, patch: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(patch, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] % 2 == 0:
        raise ValueError(f"{name} must be a square array of odd size, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinite values; replace them first")
    return array


def _central_orientation(patch: NDArray[np.float64], size: int, scale: float) -> float:
    found: Any = orientation(patch, scale, size, arc=DEFAULT_ARC)
    return float(found[len(patch) // 2, len(patch) // 2])


def _by_rings(
    a: NDArray[np.float64], b: NDArray[np.float64], rings: RingLayout, tried: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Squared distances of the patches in the middle of two arrays, at each angle."""
    # One array, one above the other, each with its own reflection around it: one set of features.
    border = rings.halo
    stacked = np.concatenate([np.pad(patch, border, mode="symmetric") for patch in (a, b)])
    middle = border + len(a) // 2
    coefficients = RingCoefficients.of(stacked, rings)
    first, second = coefficients[middle, middle], coefficients[middle + len(stacked) // 2, middle]
    return first.squared_distances(second, tried)
