"""One call at random, with the truth about its image: what `any_call.py` calls and judges."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from any_image import CONTENTS, DTYPES, LAYOUTS, ODD, UNTRUE, noisy, picture
from any_options import REAL_ODD, WORDS_ODD, noise_options, pixel_options, raw_options

from vnlem.pipeline.lazy import load
from vnlem.pipeline.method import arguments_of
from vnlem.registry import METHODS, find_function, stack_method

# For every parameter: values a user may mean, and values nobody should.
WHOLE_ODD = (0, -1, 2.5, 10**9, 10**30, float("nan"), "7", True, None)
FLAGS = ((True, False, None), ("no", 2, float("nan")))
RANGES: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "preset": (("auto", "auto", "paper"), WORDS_ODD),
    "patch_size": ((1, 3, 5, 7, 9, 11, 13, 2, 4, 6, 8, 15, 21), WHOLE_ODD),
    "patch_distance": ((1, 2, 3, 5, 8, 10, 14), (*WHOLE_ODD, 60, 500)),
    "n_neighbors": ((1, 2, 3, 5, 9, 20, 50, 100, 200), WHOLE_ODD),
    "bandwidth": ((1e-3, 0.03, 0.3, 1.0, 3.0, 10.0, 100.0), (*REAL_ODD, 1e-200, 1e200)),
    "gamma": ((0.05, 0.1, 0.5, 1.0, 1.5, 2.0), REAL_ODD),
    "noise_correction": FLAGS,
    "engine": (("fast",), WORDS_ODD),
    "angle_range": ((0, 5, 30.0, 90, 180), REAL_ODD),
    "angle_step": ((0.5, 2, 5.0, 30, 180), REAL_ODD),
    "try_unrotated": FLAGS,
    "scale": ((0.3, 0.5, 1.0, 2.0, 5.0), REAL_ODD),
    "arc": ((10, 30.0, 60, 90), REAL_ODD),
    "upsample": ((1, 2, 3, 4), WHOLE_ODD),
    "shape": (("disc", "square"), WORDS_ODD),
    "search": (("window", "image"), WORDS_ODD),
    "rotation_margin": ((0, 0.1, 1, 100), REAL_ODD),
    "average_down": FLAGS,
    "adapt": FLAGS,
    "device": (("cpu", "auto"), (*WORDS_ODD, "cuda", "cuda:7")),
    "coarse_patch_size": ((0, 3, 9, 13, 19), WHOLE_ODD),
    "embedding_dim": ((1, 2, 5, 30, 100, 1000), WHOLE_ODD),
    "diffusion_time": ((0.1, 1.0, 10.0, 1000), REAL_ODD),
    "graph_bandwidth": ((1e-3, 0.1, 1.0, 5.0, 30.0, 1e3), REAL_ODD),
    "local_bandwidth": FLAGS,
    "flat_guard": FLAGS,
    "scope": (("window", "image"), WORDS_ODD),
    "group": (("d4", "identity", "c4", "so2", "similarity"), WORDS_ODD),
    "profile": (("balanced", "best", "quality", "fast"), WORDS_ODD),
    "step": ((1, 2, 3, 5, 8, 12), (*WHOLE_ODD, 50)),
    "passes": ((1, 2, 4, 6), WHOLE_ODD),
    "scales": ((1, 2, 3), WHOLE_ODD),
    "aim": (("fidelity", "perception", "flux"), WORDS_ODD),
    "channels": (("auto", "joint", "separate"), WORDS_ODD),
    "plane_distance": ((1, 2, 3), WHOLE_ODD),
    "patch_depth": ((1, 2, 3), WHOLE_ODD),
    "delay": ((1, 2, 3), WHOLE_ODD),
}
# Drawn elsewhere, or without a bearing on the result.
COMMON = ("image", "sigma", "channel_axis", "workers", "progress", "return_info", "task")
LEVELS = (0, 1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
KINDS = (
    ("grey",) * 11
    + ("colour",) * 5
    + ("stack",) * 4
    + ("raw",) * 2
    + ("set", "signal", "dask", "odd", "stream")
)
NOISES = ("white",) * 6 + (
    "photons",
    "photons",
    "correlated",
    "none",
    "magnitudes",
    "speckle",
    "lines",
    "field",
)
STACKS = ("TYX", "ZYX", "NYX", "CYX", "TZYX", "TCYX", "YXT", "ZYXC", "TYXC")
STREAMS = ("TYX", "TYX", "YXT", "TCYX", "TYXC")
ODD_SIGMAS = (-1, "25", True, 1e300, float("nan"), float("inf"), 10**400, [1, 2], {})
ODD_AXES = ("", "YX", "TTYX", "abc", "TY", 3, "TZCYX")


@dataclass
class Case:
    """One call, with the truth about its image."""

    number: int
    method: str
    kind: str
    content: str
    clean: np.ndarray
    image: Any
    noise: float  # standard deviation of white noise in the image
    sigma: Any
    parameters: dict[str, Any] = field(default_factory=dict)
    layout: str = "rows"
    truthful: bool = True  # whether the noise is white and nothing else happened to the pixels
    missing: np.ndarray | None = None  # where pixels hold nothing

    def __str__(self) -> str:
        given = ", ".join(f"{name}={_shown(value)}" for name, value in self.parameters.items())
        if self.kind == "odd":
            about = self.content
        else:
            about = f"{self.content} {self.clean.shape} {self.pixels.dtype} {self.layout}, "
            about += f"contrast {np.ptp(self.clean):.3g}, noise {self.noise:.3g}"
        if self.missing is not None:
            about += f", {np.mean(self.missing):.0%} missing"
        sigma = "a map" if np.ndim(self.sigma) > 1 else repr(self.sigma)
        return f"case {self.number}: {self.method}, {self.kind}, {about}, sigma={sigma}, {given}"

    @property
    def pixels(self) -> np.ndarray:
        """The image as one array."""
        return (
            np.concatenate([np.ravel(a) for a in self.image])
            if self.kind == "set"
            else np.ma.asanyarray(self.image)
        )


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.min():.3g} to {value.max():.3g}"
    return repr(value)


def draw(number: int) -> Case:
    """The case of this number."""
    rng = np.random.default_rng([13, number])

    def one(values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    method, kind = one(tuple(METHODS)), one(KINDS)
    if kind in ("raw", "stream"):
        method = "vnlr"
    parameters = {} if kind == "raw" else _parameters(method, kind, rng, one)
    if kind == "odd":
        content = one(tuple(ODD))
        sigma = one((None, 5.0, *ODD_SIGMAS))
        if rng.random() < 0.3:
            parameters["axes"] = one(ODD_AXES)
        return Case(number, method, kind, content, np.zeros((1, 1)), ODD[content](), 0.0, sigma, parameters)
    height, width = (int(n) for n in rng.integers(14, 33, 2))
    if rng.random() < 0.12:
        height, width = (int(n) for n in rng.integers(1, 12, 2))
    elif rng.random() < 0.1:
        height, width = (int(n) for n in rng.integers(33, 80, 2))
    content = one(tuple(CONTENTS))
    frames = one((1, 2, 3, 4, 6))
    depth = {"colour": one((1, 2, 3, 3, 4)), "stack": frames, "stream": frames, "set": 3}.get(kind)
    clean = picture(content, (height, width) if depth is None else (height, width, depth), rng)
    dtype = np.dtype(one(DTYPES))
    contrast, low = _scale(dtype, rng)
    noise = one(LEVELS) * contrast
    clean = low + contrast * clean
    noises = one(NOISES)
    pixels = noisy(noises, clean, noise, rng)
    if content == "saturated":
        pixels = np.clip(pixels, low, low + 0.7 * contrast)
    if content == "label":
        pixels[: height // 4, : width // 3] = low + contrast
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        pixels = np.clip(np.rint(pixels), limits.min, limits.max * (1 - 1e-9))
    pixels = pixels.astype(dtype)
    sigma = one(
        (noise, noise, noise, None, None, noise * one((0.1, 0.5, 2, 10)), 0.0, one((1e-160, *ODD_SIGMAS)))
    )
    if kind == "raw":
        sigma = None
        parameters |= raw_options(contrast, low, noise, rng, one)
    elif method == "vnlr" and kind in ("grey", "colour") and rng.random() < 0.1:
        sigma = noise * rng.uniform(0.2, 2.0, (height, width))
    elif rng.random() < 0.2:
        sigma = None
        parameters |= noise_options((height, width), contrast, noise, rng, one)
    if kind != "raw":
        if sigma is None and rng.random() < 0.3:
            parameters["caution"] = one(("safe", "auto", "strong"))
        if rng.random() < 0.05:
            parameters["dtype"] = one(("float32", "float64"))
    true = noises == "white" and content not in UNTRUE
    case = Case(number, method, kind, content, clean, pixels, noise, sigma, parameters, truthful=true)
    case = _laid_out(case, rng, one)
    return case if kind in ("raw", "stream") else _with_missing(case, rng, one)


def _with_missing(case: Case, rng: np.random.Generator, one: Any) -> Case:
    """The same with complex numbers, or with what may be said of single pixels."""
    if case.kind in ("grey", "stack") and isinstance(case.image, np.ndarray) and rng.random() < 0.06:
        turned = (slice(None, None, -1),) * case.clean.ndim
        dtype = np.complex64 if case.image.dtype.itemsize <= 4 else np.complex128
        case.clean = case.clean + 1j * case.clean[turned]
        case.image = (case.image + 1j * case.image[turned]).astype(dtype)
    if case.kind != "set" and isinstance(case.image, np.ndarray) and rng.random() < 0.15:
        shape = case.image.shape
        if case.kind == "colour" and rng.random() < 0.5:  # one mask for all channels
            shape = tuple(n if k != case.parameters["channel_axis"] % 3 else 1 for k, n in enumerate(shape))
        case.image, case.missing, told = pixel_options(case.image, shape, rng, one)
        case.parameters |= told
    elif case.kind == "set" and case.image[0].dtype.kind == "f" and rng.random() < 0.15:
        case.image = [np.where(rng.random(a.shape) < 0.05, np.nan, a).astype(a.dtype) for a in case.image]
        case.missing = np.isnan(case.pixels)
        case.parameters["fill"] = one((True, False))
    return case


def _laid_out(case: Case, rng: np.random.Generator, one: Any) -> Case:
    """The same pixels as a stack, a set, a signal, a dask array, or in another order in memory."""
    clean, pixels, parameters = case.clean, case.image, case.parameters
    if case.kind == "set":
        sizes = [(slice(None, len(clean) - k), slice(None), k) for k in range(3)]
        case.image = [pixels[size] for size in sizes]
        case.clean = np.concatenate([np.ravel(clean[size]) for size in sizes])
    elif case.kind in ("stack", "stream"):
        axes = one(STACKS if case.kind == "stack" else STREAMS)
        axes = axes if clean.shape[2] % 2 == 0 or len(axes) == 3 else "TYX"
        case.clean, case.image = (_in_axes(a, axes) for a in (clean, pixels))
        parameters["axes"] = one((axes,) * 9 + (one(ODD_AXES),))
        if case.kind == "stream":
            parameters["axes"] = axes
            parameters |= {"delay": one((0, 1, 1, 2, one(WHOLE_ODD[:-1])))}
        if isinstance(case.sigma, float) and rng.random() < 0.2:  # of each page, or of each channel
            sizes = [one((1, n)) for n in case.image.shape] if rng.random() < 0.7 else one((1, 2, 3))
            case.sigma = case.noise * rng.uniform(0.5, 1.5, sizes)
    elif case.kind == "signal":
        case.clean, case.image = clean[len(clean) // 2], pixels[len(clean) // 2]
    elif case.kind == "colour":
        axis = one((-1, -1, 0, 1))
        case.clean, case.image = np.moveaxis(clean, -1, axis), np.moveaxis(pixels, -1, axis)
        parameters["channel_axis"] = axis
    if case.kind in ("grey", "colour") and rng.random() < 0.4:
        case.layout = one(tuple(LAYOUTS))
        if case.layout == "list" and case.image.dtype not in (np.float64, np.int64):
            case.layout = "rows"
        case.image = LAYOUTS[case.layout](case.image)
        case.truthful &= case.layout != "broadcast"
    return case


def _in_axes(array: np.ndarray, axes: str) -> np.ndarray:
    """(H, W, n) as a stack."""
    if axes == "YXT":
        return array
    pages = np.moveaxis(array, -1, 0)
    if len(axes) == 3:
        return pages
    pages = pages.reshape(2, -1, *pages.shape[1:])
    return np.moveaxis(pages, 1, -1) if axes.endswith("C") else pages


def _scale(dtype: np.dtype, rng: np.random.Generator) -> tuple[float, float]:
    """Contrast and lowest value."""
    if dtype.kind in "iu":
        top = float(min(np.iinfo(dtype).max, 60000))
        contrast = top * float(rng.choice([0.02, 0.2, 0.5]))
        return contrast, float(rng.choice([0.0, rng.uniform(0.1, 0.4)])) * top
    powers = (-3, 0, 2) if dtype.itemsize == 2 else (-12, -6, -3, 0, 2, 4, 8, 12)
    contrast = 10.0 ** float(rng.choice(powers))
    return contrast, contrast * float(rng.choice([0.0, 0.3, -2.0, 5.0] if dtype.itemsize > 2 else [0.0, 0.3]))


def parameters_of(method: str, kind: str = "") -> set[str]:
    """Names of a method's own parameters, with those it has for stacks."""
    names = set(arguments_of(find_function(method)))
    stack = stack_method(method)
    if stack is not None and kind in ("stack", "set"):
        names |= set(arguments_of(load(stack.prepare)))
    return names - set(COMMON)


def _parameters(method: str, kind: str, rng: np.random.Generator, one: Any) -> dict[str, Any]:
    share = float(rng.choice([0.0, 0.15, 0.4]))
    found = {}
    for name in sorted(parameters_of(method, kind)):
        if rng.random() < share:
            ordinary, odd = RANGES[name]
            found[name] = one(odd) if rng.random() < 0.06 else one(ordinary)
    return found
