"""``vnlem bench FOLDER --out DIR``: the paper's experiment on any folder of images."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from vnlem.bench.protocols import Case
    from vnlem.bench.runner import Outcome


EXAMPLES: tuple[str, ...] = (
    "vnlem bench images --out results --protocol awgn --sigma 25",
    "vnlem bench pairs --out results --protocol pairs --methods vnlr,nlm",
    "vnlem bench images --out results --methods vnlr:fast,vnlr:quality",
)


def command(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder with images, also in sub-folders.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for results and report.")],
    protocol: Annotated[
        str,
        typer.Option(
            help="'paper': central square, resized, noise variance 0.3; 'awgn': own size, noise added; "
            "'pairs': *_noisy and *_ref files; 'real': noisy images without a reference; 'stack': movies and "
            "volumes in TIFF or NPY files, noise added."
        ),
    ] = "paper",
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Methods and peers, as NAME, NAME:PRESET or NAME:PRESET:PARAMETER=VALUE; by default those "
            "of the paper and the package's own.",
        ),
    ] = None,
    peer_command: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROGRAM",
            help="A program to compare with, such as 'tool {in} {out} {sigma}'; it reads the TIFF file {in} "
            "and writes {out}. May be repeated.",
        ),
    ] = None,
    size: Annotated[int, typer.Option(help="Side of the square for the paper's protocol.")] = 512,
    resolutions: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="Several sizes instead: the resolution study.")
    ] = None,
    sigma: Annotated[
        str | None,
        typer.Option(
            metavar="S,S,...",
            help="Noise levels of 'awgn' (15,25,50 if not given) and 'stack' (20,40), in 0..255; for 'pairs' "
            "and 'real' the "
            "level of every image, estimated if not given.",
        ),
    ] = None,
    include: Annotated[
        str, typer.Option(metavar="PATTERN", help="Only images whose names match, such as 'blood_*'.")
    ] = "*",
    workers: Annotated[
        int | None, typer.Option(help="Images processed in parallel; one for each core if not given.")
    ] = None,
    no_pictures: Annotated[
        bool, typer.Option("--no-pictures", help="Keep no pictures for the report's gallery.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete earlier results in DIR.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings and errors.")] = False,
) -> None:
    """Denoise every image of a folder with several methods, measure, test, and write a report.

    DIR gets results.csv, summary.json, table.md, table.tex and report.html, which opens in any browser.
    To continue an interrupted run, run the same command again.
    """
    from vnlem.bench.report import write_report
    from vnlem.bench.runner import run_bench, write_summary
    from vnlem.bench.variants import command_variants, default_methods, parse_variants
    from vnlem.pipeline import checks

    begun = time.perf_counter()
    cases = make_cases(protocol, size, resolutions, sigma)
    variants = parse_variants(default_methods(protocol) if methods is None else methods.split(","), protocol)
    variants += command_variants(peer_command or [])
    if workers is not None:
        checks.whole("--workers", workers)
    outcome = run_bench(
        folder,
        out,
        cases,
        variants,
        workers=workers,
        include=include,
        pictures=not no_pictures,
        fresh=fresh,
        quiet=quiet,
    )
    found = write_summary(outcome, out)
    if outcome.items:
        write_report(outcome, found, out)
    _tell(outcome, found, out, time.perf_counter() - begun, quiet)
    if not outcome.items:
        raise ValueError(f"no image of {folder} was measured{_why(outcome)}")


def make_cases(protocol: str, size: int, resolutions: str | None, sigma: str | None) -> "list[Case]":
    """The conditions that the options select.

    >>> [case.name for case in make_cases("awgn", 512, None, "15,25")]
    ['awgn-15', 'awgn-25']
    """
    from vnlem.bench.protocols import PAPER_VARIANCE, PROTOCOLS, Case
    from vnlem.pipeline import checks

    checks.choice("--protocol", protocol, PROTOCOLS)
    if resolutions is not None and protocol != "paper":
        raise ValueError(
            "--resolutions goes with --protocol paper; the other protocols keep each image's size"
        )
    if sigma is not None and protocol == "paper":
        raise ValueError("--sigma does not go with --protocol paper, whose noise variance is 0.3; use awgn")
    if protocol == "paper":
        sizes = _numbers("--resolutions", resolutions) if resolutions is not None else [size]
        sides = [checks.whole("--size" if resolutions is None else "--resolutions", n, 16) for n in sizes]
        return [Case("paper", side, PAPER_VARIANCE) for side in dict.fromkeys(sides)]
    if protocol in ("awgn", "stack"):
        levels = _numbers("--sigma", sigma or ("15,25,50" if protocol == "awgn" else "20,40"))
        return [Case(protocol, 0, checks.real("--sigma", s, 0, open_low=True)) for s in dict.fromkeys(levels)]
    if sigma is None:
        return [Case(protocol)]
    levels = _numbers("--sigma", sigma)
    if len(levels) > 1:
        raise ValueError(f"--protocol {protocol} takes one --sigma for all images, got {sigma}")
    return [Case(protocol, 0, checks.real("--sigma", levels[0], 0, open_low=True))]


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ValueError(f"{option} takes numbers separated by commas, got {text!r}") from None


def _tell(outcome: "Outcome", found: dict[str, Any], out: Path, seconds: float, quiet: bool) -> None:
    import warnings

    if outcome.failures:
        first = outcome.failures[0]
        what = f"{first.method} on {first.image}" if first.method else first.image
        warnings.warn(
            f"{len(outcome.failures)} results are missing, the first: {what}: {first.reason} (the others are "
            "in summary.json; the same command tries them again)",
            stacklevel=2,
        )
    if outcome.unreadable and outcome.items:
        name, why = next(iter(outcome.unreadable.items()))
        warnings.warn(
            f"{len(outcome.unreadable)} files could not be used, the first: {name}: {why} (the others are in "
            "summary.json)",
            stacklevel=2,
        )
    if quiet or not outcome.items:
        return
    for case in found["cases"]:
        _print_case(case)
    print(f"{len(outcome.items)} images, {seconds:.0f} s; open {out / 'report.html'}")


def _print_case(case: dict[str, Any]) -> None:
    from vnlem.bench.tables import too_few_images
    from vnlem.cli.table import metric_table

    rows = {}
    for label, found in case["methods"].items():
        rows[label] = {name: found[name]["mean"] for name in case["measures"]}
        rows[label]["seconds"] = found["seconds"]["mean"]
    metric_table(f"{case['title']}: means over {case['n_images']} images", rows)
    if few := too_few_images(case):
        print(few)


def _why(outcome: "Outcome") -> str:
    if outcome.unreadable:
        name, reason = next(iter(outcome.unreadable.items()))
        return f": {len(outcome.unreadable)} could not be used, the first {name}: {reason}"
    if outcome.failures:
        return f": {outcome.failures[0].reason}"
    return ": it has no matching PNG, JPEG, TIFF or NPY file"
