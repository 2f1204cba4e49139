"""How well the noise is estimated on a folder of clean images: a Markdown table.

    python benchmarks/noise_estimate.py --data path/to/set12
    python benchmarks/noise_estimate.py --data path/to/set12 --kinds

The level of white noise beside another estimator's; with `--kinds`, for added noise of every kind, how often
`estimate_noise` calls it by its name, and the error of the standard deviation that it gives at the
brightnesses of the image: the mean and the largest over the images, in per cent.
Noise comes from ``numpy.random.default_rng(1000 + i)`` for the i-th file in sorted order and is not clipped.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from skimage.restoration import estimate_sigma as wavelet_sigma

from vnlem.bench import datasets
from vnlem.noise import add_gaussian, estimate_noise, estimate_sigma

FILE_TYPES = {".png", ".jpg", ".jpeg", ".tif", ".tiff"}
ESTIMATORS: dict[str, Callable[[NDArray[np.float64]], float]] = {
    "vnlem": estimate_sigma,
    "scikit-image (wavelet MAD)": wavelet_sigma,
}


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


def kinds_table(images: list[NDArray[np.float64]]) -> str:
    """How often each kind of noise is recognised, and errors of its standard deviation in per cent."""
    lines = ["| noise | kind recognised | mean error % | largest % |", "|---|---|---|---|"]
    for name, (expected, deviation, add) in KINDS.items():
        right, errors = 0, []
        for number, clean in enumerate(images):
            model = estimate_noise(add(clean, np.random.default_rng(1000 + number)))
            right += model.kind == expected
            at = np.quantile(clean, [0.1, 0.5, 0.9])
            errors.append(100 * np.mean(np.abs(np.sqrt(model.variance(at)) / deviation(at) - 1)))
        figures = f"{right} of {len(images)} | {np.mean(errors):.1f} | {np.max(errors):.1f}"
        lines.append(f"| {name} | {figures} |")
    return "\n".join(lines)


def _shared(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    noise = ndimage.gaussian_filter(rng.standard_normal(shape), 0.8, mode="wrap")
    return noise / noise.std()


def _bent(x: np.ndarray) -> np.ndarray:
    return 4 + 14 * np.sin(np.pi * np.clip(x, 0, 255) / 255)


Kind = tuple[str, Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray, np.random.Generator], np.ndarray]]
KINDS: dict[str, Kind] = {
    f"white, sigma {s}": (
        "white",
        lambda x, s=s: np.full(x.shape, float(s)),
        lambda c, rng, s=s: c + rng.normal(0, s, c.shape),
    )
    for s in (10, 25, 50)
}
KINDS["photon noise, gain 4"] = (
    "poisson-gaussian",
    lambda x: np.sqrt(4 * x),
    lambda c, rng: 4.0 * rng.poisson(c / 4),
)
KINDS["photon and read noise"] = (
    "poisson-gaussian",
    lambda x: np.sqrt(3 * x + 64),
    lambda c, rng: 3.0 * rng.poisson(c / 3) + rng.normal(0, 8, c.shape),
)
KINDS["bent curve"] = ("signal-dependent", _bent, lambda c, rng: c + _bent(c) * rng.standard_normal(c.shape))
KINDS["correlated, sigma 20"] = (
    "correlated",
    lambda x: np.full(x.shape, 20.0),
    lambda c, rng: c + 20 * _shared(c.shape, rng),
)
KINDS["photon noise, correlated"] = (
    "poisson-gaussian correlated",
    lambda x: np.sqrt(6 * x + 20),
    lambda c, rng: c + np.sqrt(6 * c + 20) * _shared(c.shape, rng),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How well the noise is estimated.")
    parser.add_argument(
        "--data", type=Path, required=True, help="folder of clean images, searched recursively"
    )
    parser.add_argument(
        "--sigma", type=float, nargs="+", default=[5, 10, 25, 50], help="noise levels, 0..255"
    )
    parser.add_argument("--kinds", action="store_true", help="noise of every kind")
    arguments = parser.parse_args()
    files = sorted(path for path in arguments.data.rglob("*") if path.suffix.lower() in FILE_TYPES)
    if not files:
        parser.error(f"no images in {arguments.data}")
    images = [datasets.read_grey(str(path)) for path in files]
    print(kinds_table(images) if arguments.kinds else table(images, arguments.sigma))


if __name__ == "__main__":
    main()
