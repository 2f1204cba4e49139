"""Noise: how much of it there is, of which kind, and how to add some for an experiment."""

from vnlem.noise.poisson_gaussian import GainModel, estimate_gain
from vnlem.noise.white import add_gaussian, estimate_sigma, standardise, unstandardise

__all__ = ["GainModel", "add_gaussian", "estimate_gain", "estimate_sigma", "standardise", "unstandardise"]
