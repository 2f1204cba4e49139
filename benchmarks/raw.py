"""Mosaics of clean colour pictures with photon and read noise, denoised in several ways: a Markdown table.

PSNR (peak 255) of the colour picture after one demosaicking: Malvar's filters for Bayer, interpolated
differences from green for X-Trans. "colour=True" needs no demosaicking. "given" knows gain and read noise;
the others estimate them.

python benchmarks/raw.py DATA/colour/*.png DATA/movies_colour/*.tif [--side 256] [--pattern X-Trans]
"""

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import vnlem
from vnlem import io
from vnlem.io.demosaic import demosaic
from vnlem.pipeline.mosaic import check_pattern

Image = NDArray[np.float64]
LEVELS = {"light": (1.5, 4.0), "strong": (4.0, 8.0)}  # gain and read noise, in grey levels


def sampled(image: Image, pattern: tuple[str, ...]) -> Image:
    """The mosaic that a sensor sees of an image."""
    cell = np.array([["RGB".index(colour) for colour in row] for row in pattern])
    rows, columns = (-(-length // len(cell)) for length in image.shape[:2])
    which = np.tile(cell, (rows, columns))[: image.shape[0], : image.shape[1]]
    return np.take_along_axis(image, which[..., None], axis=2)[..., 0]


def in_cells(mosaic: Image, side: int, function: Callable[[Image], Image]) -> Image:
    """A function of the planes (places of a cell, H, W) of a mosaic."""
    places = [(y, x) for y in range(side) for x in range(side)]
    planes = function(np.stack([mosaic[y::side, x::side] for y, x in places]))
    result = np.empty_like(mosaic)
    for (y, x), plane in zip(places, planes, strict=True):
        result[y::side, x::side] = plane
    return result


def psnr(image: Image, clean: Image) -> float:
    return float(-10 * np.log10(np.mean((np.clip(image, 0, 255) - clean) ** 2) / 255**2))


def results(
    noisy: Image, pattern: tuple[str, ...], camera: dict[str, float]
) -> dict[str, Callable[[], Image]]:
    """What is compared: functions that make colour images."""
    side = len(pattern)

    def colour(mosaic: Image) -> Image:
        return demosaic(mosaic, pattern)

    def given(plane: Image, **options: int) -> Image:
        return np.asarray(vnlem.denoise(plane, noise_model="poisson-gaussian", **camera, **options))

    found = {
        "noisy": lambda: colour(noisy),
        "demosaic, then default": lambda: np.asarray(vnlem.denoise(colour(noisy), channel_axis=-1)),
        "planes of a cell, one by one, given": lambda: colour(
            in_cells(noisy, side, lambda planes: np.stack([given(plane) for plane in planes]))
        ),
        "planes of a cell as channels, given": lambda: colour(
            in_cells(noisy, side, lambda planes: given(planes, channel_axis=0))
        ),
        "denoise_raw, given": lambda: colour(np.asarray(vnlem.denoise_raw(noisy, pattern, **camera))),
        "denoise_raw": lambda: colour(np.asarray(vnlem.denoise_raw(noisy, pattern))),
        "denoise_raw, colour=True, given": lambda: np.asarray(
            vnlem.denoise_raw(noisy, pattern, colour=True, **camera)
        ),
        "denoise_raw, colour=True": lambda: np.asarray(vnlem.denoise_raw(noisy, pattern, colour=True)),
    }
    if side > 2:  # planes of a sixth of the size show nothing
        del found["planes of a cell, one by one, given"], found["planes of a cell as channels, given"]
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pictures", type=Path, nargs="+")
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--pattern", default="RGGB")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    pattern = check_pattern(options.pattern)
    side = options.side - options.side % len(pattern)
    print("| noise | result | mean PSNR, dB | worst gain over noisy |\n|---|---|---|---|")
    for level, (gain, read_noise) in LEVELS.items():
        found: dict[str, list[float]] = {}
        for number, path in enumerate(options.pictures):
            page = next(io.read(path).pages()).astype(np.float64)
            clean = page[:side, :side]
            mosaic = sampled(clean, pattern)
            rng = np.random.default_rng(number)
            noisy = gain * rng.poisson(mosaic / gain) + rng.normal(0, read_noise, mosaic.shape)
            camera = {"gain": gain, "read_noise": read_noise}
            for name, make in results(noisy, pattern, camera).items():
                found.setdefault(name, []).append(psnr(make(), clean))
        for name, values in found.items():
            worst = min(np.subtract(values, found["noisy"]))
            print(f"| {level} | {name} | {np.mean(values):.2f} | {worst:+.2f} |", flush=True)


if __name__ == "__main__":
    main()
