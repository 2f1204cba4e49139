"""Adding simulated noise back: how well does the check separate right noise models from harmful ones?

    python benchmarks/predictive.py DATA

DATA holds `categories`, `fmd`, `photo_pairs` and `polyu`; the middle of every picture is used. White noise
of sigma 2, 5 and 10 is added to every fourth photograph of `categories`, as bytes. Each is denoised with
several models (profile fast), and `vnlem.noise.predictive_check` judges each of them. A model is right if
its result is at most 0.15 dB below that of the given sigma (real pairs: 0.3 dB below the best of the models),
and harmful if it loses more than 0.5 dB (1 dB) or is more than 0.1 dB worse than its input. Models in between
are not counted. Prints the verdicts by set, kind of model and effect, and the default models other than white
noise that get a "no".
"""

import argparse
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import harm
import microscopy
import numpy as np

import vnlem
from vnlem.bench.sources import sources_hash
from vnlem.noise import NoiseModel, estimate_noise, predictive_check

SIGMAS = (2, 5, 10)
PAIRS = ("fmd", "photo_pairs", "polyu")
VERDICTS = ("yes", "mostly", "no", "unknown")
RIGHT, HARMFUL = {True: 0.15, False: 0.3}, {True: 0.5, False: 1.0}  # dB lost; added noise, real noise
WORSE = 0.1  # dB below the input


class Case(NamedTuple):
    """A picture with noise."""

    group: str
    name: str
    sigma: float  # 0 if the noise is real
    clean: np.ndarray
    noisy: np.ndarray


class Row(NamedTuple):
    """One model of a picture, its effect and the verdict of the check."""

    group: str
    name: str
    model: str
    kind: str
    effect: str
    verdict: str


def main() -> None:
    """Parse the options, run the cases, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the sets of images")
    parser.add_argument("--every", type=int, default=4, help="take every n-th photograph")
    parser.add_argument("--side", type=int, default=256, help="pixels a side")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    every = list(cases(options.data, options.every, options.side))
    print(f"sources {sources_hash()[:12]}, {len(every)} pictures of {options.side} pixels a side", flush=True)
    with ProcessPoolExecutor(options.processes) as pool:
        rows = [row for found in pool.map(judged, every) for row in found]
    report(rows)


def cases(data: Path, every: int, side: int) -> Iterator[Case]:
    """Photographs with white noise, and pairs with real noise."""
    middle = partial(_middle, side=side)
    for number, path in enumerate(sorted((data / "categories").rglob("*.png"))[::every]):
        clean = middle(harm.opened(path, False))
        for sigma in SIGMAS:
            yield Case("categories", path.stem, sigma, *harm.white(clean, sigma, 1000 + number))
    for folder in PAIRS:
        for name, noisy, reference in microscopy.pairs(data / folder):
            yield Case(folder, name, 0, middle(reference), middle(noisy))


def _middle(image: np.ndarray, side: int) -> np.ndarray:
    top, left = (max(0, (size - side) // 2) for size in image.shape[:2])
    return image[top : top + side, left : left + side]


def judged(case: Case) -> list[Row]:
    """All models of a case."""
    axis = -1 if case.noisy.ndim == 3 else None
    results: dict[str, tuple[NoiseModel, np.ndarray, float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in models(case, axis).items():
            given = {"noise_model": model, "profile": "fast", "channel_axis": axis, "workers": 1}
            try:
                result = np.asarray(vnlem.denoise(case.noisy, **given))
            except ValueError:  # a photon model without photons is refused for its range
                continue
            results[name] = model, result, harm.psnr(case.clean, result)
    noisy = harm.psnr(case.clean, case.noisy)
    best = results["told"][2] if case.sigma else max(found[2] for found in results.values())
    rows = []
    for name, (model, result, found) in results.items():
        check = predictive_check(case.noisy, result, model, axis)
        loss, added = best - found, case.sigma > 0
        harmful = loss > HARMFUL[added] or found < noisy - WORSE
        effect = "harmful" if harmful else "right" if loss < RIGHT[added] else "between"
        kind = "correlated" if model.is_correlated else "curve" if model.varies else "white"
        rows.append(Row(case.group, f"{case.name}, sigma {case.sigma}", name, kind, effect, check.verdict))
    return rows


def models(case: Case, axis: int | None) -> dict[str, NoiseModel]:
    """Possible noise models: the default, each kind, and wrong levels."""
    kinds = ("auto", "correlated", "poisson-gaussian", *(() if case.sigma else ("gaussian",)))
    found = {kind: estimate_noise(case.noisy, axis, kind=kind, workers=1) for kind in kinds}
    if case.sigma:
        sigmas = {"told": 1.0, "half": 0.5, "twice": 2.0}
        found |= {name: NoiseModel.white(share * case.sigma) for name, share in sigmas.items()}
    return found


def report(rows: list[Row]) -> None:
    """The verdicts, and the default models other than white noise that were refused."""
    print(f"{'':46s}" + "".join(f"{verdict:>9s}" for verdict in VERDICTS))
    counted = [row for row in rows if row.effect != "between"]
    groups: dict[str, list[Row]] = {}
    for row in counted:
        level = row.model if row.model in ("half", "twice") else row.kind
        groups.setdefault(f"{row.group:14s}{row.effect:10s}{level}", []).append(row)
        groups.setdefault(f"{'all':14s}{row.effect:10s}{row.kind}", []).append(row)
    for name in sorted(groups):
        count = Counter(row.verdict for row in groups[name])
        print(f"{name:46s}" + "".join(f"{count[verdict]:9d}" for verdict in VERDICTS))
    default = [row for row in rows if row.model == "auto"]
    risky = [row for row in default if row.kind != "white"]
    refused = [row for row in risky if row.verdict == "no"]
    print(
        f"by default {len(risky)} of {len(default)} models are more than white noise, {len(refused)} get no"
    )
    for row in refused:
        print(f"  {row.group} {row.name}: {row.kind}, {row.effect}")


if __name__ == "__main__":
    main()
