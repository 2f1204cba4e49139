"""The curves of the theory as a figure (needs matplotlib)."""

from pathlib import Path
from typing import Any

import numpy as np

from vnlem.theory.neighbors import neighbor_bounds, neighbor_probabilities
from vnlem.theory.patch_size import PatchSizeAdvice, suggest_patch_size

CLOSE_COLOUR, FAR_COLOUR = "#1f5fa8", "#c2571a"


def new_figure(width: float, height: float) -> Any:
    """An empty figure that needs no display, or a clear error if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("drawing needs matplotlib: pip install 'vnlem[bench]'") from None
    return Figure(figsize=(width, height), dpi=100, layout="constrained")


def draw_bounds(axes: Any, sigma: float, epsilon: float, sizes: list[int]) -> PatchSizeAdvice:
    """Both bounds, with and without overlap, and the exact probabilities, where the theorem applies."""
    inside = [q for q in sizes if sigma * q < epsilon]
    advice = suggest_patch_size(sigma, epsilon, smallest=min(sizes), largest=max(sizes))
    exact = [neighbor_probabilities(q, sigma, epsilon) for q in inside]
    for side, colour in (("close", CLOSE_COLOUR), ("far", FAR_COLOUR)):
        for overlap, style in ((False, "-"), (True, "--")):
            bounds = [getattr(neighbor_bounds(q, sigma, epsilon, overlap), side) for q in inside]
            kind = "may overlap" if overlap else "no overlap"
            axes.plot(inside, bounds, style, color=colour, marker=".", label=f"{side} stays {side}, {kind}")
        axes.plot(
            inside, [getattr(e, side) for e in exact], ":", color=colour, label=f"{side}, exact (no overlap)"
        )
    axes.axvline(advice.q, color="0.6", linewidth=1)
    axes.annotate(f"q = {advice.q}", (advice.q, axes.get_ylim()[0]), (4, 4), textcoords="offset points")
    axes.set_xlabel("patch size q")
    axes.set_ylabel("probability, at least")
    axes.set_xticks(np.array(inside))
    axes.set_title(f"sigma = {sigma:.4g}, epsilon = {epsilon:.4g}", fontsize=10)
    axes.legend(fontsize=8)
    return advice


def plot_bounds(path: str | Path, sigma: float, epsilon: float, sizes: list[int]) -> None:
    """Write the bounds over the patch size as an image file.

    path: file to write; the ending decides the format (png, pdf, svg).
    sigma, epsilon: as in :func:`neighbor_bounds`.
    sizes: odd patch sizes.
    """
    figure = new_figure(6.4, 4.4)
    draw_bounds(figure.subplots(), sigma, epsilon, sizes)
    figure.savefig(path)
