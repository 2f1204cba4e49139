"""White noise: the default, which sees only the image, compared with a given sigma.

    python benchmarks/noise_given.py --data FOLDER --processes 16

Folders under --data: sets of clean images, grey or colour. `phantoms` are drawn here. Noise:
numpy.random.default_rng(1000 + i) for the i-th file of a set in sorted order, not clipped. Prints mean PSNR
on 0..255 per set and level, the difference, the image with the largest loss, and pass or FAIL for levels from
15 on: the default is at most 0.05 dB below in the mean. With --peer also BM3D, for colours CBM3D (the `bm3d`
package), with the true sigma, and the lead of the given sigma over it.
"""

import argparse
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

import vnlem
from vnlem.bench.phantoms import discs, half_discs
from vnlem.bench.sources import sources_hash

SETS = ("set12", "bsd68", "kodak24_gray", "phantoms", "colour")
SIGMAS = (5.0, 15.0, 25.0, 50.0)
LIMIT, FROM = -0.05, 15.0
PHANTOMS = {
    **{f"discs 5, {seed}": lambda seed=seed: discs(5, 18, 3, seed, 256) for seed in (1, 2)},
    **{f"discs 3, {seed}": lambda seed=seed: discs(3, 12, 3, seed, 256) for seed in (1, 2)},
    **{f"half discs 6, {seed}": lambda seed=seed: half_discs(6, 16, 2, seed, 256) for seed in (1, 2)},
}


class Case(NamedTuple):
    """One noisy image and how to denoise it."""

    name: str
    path: Path | None  # None for a phantom
    index: int
    sigma: float
    profile: str
    workers: int | None
    peer: bool = False


def main() -> None:
    """Parse the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the sets")
    parser.add_argument("--sets", default=",".join(SETS), help="by commas")
    parser.add_argument("--sigmas", type=float, nargs="+", default=list(SIGMAS), help="noise levels, 0..255")
    parser.add_argument("--profile", default="balanced", choices=("best", "quality", "balanced", "fast"))
    parser.add_argument("--processes", type=int, default=1, help="images side by side")
    parser.add_argument("--images", action="store_true", help="print every image")
    parser.add_argument("--peer", action="store_true", help="also run BM3D or CBM3D")
    options = parser.parse_args()
    workers = 1 if options.processes > 1 else None
    failed = False
    print(f"sources {sources_hash()[:12]}, profile {options.profile}")
    print(f"{'set':14s} {'sigma':>5s} {'images':>6s} {'given':>7s} {'default':>7s} {'':>6s}  largest loss")
    with ProcessPoolExecutor(options.processes) as pool:
        for name in options.sets.split(","):
            for sigma in options.sigmas:
                cases = [
                    case._replace(peer=options.peer)
                    for case in cases_of(options.data, name, sigma, options.profile, workers)
                ]
                run = pool.map if options.processes > 1 else map
                rows = list(run(both, cases))
                given, found = (np.array(column) for column in list(zip(*rows, strict=True))[:2])
                change = found - given
                worst = int(change.argmin())
                bad = sigma >= FROM and change.mean() < LIMIT
                failed |= bad
                print(
                    f"{name:14s} {sigma:5g} {len(cases):6d} {given.mean():7.2f} {found.mean():7.2f} "
                    f"{change.mean():+6.2f}  {change[worst]:+.2f} {cases[worst].name}: {rows[worst][2]}; "
                    f"{np.count_nonzero(change < LIMIT)} below {LIMIT}"
                    + ("" if sigma < FROM else "  FAIL" if bad else "  pass"),
                    flush=True,
                )
                if options.peer:
                    peer = np.mean([row[3] for row in rows])
                    print(
                        f"{name:14s} {sigma:5g} BM3D {peer:.2f}, given {given.mean() - peer:+.2f}", flush=True
                    )
                if options.images:
                    for case, row in zip(cases, rows, strict=True):
                        figures = f"{row[0]:7.2f} {row[1]:7.2f} {row[1] - row[0]:+6.2f}"
                        print(f"    {case.name:30s} {figures}  {row[2]}")
    sys.exit(1 if failed else 0)


def cases_of(data: Path, name: str, sigma: float, profile: str, workers: int | None):
    """The images of a set at one level of noise."""
    if name == "phantoms":
        for index, phantom in enumerate(PHANTOMS):
            yield Case(phantom, None, index, sigma, profile, workers)
        return
    files = sorted((data / name).glob("*.png"))
    if not files:
        raise SystemExit(f"no PNG files in {data / name}")
    for index, path in enumerate(files):
        yield Case(path.stem, path, index, sigma, profile, workers)


def both(case: Case) -> tuple[float, float, str, float]:
    """PSNR with sigma given and by default, the default's noise model, and PSNR of the peer."""
    if case.path is None:
        clean = 128 + 45 * PHANTOMS[case.name]()
    else:
        clean = vnlem.io.read(case.path).pixels.astype(float)
    axis = -1 if clean.ndim == 3 else None
    noisy = clean + np.random.default_rng(1000 + case.index).normal(0, case.sigma, clean.shape)
    options = {"channel_axis": axis, "profile": case.profile, "workers": case.workers}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = vnlem.denoise(noisy, case.sigma, **options)
        found, info = vnlem.denoise(noisy, return_info=True, **options)
    peer = psnr(clean, with_bm3d(noisy, case.sigma)) if case.peer else np.nan
    return psnr(clean, given), psnr(clean, found), info.noise.describe(), peer


def with_bm3d(noisy: np.ndarray, sigma: float) -> np.ndarray:
    """BM3D of a grey image, CBM3D of a colour image."""
    import bm3d

    function = bm3d.bm3d_rgb if noisy.ndim == 3 else bm3d.bm3d
    return 255 * function(noisy / 255, sigma / 255)


def psnr(clean: np.ndarray, estimate: np.ndarray) -> float:
    """PSNR on 0..255, of clipped values."""
    return float(10 * np.log10(255**2 / np.mean((np.clip(estimate, 0, 255) - clean) ** 2)))


if __name__ == "__main__":
    main()
