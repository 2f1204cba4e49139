"""`make bench-quality`: VNLR against BM3D on the standard sets, the gain from rotation, cells and particles.

Prints tables with pass or FAIL per line. Every result is kept in a CSV file: a run can be stopped and
continued, and the slow peer runs once per image; results of other code are not used. With `--processes`
images are processed in parallel. If bm3d is not installed, its column and the lines that need it are left
out. Noise: numpy.random.default_rng(1000 + i) for the i-th file of a set in sorted order, not clipped;
results are clipped to 0..255 for the measures.
"""

import argparse
import csv
import functools
import importlib.metadata
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from skimage import data

import vnlem
from vnlem import metrics
from vnlem.bench import datasets
from vnlem.bench.peers import available_peers
from vnlem.bench.phantoms import discs, half_discs
from vnlem.bench.sources import sources_hash

SETS = ("set12", "bsd68", "kodak24_gray")
SIGMAS = (15, 25, 50)
PROFILES = ("best", "quality", "balanced", "fast")
MEASURES = ("psnr", "ssim", "fsim")

# Smallest PSNR on Set12 at sigma 15, 25, 50.
SET12_QUALITY = {15: 32.72, 25: 30.32, 50: 27.10}
# Smallest PSNR of "best".
BEST = {
    "set12": {15: 32.86, 25: 30.44, 50: 27.24},
    "bsd68": {15: 31.46, 25: 28.98, 50: 26.06},
}
BEST_BELOW_QUALITY = 0.02  # on any image, at most
KODAK_BEST_ABOVE_QUALITY = 0.08
FAST_BELOW_BM3D = {15: 0.10, 25: 0.10, 50: 0.15}
QUALITY_ABOVE_BM3D = {15: 0.15, 25: 0.15, 50: 0.10}
PHANTOM_GAINS = {"discs 5": 3.0, "discs 3": 3.3, "half discs 6": 1.8}
PHANTOMS: dict[str, Callable[[int], np.ndarray]] = {
    "discs 5": lambda seed: discs(5, 18, 3, seed),
    "discs 3": lambda seed: discs(3, 12, 3, seed),
    "half discs 6": lambda seed: half_discs(6, 16, 2, seed),
}


class Case(NamedTuple):
    """One noisy image: where it comes from, its number in the set, the noise level, and how to get it."""

    group: str
    name: str
    index: int
    sigma: float
    clean: Callable[[], np.ndarray]  # of module level: it can be sent to another process


class Results:
    """Measures per (set, image, sigma, method), in a CSV file that survives interruptions."""

    FIELDS = ("set", "image", "sigma", "method", *MEASURES, "seconds", "version")

    def __init__(self, path: Path, processes: int = 1) -> None:
        self._path = path
        self._processes = processes
        self._rows: dict[tuple[str, str, float, str], dict[str, float]] = {}
        if path.exists() and path.read_text().partition("\n")[0].strip() != ",".join(self.FIELDS):
            path.rename(path.with_suffix(".old.csv"))  # from an older version with other columns
        if path.exists():
            with path.open(newline="") as file:
                for row in csv.DictReader(file):
                    if row["version"] != version_of(row["method"]):
                        continue
                    key = (row["set"], row["image"], float(row["sigma"]), row["method"])
                    self._rows[key] = {name: float(row[name]) for name in (*MEASURES, "seconds")}
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", newline="") as file:
                csv.writer(file).writerow(self.FIELDS)

    def fill(self, cases: list[Case], methods: list[str]) -> None:
        """Compute the missing cases, as many in parallel as there are processes."""
        tasks = [(case, m) for m in methods for case in cases if self._key(case, m) not in self._rows]
        if self._processes == 1 or len(tasks) < 2:
            return
        with ProcessPoolExecutor(self._processes) as pool:
            for (case, method), row in zip(tasks, pool.map(compute_alone, tasks), strict=True):
                self._keep(case, method, row)

    def get(self, case: Case, method: str) -> dict[str, float]:
        """The measures of a method on a case: from the file, or computed now."""
        if self._key(case, method) not in self._rows:
            self._keep(case, method, compute(case, method, None))
        return self._rows[self._key(case, method)]

    def _key(self, case: Case, method: str) -> tuple[str, str, float, str]:
        return (case.group, case.name, float(case.sigma), method)

    def _keep(self, case: Case, method: str, row: dict[str, float]) -> None:
        key = self._key(case, method)
        self._rows[key] = row
        with self._path.open("a", newline="") as file:
            numbers = [row[name] for name in (*MEASURES, "seconds")]
            csv.writer(file).writerow([*key, *numbers, version_of(method)])


def compute(case: Case, method: str, workers: int | None) -> dict[str, float]:
    """The measures of a method on a case."""
    truth = case.clean()
    noise = np.random.default_rng(1000 + case.index).standard_normal(truth.shape)
    begun = time.perf_counter()
    estimate = run_method(method, truth + case.sigma * noise, case.sigma, workers)
    seconds = time.perf_counter() - begun
    return measure(truth, estimate, phantom=case.group == "phantoms") | {"seconds": seconds}


def compute_alone(task: tuple[Case, str]) -> dict[str, float]:
    """The same on one core, because the others work on other cases."""
    return compute(*task, 1)


@functools.cache
def version_of(method: str) -> str:
    """The code of a method and its measures: the peer's version, or a hash of this package's sources."""
    if method == "bm3d":
        try:
            return f"{importlib.metadata.version('bm3d')} {sources_hash('metrics', 'bench', 'io')}"
        except importlib.metadata.PackageNotFoundError:
            return "not installed"
    return sources_hash()


def run_method(method: str, noisy: np.ndarray, sigma: float, workers: int | None) -> np.ndarray:
    """A method by its name in the CSV file: "bm3d", or "vnlr-PROFILE-GROUP"."""
    if method == "bm3d":
        return np.asarray(available_peers()["bm3d"](noisy, sigma, workers or os.cpu_count() or 1))
    _, profile, group = method.split("-")
    return np.asarray(vnlem.denoise_vnlr(noisy, sigma, profile=profile, group=group, workers=workers))


def measure(clean: np.ndarray, estimate: np.ndarray, *, phantom: bool) -> dict[str, float]:
    """PSNR, SSIM and FSIM on 0..255; for a phantom the SNR in dB replaces the PSNR."""
    if phantom:
        error = np.mean((estimate - clean) ** 2)
        return {"psnr": 10 * np.log10(np.mean(clean**2) / error), "ssim": np.nan, "fsim": np.nan}
    shown = np.clip(estimate, 0, 255)
    return {
        "psnr": metrics.psnr(clean, shown, 255),
        "ssim": metrics.ssim(clean, shown, 255),
        "fsim": metrics.fsim(clean, shown, 255),
    }


def read_grey(path: Path, crop: int | None = None) -> np.ndarray:
    """An image file as floats 0..255, or its middle."""
    grey = datasets.read_grey(str(path))
    top, left = (0 if crop is None else max(side - crop, 0) // 2 for side in grey.shape)
    return grey[top:, left:][:crop, :crop]


class Report:
    """Lines with pass or FAIL, and those that failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def line(self, text: str, value: float, limit: float) -> None:
        """One promise: value must be at least limit."""
        said = f"{text}: {value:.3f} (at least {limit:.3f})"
        if value >= limit:
            print(f"pass  {said}", flush=True)
        else:
            print(f"FAIL  {said}", flush=True)
            self.failed.append(said)

    def close(self) -> None:
        """Name the lines that miss their limit, and exit with the status."""
        if not self.failed:
            print("\nall lines pass")
            sys.exit(0)
        print(f"\n{len(self.failed)} lines miss their limit:")
        print("\n".join(f"- {line}" for line in self.failed))
        sys.exit(1)


def mean_of(
    results: Results, cases: list[Case], method: str, name: str = "psnr"
) -> tuple[float, list[float]]:
    """Mean of a measure over cases, and its values."""
    values = [results.get(case, method)[name] for case in cases]
    return float(np.mean(values)), values


def standard_sets(
    results: Results, report: Report, folder: Path, sets: list[str], options: argparse.Namespace
) -> None:
    """PSNR, SSIM and FSIM on the standard sets."""
    peers = ["bm3d"] if "bm3d" in available_peers() else []
    for name in sets:
        for sigma in options.sigmas:
            cases = cases_of(folder / name, name, sigma, options.limit)
            methods = {**{peer: peer for peer in peers}, **{p: f"vnlr-{p}-d4" for p in options.profiles}}
            results.fill(cases, list(methods.values()))
            print(f"\n{name}, sigma {sigma}, {len(cases)} images")
            means = {}
            for row, method in methods.items():
                means[row] = {key: mean_of(results, cases, method, key)[0] for key in MEASURES}
                print(f"      {row:10s}" + "".join(f" {key} {means[row][key]:.4f}" for key in MEASURES))
            if {"best", "quality"} <= means.keys():
                beside_quality(results, report, name, sigma, cases)
            bm3d, quality, fast = (means.get(row) for row in ("bm3d", "quality", "fast"))
            if bm3d and quality:
                pairs = zip(
                    *(mean_of(results, cases, m)[1] for m in ("bm3d", "vnlr-quality-d4")), strict=True
                )
                print(f"      bm3d is ahead of quality in PSNR on {sum(a > b for a, b in pairs)} of them")
                for key in ("ssim", "fsim"):
                    report.line(f"{name} sigma {sigma} {key.upper()} quality", quality[key], bm3d[key])
                if name != "set12":
                    limit = bm3d["psnr"] + QUALITY_ABOVE_BM3D.get(sigma, 0.0)
                    report.line(f"{name} sigma {sigma} PSNR quality", quality["psnr"], limit)
            if quality and name == "set12":
                limit = SET12_QUALITY.get(sigma, -np.inf)
                report.line(f"{name} sigma {sigma} PSNR quality", quality["psnr"], limit)
            if bm3d and fast and name == "set12":
                limit = bm3d["psnr"] - FAST_BELOW_BM3D.get(sigma, 0.0)
                report.line(f"{name} sigma {sigma} PSNR fast", fast["psnr"], limit)


def beside_quality(results: Results, report: Report, name: str, sigma: int, cases: list[Case]) -> None:
    """What "best" gains over "quality", in the mean and on the worst image."""
    best, quality = (mean_of(results, cases, f"vnlr-{row}-d4")[1] for row in ("best", "quality"))
    gains = np.array(best) - quality
    if sigma in BEST.get(name, {}):
        report.line(f"{name} sigma {sigma} PSNR best", float(np.mean(best)), BEST[name][sigma])
    if name == "kodak24_gray":
        mean = float(gains.mean())
        report.line(f"{name} sigma {sigma} PSNR best above quality", mean, KODAK_BEST_ABOVE_QUALITY)
    if name != "bsd68":
        worst = float(gains.min())
        report.line(f"{name} sigma {sigma} PSNR best above quality, worst", worst, -BEST_BELOW_QUALITY)


def cases_of(folder: Path, name: str, sigma: float, limit: int | None, crop: int | None = None) -> list[Case]:
    """The images of a folder (and its subfolders) in sorted order, or their middles."""
    paths = sorted(folder.rglob("*.png"))[:limit]
    return [
        Case(name, str(path.relative_to(folder)), index, sigma, functools.partial(read_grey, path, crop))
        for index, path in enumerate(paths)
    ]


def rotation(results: Results, report: Report, folder: Path, options: argparse.Namespace) -> None:
    """The gain from the eight symmetries, compared with shifts alone."""
    profile = options.rotation_profile
    coins_file = options.results.parent / "coins.png"
    vnlem.io.write(coins_file, data.coins())
    for sigma in options.sigmas:
        print(f"\nd4 against identity, sigma {sigma}, profile {profile}, PSNR in dB")

        def gains(cases: list[Case]) -> np.ndarray:
            methods = [f"vnlr-{profile}-{group}" for group in ("d4", "identity")]
            results.fill(cases, methods)
            turned, shifted = (mean_of(results, cases, method)[1] for method in methods)
            return np.array(turned) - shifted

        set12 = gains(cases_of(folder / "set12", "set12", sigma, options.limit))
        report.line("Set12, mean", float(set12.mean()), 0.04)
        report.line("Set12, worst image", float(set12.min()), -0.03)
        if len(set12) > 4:
            report.line("starfish", float(set12[3]), 0.12)
            report.line("monarch", float(set12[4]), 0.12)
        coins = gains([Case("scikit-image", "coins", 0, sigma, functools.partial(read_grey, coins_file))])
        report.line("coins", float(coins[0]), 0.12)
        microscopy = cases_of(folder / "microscopy", "microscopy", sigma, None)
        blood = [case for case in microscopy if Path(case.name).name.startswith("blood")][: options.limit]
        report.line("blood cells, worst image", float(gains(blood).min()), -0.03)
        if "categories" in options.sets:
            # The results of crops are kept under another name than those of whole images.
            kept_as = "categories" if options.crop is None else f"categories/{options.crop}"
            categories = cases_of(folder / "categories", kept_as, sigma, options.limit, options.crop)
            report.line("categories, mean", float(gains(categories).mean()), 0.02)


def draw_phantom(name: str, seed: int) -> np.ndarray:
    """A phantom by its name."""
    return PHANTOMS[name](seed)


def phantoms(results: Results, report: Report) -> None:
    """Cells and particles: SNR above BM3D, mean over seeds 1 to 5."""
    print("\nphantoms, noise variance 0.3, SNR in dB above BM3D, profile quality, mean over seeds 1 to 5")
    sigma = float(np.sqrt(0.3))
    peers = ["bm3d"] if "bm3d" in available_peers() else []
    methods = [*peers, *(f"vnlr-quality-{group}" for group in ("identity", "c4", "d4", "so2"))]
    for name in PHANTOMS:
        cases = [
            Case("phantoms", f"{name} seed {seed}", seed, sigma, functools.partial(draw_phantom, name, seed))
            for seed in range(1, 6)
        ]
        results.fill(cases, methods)
        snr = {method: mean_of(results, cases, method)[0] for method in methods}
        print("      " + "  ".join(f"{method} {value:.2f}" for method, value in snr.items()))
        if peers:
            gain = snr["vnlr-quality-d4"] - snr["bm3d"]
            report.line(f"{name}, d4 above BM3D", gain, PHANTOM_GAINS[name])
        report.line(f"{name}, so2 above d4", snr["vnlr-quality-so2"] - snr["vnlr-quality-d4"], 0.0)


def main() -> None:
    """Parse the options and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with set12, bsd68, kodak24_gray, ..."
    )
    parser.add_argument("--sets", nargs="+", default=[*SETS, "categories", "rotation", "phantoms"])
    parser.add_argument("--sigmas", nargs="+", type=int, default=list(SIGMAS))
    parser.add_argument("--profiles", nargs="+", default=list(PROFILES), choices=PROFILES)
    parser.add_argument("--rotation-profile", default="balanced", choices=PROFILES)
    parser.add_argument(
        "--crop", type=int, default=None, help="use only the middle of `categories`, this wide"
    )
    parser.add_argument("--limit", type=int, default=None, help="images per set")
    parser.add_argument("--processes", type=int, default=1, help="images in parallel")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("bench-results/quality.csv"),
        help="CSV file of results kept between runs",
    )
    options = parser.parse_args()
    results, report = Results(options.results, options.processes), Report()
    standard_sets(results, report, options.data, [s for s in options.sets if s in SETS], options)
    if "rotation" in options.sets:
        rotation(results, report, options.data, options)
    if "phantoms" in options.sets:
        phantoms(results, report)
    report.close()


if __name__ == "__main__":
    main()
