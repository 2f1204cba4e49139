"""The paper's neighbour figure: the patches nearest to one patch, by Euclidean distance and by RID."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.neighbours.image import Matches, matches, rotated_patches
from vnlem.pipeline.image import to_planes


def neighbors(
    image: ArrayLike,
    at: tuple[int, int],
    out: str | Path | None = None,
    *,
    patch_size: int = 13,
    count: int = 49,
    angle_range: float = 30.0,
    angle_step: float = 5.0,
    scale: float = 1.0,
) -> Any:
    """The patches nearest to one patch, by Euclidean distance and by RID, and where they lie.

    Parameters
    ----------
    image : array_like, shape (height, width)
    at : (row, column)
        Centre of the patch.
    out : path, optional
        Where to save the figure; the suffix decides the format.
    patch_size, angle_range, angle_step, scale
        As in :func:`vnlem.denoise_vnlem`.
    count : int
        How many patches, the patch itself included.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    Patches found by RID are shown rotated onto the first; in the image a tick on each match shows where the
    top of the patch went.

    Examples
    --------
    >>> figure = neighbors(np.add.outer(np.arange(24.0), np.zeros(24)), (12, 12), count=4)
    >>> len(figure.axes)
    9
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle, Rectangle

    pixels = to_planes(image).data[0]
    options = {
        "patch_size": patch_size,
        "angle_range": angle_range,
        "angle_step": angle_step,
        "scale": scale,
    }
    by_euclid = matches(pixels, at, count, rotated=False, **options)  # type: ignore[arg-type]
    by_rid = matches(pixels, at, count, rotated=True, **options)  # type: ignore[arg-type]
    columns = int(np.ceil(np.sqrt(count)))
    rows = int(np.ceil(count / columns))
    figure = Figure(figsize=(18, 6.6), layout="constrained")
    panels: Any = figure.subfigures(1, 3, width_ratios=(1, 1.05, 1.05))
    picture, left, right = panels
    axes = picture.subplots()
    axes.imshow(pixels, cmap="gray")
    axes.set_axis_off()
    axes.set_title(f"patch at row {at[0]}, column {at[1]}: yellow; matches by RID: red")
    half = patch_size / 2
    for row, column, angle in zip(by_rid.row[1:], by_rid.column[1:], by_rid.angle[1:], strict=True):
        axes.add_patch(Circle((column, row), half, fill=False, color="red", linewidth=0.7))
        # The top of the patch (0, -1), turned back by the rotation that aligned the match.
        tip = column - half * np.sin(angle), row - half * np.cos(angle)
        axes.plot((column, tip[0]), (row, tip[1]), color="red", linewidth=0.7)
    corner = (at[1] - half, at[0] - half)
    axes.add_patch(Rectangle(corner, patch_size, patch_size, fill=False, color="yellow", linewidth=1.5))
    for panel, found, title in ((left, by_euclid, "Euclidean distance"), (right, by_rid, "RID")):
        panel.suptitle(title)
        cells = np.atleast_1d(panel.subplots(rows, columns)).ravel()
        _draw_patches(cells, pixels, found, patch_size)
    if out is not None:
        figure.savefig(out, dpi=110)
    return figure


def _draw_patches(cells: NDArray[Any], pixels: NDArray[np.float64], found: Matches, patch_size: int) -> None:
    """One patch per cell, aligned, its distance on top."""
    patches = rotated_patches(pixels, found, patch_size)
    low, high = patches[0].min(), patches[0].max()
    spread = max(high - low, 1e-12)
    for cell in cells:
        cell.set_axis_off()
    for cell, patch, distance in zip(cells, patches, found.distance, strict=False):
        cell.imshow(patch, cmap="gray", vmin=low - 0.1 * spread, vmax=high + 0.1 * spread)
        cell.set_title(f"{distance:.3g}", fontsize=7, pad=1)
