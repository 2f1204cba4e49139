"""Halving and joining of scales on a CUDA device, with the bits of `vnlem.estimate.scales`."""

from typing import Any

import numpy as np

from vnlem.estimate.scales import DETAIL, LEFT_OVER, WINDOW, doubling_weights, low_pass_taps
from vnlem.kernels.cuda import engine as engines
from vnlem.kernels.cuda import scales as kernels

Array = Any  # of the engine's library


def halve(planes: Array, engine: engines.Engine | None = None) -> Array:
    """`vnlem.estimate.scales.halve`."""
    engine = engine or engines.Engine()
    return kernels.halve(engine, engine.xp.ascontiguousarray(planes, np.float64), low_pass_taps())


def join(fine: Array, coarse: Array, sigma: Any, engine: engines.Engine | None = None) -> Array:
    """`vnlem.estimate.scales.join`; sigma: a number, or an array that fits `fine`."""
    engine = engine or engines.Engine()
    xp, weights = engine.xp, doubling_weights()
    fine, coarse = (xp.ascontiguousarray(planes, np.float64) for planes in (fine, coarse))
    size = fine.shape[1:]
    low = kernels.halve(engine, fine, low_pass_taps())
    change = kernels.double(engine, coarse - low, size, weights)
    shown = kernels.double(engine, low, size, weights)
    means = kernels.mean(engine, kernels.join_energy(engine, fine, shown, change, DETAIL), WINDOW)
    if np.ndim(sigma) == 0:
        noise: Any = float(sigma)
    else:
        noise = xp.ascontiguousarray(xp.broadcast_to(sigma, fine.shape), np.float64)
    return kernels.join_pixels(engine, fine, change, means, noise, LEFT_OVER)


def level_around(sigma: Array, engine: engines.Engine | None = None) -> Array:
    """`vnlem.estimate.scales.level_around`."""
    engine = engine or engines.Engine()
    squares = engine.xp.ascontiguousarray(sigma * sigma, np.float64)
    return engine.xp.sqrt(kernels.mean(engine, squares, WINDOW))
