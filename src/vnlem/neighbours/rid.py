"""The rotation-invariant distance (RID) of two patches: one interface, two engines.

``reference`` rotates pixels; ``fast`` compares ring harmonics, which give all angles from one set of sums.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.features.orientation import DEFAULT_ARC, orientation
from vnlem.features.rings import layout, ring_features
from vnlem.pipeline import checks


def rid(
    patch_a: ArrayLike,
    patch_b: ArrayLike,
    *,
    patch_size: int | None = None,
    engine: str = "fast",
    shape: str = "disc",
    angles: str = "sift",
    angle_range: float = 30.0,
    angle_step: float = 5.0,
    try_unrotated: bool = True,
    scale: float = 1.0,
    upsample: int = 2,
    return_angle: bool = False,
) -> Any:
    """Rotation-invariant distance of two patches: the smallest distance over rotations of the second.

    Parameters
    ----------
    patch_a, patch_b : array_like, square, of one odd size
        Patches; larger than `patch_size` they carry what lies around them, which rotation and interpolation
        then use instead of the patch's own reflection.
    patch_size : int, odd, optional
        Size of the patches proper, about the arrays' centres; their whole size when None.
    engine : {"fast", "reference"}
    shape : {"disc", "square"}
        Over which part of the patch the distance is taken.
    angles : {"sift", "all"}
        Search around the difference of the SIFT orientations, or the whole circle.
    angle_range, angle_step : float
        Half-width and step of the search, in degrees (the paper's theta_l; ignored range with "all").
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
        Scaled to a square patch: white noise of variance s^2 in both patches is at sqrt(2) s q on average.
    angle : float
        Only with `return_angle`.

    Notes
    -----
    Both engines find the angle on the patches upsampled by cubic convolution. The reference engine then takes
    the distance on the pixels, as the paper says. The fast engine has it already.

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
    checks.choice("engine", engine, ("fast", "reference"))
    checks.choice("shape", shape, ("disc", "square"))
    angle_range, angle_step = check_angles(angle_range, angle_step)
    upsample = checks.whole("upsample", upsample)
    if checks.choice("angles", angles, ("sift", "all")) == "all":
        start, tried = 0.0, np.radians(np.arange(0, 360, angle_step))
    else:
        start = _central_orientation(a, size, scale) - _central_orientation(b, size, scale)
        count = math.floor(angle_range / angle_step + 1e-9)
        tried = start + np.radians(angle_step * np.arange(-count, count + 1))
    if try_unrotated:
        tried = np.concatenate([[0.0], tried])
    if engine == "reference":
        squared, angle = _by_pixels(a, b, size, shape, upsample, tried)
    elif shape == "disc":
        squared, angle = _by_rings(a, b, size, upsample, tried)
    else:
        squared, angle = _by_masked_rings(a, b, size, upsample, tried)
    distance = math.sqrt(max(squared, 0.0))
    angle = math.remainder(angle, 2 * math.pi)
    return (distance, angle) if return_angle else distance


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


def _by_pixels(
    a: NDArray[np.float64], b: NDArray[np.float64], size: int, shape: str, upsample: int, tried: NDArray[Any]
) -> tuple[float, float]:
    from vnlem.reference.rotation import Rotator

    rotate_a, rotate_b = (Rotator(patch[None], size, shape, upsample) for patch in (a, b))
    middle = np.full(len(tried), len(a) // 2)
    own = rotate_a.lattice(middle[:1], middle[:1], np.zeros(1), rotate_a.searched)
    turned = rotate_b.lattice(middle, middle, tried, rotate_b.searched)
    best = int(((turned - own) ** 2).sum(axis=(1, 2)).argmin())
    one = middle[:1], middle[:1]
    difference = rotate_b.patches(*one, tried[best : best + 1]) - rotate_a.patches(*one, np.zeros(1))
    return float((difference**2).sum()), float(tried[best])


def _by_rings(
    a: NDArray[np.float64], b: NDArray[np.float64], size: int, upsample: int, tried: NDArray[Any]
) -> tuple[float, float]:
    rings = layout(size, upsample)
    margin = rings.halo - len(a) // 2
    features = []
    # A common shift takes nothing from a distance, and keeps float32 free of large offsets.
    shift = 0.5 * (a.mean() + b.mean())
    for patch in (a, b):
        padded = np.pad(patch - shift, max(margin, 0), mode="symmetric")
        cut = max(-margin, 0)
        window = padded[cut : len(padded) - cut, cut : len(padded) - cut].astype(np.float32)
        raw, _ = ring_features(window[None], np.zeros((1, 1), dtype=np.float32), rings)
        features.append(raw[0, 0].astype(np.float64))
    first, second = (vector[: rings.lanes] + 1j * vector[rings.lanes :] for vector in features)
    inner = np.real(np.exp(-1j * np.outer(tried, rings.lane_order)) @ (np.conj(first) * second))
    best = int(inner.argmax())
    squared = float((features[0] ** 2).sum() + (features[1] ** 2).sum() - 2 * inner[best])
    return squared * rings.distance_scale, float(tried[best])


def _by_masked_rings(
    a: NDArray[np.float64], b: NDArray[np.float64], size: int, upsample: int, tried: NDArray[Any]
) -> tuple[float, float]:
    """The square stays with the first patch and the second turns under it.

    With m the square's indicator, the distance at angle t is the sum over rings of
    m a^2 - 2 m a b(. - t) + m b^2(. - t): three circular correlations, so again all angles at once.
    """
    from vnlem.features.upsample import upsample as upsampled

    half = size // 2
    reach = half * math.sqrt(2) + 0.5
    border = max(math.ceil(reach) + 2 - len(a) // 2, 0)
    middle = len(a) // 2 + border
    count = 128
    angle = 2 * math.pi * np.arange(count) / count
    radius = np.arange(0.25, reach, 0.5)
    dy, dx = radius[:, None] * np.sin(angle), radius[:, None] * np.cos(angle)
    inside = np.maximum(np.abs(dy), np.abs(dx)) <= half + 0.5
    area = radius[:, None] * 0.5 * 2 * math.pi / count
    values = []
    for patch in (a, b):
        fine = upsampled(np.pad(patch, border, mode="symmetric"), upsample)
        values.append(_bilinear(fine, upsample * (middle + dy), upsample * (middle + dx)))
    first, second = values
    spectrum = np.fft.fft(second, axis=1)
    spectrum_squared = np.fft.fft(second**2, axis=1)
    cross = (area * np.conj(np.fft.fft(inside * first, axis=1)) * spectrum).sum(axis=0)
    square = (area * np.conj(np.fft.fft(inside.astype(float), axis=1)) * spectrum_squared).sum(axis=0)
    orders = np.fft.fftfreq(count, 1 / count)
    phases = np.exp(-1j * np.outer(tried, orders))
    squared = (area * inside * first**2).sum() + np.real(phases @ (square - 2 * cross)) / count
    best = int(squared.argmin())
    return float(squared[best]) * size**2 / float((area * inside).sum()), float(tried[best])


def _bilinear(fine: NDArray[np.float64], y: NDArray[Any], x: NDArray[Any]) -> NDArray[np.float64]:
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    dy, dx = y - top, x - left
    upper = fine[top, left] * (1 - dx) + fine[top, left + 1] * dx
    lower = fine[top + 1, left] * (1 - dx) + fine[top + 1, left + 1] * dx
    result: NDArray[np.float64] = upper * (1 - dy) + lower * dy
    return result
