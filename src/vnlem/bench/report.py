"""report.html: a page that opens from disk in any browser, with its data and scripts next to it.

The page is the same for every run and fetches nothing: browsers do not let a page on disk read other files
but allow it to load scripts, so the data are a script.
"""

import json
import math
import shutil
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vnlem.bench.pick_figures import draw_figures
from vnlem.bench.pictures import THUMBNAIL_SIDE
from vnlem.bench.protocols import DIRECTION, ERROR_LIMIT, Case
from vnlem.bench.runner import write_text
from vnlem.bench.summary import case_values
from vnlem.bench.tables import FOOTNOTE, LINES, PAPER_FOOTNOTE, table_cells, too_few_images
from vnlem.bench.variants import NOISY

if TYPE_CHECKING:
    from vnlem.bench.runner import Outcome

PAGE = "report.html"
FOLDER = "report"  # scripts, style and data, next to the page
_DIGITS = 6  # significant digits of the values the page draws


def write_report(outcome: "Outcome", summary: dict[str, Any], out: Path) -> None:
    """Write the page, its scripts and its data, and draw the figures.

    summary: as ``write_summary`` gives it.
    out: folder of the results.
    """
    figures = draw_figures(outcome, out)
    (out / FOLDER).mkdir(exist_ok=True)
    text = json.dumps(report_data(outcome, summary, figures), separators=(",", ":"))
    write_text(out / FOLDER / "data.js", f"window.VNLEM_BENCH={text};\n")
    with as_file(files("vnlem.bench") / "assets") as assets:
        shutil.copyfile(assets / PAGE, out / PAGE)
        for folder in (assets, assets / "vendor"):
            for asset in sorted(folder.iterdir()):
                if asset.is_file() and asset.name != PAGE:
                    shutil.copyfile(asset, out / FOLDER / asset.name)


def report_data(outcome: "Outcome", summary: dict[str, Any], figures: list[str]) -> dict[str, Any]:
    """The data of the page, for JSON; images are indices into a list, to stay small."""
    labels = {NOISY: NOISY} | {variant.label: variant.hash for variant in outcome.variants}
    return {
        "protocol": summary["protocol"],
        "hasReference": summary["protocol"] != "real",
        "hasPictures": bool(outcome.provenance.get("pictures")),
        "thumbnailSide": THUMBNAIL_SIDE,
        "methods": [{"label": label, "file": hash_} for label, hash_ in labels.items()],
        "parameters": {method["label"]: method["parameters"] for method in summary["methods"]},
        "measures": {
            name: {
                "heading": line.heading,
                "factor": line.factor,
                "digits": line.digits,
                "direction": DIRECTION.get(name, -1),
            }
            for name, line in LINES.items()
        },
        "images": {
            "name": [_shown(item.name) for item in outcome.items],
            "category": [_shown(item.category) for item in outcome.items],
            "key": [item.key for item in outcome.items],
        },
        "cases": [
            _case(outcome, case, found, labels)
            for case, found in zip(outcome.cases, summary["cases"], strict=True)
        ],
        "footnotes": {"table": FOOTNOTE, "paper": PAPER_FOOTNOTE},
        "figures": figures,
        "unreadable": summary["unreadable"],
        "failures": summary["failures"],
        "provenance": summary["provenance"],
    }


def _case(outcome: "Outcome", case: Case, found: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    columns, lines = table_cells(found, outcome.variants)
    values = case_values(outcome.items, case, labels, outcome.rows)
    noisy = [outcome.rows.get((item.name, case.name, NOISY)) for item in outcome.items]
    return {
        "name": case.name,
        "title": case.title,
        "tooFewImages": too_few_images(found),
        "nImages": found["n_images"],
        "measures": found["measures"],
        "table": {
            "columns": columns,
            "lines": [
                {"heading": heading, "cells": [list(cell) for cell in cells]} for heading, cells in lines
            ],
        },
        "comparisons": found["comparisons"],
        "categories": {
            _shown(name): {"n": part["n_images"], "methods": part["methods"]}
            for name, part in found["categories"].items()
        },
        "values": {
            label: {name: [_rounded(value) for value in column] for name, column in columns_.items()}
            for label, columns_ in values.items()
        },
        # Grey levels that are black and white in the error images: one scale for all methods of an image.
        "errorLimit": [None if row is None else _rounded(ERROR_LIMIT * row.sigma) for row in noisy],
        "size": [None if row is None else [row.height, row.width] for row in noisy],
    }


def _rounded(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def _shown(name: str) -> str:
    """A name as text: invalid bytes become replacement signs."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
