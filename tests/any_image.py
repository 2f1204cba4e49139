"""Images of every kind for random calls: contents, noise, dtypes, layouts, and what is not an image."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import ndimage
from skimage import data

DTYPES = ("float64", "float64", "float32", "uint8", "uint16", "int16", "uint32", "float16", "int64", "int8")
DTYPES += ("int32", "uint64", ">f4", ">u2")


def _text(y: np.ndarray, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    top, left = rng.integers(0, 100), rng.integers(0, 300)
    return data.page()[top : top + y.shape[0], left : left + y.shape[1]] / 255.0


def _spots(y: np.ndarray, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    image = np.zeros(y.shape)
    for _ in range(3):
        image[tuple(rng.integers(0, y.shape))] = 1.0
    return np.clip(3 * ndimage.gaussian_filter(image, 1.0), 0, 1)


def _hot(background: float, count: int) -> Callable[..., np.ndarray]:
    def content(y: np.ndarray, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        image = np.full(y.shape, background)
        for _ in range(count):
            image[tuple(rng.integers(0, y.shape))] = 1.0
        return image

    return content


def _bordered(y: np.ndarray, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    image = 0.5 + 0.4 * np.sin(14 * x) * np.cos(11 * y)
    edge = 1 + int(rng.integers(4))
    image[:edge], image[-edge:], image[:, :edge], image[:, -edge:] = 0, 0, 0, 0
    return image


# Clean pictures in 0..1, from rows and columns in 0..1.
CONTENTS: dict[str, Callable[..., np.ndarray]] = {
    "constant": lambda y, x, rng: np.full(y.shape, 0.5),
    "zeros": lambda y, x, rng: np.zeros(y.shape),
    "ramp": lambda y, x, rng: (x + y) / 2,
    "steps": lambda y, x, rng: (np.floor(4 * x) + np.floor(3 * y)) % 3 / 2,
    "hot pixel": _hot(0.1, 1),
    "hot pixels": _hot(0.2, 12),
    "saturated": lambda y, x, rng: (x + y) / 2,
    "label": lambda y, x, rng: 0.3 + 0.3 * np.sin(9 * x),
    "waves": lambda y, x, rng: 0.5 + 0.5 * np.sin(14 * x) * np.cos(11 * y),
    "text": _text,
    "net": lambda y, x, rng: ((np.rint(40 * x) % 5 == 0) | (np.rint(40 * y) % 5 == 0)).astype(float),
    "spots on zero": _spots,
    "border": _bordered,
    "two values": lambda y, x, rng: (np.hypot(y - 0.5, x - 0.5) < 0.3).astype(float),
    "checkerboard": lambda y, x, rng: np.indices(y.shape).sum(0) % 2.0,
    "masked": lambda y, x, rng: (0.5 + 0.5 * np.sin(14 * x)) * (y > 0.5),
}
# Cases in which the pixels before the noise were not the clean picture.
UNTRUE = ("saturated", "label")


def picture(content: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """A clean picture in 0..1, with channels last where the shape has three numbers."""
    y, x = np.mgrid[: shape[0], : shape[1]] / max(*shape[:2], 2)
    grey = CONTENTS[content](y, x, rng)
    return grey if len(shape) == 2 else grey[..., None] * rng.uniform(0.3, 1.0, shape[2])


def noisy(kind: str, clean: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    """The picture with noise of about this standard deviation where it is brightest."""
    if kind == "none":
        return clean.copy()
    if kind == "photons" and clean.min() >= 0 and level > 0:
        gain = level**2 / max(float(clean.max()), 1e-300)
        if gain > 1e-250 and float(clean.max()) / gain < 1e15:
            return rng.poisson(clean / gain) * gain
    noise = rng.standard_normal(clean.shape)
    if kind == "magnitudes":
        return np.hypot(clean + level * noise, level * rng.standard_normal(clean.shape))
    if kind == "speckle":
        looks = float(np.clip(np.abs(clean).max() / max(level, 1e-300), 0.3, 1e3)) ** 2
        return clean * rng.gamma(looks, 1 / looks, clean.shape)
    if kind == "lines":
        noise = noise + rng.standard_normal((len(clean), *[1] * (clean.ndim - 1)))
    if kind == "field":
        noise = noise * np.linspace(0.2, 1.8, len(clean)).reshape(-1, *[1] * (clean.ndim - 1))
    if kind == "correlated":
        wide = ndimage.gaussian_filter(noise, (0.8, 0.8, *[0] * (clean.ndim - 2)))
        noise = wide / max(float(wide.std()), 1e-300)
    return clean + level * noise


# Memory layouts of the same pixels.
LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "reversed": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "every other": lambda a: np.repeat(a, 2, axis=0)[::2],
    "sealed": lambda a: _sealed(a),
    "list": lambda a: a.tolist(),
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
}


def _sealed(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.setflags(write=False)
    return array


# What is not an image, or cannot be denoised.
ODD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "a text": lambda: "image.png",
    "a number": lambda: 3.0,
    "nothing": lambda: np.zeros((0, 5)),
    "no axes": lambda: np.array(4.0),
    "a NaN": lambda: np.where(np.eye(20) > 0, np.nan, 1.0),
    "an infinity": lambda: np.where(np.eye(20) > 0, -np.inf, 1.0),
    "complex": lambda: np.eye(20) * 1j,
    "objects": lambda: np.eye(20).astype(object),
    "objects that are none": lambda: np.full((9, 9), None),
    "texts": lambda: np.full((9, 9), "a"),
    "dates": lambda: np.zeros((9, 9), "datetime64[s]"),
    "fields": lambda: np.zeros((9, 9), [("a", float), ("b", int)]),
    "bits": lambda: np.eye(20) > 0,
    "a ragged list": lambda: [[1.0, 2.0], [3.0]],
    "a dictionary": lambda: {"a": 1},
    "a generator": lambda: (row for row in np.eye(20)),
    "three axes": lambda: np.zeros((5, 20, 20)),
    "five axes": lambda: np.zeros((1, 1, 1, 20, 20)),
    "a masked array": lambda: np.ma.masked_less(np.arange(400.0).reshape(20, 20), 50),
    "a huge value": lambda: np.where(np.indices((20, 20)).sum(0) == 9, 1e30, 1.0),
    "a no-data value": lambda: np.where(np.indices((20, 20)).sum(0) == 9, -3.4e38, 1.0).astype(np.float32),
    "the largest values": lambda: np.linspace(-1.7e308, 1.7e308, 400).reshape(20, 20),
    "the smallest values": lambda: np.arange(400.0).reshape(20, 20) * 5e-324,
    "long doubles": lambda: np.eye(20, dtype=np.longdouble) * 9,
    "an empty list": list,
    "a list of different images": lambda: [np.eye(20), np.eye(22)],
    "a list of odd images": lambda: [np.eye(20), np.zeros(3)],
    "bytes": lambda: b"12345",
}
