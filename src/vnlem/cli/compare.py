"""``vnlem compare CLEAN OTHER...``: the metrics as a table or as JSON."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vnlem.cli.table import metric_table

if TYPE_CHECKING:
    from vnlem.io import Picture
    from vnlem.metrics import Residual


EXAMPLES: tuple[str, ...] = (
    "vnlem compare clean.png denoised.png",
    "vnlem compare clean.png first.png second.png --noisy noisy.png",
    "vnlem compare denoised.png --noisy noisy.png",
)


def command(
    clean: Annotated[Path, typer.Argument(metavar="CLEAN", help="The image to compare with.")],
    others: Annotated[
        list[Path] | None, typer.Argument(metavar="OTHER", help="Images of the same size.")
    ] = None,
    noisy: Annotated[
        Path | None,
        typer.Option(
            help="The noisy image the others were made from; needed for EMD and to check what was removed."
        ),
    ] = None,
    data_range: Annotated[
        float | None,
        typer.Option(
            help="The span of the pixel values; that of the dtype, or of CLEAN for floats, if not given."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Compare images with a clean one: SNR, PSNR, RMS, Sobolev, EMD, FSIM, SSIM.

    For files with several pages the table shows the mean over the pages. Alpha is not compared. With --noisy
    the command also says whether what was removed looks like noise. Without a clean image pass one result and
    --noisy.
    """
    reference = _upright(clean)
    if not others:
        if noisy is None:
            raise ValueError("there is nothing to compare with; give OTHER, or the noisy image as --noisy")
        before = _same_layout(_upright(noisy), noisy, reference, clean)
        _print_residuals({str(clean): _residuals(before, reference)}, as_json)
        return
    noise = None if noisy is None else _same_layout(_upright(noisy), noisy, reference, clean)
    span = _data_range(reference) if data_range is None else data_range
    if not span > 0:
        raise ValueError(f"the data range must be positive, got {span:g}; pass --data-range")
    rows, residuals = {}, {}
    for path in others:
        other = _same_layout(_upright(path), path, reference, clean)
        rows[str(path)] = mean_metrics(reference, other, noise, span)
        if noise is not None:
            residuals[str(path)] = _residuals(noise, other)
    if as_json:
        found: dict[str, Any] = {"clean": str(clean), "data_range": span, "metrics": finite(rows)}
        if residuals:
            found["residual"] = {name: asdict(residual) for name, residual in residuals.items()}
        print(json.dumps(found, indent=2))
    else:
        metric_table(f"compared with {clean}, data range {span:g}", rows)
        if residuals:
            _print_residuals(residuals, as_json)


def _residuals(noisy: "Picture", result: "Picture") -> "Residual":
    """What was removed from the first page."""
    from vnlem.metrics import residual_check

    before, after = next(iter(noisy.pages())), next(iter(result.pages()))
    return residual_check(before, after, channel_axis=noisy.channel_axis)


def _print_residuals(residuals: "dict[str, Residual]", as_json: bool) -> None:
    """Variance, correlation and structure of what was removed, and the verdict."""
    if as_json:
        print(json.dumps({"residual": {name: asdict(value) for name, value in residuals.items()}}, indent=2))
        return
    for name, value in residuals.items():
        print(
            f"{name}: {value.verdict} (variance {value.variance:.2f} of the noise's, "
            f"correlation {value.correlation:.2f}, structure {value.structure:.2f})"
        )


def mean_metrics(
    clean: "Picture", other: "Picture", noisy: "Picture | None", data_range: float
) -> dict[str, float | None]:
    """Every metric, averaged over the pages; None if it could not be computed."""
    from vnlem.metrics import evaluate

    noises: Any = [None] * clean.n_pages if noisy is None else noisy.pages()
    found = [
        asdict(evaluate(a, b, noisy=c, data_range=data_range, channel_axis=clean.channel_axis))
        for a, b, c in zip(clean.pages(), other.pages(), noises, strict=True)
    ]
    names = list(found[0])
    return {
        name: None
        if any(row[name] is None for row in found)
        else sum(row[name] for row in found) / len(found)
        for name in names
    }


def finite(rows: dict[str, dict[str, float | None]]) -> dict[str, dict[str, float | None]]:
    """Rows as JSON can hold them: the infinite SNR of an image without error becomes None.

    >>> finite({"a.png": {"snr": math.inf, "rms": 0.0}})
    {'a.png': {'snr': None, 'rms': 0.0}}
    """
    return {
        label: {
            name: value if value is not None and math.isfinite(value) else None for name, value in row.items()
        }
        for label, row in rows.items()
    }


def _upright(path: Path) -> "Picture":
    from vnlem import io
    from vnlem.io.upright import upright

    return upright(io.read(path))


def _same_layout(picture: "Picture", path: Path, clean: "Picture", clean_path: Path) -> "Picture":
    """The picture itself, if it can be compared pixel by pixel."""
    import warnings

    a, b = picture.pixels, clean.pixels
    if a.shape != b.shape or picture.channel_axis != clean.channel_axis:
        raise ValueError(
            f"{path} is {_described(picture)} but {clean_path} is {_described(clean)}; "
            "only images of the same size and colours can be compared"
        )
    if a.dtype != b.dtype and a.dtype.kind in "iu" and b.dtype.kind in "iu":
        warnings.warn(
            f"{path} holds {a.dtype} pixels and {clean_path} {b.dtype}: values are compared as they are",
            stacklevel=2,
        )
    return picture


def _described(picture: "Picture") -> str:
    size = "x".join(map(str, picture.pixels.shape))
    return f"{size} ({'grey' if picture.channel_axis is None else f'{picture.n_channels} channels'})"


def _data_range(picture: "Picture") -> float:
    import numpy as np

    from vnlem.metrics._arrays import data_range_of

    pixels = picture.pixels
    if pixels.dtype.kind in "iu":
        return data_range_of(pixels)
    return float(np.ptp(pixels[np.isfinite(pixels)])) if np.isfinite(pixels).any() else 0.0
