"""The noise model of a call of `denoise`: given or estimated."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vnlem.noise.auto import DEMANDS, KINDS, estimate_of_planes, pool_for
from vnlem.noise.correlated import SMALLEST_IMAGE
from vnlem.noise.instruments import INSTRUMENTS, OPTIONS, check_options, estimate_instrument
from vnlem.noise.levels import Differences
from vnlem.noise.lines import check_lines, with_lines, without_lines
from vnlem.noise.model import NoiseModel
from vnlem.noise.poisson_gaussian import are_maps, given_model, with_defaults
from vnlem.noise.white import estimate_sigma_of_planes
from vnlem.pipeline import checks
from vnlem.pipeline.image import Planes
from vnlem.pipeline.sigma import check_sigma
from vnlem.pipeline.warn import warn

# Times the largest pixel: above this, double precision loses the differences of pixels.
LARGEST_OFFSET = 1e9
CAMERA = ("gain", "offset", "read_noise")
ABOUT_NOISE = (*CAMERA, "caution", "lines", *OPTIONS)  # arguments of `denoise`


def check_noise_model(noise_model: Any) -> None:
    """Refuse what is neither a name nor a model."""
    if isinstance(noise_model, NoiseModel):
        return
    if not isinstance(noise_model, str):
        raise TypeError(f"noise_model must be a name or a NoiseModel, got {checks.shown(noise_model)}")
    checks.choice("noise_model", noise_model, KINDS)


def find_noise(
    planes: Planes,
    sigma: Any,
    noise_model: Any,
    about_noise: dict[str, Any],
    *,
    plain: bool = False,
    workers: int | None = None,
    differences: Sequence[Differences] | None = None,
    in_place: bool = True,
) -> NoiseModel | None:
    """The model that `denoise` uses, from its arguments; None if sigma is enough, e.g. as a map.

    sigma, noise_model: as in :func:`vnlem.denoise`.
    about_noise: further arguments of `denoise`: ABOUT_NOISE, None if not given.
    plain: estimate white noise if nothing is given.
    workers: number of threads, at most four of them.
    differences: of neighbouring pages, if the planes are pages of a stack: one for each channel.
    in_place: whether pixels have their places in the image: only then can it have lines and a field.

    >>> from vnlem.pipeline.image import to_planes
    >>> find_noise(to_planes(np.zeros((8, 8))), 3.0, "gaussian", {}).describe()
    'white noise, sigma 3'
    """
    told = sigma is not None or noise_model != "auto" or about_noise.get("gain") is not None
    asked = check_lines(about_noise.get("lines"))
    lines, rest = without_lines(planes, asked if in_place else False, not (told or plain), workers)
    found = _find(rest, sigma, noise_model, about_noise, plain, workers, differences, in_place)
    if lines is None:
        return found
    if found is None:
        raise ValueError(
            "lines=True goes with one sigma or with none, and sigma is a map; leave one of them out"
        )
    return with_lines(found, lines)


def _find(
    planes: Planes,
    sigma: Any,
    noise_model: Any,
    about_noise: dict[str, Any],
    plain: bool,
    workers: int | None,
    differences: Sequence[Differences] | None,
    in_place: bool,
) -> NoiseModel | None:
    """The same for an image without lines."""
    check_noise_model(noise_model)
    caution = about_noise.get("caution") or "auto"
    checks.choice("caution", caution, tuple(DEMANDS))
    camera = {name: about_noise.get(name) for name in CAMERA}
    some = [name for name, value in camera.items() if value is not None]
    if isinstance(noise_model, NoiseModel):
        more = [name for name in (*CAMERA, *OPTIONS) if about_noise.get(name) is not None]
        if sigma is not None or more:
            extra = more[0] if more else "sigma"
            raise ValueError(f"a NoiseModel describes the noise completely; leave {extra} out")
        (noise_model if in_place else noise_model.evened).check(planes)
        return noise_model
    if some and noise_model not in ("auto", "poisson-gaussian"):
        raise ValueError(f"{some[0]} belongs to noise_model='poisson-gaussian'; pass that too")
    options = check_options(noise_model, about_noise)
    if noise_model in INSTRUMENTS and sigma is not None:
        with pool_for(workers) as pool:
            return estimate_instrument(planes.data, noise_model, options, pool, sigma)
    if sigma is not None:
        if noise_model in ("poisson-gaussian", "correlated", "field") or some:
            raise ValueError(
                "sigma is for white noise, and this noise is not described by one number; leave sigma out, "
                f"got {checks.shown(sigma)}"
            )
        if np.ndim(sigma) > 0:
            return None
        level = check_sigma(sigma)
        if noise_model == "auto":
            _say_if_contradicted(planes, level, workers)
        return NoiseModel.white(level)
    if some:
        if are_maps(camera):
            model = NoiseModel.camera(*with_defaults(**camera))
            (model if in_place else model.evened).check(planes)
            return model
        found = given_model(**camera)
        _check_offset(planes, found.offset)
        return NoiseModel.camera(found.gain, found.offset, found.read_noise)
    kind = "gaussian" if plain and noise_model == "auto" else noise_model
    return estimate_of_planes(planes, kind, workers, caution, differences, options, in_place=in_place)


def _check_offset(planes: Planes, offset: float) -> None:
    """Refuse an offset so far from the pixels that it swamps their differences."""
    span = float(np.ptp(planes.data)) or 1.0
    if abs(offset) > LARGEST_OFFSET * max(span, float(np.abs(planes.data).max())):
        raise ValueError(
            f"offset is {offset:g}, and the pixels lie between {planes.data.min():g} and "
            f"{planes.data.max():g}; pass the value of a dark pixel, in the units of the image"
        )


def _say_if_contradicted(planes: Planes, sigma: float, workers: int | None) -> None:
    """One warning if the image clearly has other noise than given.

    Structure raises the estimate, so a larger one counts only if most of the image is flat.
    """
    if min(planes.data.shape[1:]) < SMALLEST_IMAGE or sigma == 0:
        return
    with pool_for(workers) as pool:
        if 0.5 <= estimate_sigma_of_planes(planes.data, pool) / sigma <= 2:
            return
    model = estimate_of_planes(planes, "auto", workers, warns=False)
    levels = np.concatenate([np.asarray(curve.levels) for curve in model.curves])
    deviations = np.sqrt(model.variance(levels))
    too_small = deviations.min() > 2 * sigma and model.confidence >= 0.5
    too_large = 0 < deviations.max() < sigma / 2
    if too_small or too_large:
        warn(
            f"sigma {sigma:g} was given, but the image seems to have {model.describe()}; "
            "check the units of sigma, or leave it out"
        )
