"""The table of the paper (its Table 1) as Markdown and LaTeX, with the paper's numbers next to ours."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from vnlem.bench.protocols import DIRECTION
from vnlem.bench.statistics import LEVEL, images_needed
from vnlem.bench.variants import NOISY, Variant

PAPER_SIZE = 512
# Mean and standard deviation over the paper's image base, in the units the table shows.
PAPER_TABLE = {
    "psnr_paper": {"nlem": (18.78, 2.92), "vnlem": (19.49, 2.72), "vnlem-dd": (19.62, 2.81)},
    "snr": {"nlem": (13.33, 2.78), "vnlem": (14.04, 2.36), "vnlem-dd": (14.18, 2.49)},
    "rms": {"nlem": (5.77, 1.58), "vnlem": (5.35, 1.33), "vnlem-dd": (5.24, 1.36)},
    "sobolev": {"nlem": (5.90, 1.63), "vnlem": (5.45, 1.37), "vnlem-dd": (5.35, 1.40)},
    "emd": {"nlem": (0.59, 0.40), "vnlem": (0.32, 0.16), "vnlem-dd": (0.35, 0.22)},
    "fsim": {"nlem": (88.33, 2.98), "vnlem": (89.64, 2.13), "vnlem-dd": (90.03, 2.13)},
    "seconds": {"nlem": (501.8, 203.3), "vnlem": (1489.8, 26.1), "vnlem-dd": (1619.0, 34.8)},
}


class Line(NamedTuple):
    """How the table shows a measure."""

    heading: str
    factor: float = 1.0
    digits: int = 2


LINES = {
    "psnr_paper": Line("PSNR dB (paper's peak)"),
    "psnr": Line("PSNR dB"),
    "snr": Line("SNR dB"),
    "rms": Line("RMS x100", 100),
    "sobolev": Line("SOB x100", 100),
    "emd": Line("OT x100", 100),
    "fsim": Line("FSIM x100", 100),
    "ssim": Line("SSIM x100", 100),
    "fsim_input": Line("FSIM to the input x100", 100),
    "residual_mean": Line("residual mean"),
    "residual_std": Line("residual std"),
    "residual_skewness": Line("residual skewness", digits=3),
    "residual_kurtosis": Line("residual excess kurtosis", digits=3),
    "residual_correlation": Line("residual neighbour correlation", digits=3),
    "seconds": Line("seconds", digits=2),
}
FOOTNOTE = (
    "Mean ± standard deviation over the images. Bold: the best; ° marks what does not differ from it "
    f"(paired Wilcoxon test, Holm-corrected, {LEVEL:g})."
)
PAPER_FOOTNOTE = (
    "Columns marked [paper] hold the paper's numbers. Its images and their contrast differ: compare SNR, "
    "FSIM and differences between methods, not PSNR, RMS and SOB in absolute value."
)


class Cell(NamedTuple):
    """A cell of the table: its text and its emphasis."""

    text: str
    best: bool = False
    like_best: bool = False


def table_cells(
    case: dict[str, Any], variants: Sequence[Variant]
) -> tuple[list[str], list[tuple[str, list[Cell]]]]:
    """Column headings, and for each measure its heading and cells.

    case: as ``summarise_case`` gives it.
    """
    papers = {variant.label: paper_method(variant, case) for variant in variants}
    columns = [NOISY]
    for variant in variants:
        columns.append(variant.label)
        if papers[variant.label]:
            columns.append(f"{variant.label} [paper]")
    lines: list[tuple[str, list[Cell]]] = []
    for measure, line in LINES.items():
        if measure not in (*case["measures"], "seconds"):
            continue
        best, alike = best_methods(case, measure)
        cells = [_cell(case["methods"][NOISY][measure], line)]
        for variant in variants:
            label = variant.label
            shown = _cell(case["methods"][label][measure], line)
            cells.append(Cell(shown.text, label == best, label in alike))
            if papers[label]:
                theirs = PAPER_TABLE.get(measure, {}).get(papers[label])
                cells.append(Cell("" if theirs is None else f"{theirs[0]:.2f} ± {theirs[1]:.2f}"))
        lines.append((line.heading, cells))
    return columns, lines


def best_methods(case: dict[str, Any], measure: str) -> tuple[str | None, set[str]]:
    """The method with the best mean, and those the paired test cannot distinguish from it."""
    direction = DIRECTION.get(measure, 0)
    means = {
        label: found[measure]["mean"]
        for label, found in case["methods"].items()
        if label != NOISY and found[measure]["mean"] is not None
    }
    if direction == 0 or len(means) < 2:
        return None, set()
    best = max(means, key=lambda label: direction * means[label])
    alike: set[str] = set()
    if too_few_images(case):
        return best, alike  # the test could not distinguish any two methods
    for row in case["comparisons"]:
        if row["measure"] == measure and best in (row["a"], row["b"]):
            p = row["wilcoxon"]["p_holm"]
            if p is None or p >= LEVEL:
                alike.add(row["a"] if row["b"] == best else row["b"])
    return best, alike


def too_few_images(case: dict[str, Any]) -> str:
    """A sentence if the corrected test cannot find any difference, else nothing.

    >>> too_few_images({"n_images": 4, "methods": {"noisy": {}, "nlm": {}, "vnlr": {}}})
    '4 images are too few for the test: with 1 pair of methods no p-value below 0.05 ... before 6 images, ...'
    """
    n_methods = len(case["methods"]) - 1
    n_pairs = n_methods * (n_methods - 1) // 2
    if n_pairs == 0 or case["n_images"] >= images_needed(n_pairs):
        return ""
    pairs = f"{n_pairs} pair{'s' if n_pairs > 1 else ''} of methods"
    images = f"{case['n_images']} image{' is' if case['n_images'] == 1 else 's are'}"
    return (
        f"{images} too few for the test: with {pairs} no p-value below {LEVEL:g} can come out before "
        f"{images_needed(n_pairs)} images, so nothing is marked °."
    )


def paper_method(variant: Variant, case: dict[str, Any]) -> str:
    """The column of the paper's table that a variant repeats; empty if none.

    >>> case = {"protocol": "paper", "size": 512, "noise": 0.3}
    >>> paper_method(Variant("nlem", "nlem", "m:f", (("preset", "paper"),)), case)
    'nlem'
    """
    same = case["protocol"] == "paper" and case["size"] == PAPER_SIZE and case["noise"] == 0.3
    plain = json.loads(variant.parameters) == {"method": variant.method, "preset": "paper"}
    return variant.method if same and plain and variant.method in PAPER_TABLE["snr"] else ""


def markdown(case: dict[str, Any], variants: Sequence[Variant]) -> str:
    """The table in Markdown."""
    columns, lines = table_cells(case, variants)
    rows = [f"**{case['title']}**, {case['n_images']} images", ""]
    rows.append("| | " + " | ".join(_escape_markdown(column) for column in columns) + " |")
    rows.append("|---|" + "---:|" * len(columns))
    for heading, cells in lines:
        rows.append(f"| {heading} | " + " | ".join(_markdown_cell(cell) for cell in cells) + " |")
    rows += ["", *_footnotes(case)]
    if any(column.endswith("[paper]") for column in columns):
        rows += ["", PAPER_FOOTNOTE]
    rows += _pairs(case) + _categories(case, variants)
    return "\n".join(rows) + "\n"


def _footnotes(case: dict[str, Any]) -> list[str]:
    few = too_few_images(case)
    return [FOOTNOTE, few] if few else [FOOTNOTE]


def _pairs(case: dict[str, Any]) -> list[str]:
    """Every pair of methods compared, measure by measure."""
    if not case["comparisons"]:
        return []
    rows = [
        "",
        "**Method by method**",
        "",
        "| | difference | 95 % interval | better, worse | Wilcoxon | Mann-Whitney |",
    ]
    rows.append("|---|---:|---:|---:|---:|---:|")
    for row in case["comparisons"]:
        line = LINES[row["measure"]]
        digits = line.digits + 1
        shown = [f"{line.factor * row['difference']:+.{digits}f}"]
        interval = row["interval"]
        shown.append(
            "" if interval is None else " to ".join(f"{line.factor * end:+.{digits}f}" for end in interval)
        )
        shown.append("" if row["wins"] is None else f"{row['wins']}, {row['losses']}")
        shown += [_p_value(row["wilcoxon"]["p_holm"]), _p_value(row["mann_whitney"]["p"])]
        title = _escape_markdown(f"{line.heading}: {row['a']} less {row['b']}")
        rows.append(f"| {title} | " + " | ".join(shown) + " |")
    return [
        *rows,
        "",
        "Better, worse: on how many images the first one is. Wilcoxon: paired, Holm-corrected.",
    ]


def _categories(case: dict[str, Any], variants: Sequence[Variant]) -> list[str]:
    """Means of the main measures in each category."""
    measures = [name for name in ("snr", "fsim", "fsim_input") if name in case["measures"]]
    if len(case["categories"]) < 2 or not measures:
        return []
    labels = [variant.label for variant in variants]
    rows = ["", "**By category**, means", ""]
    headings = [f"{LINES[name].heading}: {label}" for name in measures for label in labels]
    rows.append("| | images | " + " | ".join(map(_escape_markdown, headings)) + " |")
    rows.append("|---|---:|" + "---:|" * len(headings))
    for category, found in case["categories"].items():
        cells = []
        for name in measures:
            line = LINES[name]
            for label in labels:
                mean = found["methods"][label][name]["mean"]
                cells.append("" if mean is None else f"{line.factor * mean:.{line.digits}f}")
        rows.append(f"| {_escape_markdown(category)} | {found['n_images']} | " + " | ".join(cells) + " |")
    return rows


def _p_value(p: float | None) -> str:
    return "" if p is None else f"{p:.2g}"


def latex(case: dict[str, Any], variants: Sequence[Variant]) -> str:
    """The table in LaTeX; it needs no packages."""
    columns, lines = table_cells(case, variants)
    rows = [f"% {case['title']}, {case['n_images']} images"]
    rows += [r"\begin{tabular}{l" + "r" * len(columns) + "}", r"\hline"]
    rows.append(" & " + " & ".join(_escape_latex(column) for column in columns) + r" \\")
    rows.append(r"\hline")
    for heading, cells in lines:
        rows.append(f"{_escape_latex(heading)} & " + " & ".join(map(_latex_cell, cells)) + r" \\")
    rows += [r"\hline", r"\end{tabular}"]
    for footnote in _footnotes(case):
        rows.append("% " + footnote.replace("±", r"$\pm$").replace("°", r"$^\circ$"))
    return "\n".join(rows) + "\n"


def _cell(found: dict[str, Any], line: Line) -> Cell:
    if found["mean"] is None:
        return Cell("")
    text = f"{line.factor * found['mean']:.{line.digits}f}"
    if found["std"] is not None:
        text += f" ± {line.factor * found['std']:.{line.digits}f}"
    return Cell(text)


def _markdown_cell(cell: Cell) -> str:
    return f"**{cell.text}**" if cell.best else cell.text + ("°" if cell.like_best else "")


def _latex_cell(cell: Cell) -> str:
    text = cell.text.replace("±", r"$\pm$")
    return rf"{{\bf {text}}}" if cell.best else text + (r"$^\circ$" if cell.like_best else "")


def _escape_markdown(text: str) -> str:
    return text.replace("|", r"\|").replace("_", r"\_")


def _escape_latex(text: str) -> str:
    for letter in "&%$#_{}":
        text = text.replace(letter, rf"\{letter}")
    return text.replace(" x100", r" $\times 100$")
