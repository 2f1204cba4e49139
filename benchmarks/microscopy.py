"""Real microscope noise: the Poisson-Gaussian model beside white noise, one frame against a long average.

References were stretched apart from the noisy frames, so a frame is compared with a * reference + b
(PAIRS.csv). White noise gets its sigma twice: estimated from the frame, and the true standard deviation of
frame - reference, which a user does not have. Prints PSNR and SSIM per pair, the means, and pass or FAIL.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

import vnlem


def main() -> None:
    """Parse the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with microscopy/PAIRS.csv")
    parser.add_argument("--profile", default="balanced", choices=("quality", "balanced", "fast"))
    parser.add_argument("--size", type=int, default=None, help="cut the top left square of this size")
    options = parser.parse_args()
    folder = options.data / "microscopy"
    scores = []
    titles = ("white, estimated", "white, true sigma", "Poisson-Gaussian")
    print(f"{'pair':14s} {'noisy':>6s} " + "".join(f"{title:>18s}" for title in titles))
    with (folder / "PAIRS.csv").open() as file:
        for row in csv.DictReader(file):
            cut = (slice(options.size), slice(options.size))
            noisy = vnlem.io.read(folder / f"{row['stem']}_noisy.png").pixels[cut].astype(float)
            reference = vnlem.io.read(folder / f"{row['stem']}_ref.png").pixels[cut].astype(float)
            clean = float(row["a"]) * reference + float(row["b"])
            arguments = {"method": "vnlr", "profile": options.profile}
            results = [
                vnlem.denoise(noisy, **arguments),
                vnlem.denoise(noisy, float(np.std(noisy - clean)), **arguments),
                vnlem.denoise(noisy, noise_model="poisson-gaussian", **arguments),
            ]
            measures = [measure(clean, np.asarray(result)) for result in results]
            scores.append(measures)
            columns = "".join(f"{psnr:11.2f} {ssim:.4f}" for psnr, ssim in measures)
            print(f"{row['stem']:14s} {measure(clean, noisy)[0]:6.2f} {columns}", flush=True)
    means = np.mean(scores, axis=0)
    print(f"{'mean':21s} " + "".join(f"{psnr:11.2f} {ssim:.4f}" for psnr, ssim in means))
    good = bool((means[2] > means[0]).all())
    print(f"{'pass' if good else 'FAIL'}  Poisson-Gaussian above white noise in mean PSNR and SSIM")
    sys.exit(0 if good else 1)


def measure(clean: np.ndarray, estimate: np.ndarray) -> tuple[float, float]:
    """PSNR and SSIM on 0..255."""
    return vnlem.metrics.psnr(clean, estimate, 255), vnlem.metrics.ssim(clean, estimate, 255)


if __name__ == "__main__":
    main()
