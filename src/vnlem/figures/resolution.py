"""The paper's resolution figure: one image at several sizes, with the same noise level."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vnlem.figures._panels import grey_panel, save


class Resolution(NamedTuple):
    """An image at one size: clean, noisy, and the result of each method, in 0..255.

    `snr` gives the decibels of "noisy" and of each result; None measures them on the images.
    """

    clean: ArrayLike
    noisy: ArrayLike
    results: Mapping[str, ArrayLike]
    snr: Mapping[str, float | None] | None = None


def resolution_figure(sizes: Mapping[int, Resolution], out: str | Path | None = None) -> Any:
    """One row for each size, drawn equally large, with the SNR below each image.

    Parameters
    ----------
    sizes : mapping of int to Resolution
        Side of the image -> the images; every size has the same methods.
    out : path, optional
        Where to save the figure; the suffix decides the format.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> def at(size):
    ...     clean = np.add.outer(np.arange(size), np.arange(size)) * (100 / size)
    ...     noisy = clean + np.random.default_rng(0).normal(0, 9, clean.shape)
    ...     return Resolution(clean, noisy, {"half": (clean + noisy) / 2})
    >>> figure = resolution_figure({16: at(16), 32: at(32)})
    >>> figure.axes[0].get_ylabel(), figure.axes[1].get_title()
    ('16x16', 'half')
    """
    from matplotlib.figure import Figure

    if not sizes:
        raise ValueError("sizes is empty; pass at least one size with its images")
    labels = list(next(iter(sizes.values())).results)
    figure = Figure(figsize=(2.6 * (1 + len(labels)), 2.8 * len(sizes)), layout="constrained")
    axes = figure.subplots(len(sizes), 1 + len(labels), squeeze=False)
    for row, (size, images) in zip(axes, sizes.items(), strict=True):
        for place, label in enumerate(["noisy", *labels]):
            image = np.asarray(images.noisy if place == 0 else images.results[label], dtype=np.float64)
            title = label if row[0] is axes[0, 0] else ""
            grey_panel(row[place], image, title, _caption(images, label, image))
        row[0].set_ylabel(f"{size}x{size}", fontsize=9)
    return save(figure, out)


def _caption(images: Resolution, label: str, image: Any) -> str:
    from vnlem.metrics import snr

    value = snr(images.clean, image) if images.snr is None else images.snr[label]
    return "" if value is None else f"SNR {value:.2f} dB"
