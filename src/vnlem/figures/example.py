"""The paper's example figure: original, noisy image, each method's result, the errors below."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vnlem.figures._panels import error_panel, grey_panel, save, scale_panel


def example_figure(
    clean: ArrayLike,
    noisy: ArrayLike,
    results: Mapping[str, ArrayLike],
    out: str | Path | None = None,
    measures: Mapping[str, Mapping[str, float | None]] | None = None,
) -> Any:
    """Original, noisy and denoised images in a row with their measures, the errors on one scale below.

    Parameters
    ----------
    clean, noisy : array_like, shape (height, width)
        In 0..255.
    results : mapping of str to array_like
        The result of each method on `noisy`.
    out : path, optional
        Where to save the figure; the suffix decides the format.
    measures : mapping of str to mapping, optional
        Measures in the captions, of "noisy" and of each result, by the names of ``vnlem.metrics.Evaluation``;
        measured on the images when None, which differs if these were clipped.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> clean = np.add.outer(np.arange(32.0), np.arange(32.0))
    >>> noisy = clean + np.random.default_rng(0).normal(0, 9, clean.shape)
    >>> figure = example_figure(clean, noisy, {"half": (clean + noisy) / 2})
    >>> [axes.get_title() for axes in figure.axes[:3]]
    ['original', 'noisy', 'half']
    """
    from matplotlib.figure import Figure

    true = np.asarray(clean, dtype=np.float64)
    others = {"noisy": np.asarray(noisy, dtype=np.float64)}
    others |= {label: np.asarray(image, dtype=np.float64) for label, image in results.items()}
    limit = 1.5 * max(float((others["noisy"] - true).std()), 1e-9)
    columns = 1 + len(others)
    height = true.shape[0] / true.shape[1]
    figure = Figure(figsize=(2.6 * columns, 2.6 * height * 2 + 0.9), layout="constrained")
    axes = figure.subplots(2, columns, squeeze=False)
    grey_panel(axes[0, 0], true, "original")
    drawn = None
    for column, (label, image) in enumerate(others.items(), 1):
        known = _evaluate(true, image, others["noisy"]) if measures is None else measures[label]
        grey_panel(axes[0, column], image, label, _caption(known))
        drawn = error_panel(axes[1, column], image - true, limit)
    scale_panel(axes[1, 0], drawn, "error")
    return save(figure, out)


def _evaluate(clean: Any, image: Any, noisy: Any) -> Mapping[str, float | None]:
    from vnlem.metrics import evaluate

    return asdict(evaluate(clean, image, noisy=noisy, data_range=255))


def _caption(known: Mapping[str, float | None]) -> str:
    def number(name: str, factor: float = 100) -> str:
        value = known[name]
        return "-" if value is None else f"{factor * value:.2f}"

    return (
        f"SNR {number('snr', 1)} dB, PSNR {number('psnr', 1)} dB\n"
        f"RMS {number('rms')}, SOB {number('sobolev')}, OT {number('emd')}\n"
        f"FSIM {number('fsim')} (all but dB: x100)"
    )
