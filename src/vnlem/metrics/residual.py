"""What a method took away, described without a reference: is it noise and nothing else?"""

import numpy as np
from numpy.typing import NDArray


def residual_statistics(residual: NDArray[np.float64]) -> dict[str, float | None]:
    """What was removed, described: white Gaussian noise has skewness, kurtosis and correlation 0.

    `residual_correlation` is that of neighbouring pixels, the mean of both directions.

    Examples
    --------
    >>> residual = np.random.default_rng(0).normal(0, 10, (100, 100))
    >>> found = residual_statistics(residual)
    >>> round(found["residual_std"], 1), bool(abs(found["residual_correlation"]) < 0.05)
    (10.0, True)
    """
    mean, std = float(residual.mean()), float(residual.std())
    if std == 0:
        none = dict.fromkeys(("residual_skewness", "residual_kurtosis", "residual_correlation"))
        return {"residual_mean": mean, "residual_std": 0.0, **none}
    unit = (residual - mean) / std
    along = [(unit[1:] * unit[:-1]).mean(), (unit[:, 1:] * unit[:, :-1]).mean()]
    return {
        "residual_mean": mean,
        "residual_std": std,
        "residual_skewness": float((unit**3).mean()),
        "residual_kurtosis": float((unit**4).mean() - 3),
        "residual_correlation": float(np.mean(along)),
    }
