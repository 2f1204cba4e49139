"""Random calls: images, noise and every parameter drawn at random, and what must hold for a result.

    python tests/any_call.py --cases 10000       a run over many calls, in processes that may die
    python tests/any_call.py --only 1234         one of them, in full

A case depends only on its number. A call may refuse with one sentence of the package. A result must be
finite, of the input's shape, of its dtype or the given one, and keep the mean within the noise and the range
within what the noise allows; only the package may warn. A scene may exceed the range of a clipped image. With
the true noise level, parameters that do not blur and enough pixels, the error is not above that of the noisy
image. Missing pixels never count, and stay unless they are filled; protected pixels stay. A dask array gives
the bytes of the array, a stream those of the movie.
"""

import warnings
from dataclasses import dataclass, field
from typing import Any

import any_run
import numpy as np
from any_image import CONTENTS, DTYPES, LAYOUTS, ODD, UNTRUE, noisy, picture
from any_options import REAL_ODD, WORDS_ODD, noise_options, pixel_options, raw_options

import vnlem
from vnlem.noise.maps import PixelMaps
from vnlem.pipeline.lazy import load
from vnlem.pipeline.method import arguments_of
from vnlem.registry import METHODS, find_function, find_method, stack_method

# For every parameter: sensible values, and senseless ones.
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
# Drawn elsewhere, or without effect on the result.
COMMON = ("image", "sigma", "channel_axis", "workers", "progress", "return_info", "task")
# Parameters that may smooth more or less than the noise requires: no promise about the error holds.
STRENGTH = ("bandwidth", "gamma", "noise_correction", "n_neighbors", "graph_bandwidth", "diffusion_time")
STRENGTH += ("embedding_dim", "local_bandwidth", "flat_guard", "scope", "scale", "rotation_margin", "preset")
STRENGTH += ("average_down", "patch_size", "coarse_patch_size", "angle_step", "angle_range", "search")
STRENGTH += ("patch_distance",)
# By how much the error may exceed that of the noisy image. Below gamma = 1 NLPR's regression has many minima,
# and the one found may be a single other patch: at little noise in a small picture without similar patches
# that costs some per cent.
RISE = {"vnlr": 1.001, "nlpr": 1.1}
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
    """The same with complex numbers, or with options for single pixels."""
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


def problems(case: Case) -> list[str]:
    """What is wrong with the call; empty if all is well."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result, info = _call(case, case.image, return_info=True)
        except Exception as error:
            return any_run.unclear(error) or (_streamed(case, None) if case.kind == "stream" else [])
        found = any_run.foreign_warnings(caught, (__file__,))
        if case.kind == "dask" and not found and find_method(case.method).halo is not None:
            found = _lazy_problems(case, result)
        if case.kind == "stream" and not found:
            found = _streamed(case, result)
    if found or case.kind == "odd":
        return found
    if case.kind == "set":
        if [a.shape for a in result] != [a.shape for a in case.image]:
            return [f"shapes {[a.shape for a in result]} came back"]
        result = np.concatenate([np.ravel(a) for a in result])
    return _kept(case, result, info) or _faults(case, result, info)


def _call(case: Case, image: Any, **more: Any) -> Any:
    if case.kind == "raw":
        return vnlem.denoise_raw(image, workers=1, **more, **case.parameters)
    return vnlem.denoise(image, case.sigma, method=case.method, workers=1, **more, **case.parameters)


def _lazy_problems(case: Case, result: np.ndarray) -> list[str]:
    """What differs if the same image is a dask array."""
    import dask.array

    try:
        lazy = _call(case, dask.array.from_array(case.image, chunks=11)).compute(scheduler="synchronous")
    except Exception as error:
        return any_run.unclear(error)
    same = np.array_equal(lazy, result, equal_nan=result.dtype.kind == "f")
    return [] if same else ["a dask array gives other pixels"]


def _streamed(case: Case, result: np.ndarray | None) -> list[str]:
    """What differs if the frames come one by one; result: None if the movie was refused."""
    options = {name: value for name, value in case.parameters.items() if name != "axes"}
    axes = case.parameters["axes"]
    try:
        stream = vnlem.Stream(axes, case.sigma, workers=1, **{"profile": "balanced"} | options)
        at = axes.index("T")
        frames = list(stream.denoise(np.moveaxis(case.image, at, 0)))
    except Exception as error:
        refused = f"a stream refuses a movie that denoise takes: {error}"
        ends_early, is_map = "needs at least" in refused, np.ndim(case.sigma) > 1
        return any_run.unclear(error) or ([] if result is None or ends_early or is_map else [refused])
    if result is None:
        return []
    return [] if np.array_equal(np.stack(frames, at), result) else ["a stream gives other pixels"]


def _kept(case: Case, result: np.ndarray, info: Any) -> list[str]:
    """What is wrong with pixels that must not change."""
    parameters, given = case.parameters, np.ma.getdata(case.pixels)
    if result.shape != given.shape or result.dtype != parameters.get("dtype", given.dtype):
        return [f"{result.shape} {result.dtype} came back"]
    missing = np.zeros(given.shape, bool) if case.missing is None else case.missing
    result = np.ma.getdata(result)
    if not parameters.get("fill", True) and "defects" not in parameters:
        if not np.array_equal(result[missing], given[missing].astype(result.dtype), equal_nan=True):
            return ["missing pixels that were not to be filled have changed"]
        result = np.where(missing, 0, result)
    bad = int((~np.isfinite(result)).sum())
    if bad:
        return [f"{bad} of {result.size} values are not finite"]
    if not info.details.get("impulses") and result.dtype == given.dtype and not _has_maps(info.noise):
        weights = np.broadcast_to(parameters.get("protect", 0.0), given.shape)
        stays = ~missing & ((weights == 1) | (parameters.get("strength", 1) == 0))
        changed = int((result[stays] != given[stays]).sum())
        if changed:
            return [f"{changed} of {stays.sum()} protected pixels have changed"]
    return []


def _has_maps(noise: Any) -> bool:
    """Whether lines or the differences of a sensor's pixels were removed."""
    return noise is not None and noise.maps is not None and noise.maps.without_sigma != PixelMaps()


def _level(case: Case, info: Any) -> float:
    """The standard deviation of the noise where it is largest."""
    if np.ndim(case.sigma) > 0:
        return float(np.max(case.sigma))
    if info.noise is None:
        return float(info.sigma)
    models = info.details["noise"].values() if case.kind == "raw" else [info.noise]
    values = _valid(case, case.pixels)
    ends = np.array([values.min(), values.max()])
    level = float(info.sigma)
    for model in models:
        most = 1.0 if model.maps is None or model.maps.sigma is None else float(model.maps.sigma.max())
        found = [model.variance(ends, channel).max() for channel in range(len(model.curves))]
        level = max(level, most * float(np.sqrt(max(found))))
    return level


def _valid(case: Case, pixels: np.ndarray) -> np.ndarray:
    """The valid pixels; real parts, then imaginary parts."""
    pixels = np.ma.getdata(pixels)
    pixels = np.ravel(pixels) if case.missing is None else pixels[~case.missing]
    parts = [pixels.real, pixels.imag] if pixels.dtype.kind == "c" else [pixels]
    return np.concatenate(parts).astype(np.float64)


def _faults(case: Case, result: np.ndarray, info: Any) -> list[str]:
    before, after, clean = (_valid(case, a) for a in (case.pixels, result, case.clean))
    sigma = _level(case, info)
    law = None if info.noise is None else info.noise.curves[0].law
    low, high = float(before.min()), float(before.max())
    digits = {2: 2e-3, 4: 2e-6}.get(result.dtype.itemsize, 2e-6) if result.dtype.kind == "f" else 2e-6
    grain = digits * max(abs(low), abs(high)) + (0.51 if result.dtype.kind in "iu" else 0.0)
    found: list[str] = []
    if _has_maps(info.noise):  # what was removed may have any size
        return found
    shift = abs(float(after.mean() - before.mean()))
    sought = case.parameters.get("impulses") is True
    few = case.missing is not None and float(np.mean(case.missing)) > 0.5
    if shift > sigma + grain and not asks_for_blur(case) and not sought and not few and law is None:
        found.append(f"the mean moved by {shift:.4g}, sigma is {sigma:.4g}")
    darkest, brightest = min(low, float(clean.min())), max(high, float(clean.max()))
    if getattr(law, "name", "") == "rician":  # magnitudes of nothing are all above zero
        darkest = min(darkest, 0.0)
    outside = max(darkest - float(after.min()), float(after.max()) - brightest)
    # The transform of a given model has no limits in a stack.
    free = case.kind in ("stack", "set") and info.noise is not None and not info.noise.is_white
    allowed = min(3 * sigma, high - low) if high > low and not free else 3 * sigma
    if case.missing is not None:  # a guess steps a little beyond what is known
        allowed += 0.02 * (high - low)
    if outside > allowed + grain:
        found.append(f"the range is left by {outside:.4g}, sigma is {sigma:.4g}")
    white = case.kind != "raw" and not {"gain", "noise_model"} & set(case.parameters)
    if low == high and white and outside > grain:
        found.append(f"a constant has changed by {outside:.4g}")
    if promises_error(case):
        error, noise = (float(np.sqrt(np.mean((a - clean) ** 2))) for a in (after, before))
        if error > RISE.get(case.method, 1.02) * noise + grain:
            found.append(f"the error is {error:.4g}, that of the noisy image {noise:.4g}")
    return found


def promises_error(case: Case) -> bool:
    """Whether the result must be nearer to the clean image than the noisy one."""
    told = isinstance(case.sigma, float) and case.sigma == case.noise
    told = told and case.parameters.get("impulses") is not True
    told = told and (case.missing is None or float(np.mean(case.missing)) < 0.2)
    # The features of rings hold no pattern of single pixels.
    told = told and not (case.content == "checkerboard" and case.method in ("vnlem", "vnlem-dd"))
    large = case.kind in ("grey", "colour", "dask") and sorted(case.pixels.shape)[-2] >= 14
    return told and case.truthful and large and min(case.pixels.shape[:2]) >= 14 and not asks_for_blur(case)


def asks_for_blur(case: Case) -> bool:
    """Whether parameters may smooth more or less than the noise requires. VNLR has no such parameters."""
    return case.method != "vnlr" and any(
        name in STRENGTH and value is not None for name, value in case.parameters.items()
    )


if __name__ == "__main__":
    any_run.main(__file__, __doc__, 10_000, draw, problems)
