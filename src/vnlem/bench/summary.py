"""summary.json: everything the run found, in numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.bench.datasets import Item
from vnlem.bench.protocols import Case
from vnlem.bench.results import Row
from vnlem.bench.statistics import compare, describe
from vnlem.bench.variants import NOISY, Variant

COSTS = ("seconds", "peak_memory_mib")
# Rows of the run: (image, case's name, variant's hash) -> row.
Rows = Mapping[tuple[str, str, str], Row]
Values = dict[str, dict[str, NDArray[np.float64]]]


def summarise_case(
    items: Sequence[Item], case: Case, variants: Sequence[Variant], rows: Rows
) -> dict[str, Any]:
    """Means, breakdown by category and comparisons of one case.

    Methods are compared on the images that all of them have, to make their means comparable.
    """
    labels = {NOISY: NOISY} | {variant.label: variant.hash for variant in variants}
    # A method that failed everywhere must not leave the others without an image in common.
    at_work = {hash_ for _, name, hash_ in rows if name == case.name}
    needed = [hash_ for hash_ in labels.values() if hash_ in at_work]
    common = [item for item in items if all((item.name, case.name, hash_) in rows for hash_ in needed)]
    names = {item.name for item in common}
    values = case_values(common, case, labels, rows)
    ours = {label: values[label] for label in labels if label != NOISY}
    categories = sorted({item.category for item in common})
    return {
        "name": case.name,
        "title": case.title,
        "protocol": case.protocol,
        "size": case.size,
        "noise": case.noise,
        "measures": list(case.measures),
        "n_images": len(common),
        "incomplete_images": [item.name for item in items if item.name not in names],
        "methods": _means(values, np.ones(len(common), bool)),
        "categories": {
            category: {
                "n_images": sum(item.category == category for item in common),
                "methods": _means(values, np.array([item.category == category for item in common])),
            }
            for category in categories
        },
        "comparisons": compare(ours, case.measures),
    }


def case_values(items: Sequence[Item], case: Case, labels: Mapping[str, str], rows: Rows) -> Values:
    """Every measure and cost of every method, one value per image; NaN for none."""

    def one(item: Item, hash_: str, name: str) -> float:
        row = rows.get((item.name, case.name, hash_))
        value = None if row is None else getattr(row, name) if name in COSTS else row.measures[name]
        return np.nan if value is None else value

    return {
        label: {
            name: np.array([one(item, hash_, name) for item in items], dtype=np.float64)
            for name in (*case.measures, *COSTS)
        }
        for label, hash_ in labels.items()
    }


def _means(values: Values, chosen: NDArray[np.bool_]) -> dict[str, Any]:
    return {
        label: {name: describe(column[chosen]) for name, column in columns.items()}
        for label, columns in values.items()
    }
