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
from typing import Any

import any_run
import numpy as np
from any_case import Case, draw

import vnlem
from vnlem.noise.maps import PixelMaps
from vnlem.registry import find_method

# Parameters that may smooth more or less than the noise requires: no promise about the error holds.
STRENGTH = ("bandwidth", "gamma", "noise_correction", "n_neighbors", "graph_bandwidth", "diffusion_time")
STRENGTH += ("embedding_dim", "local_bandwidth", "flat_guard", "scope", "scale", "rotation_margin", "preset")
STRENGTH += ("average_down", "patch_size", "coarse_patch_size", "angle_step", "angle_range", "search")
STRENGTH += ("patch_distance",)
# By how much the error may exceed that of the noisy image. Below gamma = 1 NLPR's regression has many minima,
# and the one found may be a single other patch: at little noise in a small picture without similar patches
# that costs some per cent.
RISE = {"vnlr": 1.001, "nlpr": 1.1}


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
    # Each impulse that is replaced moves by the range of the image at most.
    replaced = int(info.details.get("impulses", 0)) / before.size * (high - low)
    few = case.missing is not None and float(np.mean(case.missing)) > 0.5
    if shift > sigma + grain + replaced and not asks_for_blur(case) and not few and law is None:
        found.append(f"the mean moved by {shift:.4g}, sigma is {sigma:.4g}")
    darkest, brightest = min(low, float(clean.min())), max(high, float(clean.max()))
    if getattr(law, "name", "") == "rician":  # magnitudes of nothing are all above zero
        darkest = min(darkest, 0.0)
    # With the noise that is told, the picture would reach further: VNLR cannot tell a detail from noise if a
    # patch has no more energy in it than noise would have, and may put all of that into a corner.
    lacking = 3 * max(sigma - float(np.std(before - clean)), 0.0)
    darkest, brightest = darkest - lacking, brightest + lacking
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
