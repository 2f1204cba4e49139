"""What VNLR computes: multiply-adds of its matching and of its algebra, against the peak of one core.

    python benchmarks/vnlr_work.py

The camera image, 512x512, noise sigma 25, one worker. Matching is counted for shifts alone and for all eight
transforms, which take the products of two more patches: the image decides which candidates are tried with all
of them. The peak is that of NumPy's matrix product.
"""

import time

import numpy as np
from skimage import data

import vnlem
from vnlem.bench.sources import sources_hash

SIGMA = 25.0


def peak() -> float:
    """Multiply-adds per second of one core in NumPy's matrix product, the best of several tries."""
    side = 512
    a = np.random.default_rng(0).normal(size=(side, side)).astype(np.float32)
    a @ a
    best = np.inf
    for _ in range(15):
        begun = time.process_time()
        for _ in range(4):
            a @ a
        best = min(best, time.process_time() - begun)
    return 4 * side**3 / best


def counts(parameters: dict, height: int, width: int) -> tuple[float, float, float]:
    """Multiply-adds of matching by shifts, by all eight transforms, and of the algebra."""
    shifts = turned = algebra = 0.0
    for number, size in enumerate(parameters["patch_sizes"]):
        first = number == 0
        step = parameters["first_step" if first else "step"]
        radius = parameters["first_patch_distance" if first else "patch_distance"]
        members = parameters["first_n_neighbors" if first else "n_neighbors"]
        groups = np.prod([len(range(0, side - size, step)) + 1 for side in (height, width)])
        padded, pixels = 16 * -(-members // 16), size * size
        if first or number in parameters["rematch"]:
            window = (2 * radius + 1) ** 2
            shifts += groups * window * pixels
            turned += (1 + 2) * groups * window * pixels
        # Gram matrix and its inverse (one half each), and the product with the patches.
        algebra += groups * (padded**2 * pixels / 2 + padded**3 / 2 + padded**2 * pixels)
    return shifts, turned, algebra


def main() -> None:
    image = data.camera().astype(float)
    noisy = vnlem.noise.add_gaussian(image, SIGMA, seed=0)
    fastest = peak()
    print(f"sources {sources_hash()}; peak of one core: {fastest / 1e9:.0f} G multiply-adds a second\n")
    print("| profile | matching, shifts | with all transforms | algebra | CPU seconds | share of the peak |")
    print("|---|---:|---:|---:|---:|---:|")
    for profile in ("quality", "balanced", "fast"):
        vnlem.denoise_vnlr(noisy[200:264, 200:264], SIGMA, profile=profile, workers=1)
        spent = np.inf
        for _ in range(3):
            begun = time.process_time()
            _, info = vnlem.denoise_vnlr(noisy, SIGMA, profile=profile, workers=1, return_info=True)
            spent = min(spent, time.process_time() - begun)
        shifts, turned, algebra = counts(info.parameters, *image.shape)
        low, high = ((work + algebra) / spent / fastest for work in (shifts, turned))
        print(
            f"| {profile} | {shifts / 1e9:.1f} G | {turned / 1e9:.1f} G | {algebra / 1e9:.1f} G "
            f"| {spent:.1f} | {low:.0%} to {high:.0%} |"
        )


if __name__ == "__main__":
    main()
