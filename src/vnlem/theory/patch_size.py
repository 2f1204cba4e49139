"""Which patch size to use: where the theorem's two bounds balance, or the estimated error on a noisy
image."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.features.square import noise_bandwidth
from vnlem.pipeline import checks
from vnlem.pipeline.image import to_planes
from vnlem.pipeline.scale import standard_scale
from vnlem.pipeline.sigma import check_sigma
from vnlem.registry import find_function
from vnlem.theory.neighbors import neighbor_bounds

BY_BOUNDS = "balanced bounds"
BY_RISK = "estimated risk"

N_NEIGHBORS = 16  # neighbours whose distance counts as near
THINNING = 0.5  # noise added to the image that is denoised, in units of sigma
SPLIT_STREAM = 0x5B117
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
        With an image: estimated mean squared error of non-local means with patches of that size, in the
        image's units squared. An unbiased estimate: it can come out below zero.
    bandwidth : float or None
        With an image: the bandwidth for this q, as :func:`vnlem.denoise_nlm` takes it.
    criterion : str
        "balanced bounds" (largest minimum of the two bounds) or "estimated risk" (smallest risk).

    Examples
    --------
    >>> advice = suggest_patch_size(0.1, 1.5)
    >>> advice.q, advice.criterion, len(advice.sizes) == len(advice.close)
    (9, 'balanced bounds', True)
    """

    q: int
    sizes: NDArray[np.intp]
    close: NDArray[np.float64]
    far: NDArray[np.float64]
    near_distance: NDArray[np.float64]
    far_distance: NDArray[np.float64]
    risk: NDArray[np.float64] | None
    bandwidth: float | None
    criterion: str


def suggest_patch_size(
    image: ArrayLike | float | None = None,
    sigma: Any = None,
    epsilon: float | None = None,
    *,
    smallest: int = 3,
    largest: int = 15,
    overlap: bool = False,
    patch_distance: int = 7,
    n_references: int = 200,
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
        With an image: number of pixels whose neighbours are examined for the bounds.
    seed : int
        With an image: seed of the choice of pixels and of the noise used for thinning.

    Returns
    -------
    PatchSizeAdvice

    Notes
    -----
    For a fixed epsilon the bound for near patches falls with q and the one for far patches (at 2 epsilon)
    rises, and without overlap they meet at q = 0.6446 epsilon / sigma (:func:`balance_ratio`), whatever the
    image.

    In an image the distance of a pair also grows with q, about proportionally, and both bounds rise without
    end: they say how well near and far patches can be distinguished, not whether near patches exist. So with
    an image the advice is the size with which non-local means denoises best. Its squared error is estimated
    without a clean image by splitting the noise: for independent noise z, y + a sigma z and y - sigma z / a
    have independent noise. The first is denoised; the second, which was not used for that, stands in for the
    clean image. The bounds are given too, by one-sided Chebyshev at the threshold that makes them equal,
    k = (far^2 - near^2) / (sd_near + sd_far), bound k^2 / (1 + k^2); near is the mean over the 16 nearest.

    Examples
    --------
    >>> suggest_patch_size(0.1, 1.5).q        # 0.6446 * 1.5 / 0.1 = 9.7
    9
    >>> import numpy as np, vnlem
    >>> rng = np.random.default_rng(0)
    >>> stripes = np.sin(np.arange(64) / 2) + np.zeros((64, 1))
    >>> noisy = stripes + rng.normal(0, 0.5, stripes.shape)
    >>> advice = suggest_patch_size(noisy, 0.5)
    >>> denoised = vnlem.denoise_nlm(noisy, 0.5, patch_size=advice.q, bandwidth=advice.bandwidth)
    >>> bool(np.std(denoised - stripes) < 0.25)
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
    return PatchSizeAdvice(
        q=best,
        sizes=sizes,
        close=close,
        far=far,
        near_distance=distance,
        far_distance=2 * distance,
        risk=None,
        bandwidth=None,
        criterion=BY_BOUNDS,
    )


def _from_image(
    noisy: NDArray[np.float64],
    sigma: float,
    sizes: NDArray[np.intp],
    reach: int,
    n_references: int,
    seed: int,
) -> PatchSizeAdvice:
    denoise_nlm = find_function("nlm")
    margin = int(sizes[-1]) // 2 + reach
    height, width = noisy.shape
    if min(height, width) < 2 * margin + 1:
        raise ValueError(
            f"the image ({height}x{width}) is too small for patches of {sizes[-1]} in a window of "
            f"{2 * reach + 1}; it needs {2 * margin + 1} pixels a side: pass a smaller `largest`"
        )
    # A separate stream: the split must be independent of the image's noise, which may have been made with
    # default_rng(seed).
    rng = np.random.default_rng([SPLIT_STREAM, seed])
    split = sigma * rng.standard_normal(noisy.shape)
    first, second = noisy + THINNING * split, noisy - split / THINNING
    noise_1, noise_2 = sigma * math.sqrt(1 + THINNING**2), sigma * math.sqrt(1 + THINNING**-2)
    scale = standard_scale(first[None], noise_1)[1]
    risk = np.empty(len(sizes))
    for index, q in enumerate(sizes.tolist()):
        bandwidth = noise_bandwidth(q, noise_1 / scale)
        denoised = denoise_nlm(first, noise_1, patch_size=q, patch_distance=reach, bandwidth=bandwidth)
        risk[index] = np.mean((np.asarray(denoised) - second) ** 2) - noise_2**2
    inner = (height - 2 * margin) * (width - 2 * margin)
    chosen = np.sort(rng.choice(inner, size=min(n_references, inner), replace=False))
    rows, columns = (part + margin for part in np.divmod(chosen, width - 2 * margin))
    distances = [
        _clean_distances(
            search=first, measure=second, rows=rows, columns=columns, q=q, reach=reach, sigma=noise_2
        )
        for q in sizes.tolist()
    ]
    near, far = np.array(distances).T
    spread = [np.sqrt(8 * sigma**2 * (d2 + sigma**2 * sizes**2)) for d2 in (near, far)]
    k2 = ((far - near) / (spread[0] + spread[1])) ** 2
    bound = k2 / (1 + k2)
    best = int(sizes[np.argmin(risk)])
    bandwidth = noise_bandwidth(best, sigma / standard_scale(noisy[None], sigma)[1])
    return PatchSizeAdvice(
        q=best,
        sizes=sizes,
        close=bound,
        far=bound,
        near_distance=np.sqrt(near),
        far_distance=np.sqrt(far),
        risk=risk,
        bandwidth=bandwidth,
        criterion=BY_RISK,
    )


def _clean_distances(
    search: NDArray[np.float64],
    measure: NDArray[np.float64],
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    q: int,
    reach: int,
    sigma: float,
) -> tuple[float, float]:
    """Mean clean squared distance to the nearest patches, found in `search`, and to all of the window.

    Both are measured in `measure`, whose noise (level `sigma`) did not affect the choice: there is no bias.
    """
    side = 2 * reach + 1
    self_index = side * side // 2
    corner = q // 2 + reach

    def squared(image: NDArray[np.float64], part: slice) -> NDArray[np.float64]:
        windows = np.lib.stride_tricks.sliding_window_view(image, (q, q))
        around = np.lib.stride_tricks.sliding_window_view(windows, (side, side), axis=(0, 1))
        candidates = around[rows[part] - corner, columns[part] - corner].reshape(-1, q * q, side * side)
        difference = candidates - candidates[:, :, self_index : self_index + 1]
        return np.asarray(np.einsum("ijk,ijk->ik", difference, difference))

    near = far = 0.0
    for begin in range(0, len(rows), CHUNK):
        part = slice(begin, begin + CHUNK)
        found, held_out = squared(search, part), squared(measure, part)
        found[:, self_index] = np.inf  # the patch itself carries no information here
        neighbors = np.argpartition(found, N_NEIGHBORS, axis=1)[:, :N_NEIGHBORS]
        near += np.take_along_axis(held_out, neighbors, axis=1).mean(axis=1).sum()
        far += held_out.sum() / (side * side - 1)
    floor = 2 * sigma**2 * q * q
    near = max(near / len(rows) - floor, 0.0)
    return near, max(far / len(rows) - floor, near)
