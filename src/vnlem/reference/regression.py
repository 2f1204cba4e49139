"""The gamma-power regression by iteratively reweighted least squares, in float64."""

import numpy as np


def irls(patches, weights, gamma, *, delta=1e-6):
    """argmin over P of sum_j weights[j] (|P - patches[j]|^2 + delta)^(gamma/2), from the weighted mean.

    Below gamma = 1 the iteration stops at the first step shorter than 1e-4. At gamma = 1 and above the
    minimum is unique but IRLS can creep towards it: a step of 1e-4 may be 4e-3 away. There it goes on to
    1e-6: the oracle is then the minimum itself, not the point where the iteration stopped.

    Examples
    --------
    >>> irls(np.array([[0.0], [1.0], [10.0]]), np.ones(3), gamma=2.0)
    array([3.66666667])
    >>> bool(abs(irls(np.array([[0.0], [1.0], [10.0]]), np.ones(3), gamma=1.0)[0] - 1) < 1e-3)
    True
    """
    point = weights @ patches / weights.sum()
    if gamma == 2:
        return point
    step, max_iterations = (1e-4, 500) if gamma < 1 else (1e-6, 5000)
    for _ in range(max_iterations):
        residual = ((patches - point) ** 2).sum(axis=1)
        reweighted = weights * (residual + delta) ** (gamma / 2 - 1)
        new = reweighted @ patches / reweighted.sum()
        moved = np.linalg.norm(new - point)
        point = new
        if moved < step:
            break
    return point
