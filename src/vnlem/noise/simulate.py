"""Noise drawn from a model, onto an image that has none."""

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.components import from_components
from vnlem.noise.curve import Curve
from vnlem.noise.model import NoiseModel, each
from vnlem.noise.rician import Rician, add_rician
from vnlem.noise.speckle import Speckle, add_speckle

Float = NDArray[np.float64]

# From this many photons on counts are drawn from a normal distribution: the difference is invisible, and the
# gain of a model that is hardly more than white noise may be close to zero.
MANY_PHOTONS = 1e6


def add_noise(model: NoiseModel, planes: Float, rng: np.random.Generator) -> Float:
    """Planes (C, H, W) with noise of a model: photon counts if it has them, its spectrum and colours.

    planes: without noise.
    rng: source of the random numbers.

    >>> noisy = add_noise(NoiseModel.camera(2.0), np.full((1, 64, 64), 8.0), np.random.default_rng(0))
    >>> bool((noisy % 2 == 0).all()), bool(abs(noisy.var() - 16) < 2)
    (True, True)
    """
    if model.maps is not None:
        even = planes if model.maps.sigma is None else planes / model.maps.sigma
        return model.maps.put_back(add_noise(model.evened, even, rng))
    curves = each(model.curves, len(planes))
    if not (model.is_correlated or model.ties_channels) and set(model.strengths) == {1.0}:
        return np.stack([_independent(c, plane, rng) for c, plane in zip(curves, planes, strict=True)])
    parts = [
        np.sqrt(strength) * spectrum.draw(planes[0].shape, rng)
        for spectrum, strength in zip(
            each(model.spectra, len(planes)), each(model.strengths, len(planes)), strict=True
        )
    ]
    noise = from_components(np.stack(parts))
    deviations = [np.sqrt(curve.variance(plane)) for curve, plane in zip(curves, planes, strict=True)]
    return np.asarray(planes + np.stack(deviations) * noise)


def _independent(curve: Curve, plane: Float, rng: np.random.Generator) -> Float:
    """A plane with independent noise in every pixel."""
    law = curve.law
    if isinstance(law, Rician):
        return add_rician(plane, law.sigma, coils=law.coils, seed=rng)
    if isinstance(law, Speckle) and law.domain != "log":
        return add_speckle(np.maximum(plane, law.least), law.looks, domain=law.domain, seed=rng)
    camera = curve.gain
    if camera is not None:
        photons = np.maximum((plane - camera.offset) / camera.gain, 0.0)
        if photons.max() < MANY_PHOTONS:
            counted = camera.gain * (rng.poisson(photons) - photons)
            return np.asarray(plane + counted + camera.read_noise * rng.standard_normal(plane.shape))
    return np.asarray(plane + np.sqrt(curve.variance(plane)) * rng.standard_normal(plane.shape))
