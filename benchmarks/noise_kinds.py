"""Accuracy of `vnlem.estimate_noise` on added noise of every kind.

Prints, for each kind, how often it is recognised, and the error of the estimated standard deviation at the
brightnesses of the image: the mean and the largest over the images, in per cent.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import ndimage

import vnlem


def main() -> None:
    """Parse the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of clean grey images")
    parser.add_argument("--most", type=int, default=12, help="the most images to use")
    options = parser.parse_args()
    images = [
        vnlem.io.read(path).pixels.astype(float)
        for path in sorted(options.data.glob("*.png"))[: options.most]
    ]
    print(f"{'noise':34s} {'called so':>10s} {'error %':>9s} {'largest':>9s}")
    for name, (expected, deviation, add) in KINDS.items():
        right, errors = 0, []
        for number, clean in enumerate(images):
            model = vnlem.estimate_noise(add(clean, np.random.default_rng(1000 + number)))
            right += model.kind == expected
            at = np.quantile(clean, [0.1, 0.5, 0.9])
            errors.append(np.mean(np.abs(np.sqrt(model.variance(at)) / deviation(at) - 1)))
        share = f"{right:4d} of {len(images):2d}"
        print(f"{name:34s} {share} {100 * np.mean(errors):9.1f} {100 * np.max(errors):9.1f}")


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


if __name__ == "__main__":
    main()
