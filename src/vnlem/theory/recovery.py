"""How well true neighbours are found: the k nearest patches of a clean image, searched for in a noisy one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from vnlem.features.rings import RingCoefficients, layout
from vnlem.pipeline import checks
from vnlem.pipeline.image import to_planes
from vnlem.pipeline.sigma import check_sigma

METRICS = ("euclidean", "rid")
N_ANGLES = 32  # of a turn that the minimum is taken over
N_THRESHOLDS = 64
NOISE_STREAM = 0x4EC0  # keeps noise independent of an image made with default_rng(seed)
CHUNK = 50  # reference patches handled at once: bounds the memory


@dataclass(frozen=True)
class Recovery:
    """How many of the k nearest clean neighbours are among the k nearest noisy ones.

    Attributes
    ----------
    share : float
        Mean share found.
    standard_error : float
        Standard error of that mean, over the reference pixels.
    chance : float
        Share found by picking at random.
    chebyshev_bound : float or None
        What the theory guarantees for the mean share (0 if it guarantees nothing). Euclidean metric only:
        nothing is proved for the minimum over rotations.
    gaussian_bound : float or None
        The same guarantee if squared distances were Gaussian with the lemma's mean and variance.

    Examples
    --------
    >>> from vnlem.theory import random_image
    >>> found = neighbor_recovery(random_image(64), 0.3, 7, n_references=20)
    >>> found.share > found.chance
    True
    """

    share: float
    standard_error: float
    chance: float
    chebyshev_bound: float | None
    gaussian_bound: float | None


def neighbor_recovery(
    clean: ArrayLike,
    sigma: Any,
    q: int,
    *,
    metric: str = "euclidean",
    k: int = 16,
    patch_distance: int = 10,
    n_references: int = 200,
    seed: int = 0,
) -> Recovery:
    """Share of the k nearest clean neighbours that are found among the k nearest noisy ones.

    Parameters
    ----------
    clean : array_like of shape (height, width)
        Clean image.
    sigma : float
        Noise level.
    q : int
        Patch size, odd.
    metric : {"euclidean", "rid"}
        Plain distance of square patches, or the smallest distance of discs of diameter q over all rotations
        in steps of 11.25 degrees.
    k : int
        Number of neighbours.
    patch_distance : int
        The search window reaches this far from each pixel.
    n_references : int
        Number of pixels examined.
    seed : int
        Seed of the noise and of the choice of pixels.

    Returns
    -------
    Recovery

    Notes
    -----
    The guarantee. For any threshold T, if a of the k true neighbours have a noisy squared
    distance above T and f of the other patches one below T, then at most max(a, f) <= a + f neighbours are
    missed. So the expected share is at least 1 - (1/k) (sum over neighbours of Pr(D > T) + sum over others
    of Pr(D < T)). Each term is bounded by one-sided Chebyshev with the mean and the variance of
    :func:`distance_moments` (overlap included), and T is the best for each reference pixel.

    Examples
    --------
    >>> from vnlem.theory import random_image
    >>> found = neighbor_recovery(random_image(64), 0.3, 7, n_references=50)
    >>> 0 <= found.chebyshev_bound <= found.gaussian_bound <= found.share <= 1
    True
    """
    image = to_planes(clean).data[0]
    noise, size = check_sigma(sigma), checks.odd("q", q)
    checks.choice("metric", metric, METRICS)
    reach = checks.whole("patch_distance", patch_distance)
    wanted = checks.whole("k", k)
    n_candidates = (2 * reach + 1) ** 2 - 1
    if wanted >= n_candidates:
        raise ValueError(f"k must be below the {n_candidates} candidates of the window, got {wanted}")
    margin = size // 2 + reach + (2 if metric == "rid" else 0)
    height, width = image.shape
    if min(height, width) < 2 * margin + 1:
        raise ValueError(
            f"the image ({height}x{width}) is too small for patches of {size} in a window of "
            f"{2 * reach + 1}; it needs {2 * margin + 1} pixels a side: pass a smaller q or patch_distance"
        )
    rng = np.random.default_rng([NOISE_STREAM, seed])
    noisy = image + noise * rng.standard_normal(image.shape)
    inner = (height - 2 * margin) * (width - 2 * margin)
    chosen = np.sort(rng.choice(inner, min(checks.whole("n_references", n_references), inner), replace=False))
    rows, columns = (part + margin for part in np.divmod(chosen, width - 2 * margin))
    shares, chebyshev, gaussian = [], [], []
    distances = _Rings if metric == "rid" else _Squares
    of_clean, of_noisy = distances(image, size, reach), distances(noisy, size, reach)
    for begin in range(0, len(rows), CHUNK):
        part = (rows[begin : begin + CHUNK], columns[begin : begin + CHUNK])
        truth, seen = of_clean(*part), of_noisy(*part)
        shares.append(_share_found(truth, seen, wanted))
        if isinstance(of_clean, _Squares):
            mean = truth + 2 * noise**2 * size**2
            variance = of_clean.noisy_variance(*part, truth, noise)
            chebyshev.append(_guarantee(truth, mean, variance, wanted, gaussian=False))
            gaussian.append(_guarantee(truth, mean, variance, wanted, gaussian=True))
    found = np.concatenate(shares)
    error = float(found.std() / np.sqrt(len(found)))
    bounds = [float(np.concatenate(b).mean()) if b else None for b in (chebyshev, gaussian)]
    return Recovery(float(found.mean()), error, wanted / n_candidates, bounds[0], bounds[1])


def _share_found(truth: NDArray[np.float64], seen: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    nearest = [np.zeros(values.shape, dtype=bool) for values in (truth, seen)]
    for chosen, values in zip(nearest, (truth, seen), strict=True):
        np.put_along_axis(chosen, np.argpartition(values, k, axis=1)[:, :k], True, axis=1)
    return np.asarray((nearest[0] & nearest[1]).sum(axis=1) / k)


def _guarantee(
    truth: NDArray[np.float64],
    mean: NDArray[np.float64],
    variance: NDArray[np.float64],
    k: int,
    *,
    gaussian: bool,
) -> NDArray[np.float64]:
    """Lower bound of the share found for each reference, at its best threshold."""
    order = np.argsort(truth, axis=1, kind="stable")
    mean, variance = (np.take_along_axis(values, order, axis=1) for values in (mean, variance))
    low, high = mean[:, :1], mean[:, -1:]
    thresholds = low + (high - low) * np.linspace(0, 1, N_THRESHOLDS)
    gap = thresholds[:, :, None] - mean[:, None, :]  # positive: the threshold lies above the mean
    gap[:, :, k:] *= -1  # neighbours must stay below it, the others above
    spread = variance[:, None, :]
    if gaussian:
        misses = ndtr(-gap / np.sqrt(np.maximum(spread, 1e-300)))
    else:
        misses = np.where(gap > 0, spread / (spread + gap**2 + 1e-300), 1.0)
    return np.asarray(np.clip(1 - misses.sum(axis=2).min(axis=1) / k, 0, 1))


class _Squares:
    """Squared Euclidean distances of square patches to all patches of the window but the patch itself."""

    def __init__(self, image: NDArray[np.float64], q: int, reach: int) -> None:
        self.q, self.reach = q, reach
        side = 2 * reach + 1
        patches = np.lib.stride_tricks.sliding_window_view(image, (q, q))
        self.windows = np.lib.stride_tricks.sliding_window_view(patches, (side, side), axis=(0, 1))
        self.corner = q // 2 + reach
        self.others = np.delete(np.arange(side * side), side * side // 2)

    def _differences(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.float64]:
        """P for every reference and candidate: (references, candidates, q, q)."""
        around = self.windows[rows - self.corner, columns - self.corner]
        around = around.reshape(len(rows), self.q, self.q, -1).transpose(0, 3, 1, 2)
        here = around[:, around.shape[1] // 2, None]
        return np.asarray(here - around[:, self.others])

    def __call__(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.asarray(np.sum(self._differences(rows, columns) ** 2, axis=(2, 3)))

    def noisy_variance(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp], clean: NDArray[np.float64], sigma: float
    ) -> NDArray[np.float64]:
        """The lemma's variance for the identity, overlap included."""
        q, side = self.q, 2 * self.reach + 1
        difference = self._differences(rows, columns)
        shared = np.zeros_like(clean)
        count = np.zeros(clean.shape[1])
        for index, position in enumerate(self.others.tolist()):
            down, right = position // side - self.reach, position % side - self.reach
            if max(abs(down), abs(right)) >= q:
                continue
            # K_O for the identity: pixel t + offset of the first patch is pixel t of the second.
            first = difference[:, index, max(0, down) : q + min(0, down), max(0, right) : q + min(0, right)]
            second = difference[
                :, index, max(0, -down) : q + min(0, -down), max(0, -right) : q + min(0, -right)
            ]
            shared[:, index] = np.sum(first * second, axis=(1, 2))
            count[index] = (q - abs(down)) * (q - abs(right))
        return np.asarray(8 * sigma**2 * (clean - shared) + 4 * sigma**4 * (2 * q * q + count))


class _Rings:
    """Squared distances of discs, smallest over rotations, to all discs of the window but the own one."""

    def __init__(self, image: NDArray[np.float64], q: int, reach: int) -> None:
        spread = float(image.std()) or 1.0
        self.coefficients = RingCoefficients.of((image - image.mean()) / spread, layout(q))
        self.scale = spread**2
        self.angles = 2 * np.pi * np.arange(N_ANGLES) / N_ANGLES
        window = np.arange(-reach, reach + 1)
        offsets = np.stack(np.meshgrid(window, window, indexing="ij"), axis=-1).reshape(-1, 2)
        self.offsets = offsets[np.any(offsets != 0, axis=1)]

    def __call__(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.float64]:
        others = rows[:, None] + self.offsets[:, 0], columns[:, None] + self.offsets[:, 1]
        here = self.coefficients[rows[:, None], columns[:, None]]
        squared = here.squared_distances(self.coefficients[others], self.angles)
        return np.asarray(self.scale * squared.min(axis=-1))
