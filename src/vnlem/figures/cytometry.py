"""The paper's cytometry figure: a noisy image without a reference, the results, and what was removed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vnlem.figures._panels import error_panel, grey_panel, save, scale_panel


def cytometry_figure(
    noisy: ArrayLike, results: Mapping[str, ArrayLike], out: str | Path | None = None
) -> Any:
    """Image and results in a row, what each method removed below, on one scale.

    Parameters
    ----------
    noisy : array_like, shape (height, width)
        In 0..255.
    results : mapping of str to array_like
        The result of each method.
    out : path, optional
        Where to save the figure; the suffix decides the format.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    There is no clean image, so the captions give the FSIM to the noisy one, as the paper does, and the
    residual's standard deviation and correlation of neighbouring pixels: 0 if only white noise was removed.

    Examples
    --------
    >>> noisy = np.random.default_rng(0).normal(100, 20, (32, 32))
    >>> figure = cytometry_figure(noisy, {"mean": np.full((32, 32), 100.0)})
    >>> [axes.get_title() for axes in figure.axes[:2]]
    ['noisy', 'mean']
    """
    from matplotlib.figure import Figure

    given = np.asarray(noisy, dtype=np.float64)
    images = {label: np.asarray(image, dtype=np.float64) for label, image in results.items()}
    residuals = {label: given - image for label, image in images.items()}
    limit = 3 * max([float(residual.std()) for residual in residuals.values()] + [1e-9])
    height = given.shape[0] / given.shape[1]
    figure = Figure(figsize=(2.9 * (1 + len(images)), 2.9 * height * 2 + 0.8), layout="constrained")
    axes = figure.subplots(2, 1 + len(images), squeeze=False)
    grey_panel(axes[0, 0], given, "noisy")
    drawn = None
    for column, (label, image) in enumerate(images.items(), 1):
        grey_panel(axes[0, column], image, label, _fsim(given, image))
        drawn = error_panel(axes[1, column], residuals[label], limit, _described(residuals[label]))
    scale_panel(axes[1, 0], drawn, "removed")
    return save(figure, out)


def _fsim(noisy: Any, image: Any) -> str:
    from vnlem.metrics import fsim

    return f"FSIM to the noisy image {100 * fsim(noisy, np.clip(image, 0, 255), 255):.2f} (x100)"


def _described(residual: Any) -> str:
    from vnlem.metrics.residual import residual_statistics

    found = residual_statistics(residual)
    correlation = found["residual_correlation"]
    return f"std {found['residual_std']:.2f}, neighbour correlation {correlation or 0:.3f}"
