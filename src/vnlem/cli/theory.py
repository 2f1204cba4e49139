"""``vnlem theory``: the bounds over the patch size, their Monte Carlo check, patch-size advice."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from vnlem.theory import Check

PAPER_SIGMA = 0.3**0.5  # noise variance 0.3 of the paper's experiments, image of standard deviation 1


EXAMPLES: tuple[str, ...] = (
    "vnlem theory",
    "vnlem theory --image noisy.png",
)


def command(
    sizes: Annotated[
        str, typer.Option("--q", metavar="Q or FROM:TO", help="Odd patch sizes: one, or a range.")
    ] = "3:19",
    sigma: Annotated[
        float | None,
        typer.Option(
            help="Noise level in the units of epsilon, or of the image. Otherwise the paper's, sqrt(0.3), or "
            "the estimate from the image."
        ),
    ] = None,
    epsilon: Annotated[
        float, typer.Option(help="Distance of patches below which two clean ones count as neighbours.")
    ] = 11.0,
    overlap: Annotated[
        bool, typer.Option("--overlap/--no-overlap", help="Whether patches may share pixels.")
    ] = False,
    image: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Show the error of each patch size on this noisy image instead."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare every formula with a simulation instead.")
    ] = False,
    trials: Annotated[int, typer.Option(help="Draws for each row of --check.")] = 20000,
    seed: Annotated[int, typer.Option(help="Seed of --check.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the curves as a figure (png, pdf, svg).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """The probability bounds for finding true neighbours under noise, and what they advise.

    The far bound is proved for a fixed rotation only.
    --check compares every formula with a simulation and marks deviations beyond three standard errors.
    """
    wanted = parse_sizes(sizes)
    if image is not None:
        if check or plot is not None:
            raise ValueError("--image goes with neither --check nor --plot; run them by themselves")
        _advise(image, wanted, sigma, as_json)
        return
    level = PAPER_SIGMA if sigma is None else sigma
    if check:
        _check(wanted, level, trials, seed, as_json)
    else:
        _table(wanted, level, epsilon, overlap, as_json)
    if plot is not None:
        from vnlem.theory.plot import plot_bounds

        plot_bounds(plot, level, epsilon, wanted)
        if not as_json:
            print(f"curves written to {plot}")


def parse_sizes(text: str) -> list[int]:
    """Odd sizes from "7" or "3:15".

    >>> parse_sizes("3:9")
    [3, 5, 7, 9]
    """
    from vnlem.pipeline import checks

    found = re.fullmatch(r"\s*(-?\d+)\s*(?::\s*(-?\d+)\s*)?", text)
    if not found:
        raise ValueError(f"--q must be a size such as 7 or a range such as 3:15, got {text!r}")
    first = checks.odd("--q", int(found[1]))
    last = first if found[2] is None else checks.odd("--q", int(found[2]), smallest=first)
    return list(range(first, last + 1, 2))


def _table(sizes: list[int], sigma: float, epsilon: float, overlap: bool, as_json: bool) -> None:
    from vnlem import theory

    advice = theory.suggest_patch_size(sigma, epsilon, smallest=sizes[0], largest=sizes[-1], overlap=overlap)
    rows: list[dict[str, Any]] = []
    for q in sizes:
        row: dict[str, Any] = {"q": q, "ratio": sigma * q / epsilon}
        if sigma * q < epsilon:
            corrected = theory.neighbor_bounds(q, sigma, epsilon, overlap)
            printed = theory.neighbor_bounds(q, sigma, epsilon, overlap, form="printed")
            exact = theory.neighbor_probabilities(q, sigma, epsilon)
            row |= {"close": corrected.close, "close_printed": printed.close, "close_miss": exact.close_miss}
            row |= {"far": corrected.far, "far_miss": exact.far_miss}
        rows.append(row)
    gradient = theory.gradient_moments(sigma)
    if as_json:
        report = {
            "sigma": sigma,
            "epsilon": epsilon,
            "overlap": overlap,
            "far_scope": "proved for a fixed rotation only",
            "rows": rows,
            "suggested_q": advice.q,
            "gradient": asdict(gradient),
        }
        print(json.dumps(report, indent=2))
        return
    print(f"sigma {sigma:.4g}, epsilon {epsilon:.4g}, patches {'may' if overlap else 'do not'} overlap")
    print("close: clean distance < epsilon   -> noisy distance < 2 epsilon, probability at least")
    print("far:   clean distance = 2 epsilon -> noisy distance > epsilon, at least (for a fixed rotation)")
    print(
        f"{'q':>4} {'sigma q/eps':>12} {'close':>8} {'printed':>8} {'misses*':>8} {'far':>8} {'misses*':>8}"
    )
    for row in rows:
        if "close" in row:
            close = f"{row['close']:8.4f} {row['close_printed']:8.4f} {row['close_miss']:8.1e}"
            values = f"{close} {row['far']:8.4f} {row['far_miss']:8.1e}"
        else:
            values = " outside the theorem (sigma q >= epsilon)"
        mark = "  <- the smaller bound is largest" if row["q"] == advice.q else ""
        print(f"{row['q']:4d} {row['ratio']:12.3f} {values}{mark}")
    print(
        "* exact probability of the opposite, for patches that do not overlap at distance epsilon, 2 epsilon"
    )
    print(
        f"gradient of the noise at scale 1: mean square {gradient.mean:.4g}, its variance "
        f"{gradient.variance:.4g} (the paper prints {gradient.printed_variance:.4g})"
    )


def _advise(path: Path, sizes: list[int], sigma: float | None, as_json: bool) -> None:
    import numpy as np

    from vnlem import estimate_sigma, io, theory

    picture = io.read(path)
    pixels = np.asarray(next(iter(picture.pages())), dtype=np.float64)
    level = estimate_sigma(pixels, picture.channel_axis) if sigma is None else sigma
    if picture.channel_axis is not None:
        # The mean of the channels has less noise than each of them.
        level /= pixels.shape[picture.channel_axis] ** 0.5
        pixels = pixels.mean(axis=picture.channel_axis)
    advice = theory.suggest_patch_size(pixels, level, smallest=sizes[0], largest=sizes[-1])
    assert advice.risk is not None
    if as_json:
        report = {
            "image": str(path),
            "sigma": level,
            "sizes": advice.sizes.tolist(),
            "risk": advice.risk.tolist(),
            "bound": advice.close.tolist(),
            "suggested_q": advice.q,
            "bandwidth": advice.bandwidth,
        }
        print(json.dumps(report, indent=2))
        return
    print(f"{path}: sigma {level:.4g}{' (mean of the channels)' if picture.channel_axis is not None else ''}")
    print("error: estimated squared error of NLM, in units of the noise's; bound: near and far distinguished")
    print(f"{'q':>4} {'error':>8} {'bound':>8}")
    for q, risk, bound in zip(advice.sizes, advice.risk, advice.close, strict=True):
        mark = "  <- suggested" if q == advice.q else ""
        print(f"{q:4d} {risk / level**2:8.4f} {bound:8.4f}{mark}")
    print(f"use it: --method nlm --set patch_size={advice.q} --set bandwidth={advice.bandwidth:.3f}")


def _check(sizes: list[int], sigma: float, trials: int, seed: int, as_json: bool) -> None:
    from vnlem import theory

    # The formulas are the same for every size, so one size is checked: the middle of the range.
    q = sizes[len(sizes) // 2]
    rows = theory.run_checks(q, sigma, trials, seed)
    if as_json:
        print(
            json.dumps([asdict(r) | {"deviation": r.deviation, "agrees": r.agrees} for r in rows], indent=2)
        )
    else:
        width = max(len(row.name) for row in rows)
        title = f"q {q}, sigma {sigma:.4g}"
        print(f"{title:{width}}  {'formula':>11} {'simulated':>11} {'std. error':>11} {'deviation':>9}")
        for row in rows:
            print(f"{row.name:{width}}  {_numbers(row)}")
        values = sum(row.kind == "value" and row.expected for row in rows)
        print(
            f"{values} formulas, {sum(row.kind == 'bound' for row in rows)} bounds, {trials} draws each; "
            "what lay beyond three standard errors was drawn again, four times as often."
        )
    if any(not row.agrees and row.expected for row in rows):
        raise typer.Exit(1)


def _numbers(row: "Check") -> str:
    numbers = f"{row.formula:11.5g} {row.simulated:11.5g} {row.standard_error:11.2g}"
    if row.kind == "bound":
        return f"{numbers} {'holds' if row.agrees else 'VIOLATED':>9}"
    mark = "" if row.agrees else "  <- disagrees"
    if not row.expected:
        mark += " (known slip of the paper)"
    return f"{numbers} {row.deviation:+9.2f}{mark}"
