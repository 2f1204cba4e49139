"""VNLR on colour images beside CBM3D, the true sigma given to both.

python benchmarks/colour.py --data DATA [--folder colour] [--profiles balanced quality] [--sigmas 15 25 50]

Noise: numpy.random.default_rng(1000 + i) for the i-th file of the folder in sorted order, independent in the
channels, not clipped; results are clipped to 0..255 for the PSNR over all channels. CBM3D is `bm3d_rgb` of
the package bm3d; where that is missing, its column is left out. The first line names a hash of the sources.
"""

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import vnlem
from vnlem import metrics
from vnlem.bench.sources import sources_hash

LEAST_LEAD = {15: 0.25, 25: 0.28, 50: 0.32}  # of "balanced" over CBM3D, in dB
Denoiser = Callable[[np.ndarray, float], np.ndarray]


def vnlr(profile: str) -> Denoiser:
    """VNLR with a profile, as a user calls it."""
    return lambda noisy, sigma: np.asarray(vnlem.denoise(noisy, sigma, channel_axis=-1, profile=profile))


def cbm3d(noisy: np.ndarray, sigma: float) -> np.ndarray:
    """The peer, on the scale its documentation asks for."""
    from bm3d import bm3d_rgb

    return 255 * np.asarray(bm3d_rgb(noisy / 255, sigma / 255))


def psnr(path: Path, number: int, sigma: float, denoiser: Denoiser) -> float:
    """PSNR of a denoiser on one image with noise."""
    clean = np.asarray(vnlem.io.read(path).pixels, np.float64)[..., :3]
    noise = np.random.default_rng(1000 + number).standard_normal(clean.shape)
    return metrics.psnr(clean, np.clip(denoiser(clean + sigma * noise, sigma), 0, 255), 255)


def main() -> None:
    """Parse the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folder", default="colour")
    parser.add_argument("--profiles", nargs="+", default=["fast", "balanced", "quality"])
    parser.add_argument("--sigmas", nargs="+", type=int, default=[15, 25, 50])
    given = parser.parse_args()
    paths = sorted((given.data / given.folder).glob("*.png"))
    methods: dict[str, Denoiser] = {f"VNLR {profile}": vnlr(profile) for profile in given.profiles}
    if find_spec("bm3d") is not None:
        methods = {"CBM3D": cbm3d, **methods}
    print(f"{given.folder}, {len(paths)} images, sources {sources_hash()}, mean PSNR in dB")
    print("| sigma | " + " | ".join(methods) + " |")
    for sigma in given.sigmas:
        means = {
            name: np.mean([psnr(path, i, sigma, method) for i, path in enumerate(paths)])
            for name, method in methods.items()
        }
        print(f"| {sigma} | " + " | ".join(f"{value:.2f}" for value in means.values()) + " |", flush=True)
        if {"CBM3D", "VNLR balanced"} <= means.keys() and sigma in LEAST_LEAD:
            lead = means["VNLR balanced"] - means["CBM3D"]
            said = "pass" if lead >= LEAST_LEAD[sigma] else "FAIL"
            print(f"{said}  balanced above CBM3D: {lead:.2f} (at least {LEAST_LEAD[sigma]:.2f})", flush=True)


if __name__ == "__main__":
    main()
