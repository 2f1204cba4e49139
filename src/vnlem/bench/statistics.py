"""Statistics: means, tests and intervals for every pair of methods on the same images.

The paper uses the Mann-Whitney U test, which treats the images of two methods as different. They are the
same, so the paired Wilcoxon test is the right one; both are printed.
"""

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.bench.protocols import DIRECTION

RESAMPLES = 2000
CONFIDENCE = 0.95
LEVEL = 0.05  # of the tests
BOOTSTRAP_SEED = 0


def describe(values: ArrayLike) -> dict[str, Any]:
    """Number, mean and standard deviation (n - 1) of the finite values; None if there are too few.

    >>> describe([1.0, 3.0, np.nan])
    {'n': 2, 'mean': 2.0, 'std': 1.4142135623730951}
    """
    found = np.asarray(values, dtype=np.float64)
    found = found[np.isfinite(found)]
    return {
        "n": len(found),
        "mean": float(found.mean()) if len(found) else None,
        "std": float(found.std(ddof=1)) if len(found) > 1 else None,
    }


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction: p-values that keep the chance of any false alarm below the level; None stays None.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        corrected[place] = highest
    return corrected


def images_needed(n_pairs: int) -> int:
    """The fewest images with which the paired test can distinguish any of `n_pairs` pairs of methods.

    With n images its smallest p-value is 2^(1 - n); Holm's correction multiplies it by the number of pairs.

    >>> images_needed(1), images_needed(6)
    (6, 8)
    """
    n_images = 1
    while n_pairs * 2.0 ** (1 - n_images) >= LEVEL:
        n_images += 1
    return n_images


def mann_whitney(a: NDArray[np.float64], b: NDArray[np.float64]) -> dict[str, Any]:
    """Two-sided Mann-Whitney U test of two samples, with the rank-biserial correlation as effect size.

    >>> mann_whitney(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]))
    {'u': 0.0, 'p': 0.1, 'effect': -1.0}
    """
    from scipy.stats import mannwhitneyu

    found = mannwhitneyu(a, b, alternative="two-sided")
    u = float(found.statistic)
    return {"u": u, "p": float(found.pvalue), "effect": 2 * u / (len(a) * len(b)) - 1}


def wilcoxon(difference: NDArray[np.float64]) -> dict[str, Any]:
    """Two-sided Wilcoxon signed-rank test of paired differences, with two effect sizes.

    `effect` is the rank-biserial correlation of matched pairs (1: always larger, -1: always smaller), `dz`
    the mean difference in standard deviations of the differences.

    >>> wilcoxon(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))["p"]
    0.03125
    >>> wilcoxon(np.zeros(5))
    {'w': 0.0, 'p': 1.0, 'effect': 0.0, 'dz': None}
    """
    from scipy.stats import rankdata
    from scipy.stats import wilcoxon as signed_rank

    nonzero = difference[difference != 0]
    if not len(nonzero):
        return {"w": 0.0, "p": 1.0, "effect": 0.0, "dz": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few images: the p-value already says it
        found = signed_rank(nonzero)
    ranks = rankdata(np.abs(nonzero))
    above = float(ranks[nonzero > 0].sum())
    spread = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    return {
        "w": float(found.statistic),
        "p": float(found.pvalue),
        "effect": 2 * above / float(ranks.sum()) - 1,
        "dz": float(difference.mean()) / spread if spread > 0 else None,
    }


def bootstrap_intervals(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Percentile intervals (95 %) of column means under resampling of the rows: shape (2, columns).

    Every column has the same resamples: one matrix product serves them all.

    >>> bootstrap_intervals(np.tile([[1.0], [3.0]], (50, 1))).round(1).T
    array([[1.8, 2.2]])
    """
    n = len(columns)
    counts = np.random.default_rng(BOOTSTRAP_SEED).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    means = (counts.astype(np.float64) @ columns) / n
    tail = (1 - CONFIDENCE) / 2
    limits: NDArray[np.float64] = np.quantile(means, (tail, 1 - tail), axis=0)
    return limits


def compare(
    values: Mapping[str, Mapping[str, NDArray[np.float64]]], measures: Sequence[str]
) -> list[dict[str, Any]]:
    """Every pair of methods on every measure; Holm's correction is over the pairs of a measure.

    values: for each method and measure one value per image, the same images in the same order everywhere; NaN
        for none.

    `difference` is the mean of a - b with its bootstrap `interval`; `wins` counts the images where a is the
    better of the two. Measures that only describe have no wins.

    >>> a = {"snr": np.array([3.0, 4.0, 5.0])}
    >>> b = {"snr": np.array([1.0, 3.0, 6.0])}
    >>> found, = compare({"a": a, "b": b}, ["snr"])
    >>> found["n"], found["wins"], found["losses"], round(found["difference"], 2)
    (3, 2, 1, 0.67)
    """
    rows: list[dict[str, Any]] = []
    differences: list[NDArray[np.float64]] = []
    for measure in measures:
        for first, second in combinations(values, 2):
            a, b = values[first][measure], values[second][measure]
            both = np.isfinite(a) & np.isfinite(b)
            a, b = a[both], b[both]
            if not len(a):
                continue
            row: dict[str, Any] = {"a": first, "b": second, "measure": measure, "n": len(a)}
            row |= {"difference": float((a - b).mean()), "interval": None}
            row |= {"mann_whitney": mann_whitney(a, b), "wilcoxon": wilcoxon(a - b)}
            row |= _wins(a - b, DIRECTION[measure])
            rows.append(row)
            differences.append(a - b)
    _add_intervals(rows, differences)
    for measure in measures:
        family = [row for row in rows if row["measure"] == measure]
        for row, p in zip(family, holm([row["wilcoxon"]["p"] for row in family]), strict=True):
            row["wilcoxon"]["p_holm"] = p
    return rows


def _add_intervals(rows: list[dict[str, Any]], differences: list[NDArray[np.float64]]) -> None:
    for n in {len(column) for column in differences}:
        places = [place for place, column in enumerate(differences) if len(column) == n]
        limits = bootstrap_intervals(np.stack([differences[place] for place in places], axis=1))
        for place, (low, high) in zip(places, limits.T, strict=True):
            rows[place]["interval"] = [float(low), float(high)] if n > 1 else None


def _wins(difference: NDArray[np.float64], direction: int) -> dict[str, int | None]:
    if direction == 0:
        return {"wins": None, "losses": None, "ties": None}
    gain = difference * direction
    return {
        "wins": int((gain > 0).sum()),
        "losses": int((gain < 0).sum()),
        "ties": int((gain == 0).sum()),
    }
