"""What notebooks show: a wipe between two images, as HTML that needs nothing else."""

import base64
import html
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.pipeline import checks

LONG = 512  # pixels on the screen that the longer side of a wipe has at least

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><body style="margin:1rem;font-family:sans-serif">{view}</body></html>
"""
# The range input lies over both images; moving it sets how much of the first is cut away.
_VIEW = """<div style="--edge:50%;position:relative;display:inline-block;max-width:100%;width:{width}px">
<img alt="{second}" src="{after}" style="{image};display:block">
<img alt="{first}" src="{before}" style="{image};{over};clip-path:inset(0 calc(100% - var(--edge)) 0 0)">
<div style="{over};left:var(--edge);width:2px;background:#fff;box-shadow:0 0 3px #000"></div>
<span style="{label};left:.4em">{first}</span><span style="{label};right:.4em">{second}</span>
<input type="range" min="0" max="100" step="0.1" value="50" aria-label="wipe between {first} and {second}"
oninput="this.parentNode.style.setProperty('--edge',this.value+'%')"
style="{over};width:100%;height:100%;margin:0;opacity:0;cursor:ew-resize">
</div>"""
_OVER = "position:absolute;inset:0"
_LABEL = "position:absolute;top:.4em;padding:0 .4em;color:#fff;background:#0008;font:12px sans-serif"


class CompareView:
    """A slider between two images; a notebook shows it, :meth:`save` writes it as a page.

    Examples
    --------
    >>> import numpy as np
    >>> view = compare_view(np.zeros((8, 8)), np.ones((8, 8)))
    >>> view
    <CompareView: before and after, 8x8 pixels>
    """

    def __init__(
        self, before: bytes, after: bytes, shape: tuple[int, int], width: int, names: tuple[str, str]
    ):
        self._before, self._after = before, after
        self._shape, self._width, self._names = shape, width, names

    def __repr__(self) -> str:
        rows, columns = self._shape
        return f"<CompareView: {self._names[0]} and {self._names[1]}, {rows}x{columns} pixels>"

    def _repr_html_(self) -> str:
        return wipe_html(
            _as_address(self._before), _as_address(self._after), self._names, self._width, self._shape[1]
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a page that opens in any browser without a network.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> page = pathlib.Path(tempfile.mkdtemp()) / "wipe.html"
        >>> compare_view([[0, 1]], [[1, 0]]).save(page)
        >>> page.read_text().startswith("<!doctype html>")
        True
        """
        title = html.escape(" and ".join(self._names))
        Path(path).write_text(_PAGE.format(title=title, view=self._repr_html_()), encoding="utf-8")


def wipe_html(before: str, after: str, names: tuple[str, str], width: int, columns: int) -> str:
    """The HTML of a slider between two pictures at these addresses, `width` pixels wide on the screen.

    >>> "before.png" in wipe_html("before.png", "after.png", ("a", "b"), 512, 256)
    True
    """
    first, second = map(html.escape, names)
    scaling = "pixelated" if width >= 2 * columns else "auto"
    return _VIEW.format(
        width=width,
        image=f"width:100%;margin:0;image-rendering:{scaling}",
        over=_OVER,
        label=_LABEL,
        before=before,
        after=after,
        first=first,
        second=second,
    )


def compare_view(
    before: ArrayLike,
    after: ArrayLike,
    *,
    contrast: tuple[float, float] | None = None,
    width: int | None = None,
    names: tuple[str, str] = ("before", "after"),
) -> CompareView:
    """Compare two images with a slider, in a notebook or as a page.

    Parameters
    ----------
    before, after : array_like
        Grey images (rows, columns) or colour images (rows, columns, 3) of the same shape.
    contrast : tuple of float, optional
        The values shown as black and as white, the same for both images. By default 0 and 255 for uint8,
        otherwise the 0.1 and 99.9 percentiles of `after`.
    width : int, optional
        Width on the screen in pixels; by default that of the image. If its longer side is below 512 it is
        enlarged by a whole number.
    names : tuple of str
        Labels of the two sides.

    Returns
    -------
    CompareView
        A notebook shows it; ``save("wipe.html")`` writes a self-contained page.

    See Also
    --------
    vnlem.denoise : makes the second image.

    Examples
    --------
    >>> import numpy as np
    >>> import vnlem
    >>> noisy = np.arange(32) + np.random.default_rng(0).normal(100, 5, (32, 32))
    >>> vnlem.compare_view(noisy, vnlem.denoise(noisy, 5.0, method="nlm"))
    <CompareView: before and after, 32x32 pixels>
    """
    first, second = checks.as_array("before", before), checks.as_array("after", after)
    if first.shape != second.shape:
        raise ValueError(f"before {first.shape} and after {second.shape} must have the same shape")
    if second.ndim not in (2, 3) or (second.ndim == 3 and second.shape[2] != 3) or second.size == 0:
        raise ValueError(
            f"compare_view takes grey (rows, columns) or colour (rows, columns, 3) images, got shape "
            f"{second.shape}; pass one page of a stack"
        )
    rows, columns = second.shape[:2]
    if contrast is not None:
        low, high = (float(value) for value in contrast)
    elif second.dtype == np.uint8:
        low, high = 0.0, 255.0
    else:
        values = checks.numbers("after", np.ma.getdata(second))
        low, high = (float(value) for value in np.nanquantile(values, (0.001, 0.999)))
    wide = columns * -(-LONG // max(rows, columns)) if width is None else checks.whole("width", width, 16)
    pictures = _png("before", first, low, high), _png("after", second, low, high)
    return CompareView(*pictures, (rows, columns), wide, names)


def _png(name: str, image: NDArray[Any], low: float, high: float) -> bytes:
    from PIL import Image

    values = checks.numbers(name, np.ma.getdata(image))
    scaled = (values - low) * (255 / (high - low) if high > low else 1.0)
    grey = np.clip(np.rint(np.nan_to_num(scaled)), 0, 255).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(grey).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _as_address(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()
