"""Any call at all: images, noise and every parameter drawn at random, and what a result must be.

    python tests/any_call.py --cases 4000        a run over many calls, in processes that may die
    python tests/any_call.py --only 1234         one of them, told in full

A case follows from its number alone. A call may refuse with a ValueError or TypeError of one sentence. What
it returns must be finite, of the input's shape and dtype, keep the mean to within the noise and the range to
within what the noise allows. What the scene has beyond the range of a clipped image is no fault. With the
true noise level, parameters that do not ask for blur and enough pixels its error is not above that of the
noisy image.
"""

import argparse
import inspect
import subprocess
import sys
import time
import traceback
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import vnlem
from vnlem.registry import METHODS, find_method

# For every parameter: values a user may mean, and values nobody should.
WHOLE_ODD = (0, -1, 2.5, 10**9, 10**30, float("nan"), "7", True, None)
REAL_ODD = (0, -1.0, 1e-300, 1e-20, 1e20, 1e300, float("nan"), float("inf"), "1", True, 10**400)
FLAGS = ((True, False, None), ("no", 2, float("nan")))
WORDS_ODD = ("", "best", 3, None, ("a", "b"))
RANGES: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "preset": (("auto", "auto", "paper"), WORDS_ODD),
    "patch_size": ((1, 3, 5, 7, 9, 11, 13, 2, 4, 6, 8, 15, 21), WHOLE_ODD),
    "patch_distance": ((1, 2, 3, 5, 8, 10, 14), (*WHOLE_ODD, 60, 500)),
    "n_neighbors": ((1, 2, 3, 5, 9, 20, 50, 100, 200), WHOLE_ODD),
    "bandwidth": ((1e-3, 0.03, 0.3, 1.0, 3.0, 10.0, 100.0), REAL_ODD),
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
    "device": (("cpu", "auto"), WORDS_ODD),
    "coarse_patch_size": ((0, 3, 9, 13, 19), WHOLE_ODD),
    "embedding_dim": ((1, 2, 5, 30, 100, 1000), WHOLE_ODD),
    "diffusion_time": ((0.1, 1.0, 10.0, 1000), REAL_ODD),
    "graph_bandwidth": ((1e-3, 0.1, 1.0, 5.0, 30.0, 1e3), REAL_ODD),
    "local_bandwidth": FLAGS,
    "flat_guard": FLAGS,
    "scope": (("window", "image"), WORDS_ODD),
    "group": (("d4", "identity", "c4", "so2", "similarity"), WORDS_ODD),
    "profile": (("balanced", "quality", "fast"), WORDS_ODD),
    "step": ((1, 2, 3, 5, 8, 12), (*WHOLE_ODD, 50)),
    "passes": ((1, 2, 4, 6), WHOLE_ODD),
    "scales": ((1, 2, 3), WHOLE_ODD),
    "aim": (("fidelity", "perception"), WORDS_ODD),
    "channels": (("auto", "joint", "separate"), WORDS_ODD),
}
# Drawn elsewhere, or without a bearing on the result.
COMMON = ("image", "sigma", "channel_axis", "workers", "progress", "return_info")
# Parameters that may ask for more or less smoothing than the noise does: no promise about the error holds.
STRENGTH = ("bandwidth", "gamma", "noise_correction", "n_neighbors", "graph_bandwidth", "diffusion_time")
STRENGTH += ("embedding_dim", "local_bandwidth", "flat_guard", "scope", "scale", "rotation_margin", "preset")
STRENGTH += (
    "average_down",
    "patch_size",
    "coarse_patch_size",
    "angle_step",
    "angle_range",
    "search",
    "patch_distance",
)
CONTENTS = ("constant", "ramp", "steps", "hot pixel", "noise", "saturated", "label", "waves")
DTYPES = ("float64", "float64", "float32", "uint8", "uint16", "int16", "uint32", "float16", "int64")
# By how much the error may exceed that of the noisy image. Below gamma = 1 NLPR's regression has many minima,
# and the one found may be a single other patch: at little noise in a small picture without like patches that
# costs some per cent.
RISE = {"vnlr": 1.001, "nlpr": 1.1}
HANGS = 300  # seconds; kernels may have to be compiled
LEVELS = (0, 1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass
class Case:
    """One call, with the truth about its image."""

    number: int
    method: str
    content: str
    clean: np.ndarray
    image: np.ndarray
    noise: float  # standard deviation of the noise in the image
    sigma: Any
    parameters: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return (
            f"case {self.number}: {self.method}, {self.content} {self.image.shape} {self.image.dtype}, "
            f"contrast {np.ptp(self.clean):.3g}, noise {self.noise:.3g}, "
            f"sigma={'a map' if np.ndim(self.sigma) else repr(self.sigma)}, {given}"
        )


def draw(number: int) -> Case:
    """The case of this number."""
    rng = np.random.default_rng([12, number])

    def one(values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    method = one(tuple(METHODS))
    channels = one((None,) * 5 + (1, 2, 3, 3, 4))
    height, width = (int(n) for n in rng.integers(14, 33, 2))
    if rng.random() < 0.12:
        height, width = (int(n) for n in rng.integers(1, 12, 2))
    content = one(CONTENTS)
    shape = (height, width) if channels is None else (height, width, channels)
    clean = picture(content, shape, rng)
    dtype = np.dtype(one(DTYPES))
    level = one(LEVELS)
    contrast, low = _scale(dtype, rng)
    noise = level * contrast
    clean = low + contrast * clean
    noisy = clean + noise * rng.standard_normal(shape)
    if content == "saturated":
        noisy = np.clip(noisy, low, low + 0.7 * contrast)
    if content == "label":
        noisy[: height // 4, : width // 3] = low + contrast
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        noisy = np.clip(np.rint(noisy), limits.min, limits.max * (1 - 1e-9))
    parameters = _parameters(method, rng, one)
    if channels is not None:
        parameters["channel_axis"] = -1
    sigma = one(
        (noise, noise, noise, None, noise * one((0.1, 0.5, 2, 10)), 0.0, 1e-160, one((-1, "25", True)))
    )
    if method == "vnlr" and rng.random() < 0.15:
        sigma = noise * rng.uniform(0.2, 2.0, (height, width))
    return Case(number, method, content, clean, noisy.astype(dtype), noise, sigma, parameters)


def _scale(dtype: np.dtype, rng: np.random.Generator) -> tuple[float, float]:
    """Contrast and lowest value."""
    if dtype.kind in "iu":
        top = float(min(np.iinfo(dtype).max, 60000))
        contrast = top * float(rng.choice([0.02, 0.2, 0.5]))
        return contrast, float(rng.uniform(0.1, 0.4)) * top
    powers = (-3, 0, 2) if dtype.itemsize == 2 else (-12, -6, -3, 0, 2, 4, 8, 12)
    contrast = 10.0 ** float(rng.choice(powers))
    return contrast, contrast * float(rng.choice([0.0, 0.3, -2.0, 5.0] if dtype.itemsize > 2 else [0.0, 0.3]))


def _parameters(method: str, rng: np.random.Generator, one: Any) -> dict[str, Any]:
    names = [name for name in inspect.signature(find_method(method)).parameters if name not in COMMON]
    share = float(rng.choice([0.0, 0.15, 0.4]))
    found = {}
    for name in names:
        if rng.random() < share:
            ordinary, odd = RANGES[name]
            found[name] = one(odd) if rng.random() < 0.06 else one(ordinary)
    return found


def picture(content: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """A clean picture in 0..1."""
    y, x = np.mgrid[: shape[0], : shape[1]] / max(*shape[:2], 2)
    grey = {
        "constant": np.full(shape[:2], 0.5),
        "ramp": (x + y) / 2,
        "steps": (np.floor(4 * x) + np.floor(3 * y)) % 3 / 2,
        "hot pixel": np.full(shape[:2], 0.1),
        "noise": np.full(shape[:2], 0.4),
        "saturated": (x + y) / 2,
        "label": 0.3 + 0.3 * np.sin(9 * x),
        "waves": 0.5 + 0.5 * np.sin(14 * x) * np.cos(11 * y),
    }[content]
    if content == "hot pixel":
        grey[tuple(rng.integers(0, shape[:2]))] = 1.0
    if len(shape) == 2:
        return grey
    return grey[..., None] * rng.uniform(0.3, 1.0, shape[2])


def problems(case: Case) -> list[str]:
    """What is wrong with the call; empty where all is well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)  # NumPy's: an overflow or an invalid value
        try:
            result, info = vnlem.denoise(
                case.image, case.sigma, method=case.method, workers=1, return_info=True, **case.parameters
            )
        except (ValueError, TypeError) as error:
            return _unclear(error)
        except Exception as error:
            return [f"{type(error).__name__}: {error} ({_place(error)})"]
    return _faults(case, result, float(np.max(case.sigma)) if np.ndim(case.sigma) else info.sigma)


def _unclear(error: Exception) -> list[str]:
    """Errors of the package are one sentence raised on purpose; others come from inside."""
    frames = traceback.extract_tb(error.__traceback__)
    # Raised by a statement of the package itself, with its own words.
    if (
        "vnlem" in frames[-1].filename
        and (frames[-1].line or "").startswith("raise ")
        and "\n" not in str(error)
    ):
        return []
    return [f"unclear {type(error).__name__}: {error} ({_place(error)})"]


def _place(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}"


def _faults(case: Case, result: np.ndarray, sigma: float) -> list[str]:
    if result.shape != case.image.shape or result.dtype != case.image.dtype:
        return [f"{result.shape} {result.dtype} came back"]
    before, after = case.image.astype(np.float64), result.astype(np.float64)
    bad = int((~np.isfinite(after)).sum())
    if bad:
        return [f"{bad} of {after.size} values are not finite"]
    low, high = float(before.min()), float(before.max())
    digits = {2: 2e-3, 4: 2e-6}.get(result.dtype.itemsize, 2e-6) if result.dtype.kind == "f" else 2e-6
    grain = digits * max(abs(low), abs(high)) + (0.51 if result.dtype.kind in "iu" else 0.0)
    found = []
    shift = abs(float(after.mean() - before.mean()))
    if shift > sigma + grain and not asks_for_blur(case):
        found.append(f"the mean moved by {shift:.4g}, sigma is {sigma:.4g}")
    darkest, brightest = min(low, float(case.clean.min())), max(high, float(case.clean.max()))
    outside = max(darkest - float(after.min()), float(after.max()) - brightest)
    if outside > 3 * sigma + grain:
        found.append(f"the range is left by {outside:.4g}, sigma is {sigma:.4g}")
    if promises_error(case):
        error, noisy = (float(np.sqrt(np.mean((a - case.clean) ** 2))) for a in (after, before))
        if error > RISE.get(case.method, 1.02) * noisy + grain:
            found.append(f"the error is {error:.4g}, that of the noisy image {noisy:.4g}")
    return found


def promises_error(case: Case) -> bool:
    """Whether the result must be nearer to the clean image than the noisy one."""
    told = isinstance(case.sigma, float) and case.sigma == case.noise
    truthful = case.content not in ("saturated", "label")
    return told and truthful and not asks_for_blur(case) and min(case.image.shape[:2]) >= 14


def asks_for_blur(case: Case) -> bool:
    """Whether parameters may ask for more or less smoothing than the noise does. VNLR has none that may."""
    return case.method != "vnlr" and any(
        name in STRENGTH and value is not None for name, value in case.parameters.items()
    )


def run(numbers: range, jobs: int) -> int:
    """Run cases in processes of their own; returns how many went wrong."""
    wrong, done, begun = 0, 0, time.monotonic()
    chunks = [numbers[k : k + 50] for k in range(0, len(numbers), 50)]
    active: list[subprocess.Popen] = []
    while chunks or active:
        while chunks and len(active) < jobs:
            chunk = chunks.pop(0)
            command = [sys.executable, __file__, "--chunk", str(chunk.start), str(chunk.stop)]
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            child.chunk = chunk  # type: ignore[attr-defined]
            active.append(child)
        child = active.pop(0)
        out, _ = child.communicate()
        lines = out.splitlines()
        for line in lines:
            if not line.startswith("begin "):
                print(line, flush=True)
                wrong += 1
        begins = [int(line.split()[1]) for line in lines if line.startswith("begin ")]
        done += len(begins)
        if child.returncode:
            at = begins[-1]
            print(f"{draw(at)}\n    the process died or hung (status {child.returncode})", flush=True)
            wrong += 1
            if at + 1 < child.chunk.stop:  # type: ignore[attr-defined]
                chunks.insert(0, range(at + 1, child.chunk.stop))  # type: ignore[attr-defined]
    print(f"{done} cases, {wrong} wrong, {time.monotonic() - begun:.0f} s")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=4000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, help="one case, told in full")
    parser.add_argument("--chunk", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only is not None:
        case = draw(options.only)
        print(case)
        print("\n".join(problems(case)) or "all is well")
    elif options.chunk:
        import faulthandler

        for number in range(*options.chunk):
            print(f"begin {number}", flush=True)
            faulthandler.dump_traceback_later(HANGS, exit=True)
            case = draw(number)
            found = problems(case)
            if found:
                print(f"{case} -> {'; '.join(found)}", flush=True)
    else:
        sys.exit(run(range(options.first, options.first + options.cases), options.jobs) > 0)


if __name__ == "__main__":
    main()
