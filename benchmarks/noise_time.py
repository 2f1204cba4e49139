"""Time to estimate and check the noise, compared with denoising: VNLR, profile fast, 512x512 pixels.

    python benchmarks/noise_time.py

Needs no data: scikit-image's camera and astronaut with added noise. Prints the shortest of some calls, and
pass or FAIL: estimating takes at most 20 % of the time of denoising, and the check of the noise, made when a
call asks for `info`, at most 10 %.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from skimage import data

import vnlem
from vnlem.noise import predictive_check

MOST, MOST_CHECK = 0.2, 0.1


def main() -> None:
    """Parse the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="calls of each")
    parser.add_argument("--workers", type=int, default=None, help="threads of the denoising")
    options = parser.parse_args()
    failed = False
    titles = f"{'estimate s':>10s} {'check s':>10s} {'denoise s':>10s} {'estimate':>9s} {'check':>6s}"
    print(f"{'image':30s} {titles}")
    for name, noisy in images().items():
        axis = -1 if noisy.ndim == 3 else None
        model = vnlem.estimate_noise(noisy, channel_axis=axis)
        estimate = partial(vnlem.estimate_noise, noisy, channel_axis=axis)
        denoise = partial(
            vnlem.denoise,
            noisy,
            noise_model=model,
            channel_axis=axis,
            profile="fast",
            workers=options.workers,
        )
        estimating, denoising = shortest(options.repeats, estimate), shortest(options.repeats, denoise)
        result = denoise()
        checking = shortest(options.repeats, partial(predictive_check, noisy, result, model, axis))
        shares = estimating / denoising, checking / denoising
        good = shares[0] <= MOST and shares[1] <= MOST_CHECK
        failed |= not good
        seconds = f"{estimating:10.3f} {checking:10.3f} {denoising:10.3f}"
        relative = f"{100 * shares[0]:8.1f}% {100 * shares[1]:5.1f}%"
        print(f"{name:30s} {seconds} {relative}  {'pass' if good else 'FAIL'}", flush=True)
    sys.exit(1 if failed else 0)


def images() -> dict[str, np.ndarray]:
    """Noise of several kinds on images of 512x512 pixels."""
    rng = np.random.default_rng(1000)
    grey, colour = data.camera().astype(float), data.astronaut().astype(float)
    return {
        "grey, white noise, sigma 25": grey + rng.normal(0, 25, grey.shape),
        "grey, photon noise, gain 4": 4.0 * rng.poisson(grey / 4),
        "colour, white noise, sigma 25": colour + rng.normal(0, 25, colour.shape),
    }


def shortest(repeats: int, call: Callable[[], Any]) -> float:
    """Seconds of the shortest of some calls, after a warm-up call."""
    call()
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


if __name__ == "__main__":
    main()
