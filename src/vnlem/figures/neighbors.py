"""The paper's neighbour figure: the patches nearest to one patch, by Euclidean distance and by RID."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.figures._panels import save
from vnlem.neighbours.dilated import aligned_patches, dilated_matches
from vnlem.neighbours.image import Matches, matches
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
    scales: Sequence[float] = (1.0,),
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
    scales : sequence of float
        With other factors than 1 a further panel shows the nearest over rotations and dilations by these, as
        in :func:`vnlem.rid`.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    Patches found by RID are shown rotated onto the first, and scaled; in the image a circle shows the size of
    each match of the last panel, and a tick marks the top of the patch.

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
    shown = {"Euclidean distance": by_euclid, "RID": by_rid}
    if [float(factor) for factor in scales] != [1.0]:
        by_rid = dilated_matches(pixels, at, count, scales=scales, **options)  # type: ignore[arg-type]
        sizes = ", ".join(f"{factor:.3g}" for factor in scales)
        shown[f"RID over sizes {sizes}"] = by_rid
    columns = int(np.ceil(np.sqrt(count)))
    rows = int(np.ceil(count / columns))
    figure = Figure(figsize=(6 * (1 + len(shown)), 6.6), layout="constrained")
    panels: Any = figure.subfigures(1, 1 + len(shown), width_ratios=(1, *[1.05] * len(shown)))
    axes = panels[0].subplots()
    axes.imshow(pixels, cmap="gray")
    axes.set_axis_off()
    axes.set_title(f"patch at row {at[0]}, column {at[1]}: yellow; matches by RID: red")
    half = patch_size / 2
    for row, column, angle, factor in zip(
        by_rid.row[1:], by_rid.column[1:], by_rid.angle[1:], by_rid.factor[1:], strict=True
    ):
        radius = half / factor
        axes.add_patch(Circle((column, row), radius, fill=False, color="red", linewidth=0.7))
        # The top of the patch (0, -1), turned back by the rotation that aligned the match.
        tip = column - radius * np.sin(angle), row - radius * np.cos(angle)
        axes.plot((column, tip[0]), (row, tip[1]), color="red", linewidth=0.7)
    corner = (at[1] - half, at[0] - half)
    axes.add_patch(Rectangle(corner, patch_size, patch_size, fill=False, color="yellow", linewidth=1.5))
    for panel, (title, found) in zip(panels[1:], shown.items(), strict=True):
        panel.suptitle(title)
        cells = np.atleast_1d(panel.subplots(rows, columns)).ravel()
        _draw_patches(cells, pixels, found, patch_size)
    return save(figure, out)


def _draw_patches(cells: NDArray[Any], pixels: NDArray[np.float64], found: Matches, patch_size: int) -> None:
    """One patch per cell, aligned, its distance on top."""
    patches = aligned_patches(pixels, found, patch_size)
    low, high = patches[0].min(), patches[0].max()
    spread = max(high - low, 1e-12)
    for cell in cells:
        cell.set_axis_off()
    for cell, patch, distance, factor in zip(cells, patches, found.distance, found.factor, strict=False):
        cell.imshow(patch, cmap="gray", vmin=low - 0.1 * spread, vmax=high + 0.1 * spread)
        size = "" if factor == 1 else f", x {factor:.3g}"
        cell.set_title(f"{distance:.3g}{size}", fontsize=7, pad=1)
