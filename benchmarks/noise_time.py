"""Time of estimating and checking the noise beside that of denoising: VNLR, profile fast, 512x512 pixels.

    python benchmarks/noise_time.py

Needs no data: scikit-image's camera and astronaut with added noise. Prints the shortest of some calls, and
pass or FAIL: estimating, and the check of the noise that a call with return_info makes, take at most 20 % of
denoising.
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

MOST = 0.2


def main() -> None:
    """Parse the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="calls of each")
    parser.add_argument("--workers", type=int, default=None, help="threads of the denoising")
    options = parser.parse_args()
    failed = False
    print(f"{'image':30s} {'estimate s':>10s} {'check s':>10s} {'denoise s':>10s} {'share':>6s}")
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
        share = (estimating + checking) / denoising
        failed |= share > MOST
        words = "FAIL" if share > MOST else "pass"
        seconds = f"{estimating:10.3f} {checking:10.3f} {denoising:10.3f}"
        print(f"{name:30s} {seconds} {100 * share:5.1f}%  {words}", flush=True)
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
    """Seconds of the shortest of some calls, after one that is not counted."""
    call()
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


if __name__ == "__main__":
    main()
