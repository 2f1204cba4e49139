"""How well the noise level is estimated on a folder of clean images: a Markdown table.

    python benchmarks/noise_estimate.py --data path/to/set12

Noise comes from ``numpy.random.default_rng(1000 + i)`` for the i-th file in sorted order and is not clipped.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from skimage.restoration import estimate_sigma as wavelet_sigma

from vnlem.bench import datasets
from vnlem.noise import add_gaussian, estimate_sigma

FILE_TYPES = {".png", ".jpg", ".jpeg", ".tif", ".tiff"}
ESTIMATORS: dict[str, Callable[[NDArray[np.float64]], float]] = {
    "vnlem": estimate_sigma,
    "scikit-image (wavelet MAD)": wavelet_sigma,
}


def read_grey(path: Path) -> NDArray[np.float64]:
    """An image file as grey values 0..255."""
    return datasets.read_grey(str(path))


def table(images: list[NDArray[np.float64]], sigmas: list[float]) -> str:
    """Signed and absolute relative errors in per cent, and the time of one call."""
    lines = [
        "| sigma | estimator | mean error % | mean abs. error % | largest abs. error % | ms per image |",
        "|---|---|---|---|---|---|",
    ]
    for sigma in sigmas:
        noisy = [add_gaussian(image, sigma, seed=1000 + i) for i, image in enumerate(images)]
        for name, estimator in ESTIMATORS.items():
            begun = time.perf_counter()
            errors = 100 * (np.array([estimator(image) for image in noisy]) / sigma - 1)
            each = 1000 * (time.perf_counter() - begun) / len(images)
            sizes = np.abs(errors)
            figures = f"{errors.mean():+.1f} | {sizes.mean():.1f} | {sizes.max():.1f} | {each:.0f}"
            lines.append(f"| {sigma:g} | {name} | {figures} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How well the noise level is estimated.")
    parser.add_argument(
        "--data", type=Path, required=True, help="folder of clean images, searched recursively"
    )
    parser.add_argument(
        "--sigma", type=float, nargs="+", default=[5, 10, 25, 50], help="noise levels, 0..255"
    )
    arguments = parser.parse_args()
    files = sorted(path for path in arguments.data.rglob("*") if path.suffix.lower() in FILE_TYPES)
    if not files:
        parser.error(f"no images in {arguments.data}")
    print(table([read_grey(path) for path in files], arguments.sigma))


if __name__ == "__main__":
    main()
