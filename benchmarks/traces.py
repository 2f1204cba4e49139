"""How well denoising keeps the traces of cells with known transients, as a Markdown table.

    python benchmarks/traces.py DATA [--frames 48] [--photons 40] [--rise 0.4] [--profile fast] [--only ...]

Cells of eight pixels across lie on a real background that drifts: the mean over time of
DATA/stacks/time_drosophila_real.tif, scaled to --photons in the mean. A cell brightens by --rise of that mean
in transients of one length (a box), at random times. The noise is that of the photons, and is estimated from
the movie. A trace is the mean over the cell's pixels. For each length of the transients the table shows the
correlation of the traces with those of the clean movie, and the kept amplitude: the mean height of all
transients above the quiet frames within three frames, as a share of the clean movie's.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import tifffile
from scipy.ndimage import gaussian_filter, median_filter, shift, uniform_filter1d

import vnlem

LENGTHS = (1, 2, 4, 8)  # frames of a transient
RADIUS = 4.0  # pixels of a cell
SIDE = 160


def background(data, side):
    """A real scene without its noise, with mean 1."""
    movie = tifffile.imread(Path(data) / "stacks" / "time_drosophila_real.tif").astype(float)
    scene = gaussian_filter(movie.mean(axis=0), 0.7)[:side, :side]
    return scene / scene.mean()


def simulate(data, n_frames, photons, rise, n_cells, seed=0):
    """The clean movie in photons, the pixels of each cell, and its transients."""
    rng = np.random.default_rng(seed)
    scene = photons * background(data, SIDE)
    height, width = scene.shape
    rows, columns = np.mgrid[:height, :width]
    active = np.zeros((n_cells, n_frames), bool)
    masks, profiles = [], []
    for number in range(n_cells):
        length = LENGTHS[number % len(LENGTHS)]
        at = int(rng.integers(2, 8))
        while at + length + 2 < n_frames:
            active[number, at : at + length] = True
            at += length + int(rng.integers(6, 16))
        y, x = rng.uniform(10, height - 10), rng.uniform(10, width - 10)
        distance = np.hypot(rows - y, columns - x)
        profiles.append(rise * scene.mean() / (1 + np.exp(2 * (distance - RADIUS))))
        masks.append(distance < RADIUS)
    drift = np.stack([1.5 * np.sin(2 * np.pi * np.arange(n_frames) / 60), 0.02 * np.arange(n_frames)], axis=1)
    clean = np.stack(
        [
            shift(scene + np.tensordot(active[:, t], profiles, 1), drift[t], order=1, mode="nearest")
            for t in range(n_frames)
        ]
    )
    moved = [
        np.stack([shift(mask.astype(float), drift[t], order=0) > 0.5 for t in range(n_frames)])
        for mask in masks
    ]
    return clean, moved, active


def trace(movie, mask):
    return np.array([frame[where].mean() for frame, where in zip(movie, mask, strict=True)])


def heights(values, active):
    """How much higher each transient is than the quiet frames just before and after it."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], active.astype(int), [0]])))
    found = []
    for begin, end in edges.reshape(-1, 2):
        quiet = [t for t in (*range(begin - 3, begin), *range(end, end + 3)) if 0 <= t < len(active)]
        found.append(values[begin:end].mean() - values[[t for t in quiet if not active[t]]].mean())
    return np.array(found)


def pages(movie, options):
    return np.stack([vnlem.denoise(page, **options) for page in movie])


METHODS = {
    "noisy": lambda movie, options: movie,
    "mean of 3 frames": lambda movie, options: uniform_filter1d(movie, 3, axis=0),
    "median of 3 frames": lambda movie, options: median_filter(movie, (3, 1, 1)),
    "page by page": pages,
    "movie": lambda movie, options: vnlem.denoise(movie, axes="TYX", **options),
    "movie, patch_depth=1": lambda movie, options: vnlem.denoise(movie, axes="TYX", patch_depth=1, **options),
    "stream, delay 2": lambda movie, options: vnlem.denoise(movie, axes="TYX", delay=2, **options),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--frames", type=int, default=48)
    parser.add_argument("--photons", type=float, default=40.0)
    parser.add_argument("--rise", type=float, default=0.4)
    parser.add_argument("--cells", type=int, default=32)
    parser.add_argument("--profile", default="fast")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--only", nargs="+", default=list(METHODS))
    arguments = parser.parse_args()
    clean, masks, active = simulate(
        arguments.data, arguments.frames, arguments.photons, arguments.rise, arguments.cells
    )
    noisy = np.random.default_rng(1).poisson(clean).astype(np.float32)
    truths = [trace(clean, mask) for mask in masks]
    options = {"profile": arguments.profile, "workers": arguments.workers}
    lengths = [f"{n} frame{'s' * (n > 1)}" for n in LENGTHS]
    print(f"| | {' | '.join(lengths)} | rms error of the movie | seconds |")
    print("|---" * (len(LENGTHS) + 3) + "|")
    for name in arguments.only:
        begun = time.perf_counter()
        result = np.asarray(METHODS[name](noisy, options), float)
        seconds = time.perf_counter() - begun
        traces = [trace(result, mask) for mask in masks]
        cells = []
        for first in range(len(LENGTHS)):
            alike = range(first, len(masks), len(LENGTHS))
            correlation = np.mean([np.corrcoef(traces[c], truths[c])[0, 1] for c in alike])
            found, true = (sum(heights(all_[c], active[c]).sum() for c in alike) for all_ in (traces, truths))
            cells.append(f"{correlation:.3f}, {100 * found / true:.0f} %")
        rms = np.sqrt(np.mean((result - clean) ** 2))
        print(f"| {name} | {' | '.join(cells)} | {rms:.2f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
