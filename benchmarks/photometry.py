"""Fluxes of simulated stars in circular apertures, before and after denoising: a Markdown table.

Fields of 25 stars on an even sky with photon noise; the gain is given. SNR is that of a star in an aperture
of 1.5 FWHM. Bias is the mean error of the fluxes, minus the part that the noise of these fields explains;
spread is the standard deviation of the error. Both in percent of the flux.

python benchmarks/photometry.py [--fields 16] [--snr 10 20 50]
"""

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vnlem

Image = NDArray[np.float64]
SKY, SIDE = 100.0, 192  # photons of a pixel, pixels
APERTURES = (1.5, 3.0)  # radius in FWHM


def star_field(seed: int, fwhm: float, ratio: float) -> tuple[Image, Image, Image]:
    """Clean and noisy image, and the places of the stars."""
    rng = np.random.default_rng(seed)
    width, area = fwhm / 2.3548, np.pi * (1.5 * fwhm) ** 2
    y, x = np.mgrid[:SIDE, :SIDE]
    places = np.mgrid[24:180:36, 24:180:36].reshape(2, -1).T + rng.uniform(-4, 4, (25, 2))
    # The flux for this ratio to its Poisson noise, including that of the sky in the aperture.
    flux = (ratio**2 + (ratio**4 + 4 * ratio**2 * SKY * area) ** 0.5) / 2
    clean = np.full((SIDE, SIDE), SKY)
    for row, column in places:
        squared = (y - row) ** 2 + (x - column) ** 2
        clean += flux / (2 * np.pi * width**2) * np.exp(-squared / (2 * width**2))
    return clean, rng.poisson(clean).astype(np.float64), places


def fluxes(image: Image, places: Image, radius: float) -> Image:
    y, x = np.mgrid[:SIDE, :SIDE]
    return np.array([np.sum(image[np.hypot(y - row, x - column) < radius] - SKY) for row, column in places])


def errors(fwhm: float, ratio: float, n_fields: int, **options: Any) -> dict[float, Image]:
    """Relative errors of the fluxes before and after denoising, (2, stars), by aperture."""
    found: dict[float, list[list[Image]]] = {factor: [] for factor in APERTURES}
    for seed in range(n_fields):
        clean, noisy, places = star_field(seed, fwhm, ratio)
        denoised = np.asarray(vnlem.denoise(noisy, gain=1.0, **options))
        for factor, own in found.items():
            true, *measured = (fluxes(image, places, factor * fwhm) for image in (clean, noisy, denoised))
            own.append([(values - true) / true for values in measured])
    return {factor: np.concatenate(own, axis=1) for factor, own in found.items()}


def bias_of(before: Image, after: Image) -> float:
    """The mean error after denoising, minus the part that the noise of these fields explains."""
    slope = np.cov(before, after)[0, 1] / before.var(ddof=1)
    return float(np.mean(after - slope * before))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fields", type=int, default=16)
    parser.add_argument("--snr", type=float, nargs="+", default=[10.0, 20.0, 50.0])
    options = parser.parse_args()
    print(
        "| SNR | FWHM | radius | spread before | bias, spread | with aim='flux' |\n|---|---|---|---|---|---|"
    )
    for ratio in options.snr:
        for fwhm in (2.0, 3.0, 4.0):
            runs = [errors(fwhm, ratio, options.fields, aim=aim) for aim in ("fidelity", "flux")]
            for factor in APERTURES:
                shown = []
                for before, after in (run[factor] for run in runs):
                    shown.append(f"{100 * bias_of(before, after):+.2f}, {100 * after.std():.2f}")
                spread = 100 * runs[0][factor][0].std()
                row = f"{ratio:g} | {fwhm:g} | {factor:g} FWHM | {spread:.2f} | {' | '.join(shown)}"
                print(f"| {row} |", flush=True)


if __name__ == "__main__":
    main()
