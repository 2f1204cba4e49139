"""The paper's example figure: original, noisy image, each method's result, the errors below."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vnlem.figures._panels import empty_panel, error_panel, grey_panel, save


def example_figure(
    clean: ArrayLike, noisy: ArrayLike, results: Mapping[str, ArrayLike], out: str | Path | None = None
) -> Any:
    """Original, noisy and denoised images in a row with their measures, the errors on one scale below.

    Parameters
    ----------
    clean, noisy : array_like, shape (height, width)
        In 0..255.
    results : mapping of str to array_like
        What each method made of `noisy`.
    out : path, optional
        Where to save the figure; the suffix decides the format.

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
    figure = Figure(figsize=(2.6 * columns, 2.6 * height * 2 + 1.3), layout="constrained")
    axes = figure.subplots(2, columns, squeeze=False)
    grey_panel(axes[0, 0], true, "original")
    drawn = None
    for column, (label, image) in enumerate(others.items(), 1):
        grey_panel(axes[0, column], image, label, _caption(true, image, others["noisy"]))
        drawn = error_panel(axes[1, column], image - true, limit)
    empty_panel(axes[1, 0], drawn)
    return save(figure, out)


def _caption(clean: Any, image: Any, noisy: Any) -> str:
    from vnlem.metrics import evaluate

    found = evaluate(clean, image, noisy=noisy, data_range=255)
    lines = [f"SNR {found.snr:.2f} dB, PSNR {found.psnr:.2f} dB"]
    lines.append(f"RMS {100 * found.rms:.2f}, SOB {100 * found.sobolev:.2f}, OT {100 * (found.emd or 0):.2f}")
    lines.append(f"FSIM {100 * found.fsim:.2f} (all but dB: x100)")
    return "\n".join(lines)
