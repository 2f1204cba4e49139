"""What the figures share: grey panels with captions, and saving without a half-written file."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

GREY = (0, 255)


def grey_panel(axes: Any, image: NDArray[Any], title: str, caption: str = "") -> None:
    """An image in 0..255 with its title above and its caption below."""
    axes.imshow(image, cmap="gray", vmin=GREY[0], vmax=GREY[1], interpolation="nearest")
    _label(axes, title, caption)


def error_panel(axes: Any, error: NDArray[Any], limit: float, caption: str = "") -> Any:
    """A difference of images; all panels of a figure have the same limit."""
    drawn = axes.imshow(error, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    _label(axes, "", caption)
    return drawn


def scale_panel(axes: Any, scale: Any, title: str) -> None:
    """A place without a picture; it holds the scale of the panels next to it, if there are any."""
    axes.set_axis_off()
    if scale is not None:
        inside = axes.inset_axes((0.1, 0.45, 0.8, 0.06))
        axes.figure.colorbar(scale, cax=inside, orientation="horizontal")
        inside.set_title(title, fontsize=9)
        inside.tick_params(labelsize=8)


def save(figure: Any, out: str | Path | None) -> Any:
    """The figure itself; written to a file if one is named."""
    if out is not None:
        from vnlem.io.atomic import whole_file

        with whole_file(Path(out)) as temporary:
            figure.savefig(temporary, dpi=110)
    return figure


def _label(axes: Any, title: str, caption: str) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(caption, fontsize=8)
