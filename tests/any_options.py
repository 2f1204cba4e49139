"""Options of a random call about the noise and about single pixels, and the options of `denoise_raw`."""

from collections.abc import Callable
from typing import Any

import numpy as np

import vnlem
from vnlem.noise.maps import PixelMaps

REAL_ODD = (0, -1.0, 1e-300, 1e-20, 1e20, 1e300, float("nan"), float("inf"), "1", True, 10**400)
WORDS_ODD = ("", "best", 3, None, ("a", "b"))
ODD_PIXELS = ("all", 3, np.zeros((3, 3)), np.full((2, 2), np.nan), [[1, 2], [3]], {"a": 1})

One = Callable[[Any], Any]


def noise_options(
    size: tuple[int, int], contrast: float, noise: float, rng: np.random.Generator, one: One
) -> dict[str, Any]:
    """What a user may pass about the noise instead of sigma; size: height and width of the image."""
    gain = float(noise**2 / contrast) or contrast
    level = noise or contrast
    told = one(("word", "camera", "model", "maps"))
    if told == "word":
        words = ("gaussian", "poisson-gaussian", "correlated", "field", "rician", "speckle", "auto")
        word = one((*words, one((*WORDS_ODD, vnlem.NoiseModel))))
        found = {"noise_model": word, "lines": one(("auto", "auto", True, False, one(WORDS_ODD)))}
        if word == "rician" or rng.random() < 0.1:
            found["coils"] = one((None, 1, 4, 32, one((0, -1, 1.5, 10**9, "4"))))
        if word == "speckle" or rng.random() < 0.1:
            found["looks"] = one((None, 1.0, 4, 100, one(REAL_ODD)))
            found["domain"] = one((None, "intensity", "amplitude", "log", one(WORDS_ODD)))
        return found
    if told == "model":
        return {"noise_model": _model(size, gain, level, rng, one)}
    if told == "maps":
        maps = {"gain": gain * rng.uniform(0.5, 2.0, size)}
        if rng.random() < 0.5:
            maps["offset"] = contrast * rng.uniform(-0.1, 0.1, size)
        if rng.random() < 0.5:
            maps["read_noise"] = np.where(rng.random(size) < 0.02, np.inf, noise)
        if rng.random() < 0.1:
            maps[one(tuple(maps))] = one((np.full(size, np.nan), np.zeros(size), np.ones((2, 3)), "map"))
        return maps
    found = {"gain": one((gain, gain, 2 * gain, one(REAL_ODD)))}
    if rng.random() < 0.5:
        found["offset"] = one((0.0, 0.1 * contrast, -contrast, one(REAL_ODD)))
    if rng.random() < 0.5:
        found["read_noise"] = one((noise, 0.1 * noise, one(REAL_ODD)))
    return found


def _model(
    size: tuple[int, int], gain: float, level: float, rng: np.random.Generator, one: One
) -> vnlem.NoiseModel:
    model = vnlem.NoiseModel
    field = level * rng.uniform(0.3, 3.0, size)
    kinds: tuple[Callable[[], vnlem.NoiseModel], ...] = (
        lambda: model.white(level),
        lambda: model.camera(gain, read_noise=level),
        lambda: model.camera(gain * rng.uniform(0.5, 2.0, size), 0.0, level),
        lambda: model.field(field),
        lambda: model.rician(level, one((1, 1, 4))),
        lambda: model.speckle(one((1.0, 4, 30)), one(("intensity", "amplitude", "log")), level),
        lambda: model(model.white(level).curves, maps=PixelMaps(rows=np.float32(field[None, :, :1]))),
    )
    return one(kinds)()


def pixel_options(
    pixels: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator, one: One
) -> tuple[Any, np.ndarray | None, dict[str, Any]]:
    """The image with missing pixels, where they are, and the options that say so.

    shape: the axes that a mask has.
    """
    found: dict[str, Any] = {}
    missing = None
    if rng.random() < 0.6:
        way = one(("NaN", "mask", "masked array", "defects"))
        missing = np.broadcast_to(_holes(shape, rng, one), pixels.shape)
        if way == "NaN" and pixels.dtype.kind == "f":
            pixels = np.where(missing, np.nan, pixels).astype(pixels.dtype)
        else:  # what missing pixels hold must not count
            wild = pixels.max() * (1 if pixels.dtype.kind in "iu" else 3)
            pixels = np.where(missing, wild, pixels).astype(pixels.dtype)
            if way == "masked array":
                pixels = np.ma.array(pixels, mask=missing)
            else:
                name = "defects" if way == "defects" else "mask"
                found[name] = missing if rng.random() < 0.5 else missing.astype(np.uint8) * 255
        if rng.random() < 0.5:
            found["fill"] = one((True, False, False, one((0, None, "no"))))
    if rng.random() < 0.4:
        weights = one((np.ones(shape), rng.random(shape) < 0.5, rng.random(shape), np.zeros(shape)))
        found["protect"] = weights if rng.random() < 0.9 else one(ODD_PIXELS)
    if rng.random() < 0.4:
        found["strength"] = one((0, 0.0, 0.3, 0.9, 1, 1.0, one((*REAL_ODD, 1.5))))
    if rng.random() < 0.4:
        found["impulses"] = one(("auto", True, False, one(WORDS_ODD)))
    if rng.random() < 0.05:
        found[one(("mask", "defects"))] = one(ODD_PIXELS)
    return pixels, missing, found


def _holes(shape: tuple[int, ...], rng: np.random.Generator, one: One) -> np.ndarray:
    """Where pixels are missing: one, some, half, most, a block, a row, all of them."""
    share = one((0.0, 0.05, 0.5, 0.95, None, None))
    if share is not None:
        holes = rng.random(shape) < share
        holes.flat[int(rng.integers(holes.size))] = True
        return holes
    holes = np.zeros(shape, bool)
    holes[tuple(slice(1 + int(rng.integers(length))) for length in shape)] = True  # a block at the corner
    return holes


def raw_options(
    contrast: float, low: float, noise: float, rng: np.random.Generator, one: One
) -> dict[str, Any]:
    """The arguments of `denoise_raw`."""
    gain = float(noise**2 / contrast) or contrast
    odd_patterns = ("", "RG", "RGGBX", 3, None, ("RG", "G"), [["R", 1]], {"R": 1}, ("RGB",) * 9)
    found: dict[str, Any] = {"pattern": one(("RGGB", "bggr", "X-Trans", ("RG", "GB"), ("W",), "RGGB"))}
    if rng.random() < 0.1:
        found["pattern"] = one(odd_patterns)

    def drawn(value: float) -> Any:
        cell = {"R": value, "G": 1.1 * value, "B": value, "W": value}
        return one((value, value, cell, np.full((2, 2), value), one((*REAL_ODD, {"R": 1}, np.ones(3)))))

    if rng.random() < 0.7:
        found["black_level"] = drawn(low)
    if rng.random() < 0.3:
        found["white_level"] = one((low + contrast, low + 0.6 * contrast, one(REAL_ODD)))
    if rng.random() < 0.6:
        found["gain"] = drawn(gain)
    if rng.random() < 0.4:
        found["read_noise"] = drawn(noise)
    if rng.random() < 0.5:
        found["profile"] = one(("balanced", "quality", "fast", "fast", one(WORDS_ODD)))
    return found
