"""Golden quality: what users call, on small images made here, and the PSNR that each call reaches.

    python tests/golden.py              print the frozen values, today's and their differences
    python tests/golden.py --renew      the same, and freeze today's values in golden.json

An intended change of a result comes with a renewed golden.json; `only` names a part of the cases.
"""

import argparse
import json
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage
from skimage import data

import vnlem
from vnlem.bench import phantoms
from vnlem.registry import METHODS, methods_with

WITH_PAPER_PRESET = methods_with(lambda method: method.has_paper_preset)

FROZEN = Path(__file__).with_name("golden.json")
TOLERANCE = 0.02  # decibels

Clean = Any  # an array, or a list of arrays


@dataclass(frozen=True)
class Case:
    """A clean image, its noise, and the call that removes the noise."""

    clean: Callable[[], Clean]
    noise: Callable[[np.ndarray, np.random.Generator], np.ndarray]
    options: dict[str, Any] = field(default_factory=dict)
    denoise: Callable[..., Any] = lambda noisy, options: vnlem.denoise(noisy, **options)
    cut: tuple[slice, ...] = ()  # the part that is returned

    def psnr(self) -> float:
        """Of all pixels, in decibels; the peak is 255 for any image."""
        clean, rng = self.clean(), np.random.default_rng(7)
        parts = clean if isinstance(clean, list) else [clean]
        noisy = [self.noise(part, rng) for part in parts]
        found = self.denoise(noisy if isinstance(clean, list) else noisy[0], self.options)
        found = found if isinstance(clean, list) else [found]
        errors = [np.ravel(a - b[self.cut]) for a, b in zip(found, parts, strict=True)]
        return float(10 * np.log10(255**2 / np.mean(np.concatenate(errors) ** 2)))


# Scenes.
@cache
def camera(size: int = 144) -> np.ndarray:
    return data.camera()[150 : 150 + size, 170 : 170 + size].astype(float)


@cache
def small_camera() -> np.ndarray:
    return data.camera()[180:244, 190:254].astype(float)


@cache
def moon() -> np.ndarray:
    return data.moon()[100:292, 200:392].astype(float)


@cache
def cells(size: int = 128) -> np.ndarray:
    """Discs on a background of zero."""
    clean = phantoms.discs(5, 18, 3, seed=1, size=size)
    return 40 * (clean - clean.min())


@cache
def small_cells() -> np.ndarray:
    return cells(64)


@cache
def astronaut() -> np.ndarray:
    return data.astronaut()[40:168, 160:288].astype(float)


@cache
def small_astronaut() -> np.ndarray:
    return data.astronaut()[60:124, 190:254].astype(float)


@cache
def movie() -> np.ndarray:
    """A view that moves over the cells."""
    return np.stack([cells()[3 * t : 96 + 3 * t, 2 * t : 96 + 2 * t] for t in range(5)])


@cache
def colour_movie() -> np.ndarray:
    """A view that moves over a colour photograph."""
    whole = data.astronaut()[30:190, 150:310].astype(float)
    return np.stack([whole[4 * t : 96 + 4 * t, 3 * t : 96 + 3 * t] for t in range(5)])


@cache
def volume() -> np.ndarray:
    """Balls in slices."""
    z, y, x = np.mgrid[:6, :96, :96]
    balls = [
        (z - 2.5) ** 2 * 4 + (y - a) ** 2 + (x - b) ** 2 for a in range(9, 96, 20) for b in range(12, 96, 19)
    ]
    return 60 + 120 * ndimage.gaussian_filter((np.min(balls, axis=0) < 45).astype(float), (0, 0.7, 0.7))


@cache
def particles() -> list[np.ndarray]:
    """A set: images of different sizes with the same kind of content."""
    return [100 + 40 * phantoms.half_discs(6, 16, 2, seed=size, size=size) for size in (96, 88, 80)]


@cache
def signal() -> np.ndarray:
    return np.repeat(np.random.default_rng(3).uniform(0, 200, 32), 32)


# Noise.
def white(sigma: float) -> Callable[..., np.ndarray]:
    return lambda clean, rng: clean + rng.normal(0, sigma, clean.shape)


def as_bytes(clean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.clip(np.rint(white(20)(clean, rng)), 0, 255).astype(np.uint8)


def photons(gain: float, offset: float = 0.0, read: float = 0.0) -> Callable[..., np.ndarray]:
    """A camera that counts photons: integers, as floats."""

    def noise(clean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        counts = gain * rng.poisson(clean / gain) + rng.normal(0, read, clean.shape)
        return np.rint(counts + offset) - offset

    return noise


def counts(clean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Photons, in the integers of a detector."""
    return rng.poisson(clean).astype(np.uint16)


def correlated(sigma: float, width: float = 0.8) -> Callable[..., np.ndarray]:
    def noise(clean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        shared = ndimage.gaussian_filter(rng.standard_normal(clean.shape), width, mode="wrap")
        return clean + sigma * shared / shared.std()

    return noise


def by_channel(clean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return clean + rng.standard_normal(clean.shape) * [8, 16, 24]


def magnitudes(clean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return vnlem.noise.add_rician(clean, 15.0, seed=rng)


def speckle(clean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return vnlem.noise.add_speckle(clean, 2.0, seed=rng)


# Calls other than `denoise(noisy)`.
REGION = (slice(16, 128), slice(8, 120))


def region_of_a_store(noisy: np.ndarray, options: dict[str, Any]) -> np.ndarray:
    """Part of a zarr array, in memory for a few blocks, through files."""
    import zarr

    with tempfile.TemporaryDirectory() as folder:
        source = zarr.create_array(f"{folder}/in.zarr", shape=noisy.shape, chunks=(48, 48), dtype=noisy.dtype)
        source[:] = noisy
        region = ",".join(f"{axis}={s.start}:{s.stop}" for axis, s in zip("yx", REGION, strict=True))
        vnlem.denoise_large(f"{folder}/in.zarr", f"{folder}/out.zarr", region=region, **options)
        return np.asarray(zarr.open_array(f"{folder}/out.zarr", mode="r")[:])


def blind() -> dict[str, Case]:
    """`denoise(image)` as the README calls it, on every kind of image and noise."""
    colour, stack = {"channel_axis": -1}, {"axes": "TYX"}
    return {
        "white": Case(camera, white(20)),
        "little white noise": Case(camera, white(3)),
        "much white noise, three scales": Case(moon, white(40)),
        "white, cells": Case(cells, white(30)),
        "bytes": Case(camera, as_bytes),
        "photons": Case(camera, photons(5, offset=40, read=3)),
        "photons in integers": Case(camera, counts),
        "zero background": Case(cells, photons(8, read=1)),
        "zero background, few photons": Case(cells, photons(30)),
        "correlated": Case(camera, correlated(15)),
        "correlated, cells": Case(cells, correlated(15, 1.2)),
        "colour": Case(astronaut, white(20), colour),
        "colour, a noise per channel": Case(astronaut, by_channel, colour),
        "colour, photons": Case(astronaut, photons(5), colour),
        "movie": Case(movie, white(30), stack),
        "movie, photons": Case(movie, photons(10, offset=20, read=2), stack),
        "colour movie": Case(colour_movie, white(20), {"axes": "TYXC"}),
        "colour movie, photons": Case(colour_movie, photons(5, offset=20, read=2), {"axes": "TYXC"}),
        "colour movie, sigma told": Case(colour_movie, white(20), {"axes": "TYXC", "sigma": 20.0}),
        "movie, sigma told": Case(movie, white(30), {"axes": "TYX", "sigma": 30.0}),
        "volume": Case(volume, white(25), {"axes": "ZYX"}),
        "set": Case(particles, white(35)),
        "region of a zarr": Case(camera, white(20), denoise=region_of_a_store, cut=REGION),
        "signal": Case(signal, white(20), {"method": "nlm"}),
        "magnitudes, found": Case(cells, magnitudes),
        "magnitudes, told": Case(volume, magnitudes, {"noise_model": "rician", "axes": "ZYX"}),
        "speckle of two looks": Case(camera, speckle, {"noise_model": "speckle", "looks": 2}),
    }


def methods() -> dict[str, Case]:
    """Each method's default and paper preset, blind."""
    presets = [(m, "auto") for m in METHODS if m != "vnlr"] + [(m, "paper") for m in WITH_PAPER_PRESET]
    scenes = {"white": (camera_for_all, white(20)), "zero background": (cells_for_all, photons(8, read=1))}
    return {
        f"{method} {preset}, {name}": Case(*scene, {"method": method, "preset": preset})
        for method, preset in presets
        for name, scene in scenes.items()
    }


@cache
def camera_for_all() -> np.ndarray:
    return camera()[:96, :96]


@cache
def cells_for_all() -> np.ndarray:
    return cells()[:96, :96]


def told() -> dict[str, Case]:
    """Every method with its options and sigma given, on 64 x 64 pixels."""
    grey: list[dict[str, Any]] = [
        {},
        *({"profile": name} for name in ("fast", "quality", "best")),
        *({"group": name} for name in ("identity", "c4", "similarity", "so2")),
        {"aim": "perception"},
        *({"method": name} for name in METHODS if name != "vnlr"),
        *({"method": name, "preset": "paper"} for name in WITH_PAPER_PRESET),
        {"method": "vnlem", "adapt": False},
    ]
    colour: list[dict[str, Any]] = [
        {},
        {"profile": "fast"},
        {"group": "so2"},
        *({"method": name} for name in METHODS if name not in ("vnlr", "nlpr")),
    ]
    rows = [(name, scene, options, {}) for name, scene in GREY.items() for options in grey]
    rows += [("astronaut", small_astronaut, options, {"channel_axis": -1}) for options in colour]
    return {
        f"{name}, {_text(options)}": Case(scene, white(20), {"sigma": 20.0, **options, **more})
        for name, scene, options, more in rows
    }


GREY = {"camera": small_camera, "cells": small_cells}


def _text(options: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in options.items()) or "default"


CASES = {
    f"{kind}: {name}": case
    for kind, cases in (("blind", blind()), ("method", methods()), ("told", told()))
    for name, case in cases.items()
}


def frozen() -> dict[str, float]:
    """Decibels by the name of the case."""
    found: dict[str, float] = json.loads(FROZEN.read_text())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("only", nargs="?", default="", help="cases whose name contains this")
    parser.add_argument("--renew", action="store_true", help="freeze what is measured")
    options = parser.parse_args()
    old = frozen() if FROZEN.exists() else {}
    new = {name: old[name] for name in CASES if name in old}
    warnings.simplefilter("ignore")
    for name, case in CASES.items():
        if options.only not in name:
            continue
        new[name] = round(case.psnr(), 3)
        before = f"{old[name]:8.3f} {new[name] - old[name]:+8.3f}" if name in old else f"{'new':>17}"
        print(f"{new[name]:8.3f} {before}  {name}", flush=True)
    if options.renew:
        FROZEN.write_text(json.dumps({name: new[name] for name in CASES if name in new}, indent=2) + "\n")


if __name__ == "__main__":
    main()
