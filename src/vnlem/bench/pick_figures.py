"""The figures that a run draws: which images they show, and where they go."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vnlem.bench.pictures import picture_path, read_picture
from vnlem.bench.protocols import Case
from vnlem.bench.variants import NOISY

if TYPE_CHECKING:
    from vnlem.bench.datasets import Item
    from vnlem.bench.runner import Outcome

FOLDER = "figures"


def draw_figures(outcome: "Outcome", out: Path) -> list[str]:
    """Draw the paper's figures from the pictures of a run; returns their paths within `out`.

    Nothing is drawn without matplotlib or without pictures. They show the images on which the last method
    gains most over the first, gains as usual (the median), and gains least.
    """
    if find_spec("matplotlib") is None or not outcome.items:
        return []
    case = outcome.cases[0]
    items = [item for item in outcome.items if _has_pictures(outcome, out, item)]
    if not items:
        return []
    (out / FOLDER).mkdir(exist_ok=True)
    drawn: list[str] = []
    for name, item in _picks(outcome, case, items).items():
        path = f"{FOLDER}/{'cytometry' if case.protocol == 'real' else 'example'}-{name}.png"
        _draw_one(outcome, out, item, case, out / path)
        drawn.append(path)
    if len({case.size for case in outcome.cases}) > 1:
        path = f"{FOLDER}/resolution.png"
        _draw_resolutions(outcome, out, _picks(outcome, case, items)["median-gain"], out / path)
        drawn.append(path)
    return drawn


def _has_pictures(outcome: "Outcome", out: Path, item: "Item") -> bool:
    return all(
        (item.name, case.name, variant.hash) in outcome.rows
        and (out / picture_path(item, case, variant.hash)).exists()
        for case in outcome.cases
        for variant in outcome.variants
    )


def _picks(outcome: "Outcome", case: Case, items: "list[Item]") -> "dict[str, Item]":
    measure = "fsim_input" if case.protocol == "real" else "snr"

    def value(item: "Item", place: int) -> float:
        found = outcome.rows[item.name, case.name, outcome.variants[place].hash].measures[measure]
        return np.nan if found is None else found

    # With only one method its own value orders the images.
    first = 0.0 if len(outcome.variants) == 1 else 1.0
    order = sorted(items, key=lambda item: (value(item, -1) - first * value(item, 0), item.name))
    picks = {"median-gain": order[len(order) // 2]}
    if len(order) > 2:
        picks |= {"largest-gain": order[-1], "smallest-gain": order[0]}
    return picks


def _draw_one(outcome: "Outcome", out: Path, item: "Item", case: Case, path: Path) -> None:
    from vnlem.figures import cytometry_figure, example_figure

    noisy, results = _images(outcome, out, item, case)
    if case.protocol == "real":
        cytometry_figure(noisy, results, path)
    else:
        clean = read_picture(out / picture_path(item, case, "clean"))
        example_figure(clean, noisy, results, path, _measures(outcome, item, case))


def _draw_resolutions(outcome: "Outcome", out: Path, item: "Item", path: Path) -> None:
    from vnlem.figures.resolution import Resolution, resolution_figure

    sizes = {}
    for case in sorted(outcome.cases, key=lambda case: case.size):
        noisy, results = _images(outcome, out, item, case)
        clean = read_picture(out / picture_path(item, case, "clean"))
        snr = {label: found["snr"] for label, found in _measures(outcome, item, case).items()}
        sizes[case.size] = Resolution(clean, noisy, results, snr)
    resolution_figure(sizes, path)


def _measures(outcome: "Outcome", item: "Item", case: Case) -> dict[str, dict[str, float | None]]:
    """As measured: the pictures are rounded and clipped."""
    labels = {NOISY: NOISY} | {variant.label: variant.hash for variant in outcome.variants}
    return {label: outcome.rows[item.name, case.name, hash_].measures for label, hash_ in labels.items()}


def _images(
    outcome: "Outcome", out: Path, item: "Item", case: Case
) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    noisy = read_picture(out / picture_path(item, case, "noisy"))
    return noisy, {
        variant.label: read_picture(out / picture_path(item, case, variant.hash))
        for variant in outcome.variants
    }
