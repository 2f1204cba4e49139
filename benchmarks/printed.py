"""Algorithm 1 as the paper prints it, compared with the fast engine one difference at a time: a table.

    python benchmarks/printed.py --workers 2

Six crops of scikit-image's pictures at two noise levels. The rows between "as printed" and "fast" change one
detail after another towards the fast engine. "Common" is the share of a pixel's neighbours that a row has in
common with the fast engine. The printed engine takes some ten milliseconds per pixel: `--every 2` uses every
other row and column of the crops.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np
from skimage import color, data

from vnlem.features.canonical import Extended, canonical_region
from vnlem.methods.vnlem import solve
from vnlem.methods.vnlem_params import PAPER, VnlemParams, check_params, make_rule, rings_of, search_of
from vnlem.neighbours.window import find_neighbours
from vnlem.pipeline.run import Job
from vnlem.pipeline.tiles import Tile
from vnlem.reference.vnlem import Printed

# Picture, and the row and column of the crop's corner.
CROPS = {
    "camera": (190, 200),
    "coins": (70, 60),
    "astronaut": (20, 180),
    "coffee": (150, 250),
    "chelsea": (80, 160),
    "clock": (120, 160),
}
VARIANCES = (0.3, 0.0225)
# Row name -> parameters, and whether the arc of the orientation is tapered and distances are those of the
# upsampled patches.
ROWS = {
    "as printed": ({"shape": "square"}, False, False),
    "and the unrotated patch tried": ({"shape": "square", "try_unrotated": True}, False, False),
    "tapered arc": ({"shape": "square"}, True, False),
    "round patches": ({"shape": "disc"}, False, False),
    "round patches, tapered arc": ({"shape": "disc"}, True, False),
    "round, tapered, distances of upsampled patches": ({"shape": "disc"}, True, True),
}
FAST = {
    "fast, preset paper": {},
    "fast, and the unrotated patch tried": {"try_unrotated": True},
    "fast, patches averaged down": {"average_down": True},
}


def parameters(**changes: object) -> VnlemParams:
    return check_params(**PAPER | changes)


def crop(name: str, variance: float, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A standardised crop, clean and noisy."""
    picture = np.asarray(getattr(data, name)(), dtype=float)
    if picture.ndim == 3:
        picture = color.rgb2gray(picture / 255)
    top, left = CROPS[name]
    clean = picture[top : top + size, left : left + size]
    clean = (clean - clean.mean()) / clean.std()
    noise = np.random.default_rng(0).normal(0, np.sqrt(variance), clean.shape)
    return clean, (clean + noise).astype(np.float32)


Found = tuple[np.ndarray, dict[tuple[int, int], set[int]]]


def by_printed(noisy: np.ndarray, every: int, changes: dict[str, object], taper: bool, fine: bool) -> Found:
    """Estimates and neighbours of a subset of the pixels."""
    printed = Printed(noisy[None], parameters(**changes), taper, fine)
    out = np.full(noisy.shape, np.nan)
    neighbours = {}
    for at in product(*(range(0, length, every) for length in noisy.shape)):
        rows, columns, squared, _, turned = printed.neighbours(*at)
        neighbours[at] = set((rows * noisy.shape[1] + columns).tolist())
        out[at] = printed.central_point(rows, columns, squared, turned)[0]
    return out, neighbours


def by_fast(noisy: np.ndarray, sigma: float, every: int, changes: dict[str, object]) -> Found:
    params = parameters(**changes)
    rings = rings_of(params, 1)
    image = Extended.of(noisy[None], rings, params.scale)
    height, width = noisy.shape
    region = canonical_region(image, Tile(0, height, 0, width), rings, params.scale, params.arc)
    search, rule = search_of(params, rings, noisy.shape), make_rule(params, sigma, rings)
    found = find_neighbours(region, search, rule, (0, 0), (height, width))
    rows, columns = np.divmod(found.position, region.raw.shape[1])
    numbers = rows * width + columns
    neighbours = {
        at: set(numbers[at][: found.counts[at]].tolist())
        for at in product(range(0, height, every), range(0, width, every))
    }
    return solve(Job(noisy[None], sigma, params, 1, None))[0], neighbours


def measure(task: tuple[str, float, int, int, str]) -> tuple[float, float]:
    """SNR of a row on a crop, and the share of its neighbours that the fast engine also has."""
    name, variance, size, every, row = task
    clean, noisy = crop(name, variance, size)
    sigma = float(np.sqrt(variance))
    fast = by_fast(noisy, sigma, every, {})
    found = by_printed(noisy, every, *ROWS[row]) if row in ROWS else by_fast(noisy, sigma, every, FAST[row])
    at = np.s_[::every, ::every]
    snr = 10 * np.log10(clean[at].var() / np.mean((found[0][at] - clean[at]) ** 2))
    common = np.mean([len(mine & fast[1][pixel]) / len(mine) for pixel, mine in found[1].items()])
    return float(snr), float(common)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    rows = [*ROWS, *FAST]
    tasks = [
        (name, variance, options.size, options.every, row)
        for row in rows
        for variance in VARIANCES
        for name in CROPS
    ]
    with ProcessPoolExecutor(options.workers) as pool:
        values = np.array(list(pool.map(measure, tasks))).reshape(len(rows), len(VARIANCES), len(CROPS), 2)
    print("| | " + " | ".join(f"SNR at {v} | common" for v in VARIANCES) + " |")
    print("|---" * (1 + 2 * len(VARIANCES)) + "|")
    for row, value in zip(rows, values, strict=True):
        cells = [f"{snr:.2f} | {100 * common:.0f} %" for snr, common in value.mean(axis=1)]
        print(f"| {row} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
