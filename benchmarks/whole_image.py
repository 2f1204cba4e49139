"""How many candidates each lower bound leaves in the exact search, and its time against brute force.

    python benchmarks/whole_image.py --size 256 --pixels 64

Brute force searches every pair over all angles. Both are timed on a sample of pixels; their neighbours are
compared, and must be the same.
"""

import argparse
import time

import numpy as np
from skimage import data, transform

from vnlem.features.canonical import Extended, canonical_region
from vnlem.features.rings import layout
from vnlem.methods.vnlem_params import check_params, make_rule, search_of
from vnlem.neighbours.image import ImageIndex, find
from vnlem.pipeline.tiles import Tile


def measure(clean: np.ndarray, variance: float, n_pixels: int) -> str:
    """One row of the table."""
    rng = np.random.default_rng(0)
    image = (clean + np.sqrt(variance) * rng.standard_normal(clean.shape)).astype(np.float32)
    size = len(image)
    params = check_params(search="image")
    rings = layout(params.patch_size)
    region = canonical_region(
        Extended.of(image[None], rings, params.scale), Tile(0, size, 0, size), rings, params.scale, params.arc
    )
    index = ImageIndex.of(region, rings)
    search, rule = search_of(params, rings, image.shape), make_rule(params, float(np.sqrt(variance)), rings)
    numbers = rng.choice(size * size, n_pixels, replace=False)
    pixels = numbers // size * region.raw.shape[1] + numbers % size
    find(index, search, rule, pixels[:1])
    begun = time.perf_counter()
    pruned = find(index, search, rule, pixels)
    middle = time.perf_counter()
    brute = find(index, search, rule, pixels, prune=False)
    ended = time.perf_counter()
    same = np.array_equal(pruned.position, brute.position)
    shares = " | ".join(f"{100 * left / pruned.left[0]:.1f} %" for left in pruned.left[1:])
    seconds = (middle - begun) / n_pixels * size**2, (ended - middle) / n_pixels * size**2
    return (
        f"| {variance:g} | {shares} | {seconds[0]:.0f} s | {seconds[1]:.0f} s "
        f"| {seconds[1] / seconds[0]:.1f} | {'yes' if same else 'NO'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--pixels", type=int, default=64, help="number of pixels to search and time")
    options = parser.parse_args()
    clean = transform.resize(data.camera() / 255, (options.size, options.size), anti_aliasing=True)
    clean = (clean - clean.mean()) / clean.std()
    print(f"camera {options.size}x{options.size}, 50 nearest, one worker; seconds for the whole image\n")
    print(
        "| noise variance | after bound 1 | after 2 | after 3 | exact search | brute force | ratio | same |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for variance in (0.0, 0.3):
        print(measure(clean, variance, options.pixels), flush=True)


if __name__ == "__main__":
    main()
