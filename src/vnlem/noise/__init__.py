"""Noise: how much of it there is, of which kind, and how to add some for an experiment."""

from vnlem.noise.auto import estimate_noise
from vnlem.noise.calibrate import calibrate_sensor, defect_map
from vnlem.noise.fit import estimate_gain
from vnlem.noise.model import NoiseModel
from vnlem.noise.poisson_gaussian import GainModel
from vnlem.noise.predictive import NoiseCheck, predictive_check
from vnlem.noise.rician import add_rician
from vnlem.noise.speckle import add_speckle
from vnlem.noise.white import add_gaussian, estimate_sigma, standardise, unstandardise

__all__ = [
    "GainModel",
    "NoiseCheck",
    "NoiseModel",
    "add_gaussian",
    "add_rician",
    "add_speckle",
    "calibrate_sensor",
    "defect_map",
    "estimate_gain",
    "estimate_noise",
    "estimate_sigma",
    "predictive_check",
    "standardise",
    "unstandardise",
]
