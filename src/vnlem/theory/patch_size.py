"""Which patch size to take: where the theorem's two bounds balance, or what a noisy image itself says."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem import checks
from vnlem.frame import check_sigma, to_planes
from vnlem.theory.neighbors import neighbor_bounds

BY_BOUNDS = "balanced bounds"
BY_RISK = "estimated risk"

N_NEIGHBORS = 16  # neighbours whose mean the risk is about
THINNING = 0.5  # noise added for the search, in units of sigma
CHUNK = 64  # reference patches handled at once: bounds the memory


@dataclass(frozen=True)
class PatchSizeAdvice:
    """A patch size and the curves it was read from, one entry per size.

    Attributes
    ----------
    q : int
        The advice.
    sizes : ndarray
        The sizes compared.
    close, far : ndarray
        Lower bounds of the probabilities that near patches stay near and far ones far.
    near_distance, far_distance : ndarray
        Clean distances the bounds are for.
    risk : ndarray or None
        With an image: estimated mean squared error of the mean of the central pixels of a patch and its
        neighbours, in the image's units squared. An unbiased estimate: it can come out below zero.
    criterion : str
        "balanced bounds" (largest minimum of the two bounds) or "estimated risk" (smallest risk).
    """

    q: int
    sizes: NDArray[np.intp]
    close: NDArray[np.float64]
    far: NDArray[np.float64]
    near_distance: NDArray[np.float64]
    far_distance: NDArray[np.float64]
    risk: NDArray[np.float64] | None
    criterion: str


def suggest_patch_size(
    image: ArrayLike | float | None = None,
    sigma: Any = None,
    epsilon: float | None = None,
    *,
    smallest: int = 3,
    largest: int = 15,
    overlap: bool = False,
    patch_distance: int = 10,
    n_references: int = 1000,
    seed: int = 0,
) -> PatchSizeAdvice:
    """Advice on the patch size, from an image or from the bounds alone.

    Call it as ``suggest_patch_size(image, sigma)`` or as ``suggest_patch_size(sigma, epsilon)``.

    Parameters
    ----------
    image : array_like of shape (height, width), optional
        A noisy image. Without one the advice follows from `sigma` and `epsilon` alone.
    sigma : float
        Noise level, positive.
    epsilon : float
        Distance below which clean patches count as neighbours, as in :func:`neighbor_bounds`. Only without
        image.
    smallest, largest : int
        Range of odd sizes to compare.
    overlap : bool
        Without an image: whether the bounds are those for overlapping patches.
    patch_distance : int
        With an image: the search window reaches this far from each pixel.
    n_references : int
        With an image: number of pixels looked at.
    seed : int
        With an image: seed of the choice of pixels and of the noise used for thinning.

    Returns
    -------
    PatchSizeAdvice

    Notes ----- For a fixed epsilon the bound for near patches falls with q and the one for far patches (at
    2 epsilon) rises, and without overlap they meet at q = 0.6446 epsilon / sigma (:func:`balance_ratio`),
    whatever the image.

    In an image the distance of a pair grows with q as well, about like q, and with it both bounds rise for
    ever: they say how well near and far patches can be told apart, not whether near patches exist. So with
    an image the advice is the size that denoises best when each pixel becomes the mean over its nearest
    patches. Its squared error is estimated without a clean image by splitting the noise: for independent
    noise z, y + a sigma z and y - sigma z / a have independent noise. The first is denoised, the second,
    which had no part in the choice of neighbours, stands in for the clean image. The bounds come along, by
    one-sided Chebyshev at the threshold that makes them equal, k = (far^2 - near^2) / (sd_near + sd_far),
    bound k^2 / (1 + k^2).

    Examples
    --------
    >>> suggest_patch_size(0.1, 1.5).q        # 0.6446 * 1.5 / 0.1 = 9.7
    9
    >>> rng = np.random.default_rng(0)
    >>> stripes = np.sin(np.arange(64) / 2) + np.zeros((64, 1))
    >>> noisy = stripes + rng.normal(0, 0.5, stripes.shape)
    >>> suggest_patch_size(noisy, 0.5, n_references=200).q > 3
    True
    """
    if image is not None and np.ndim(image) == 0:
        if epsilon is not None:
            raise ValueError(
                f"image must be an array, got {image!r}; call suggest_patch_size(image, sigma) or "
                "suggest_patch_size(sigma, epsilon)"
            )
        image, sigma, epsilon = None, image, sigma
    low = checks.odd("smallest", smallest)
    high = checks.odd("largest", largest, smallest=low)
    if sigma is None:
        raise ValueError("sigma is missing: call suggest_patch_size(image, sigma) or (sigma, epsilon)")
    noise = check_sigma(sigma)
    if noise == 0:
        raise ValueError("sigma must be positive: without noise there is nothing to balance")
    if image is None:
        if epsilon is None:
            raise ValueError("epsilon is missing: pass it, or a noisy image")
        return _from_bounds(noise, checks.real("epsilon", epsilon, 0, open_low=True), low, high, overlap)
    if epsilon is not None:
        raise ValueError("pass either an image or epsilon, not both: with an image distances come from it")
    return _from_image(
        to_planes(image).data[0],
        noise,
        np.arange(low, high + 1, 2),
        checks.whole("patch_distance", patch_distance),
        checks.whole("n_references", n_references),
        seed,
    )


def _from_bounds(sigma: float, epsilon: float, low: int, high: int, overlap: bool) -> PatchSizeAdvice:
    sizes = np.array([q for q in range(low, high + 1, 2) if sigma * q < epsilon])
    if not len(sizes):
        raise ValueError(
            f"no size from {low} to {high} satisfies sigma * q < epsilon (sigma {sigma:g}, epsilon "
            f"{epsilon:g}): the theorem says nothing here; take a larger epsilon"
        )
    bounds = [neighbor_bounds(int(q), sigma, epsilon, overlap) for q in sizes]
    close, far = (np.array([getattr(bound, side) for bound in bounds]) for side in ("close", "far"))
    distance = np.full(len(sizes), epsilon)
    best = int(sizes[np.argmax(np.minimum(close, far))])
    return PatchSizeAdvice(best, sizes, close, far, distance, 2 * distance, None, BY_BOUNDS)


def _from_image(
    noisy: NDArray[np.float64],
    sigma: float,
    sizes: NDArray[np.intp],
    reach: int,
    n_references: int,
    seed: int,
) -> PatchSizeAdvice:
    margin = int(sizes[-1]) // 2 + reach
    height, width = noisy.shape
    if min(height, width) < 2 * margin + 1:
        raise ValueError(
            f"the image ({height}x{width}) is too small for patches of {sizes[-1]} in a window of "
            f"{2 * reach + 1}; it needs {2 * margin + 1} pixels a side: pass a smaller `largest`"
        )
    rng = np.random.default_rng(seed)
    split = sigma * rng.standard_normal(noisy.shape)
    search, measure = noisy + THINNING * split, noisy - split / THINNING
    variance = sigma**2 * (1 + THINNING**-2)  # of the noise in `measure`
    inner = (height - 2 * margin) * (width - 2 * margin)
    chosen = np.sort(rng.choice(inner, size=min(n_references, inner), replace=False))
    rows, columns = (part + margin for part in np.divmod(chosen, width - 2 * margin))
    near, far, risk = (np.zeros(len(sizes)) for _ in range(3))
    for index, q in enumerate(sizes):
        for begin in range(0, len(rows), CHUNK):
            part = slice(begin, begin + CHUNK)
            sums = _neighbor_sums(search, measure, rows[part], columns[part], int(q), reach)
            near[index] += sums[0]
            far[index] += sums[1]
            risk[index] += sums[2]
    noise_floor = 2 * variance * sizes**2
    near = np.maximum(near / len(rows) - noise_floor, 0)
    far = np.maximum(far / len(rows) - noise_floor, near)
    risk = risk / len(rows) - variance
    spread = [np.sqrt(8 * sigma**2 * (d2 + sigma**2 * sizes**2)) for d2 in (near, far)]
    k2 = ((far - near) / (spread[0] + spread[1])) ** 2
    bound = k2 / (1 + k2)
    best = int(sizes[np.argmin(risk)])
    return PatchSizeAdvice(best, sizes, bound, bound, np.sqrt(near), np.sqrt(far), risk, BY_RISK)


def _neighbor_sums(
    search: NDArray[np.float64],
    measure: NDArray[np.float64],
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    q: int,
    reach: int,
) -> tuple[float, float, float]:
    """Sums over references: squared distances to neighbours and window, squared error of the mean."""
    side = 2 * reach + 1
    self_index = side * side // 2

    def distances(image: NDArray[np.float64]) -> NDArray[np.float32]:
        windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float32), (q, q))
        corner = q // 2 + reach
        around = np.lib.stride_tricks.sliding_window_view(windows, (side, side), axis=(0, 1))
        candidates = around[rows - corner, columns - corner].reshape(len(rows), q * q, side * side)
        difference = candidates - candidates[:, :, self_index : self_index + 1]
        squares: NDArray[np.float32] = np.einsum("ijk,ijk->ik", difference, difference)
        return squares

    found = distances(search)
    found[:, self_index] = np.inf  # the patch itself carries no information here
    neighbors = np.argpartition(found, N_NEIGHBORS, axis=1)[:, :N_NEIGHBORS]
    held_out = distances(measure)
    near = np.take_along_axis(held_out, neighbors, axis=1).mean(axis=1, dtype=np.float64).sum()
    far = held_out.sum(dtype=np.float64) / (side * side - 1)
    down, right = np.divmod(neighbors, side)
    centres = search[rows[:, None] + down - reach, columns[:, None] + right - reach]
    estimate = (centres.sum(axis=1) + search[rows, columns]) / (N_NEIGHBORS + 1)
    risk = np.sum((estimate - measure[rows, columns]) ** 2)
    return float(near), float(far), float(risk)
