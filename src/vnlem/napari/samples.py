"""Sample data for napari's File menu, generated: nothing is downloaded."""

from typing import Any

import numpy as np

LayerData = tuple[Any, dict[str, Any], str]


def photograph() -> list[LayerData]:
    """A photograph with white noise of standard deviation 25 (a man with a camera, 512x512)."""
    from vnlem.io.samples import camera

    clean = camera().astype(np.float64)
    noisy = np.clip(np.rint(clean + np.random.default_rng(0).normal(0, 25, clean.shape)), 0, 255)
    return [(noisy.astype(np.uint8), {"name": "noisy photograph"}, "image")]


def half_discs() -> list[LayerData]:
    """Half discs at random angles with noise of variance 0.3: what rotations are for."""
    from vnlem.bench.phantoms import half_discs as draw

    clean = draw(6, 18, 3, seed=1, size=256)
    noisy = clean + np.random.default_rng(1).normal(0, 0.3**0.5, clean.shape)
    return [(noisy.astype(np.float32), {"name": "noisy half discs"}, "image")]


def fluorescence() -> list[LayerData]:
    """Two channels of fluorescent cells as a camera counts them: photon noise, read noise, an offset."""
    rng = np.random.default_rng(2)
    nuclei = _cells(rng.uniform(0, 512, (70, 2)), 9.0, 512)
    granules = _cells(rng.uniform(0, 512, (500, 2)), 2.5, 512)
    layers: list[LayerData] = []
    for name, colormap, clean in (("nuclei", "bop blue", nuclei), ("granules", "green", granules)):
        counts = rng.poisson(2.0 + 20.0 * clean)
        pixels = np.rint(100.0 + 2.0 * counts + rng.normal(0, 3.0, clean.shape))
        options = {
            "name": f"noisy {name}",
            "colormap": colormap,
            "blending": "additive",
            "scale": (0.2, 0.2),
            "units": ("micrometer", "micrometer"),
        }
        layers.append((np.clip(pixels, 0, 65535).astype(np.uint16), options, "image"))
    return layers


def time_lapse() -> list[LayerData]:
    """Twelve frames of drifting cells with photon noise (TYX, uint16)."""
    rng = np.random.default_rng(3)
    places = rng.uniform(0, 256, (40, 2))
    speeds = rng.normal(0, 1.5, (40, 2))
    frames = []
    for number in range(12):
        clean = _cells((places + number * speeds) % 256, 7.0, 256)
        counts = rng.poisson(2.0 + 20.0 * clean)
        frames.append(np.rint(100.0 + 2.0 * counts + rng.normal(0, 3.0, clean.shape)))
    stack = np.clip(np.stack(frames), 0, 65535).astype(np.uint16)
    options = {
        "name": "noisy time-lapse",
        "scale": (30.0, 0.2, 0.2),
        "units": ("second", "micrometer", "micrometer"),
        "axis_labels": ("t", "y", "x"),
    }
    return [(stack, options, "image")]


def _cells(places: Any, radius: float, size: int) -> Any:
    """Round cells with soft edges and a brighter half, between 0 and about 1."""
    y, x = np.mgrid[:size, :size].astype(np.float64)
    image = np.zeros((size, size))
    reach = int(3 * radius) + 1
    for number, (centre_y, centre_x) in enumerate(places):
        top, left = max(0, int(centre_y) - reach), max(0, int(centre_x) - reach)
        part = np.s_[top : top + 2 * reach, left : left + 2 * reach]
        dy, dx = y[part] - centre_y, x[part] - centre_x
        distance = np.hypot(dy, dx)
        body = 1 / (1 + np.exp((distance - radius) / (0.12 * radius)))
        lobe = 0.35 * (dy * np.cos(number) + dx * np.sin(number)) / radius
        image[part] = np.maximum(image[part], body * np.clip(0.65 + lobe, 0, 1))
    return image
