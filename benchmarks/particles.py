"""Simulated particles of a known volume: one by one, together, and two filters, as a Markdown table.

Projections at random angles, each with its own contrast transfer function and white noise. The low-pass
has the best width, the Wiener filter the true noise level. SNR is the ratio of variances; FRC is the
frequency (cycles per pixel) up to which the mean ring correlation with the clean projections is at least 0.5.
FRC of halves is that for a correlation of 1/7 between two noisy sets of these projections, denoised apart.

python benchmarks/particles.py DATA/formats/clean70SRibosome_vol_65p.mrc [--images 60] [--snr 0.05 0.1 0.3 1]
"""

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import fft, ndimage
from scipy.spatial.transform import Rotation

import vnlem
from vnlem import io
from vnlem.metrics import frc, snr

PIXEL = 5.0  # angstrom
VOLTAGE, ABERRATION, AMPLITUDE = 300e3, 2.7e7, 0.07  # volt, angstrom, share of amplitude contrast
DEFOCUS = (1e4, 2.5e4)  # angstrom
Stack = NDArray[np.float64]


def transfer(side: int, defocus: float) -> Stack:
    """The contrast transfer function of an electron microscope."""
    wavelength = 12.2639 / np.sqrt(VOLTAGE + 0.97845e-6 * VOLTAGE**2)
    squared = np.add.outer(fft.fftfreq(side, PIXEL) ** 2, fft.fftfreq(side, PIXEL) ** 2)
    phase = np.pi * wavelength * squared * (defocus - 0.5 * wavelength**2 * ABERRATION * squared)
    return np.asarray(np.sin(phase + np.arcsin(AMPLITUDE)))


def projections(volume: Stack, count: int, rng: np.random.Generator) -> Stack:
    """Projections of the volume from all sides, with variance 1 over all of them."""
    centre = (np.array(volume.shape) - 1) / 2
    found = []
    for turn in Rotation.random(count, rng).as_matrix():
        image = ndimage.affine_transform(volume, turn, centre - turn @ centre, order=1).sum(axis=0)
        optics = transfer(len(image), rng.uniform(*DEFOCUS))
        found.append(fft.ifft2(fft.fft2(image - image.mean()) * optics).real)
    clean = np.stack(found)
    return clean / clean.std()


def radius(side: int) -> Stack:
    """Frequency of every Fourier coefficient, in cycles per pixel."""
    return np.asarray(np.hypot.outer(fft.fftfreq(side), fft.fftfreq(side)))


def low_pass(noisy: Stack, clean: Stack) -> Stack:
    """The Gaussian filter of the best width, by the clean images."""
    squared = radius(noisy.shape[-1]) ** 2
    tried = [
        fft.ifft2(fft.fft2(noisy) * np.exp(-squared / (2 * width**2))).real
        for width in np.arange(0.01, 0.3, 0.01)
    ]
    return min(tried, key=lambda images: float(np.mean((images - clean) ** 2)))


def wiener(noisy: Stack, sigma: float) -> Stack:
    """One filter for all images, from their mean power on rings and the known noise."""
    side = noisy.shape[-1]
    ring = np.rint(radius(side) * side).astype(int)
    power = np.mean(np.abs(fft.fft2(noisy)) ** 2, axis=0) / side**2
    mean = np.bincount(ring.ravel(), power.ravel()) / np.bincount(ring.ravel())
    return np.asarray(fft.ifft2(fft.fft2(noisy) * np.clip(1 - sigma**2 / mean[ring], 0, 1)).real)


def agreement(images: Stack, others: Stack, threshold: float) -> float:
    """The frequency up to which images agree with others, starting where they agree best."""
    curves = [frc(one, other) for one, other in zip(images, others, strict=True)]
    mean = np.mean([curve.correlation for curve in curves], axis=0)
    best = int(np.argmax(mean))
    above = mean[best:] >= threshold
    agreed = above.size if above.all() else int(np.argmin(above))
    return float(curves[0].frequency[best + agreed - 1]) if agreed else 0.0


def results(noisy: Stack, clean: Stack, sigma: float) -> dict[str, Callable[[], Stack]]:
    """What is compared, as functions."""

    def one_by_one(**options: str) -> Stack:
        return np.stack([vnlem.denoise(image, sigma, **options) for image in noisy])

    return {
        "noisy": lambda: noisy,
        "low-pass, best width": lambda: low_pass(noisy, clean),
        "Wiener, known noise": lambda: wiener(noisy, sigma),
        "VNLR, one by one": one_by_one,
        "VNLR, one by one, so2": lambda: one_by_one(group="so2"),
        "VNLR, together": lambda: vnlem.denoise(noisy, sigma, axes="NYX"),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("volume", type=Path)
    parser.add_argument("--images", type=int, default=60)
    parser.add_argument("--snr", type=float, nargs="+", default=[0.05, 0.1, 0.3, 1.0])
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # about images that may be only noise
    rng = np.random.default_rng(0)
    clean = projections(io.read(options.volume).pixels.astype(float), options.images, rng)

    def draw(sigma: float) -> Stack:
        return rng.normal(0, sigma, clean.shape)

    print("| SNR | images | result, dB | FRC | FRC of halves | s |\n|---|---|---|---|---|---|")
    for level in options.snr:
        sigma = level**-0.5
        first, second = (results(clean + draw(sigma), clean, sigma) for _ in range(2))
        for name, make in first.items():
            begun = time.perf_counter()
            images = make()
            took = time.perf_counter() - begun
            halves = agreement(images, second[name](), 1 / 7)
            quality = f"{snr(clean, images):.2f} | {agreement(images, clean, 0.5):.3f} | {halves:.3f}"
            print(f"| {level:g} | {name} | {quality} | {took:.1f} |", flush=True)


if __name__ == "__main__":
    main()
