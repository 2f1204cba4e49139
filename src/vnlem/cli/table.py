"""The table of metrics that `compare` and `demo` print."""

from collections.abc import Mapping
from typing import Any

# Metric -> heading with its unit, number format.
_COLUMNS = {
    "snr": ("SNR dB", ".2f"),
    "psnr": ("PSNR dB", ".2f"),
    "rms": ("RMS", ".4f"),
    "sobolev": ("Sobolev", ".4f"),
    "emd": ("EMD", ".4f"),
    "fsim": ("FSIM", ".4f"),
    "ssim": ("SSIM", ".4f"),
    "fsim_input": ("FSIM to input", ".4f"),
    "residual_std": ("removed std", ".2f"),
    "residual_correlation": ("its correlation", ".3f"),
    "seconds": ("seconds", ".2f"),
}


def metric_table(title: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Print one row per image; what is None or missing everywhere has no column.

    Examples
    --------
    >>> metric_table("demo", {"nlm.png": {"snr": 12.345, "emd": None}})
    demo
              SNR dB
    nlm.png    12.35
    """
    names = [name for name in _COLUMNS if any(row.get(name) is not None for row in rows.values())]
    headings = [_COLUMNS[name][0] for name in names]
    first = max(map(len, rows), default=0)
    widths = [max(8, len(heading)) for heading in headings]
    print(title)
    print(" " * first + "".join(f"  {h:>{w}}" for h, w in zip(headings, widths, strict=True)))
    for label, row in rows.items():
        cells = [_cell(row.get(name), _COLUMNS[name][1]) for name in names]
        print(f"{label:<{first}}" + "".join(f"  {c:>{w}}" for c, w in zip(cells, widths, strict=True)))


def _cell(value: Any, format_: str) -> str:
    return "-" if value is None else format(value, format_)
