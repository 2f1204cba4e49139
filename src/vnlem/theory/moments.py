"""Mean and variance of the squared distance of two noisy patches: the paper's first lemma."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.pipeline import checks
from vnlem.pipeline.sigma import check_sigma
from vnlem.theory.overlap import Offset, OverlapSets, check_rotation, overlap_sets


@dataclass(frozen=True)
class DistanceMoments:
    """Moments of the squared noisy distance for a fixed rotation.

    Attributes
    ----------
    mean : float
    variance : float
        The exact variance.
    printed_variance : float
        The paper's formula, which adds a term over K_I. The two are equal when both patches are cut from one
        image, because the clean patches then agree wherever they share a pixel.
    clean : float
        Squared distance of the clean patches, ||P||^2.
    overlap : OverlapSets

    Examples
    --------
    >>> import numpy as np
    >>> flat = np.zeros((3, 3))
    >>> moments = distance_moments(flat, flat, None, 0, sigma=1.0)  # patches that do not overlap
    >>> moments.mean, moments.variance, moments.clean
    (18.0, 72.0, 0.0)
    """

    mean: float
    variance: float
    printed_variance: float
    clean: float
    overlap: OverlapSets


def _patch(name: str, value: ArrayLike) -> NDArray[np.float64]:
    patch = np.asarray(value, dtype=np.float64)
    if patch.ndim != 2 or patch.shape[0] != patch.shape[1]:
        raise ValueError(f"{name} must be a square patch (q, q), got shape {patch.shape}")
    checks.odd("the patch size", patch.shape[0])
    if not np.isfinite(patch).all():
        raise ValueError(f"{name} holds NaN or infinite values; replace them first")
    return patch


def distance_moments(
    patch_i: ArrayLike,
    patch_j: ArrayLike,
    offset: Offset | None,
    rotation: float,
    sigma: Any,
) -> DistanceMoments:
    """Mean and variance of the squared distance of a noisy patch and a second, rotated noisy patch.

    Parameters
    ----------
    patch_i, patch_j : array_like of shape (q, q)
        The clean patches, cut from one image; `patch_j` as it is in the image, before rotation.
    offset : (int, int) or None
        Centre of the second patch minus centre of the first; None for patches that do not overlap.
    rotation : float
        Rotation of the second patch in degrees, counterclockwise as displayed; a multiple of 90.
    sigma : float
        Standard deviation of the white Gaussian noise.

    Returns
    -------
    DistanceMoments

    Notes
    -----
    With P the difference of the clean patches, the noisy difference is N(P, sigma^2 C), where
    C = 2 I - M - M^T and M(a, b) = 1 for (a, b) in K_O. For a Gaussian vector the squared norm has

    - mean ||P||^2 + sigma^2 tr C = ||P||^2 + 2 sigma^2 (q^2 - |K_I|),
    - variance 4 sigma^2 P^T C P + 2 sigma^4 tr C^2
      = 8 sigma^2 (||P||^2 - sum over K_O of P(a) P(b)) + 4 sigma^4 (2 q^2 + |K_S| + |K_O| - 3 |K_I|),

    since tr M = |K_I|, tr M M^T = |K_O| and tr M^2 = |K_S| + |K_I|. The paper's variance has one more
    term, 8 sigma^2 times the sum over K_I of P(a)^2: see the paper notes, slip 8.

    Examples
    --------
    >>> import numpy as np
    >>> image = np.random.default_rng(0).normal(size=(9, 9))
    >>> moments = distance_moments(image[:3, :3], image[:3, 1:4], (0, 1), 0, sigma=0.5)
    >>> round(moments.mean - moments.clean, 6)   # 2 sigma^2 q^2
    4.5
    """
    first, second = _patch("patch_i", patch_i), _patch("patch_j", patch_j)
    if first.shape != second.shape:
        raise ValueError(f"the patches must have the same size, got {first.shape} and {second.shape}")
    noise = check_sigma(sigma)
    q = first.shape[0]
    sets = overlap_sets(q, offset, rotation)
    difference = (first - np.rot90(second, check_rotation(rotation))).ravel()  # P
    clean = float(difference @ difference)
    shared = float(difference[sets.overlap[:, 0]] @ difference[sets.overlap[:, 1]])
    extra = float(np.sum(difference[sets.identical] ** 2))
    n_overlap, n_swapped, n_identical = sets.sizes
    mean = clean + 2 * noise**2 * (q * q - n_identical)
    of_noise = 4 * noise**4 * (2 * q * q + n_swapped + n_overlap - 3 * n_identical)
    variance = 8 * noise**2 * (clean - shared) + of_noise
    return DistanceMoments(mean, variance, variance + 8 * noise**2 * extra, clean, sets)
