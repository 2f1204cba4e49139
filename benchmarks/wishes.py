"""What VNLR gains from the paper's wishes: groups, windows, Stein's choice between variants, and scales.

For each noise level and folder: the SNR of VNLR, profile "balanced", and the gain of each row over it, with
how many images gain and lose, the p value of a Wilcoxon signed-rank test, and the largest loss. The rows:

- identity, so2: groups;
- wide window: three times the radius of the search window, in all passes that have a pilot;
- wide window, late: the same only in the last search for groups;
- usual and wide window, mean: of the two results;
- Stein's choice: five variants (usual and wide window, patches of 10 pixels, a last pass with 2.2 and with
  0.7 times the noise energy) and the noisy image, weighted in every neighbourhood by Stein's estimate of
  the error, as VNLEM auto does; each variant is computed twice;
- scales=3: flat and smooth areas from the image at half and at a quarter of its size.

Images: every `--every`-th PNG of a folder (all if there are at most 12), the middle `--crop` pixels, or all;
noise default_rng(number of the image).

    python benchmarks/wishes.py DATA/categories DATA/set12 --every 2 --device cuda --processes 8
    python benchmarks/wishes.py DATA/categories DATA/set12 --every 8 --crop 192 --processes 2
"""

import argparse
import functools
import importlib
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from quality import read_grey
from scipy.stats import wilcoxon

import vnlem
from vnlem.bench.sources import sources_hash
from vnlem.estimate import stein
from vnlem.methods import vnlr, vnlr_passes

LEVELS = ("15", "25", "50", "0.3")
USUAL, WIDE = 20, 60  # radius of the search window
SMALL_SET = 12
VARIANTS = ("usual", "wide window", "large patches", "smoother", "sharper")
ROWS = (
    "identity",
    "so2",
    "wide window",
    "wide window, late",
    "usual and wide window, mean",
    "Stein's choice",
    "scales=3",
)


def passes_of(device: str) -> Any:
    """The module that runs the passes."""
    return importlib.import_module("vnlem.methods.cuda.vnlr") if device != "cpu" else vnlr_passes


@contextmanager
def changed(module: Any, name: str, value: Any) -> Iterator[None]:
    """Inside, a name of a module is replaced."""
    old = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, old)


def late_only(device: str) -> AbstractContextManager[None]:
    """The usual window until groups are searched for the last time."""
    passes = passes_of(device)
    matching_of = passes.matching_of

    def narrow(params: Any, number: int, *rest: Any) -> Any:
        late = number >= max(params.rematch)
        return matching_of(params if late else replace(params, patch_distance=USUAL), number, *rest)

    return changed(passes, "matching_of", narrow)


def large_patches() -> AbstractContextManager[None]:
    """Patches of 10 pixels in the passes after groups were searched for the last time."""
    resolve = vnlr.resolve

    def larger(*given: Any, **options: Any) -> Any:
        params = resolve(*given, **options)
        first = max(params.rematch)
        sizes = tuple(10 if number >= first else size for number, size in enumerate(params.patch_sizes))
        return replace(params, patch_sizes=sizes, patch_size=10)

    return changed(vnlr, "resolve", larger)


def last_pass(device: str, boost: float) -> AbstractContextManager[None]:
    """Another factor on the noise energy in the last pass, the one that keeps no noise."""
    passes = passes_of(device)
    if device == "cpu":
        settings = passes.PassSettings
        return changed(
            passes,
            "PassSettings",
            lambda **given: settings(**given | ({"boost": boost} if given["tau"] == 0 else {})),
        )
    rule = passes.Rule
    return changed(passes, "Rule", lambda *given: rule(*(given if given[1] else _with(given, boost))))


def _with(rule: tuple[Any, ...], boost: float) -> tuple[Any, ...]:
    """Patch size, share of the noise that is kept, boost and load, with another boost."""
    return (*rule[:2], boost, *rule[3:])


def ways(device: str) -> dict[str, tuple[Callable[[], AbstractContextManager[None]], dict[str, Any]]]:
    """What is changed, and the parameters."""
    wide = {"patch_distance": WIDE}
    return {
        "usual": (nullcontext, {}),
        "identity": (nullcontext, {"group": "identity"}),
        "so2": (nullcontext, {"group": "so2"}),
        "wide window": (nullcontext, wide),
        "wide window, late": (functools.partial(late_only, device), wide),
        "large patches": (large_patches, {}),
        "smoother": (functools.partial(last_pass, device, 2.2), {}),
        "sharper": (functools.partial(last_pass, device, 0.7), {}),
        "scales=3": (nullcontext, {"scales": 3}),
    }


def estimates(noisy: np.ndarray, sigma: float, device: str) -> dict[str, np.ndarray]:
    """The result of every row."""

    def one(image: np.ndarray, name: str) -> np.ndarray:
        change, given = ways(device)[name]
        with change():
            return np.asarray(vnlem.denoise_vnlr(image, sigma, device=device, workers=1, **given))

    found = {name: one(noisy, name) for name in ways(device)}
    found["usual and wide window, mean"] = (found["usual"] + found["wide window"]) / 2
    pushed = noisy + stein.PUSH * sigma * stein.push_of((1, *noisy.shape), (0, 0))[0]
    pairs = [(found[name][None], one(pushed, name)[None]) for name in VARIANTS]
    given = stein.Estimates(*zip(*pairs, strict=True), anchor=(0,))
    found["Stein's choice"] = stein.combine(noisy[None], given, sigma)[0]
    return found


def measure(crop: int | None, device: str, task: tuple[str, int, Path]) -> list[float]:
    """SNR in dB of VNLR and of every row on one image."""
    level, index, path = task
    clean = read_grey(path, crop)
    sigma = 0.3**0.5 * clean.std() if level == "0.3" else float(level)
    noisy = clean + np.random.default_rng(index).normal(0, sigma, clean.shape)
    found = estimates(noisy, sigma, device)
    errors = [np.mean((clean - found[name]) ** 2) for name in ("usual", *ROWS)]
    return [float(10 * np.log10(clean.var() / error)) for error in errors]


def cell(gains: np.ndarray) -> str:
    """Mean, how many gain and lose, chance, largest loss."""
    better, worse = np.count_nonzero(gains > 0), np.count_nonzero(gains < 0)
    chance, loss = wilcoxon(gains).pvalue, min(gains.min(), 0.0)
    return f"{gains.mean():+.3f} ({better} / {worse}, {chance:.1g}, {loss:+.3f})"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--crop", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    cases = {}
    for folder in options.folders:
        paths = list(enumerate(sorted(folder.rglob("*.png"))))
        cases[folder.name] = paths if len(paths) <= SMALL_SET else paths[:: options.every]
    counts = ", ".join(f"{len(paths)} images of {name}" for name, paths in cases.items())
    size = f"the middle {options.crop} pixels" if options.crop else "whole"
    print(f"{counts}, {size}; sources {sources_hash()[:12]}; device {options.device}")
    print("SNR in dB above one scale, d4 and the usual window (gain / lose, p, largest loss)")
    begun = time.perf_counter()
    work = functools.partial(measure, options.crop, options.device)
    # A process that has used a GPU cannot be forked.
    with ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as pool:
        for level in LEVELS:
            tasks = [(level, *case) for paths in cases.values() for case in paths]
            found = iter(pool.map(work, tasks))
            tables = {name: np.array([next(found) for _ in paths]) for name, paths in cases.items()}
            means = " | ".join(f"{name}, {table[:, 0].mean():.2f} dB" for name, table in tables.items())
            print(f"\n| noise {level} | {means} |\n|---|" + "---|" * len(tables))
            for number, name in enumerate(ROWS, 1):
                cells = [cell(table[:, number] - table[:, 0]) for table in tables.values()]
                print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{time.perf_counter() - begun:.0f} seconds")


if __name__ == "__main__":
    main()
