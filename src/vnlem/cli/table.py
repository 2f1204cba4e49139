"""The table of metrics that `compare` and `demo` print."""

import shutil
import sys
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
    """Print one row per image; metrics that are None or missing everywhere have no column.

    >>> metric_table("demo", {"nlm.png": {"snr": 12.345, "emd": None}})
    demo
              SNR dB
    nlm.png    12.35
    """
    names = [name for name in _COLUMNS if any(row.get(name) is not None for row in rows.values())]
    first = max(map(len, rows), default=0)
    print(title)
    for block in _blocks(names, first):
        print(" " * first + "".join(f"  {_COLUMNS[name][0]:>{_width(name)}}" for name in block))
        for label, row in rows.items():
            cells = (f"  {_cell(row.get(name), _COLUMNS[name][1]):>{_width(name)}}" for name in block)
            print(f"{label:<{first}}" + "".join(cells))


def _width(name: str) -> int:
    return max(8, len(_COLUMNS[name][0]))


def _blocks(names: list[str], first: int) -> list[list[str]]:
    """The columns that fit side by side; all of them if the output is not a terminal."""
    if not sys.stdout.isatty():
        return [names]
    room = shutil.get_terminal_size().columns
    blocks: list[list[str]] = [[]]
    for name in names:
        taken = first + sum(2 + _width(other) for other in blocks[-1])
        if blocks[-1] and taken + 2 + _width(name) > room:
            blocks.append([])
        blocks[-1].append(name)
    return blocks


def _cell(value: Any, format_: str) -> str:
    return "-" if value is None else format(value, format_)
