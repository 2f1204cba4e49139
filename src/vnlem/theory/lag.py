"""The lag map: the patch space of a one-dimensional signal (the paper's appendix on Takens embedding)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.pipeline import checks


def lag_map(series: ArrayLike, dim: int, step: int = 1) -> NDArray[np.float64]:
    """Vectors of `dim` samples of a series, `step` apart: its patches.

    Parameters
    ----------
    series : array_like of shape (n,)
        The observed series.
    dim : int
        Length of the vectors. Takens' theorem: for a generic observation of a dynamics on a manifold of
        dimension d, 2 d + 1 is enough for an embedding.
    step : int
        Samples between neighbouring entries (the lag).

    Returns
    -------
    ndarray of shape (n - (dim - 1) * step, dim)
        Row k is ``series[k], series[k + step], ..., series[k + (dim - 1) * step]``.

    References
    ----------
    .. [1] F. Takens, "Detecting strange attractors in turbulence", Lecture Notes in Mathematics 898, 1981.

    Examples
    --------
    >>> lag_map([0, 1, 2, 3, 4], dim=3)
    array([[0., 1., 2.], [1., 2., 3.], [2., 3., 4.]])
    >>> lag_map([0, 1, 2, 3, 4], dim=2, step=3)
    array([[0., 3.], [1., 4.]])
    """
    values = np.asarray(series, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"series must have one dimension, got shape {values.shape}")
    length = checks.whole("dim", dim)
    lag = checks.whole("step", step)
    span = (length - 1) * lag + 1
    if span > values.size:
        raise ValueError(
            f"dim {length} with step {lag} spans {span} samples, but the series has {values.size}; "
            "take a smaller dim or step"
        )
    windows = np.lib.stride_tricks.sliding_window_view(values, span)
    return np.ascontiguousarray(windows[:, ::lag])
