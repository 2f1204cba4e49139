"""Noise of instruments that the user names: magnitudes (MRI) and speckle (OCT, ultrasound, SAR).

Parameters that are not given are estimated: sigma of magnitudes in `vnlem.noise.air`; looks, domain and
correlation of speckle here.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.air import estimate_rician
from vnlem.noise.correlated import SMALLEST_IMAGE, Spectrum, estimate_power
from vnlem.noise.levels import SMALLEST, by_brightness, cut
from vnlem.noise.model import NoiseModel
from vnlem.noise.rician import check_rician
from vnlem.noise.speckle import DOMAINS, LEAST, TAIL, Speckle, check_speckle
from vnlem.noise.white import SMALLEST_FOR_LEVELS, estimate_sigma_of_planes
from vnlem.pipeline import checks
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

INSTRUMENTS = ("rician", "speckle")
# Arguments of `denoise`, and the noise they belong to.
OPTIONS = {"coils": "rician", "looks": "speckle", "domain": "speckle"}

# Noise that rises less with the brightness (exponent of the variance, 2 for speckle) is logarithmic.
LEAST_SLOPE = 0.8
LEAST_RANGE = 1.5  # of the brightness, for a decision
SKEWED = 0.14  # over looks: the variance of a logarithm with a long tail that flat blocks miss
USUAL_LOOKS = 2.0  # of logarithmic data, whose units are unknown: as skewed as retinal OCT
# Logarithmic speckle is filtered as if it were stronger than flat blocks show, because of its tail; even
# more if neighbours share it: by a power of the deviation at all frequencies over that at high ones, up to a
# limit.
STRONGER, SHARED_POWER, STRONGEST = 1.2, 4, 2.2
# High frequencies with less of the noise than this: neighbours share it.
MOST_SHARED, PLAINLY_SHARED = 0.75, 0.3


def check_options(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The given options, all of this kind of noise, or a clear error.

    >>> check_options("rician", {"coils": 4, "looks": None})
    {'coils': 4}
    """
    given = {name: options[name] for name in OPTIONS if options.get(name) is not None}
    for name in given:
        if OPTIONS[name] != kind:
            raise ValueError(f"{name} belongs to noise_model={OPTIONS[name]!r}; pass that too")
    return given


def estimate_instrument(
    planes: Float, kind: str, options: Mapping[str, Any], pool: Pool, sigma: Any = None
) -> NoiseModel:
    """The noise of planes (C, H, W) whose kind is given.

    kind: "rician" or "speckle".
    options: coils; or looks and domain; None or absent if not given.
    pool: the threads to use; they do not change the result.
    sigma: the noise of magnitudes, if that kind is given.

    >>> from vnlem.noise.speckle import TAIL, add_speckle
    >>> speckled = add_speckle(np.add.outer(np.arange(50.0, 178), np.arange(128.0)), 4, seed=0)
    >>> model = estimate_instrument(speckled[None], "speckle", {}, Pool(1))
    >>> model.kind, round(model.curves[0].law.looks)
    ('speckle', 4)
    """
    given = check_options(kind, options)
    if kind == "speckle":
        if sigma is not None:
            raise ValueError(
                f"speckle is described by looks, not by sigma, got sigma {checks.shown(sigma)}; pass looks="
            )
        return _speckle(planes, given.get("looks"), given.get("domain"), pool)
    law = check_rician(1.0 if sigma is None else sigma, given.get("coils"))
    law.check(float(planes.min()))
    if sigma is not None:
        return NoiseModel.rician(law.sigma, law.coils)
    return estimate_rician(planes, law.coils, pool)


def _speckle(planes: Float, looks: Any, domain: Any, pool: Pool) -> NoiseModel:
    if looks is not None:
        looks = check_speckle(looks).looks
    if domain is None:
        domain = _find_domain(planes, pool)
    checks.choice("domain", domain, DOMAINS)
    if domain == "log":
        return _logarithmic(planes, looks or USUAL_LOOKS, pool)
    law = Speckle(looks or 1.0, domain, least=LEAST * float(planes.mean()))
    law.check(float(planes.min()))
    if not law.least > 0:
        return NoiseModel.white(0.0)
    if looks is None:
        height, width = planes.shape[1:]
        if min(height, width) < SMALLEST_FOR_LEVELS:
            raise ValueError(
                f"the image ({height}x{width}) is too small to estimate the looks of its speckle; "
                f"pass looks=, or an image of at least {SMALLEST_FOR_LEVELS}x{SMALLEST_FOR_LEVELS}"
            )
        law = replace(law, looks=_find_looks(planes, law, pool))
    model = NoiseModel.speckle(law.looks, domain, least=law.least)
    if min(planes.shape[1:]) < SMALLEST_IMAGE:
        return model
    stable = model.stabilise(planes)
    seen = (TAIL * estimate_sigma_of_planes(stable, pool)) ** 2 / (1 - SKEWED / law.looks)
    if seen > MOST_SHARED:
        return model
    return _shared(model, stable, pool)


def _shared(model: NoiseModel, stable: Float, pool: Pool) -> NoiseModel:
    """The model with the spectrum of noise that neighbours clearly share."""
    spectrum = Spectrum.of(estimate_power(stable[:1], None, pool).power[0])
    near = spectrum.correlation(1)
    if max(near[0, 1], near[1, 0]) < PLAINLY_SHARED:
        return model
    return replace(model, spectra=(spectrum,))


def _find_domain(planes: Float, pool: Pool) -> str:
    """Whether the noise rises with the brightness, like speckle, or was made even by a logarithm."""
    if planes.min() < 0:
        return "log"
    plane = planes.reshape(-1, planes.shape[2])
    blocks = cut(plane, pool=pool) if min(plane.shape) >= SMALLEST else None
    if blocks is None:
        return "intensity"
    levels = by_brightness(blocks)
    bright = levels.brightness > 0
    x, y = levels.brightness[bright], levels.high[bright]
    if x.size < 4 or x[-1] < LEAST_RANGE * x[0]:
        return "intensity"
    return "intensity" if np.polyfit(np.log(x), np.log(np.maximum(y, 1e-300)), 1)[0] > LEAST_SLOPE else "log"


def _find_looks(planes: Float, law: Speckle, pool: Pool) -> float:
    """Looks whose logarithm has the variance that flat blocks show."""
    from scipy import optimize

    logs = np.log(np.maximum(planes, max(law.least, 1e-300)))
    variance = estimate_sigma_of_planes(logs, pool) ** 2

    def excess(power: float) -> float:
        looks = float(np.exp(power))
        unit = replace(law, looks=looks)
        return float(np.log(unit.log_variance * (1 - SKEWED / max(looks, 0.5)) / max(variance, 1e-300)))

    ends = np.log(0.5), np.log(1e4)
    if excess(ends[0]) < 0 or excess(ends[1]) > 0:
        return float(np.exp(ends[0 if excess(ends[0]) < 0 else 1]))
    return float(np.exp(optimize.brentq(excess, *ends, xtol=1e-3)))


def _logarithmic(planes: Float, looks: float, pool: Pool) -> NoiseModel:
    """Speckle that a logarithm has made even."""
    sigma = estimate_sigma_of_planes(planes, pool)
    blocks = cut(planes[0], pool=pool) if min(planes.shape[1:]) >= SMALLEST_FOR_LEVELS else None
    if blocks is not None:
        # The kind is given, so the usual level counts instead of the lowest: bright layers may be saturated.
        sigma = max(sigma, float(np.sqrt(np.median(by_brightness(blocks).least()))))
    if not sigma > 0:
        return NoiseModel.white(0.0)
    shared = 1.0
    if min(planes.shape[1:]) >= SMALLEST_IMAGE:
        shared = float(np.sqrt(estimate_power(planes[:1], None, pool).power.mean())) / sigma
    sigma *= min(STRONGER * max(shared, 1.0) ** SHARED_POWER, STRONGEST)
    return NoiseModel.speckle(looks, "log", unit=sigma / float(np.sqrt(Speckle(looks).log_variance)))
