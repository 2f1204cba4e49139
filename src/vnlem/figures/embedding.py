"""The diffusion coordinates of an image's patch graph, over the image and as a point cloud."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import vnlem
from vnlem.pipeline import checks
from vnlem.pipeline.image import to_planes


def embedding(
    image: ArrayLike,
    out: str | Path | None = None,
    *,
    sigma: float | None = None,
    preset: str = "auto",
    count: int = 6,
) -> Any:
    """The first diffusion coordinates of an image's patch graph, over the image and as a point cloud.

    Parameters
    ----------
    image : array_like, shape (height, width)
    out : path, optional
        Where to save the figure; the suffix decides the format.
    sigma : float, optional
        Noise standard deviation in the units of the image; estimated when None.
    preset : {"auto", "paper"}
        As in :func:`vnlem.denoise_vnlem_dd`.
    count : int
        How many coordinates to show, at least three.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> image = np.where(np.arange(24) < 12, 0.0, 3.0) + rng.normal(0, 0.3, (24, 24))
    >>> figure = embedding(image, sigma=0.3, count=3)
    >>> len(figure.axes)
    5
    """
    from matplotlib.figure import Figure

    count = checks.whole("count", count, 3)
    pixels = to_planes(image).data[0]
    placed, eigenvalues = vnlem.diffusion_coordinates(pixels, sigma, preset=preset, embedding_dim=count)
    columns = -(-(count + 2) // 2)
    figure = Figure(figsize=(3.2 * columns, 7), layout="constrained")
    cells = figure.subplots(2, columns).ravel()
    cells[0].imshow(pixels, cmap="gray")
    cells[0].set_title("image")
    for k in range(count):
        limit = np.quantile(np.abs(placed[..., k]), 0.995)
        cells[k + 1].imshow(placed[..., k], cmap="RdBu", vmin=-limit, vmax=limit)
        cells[k + 1].set_title(f"coordinate {k + 1}, eigenvalue {eigenvalues[k + 1]:.4f}", fontsize=9)
    for cell in cells:
        cell.set_axis_off()
    cloud = cells[count + 1]
    cloud.set_axis_on()
    shades = np.clip(pixels, *np.quantile(pixels, (0.01, 0.99))).ravel()
    first, second = placed[..., 0].ravel(), placed[..., 1].ravel()
    cloud.scatter(first, second, c=shades, cmap="gray", s=1, linewidths=0)
    cloud.set_facecolor("lightsteelblue")
    cloud.set_title("pixels at coordinates 1 and 2", fontsize=9)
    cloud.set_xticks([])
    cloud.set_yticks([])
    for spare in cells[count + 2 :]:
        figure.delaxes(spare)
    if out is not None:
        figure.savefig(out, dpi=90)
    return figure
