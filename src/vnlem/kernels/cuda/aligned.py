"""Estimates of pixels from their neighbours on a device (aligned.cu, regress.cu)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cuda.engine import Engine
from vnlem.kernels.cuda.rid import Features, Neighbours

Array = Any  # of the engine's library


# For the kernel with one warp per pixel: neighbours, warps of a block, and pixels of a block.
_MOST_OF_WARP = 64
_WARPS, _ROWS, _COLUMNS = 4, 4, 8


class Regression(NamedTuple):
    """How distances become weights and weights an estimate."""

    noise: float  # squared distance of equal patches due to noise; subtracted
    inverse_bandwidth: float
    own_as_best: bool
    gamma: float
    step: float
    unturned: bool  # neighbours may be used without rotation
    orders: NDArray[np.int64]  # (lanes of all channels), angular order of each lane
    cosine: NDArray[np.float32]  # (angles, lanes), of order * angle
    sine: NDArray[np.float32]


def estimate(
    engine: Engine, features: Features, found: Neighbours, rule: Regression, rows: tuple[int, int]
) -> Array:
    """The denoised pixels of rows top..bottom: (channels, rows, width)."""
    xp = engine.xp
    height, width, dim = features.raw.shape
    channels = len(features.pixels)
    top, bottom = rows
    out = xp.empty((channels, bottom - top, width), np.float32)
    n_neighbors = found.position.shape[1]
    n_angles = len(rule.cosine)
    mean = rule.gamma == 2.0
    argument = {
        "raw": features.raw,
        "canonical": features.canonical,
        "sharp": features.sharp,
        "angle": features.angle,
        "pixels": features.pixels,
        "orders": engine.constant(rule.orders.astype(np.int32)),
        "cosine": engine.constant(rule.cosine),
        "sine": engine.constant(rule.sine),
        **found._asdict(),
        "out": out,
        "height": height,
        "width": width,
        "top": top,
        "rows": bottom - top,
        "n_neighbors": n_neighbors,
        "n_angles": n_angles,
        "spare": int(np.flatnonzero(rule.orders == 0)[0]),
        "noise": rule.noise,
        "inverse_bandwidth": rule.inverse_bandwidth,
        "gamma": rule.gamma,
        "step": rule.step,
        "own_as_best": rule.own_as_best,
    }
    macros = {"HALF": dim // 2, "CHANNELS": channels}
    tables = n_angles + (_WARPS if rule.unturned else 0)
    shared = 4 * (2 * tables * (dim // 2 + 16) + 64 * _WARPS)
    if not mean and n_neighbors <= _MOST_OF_WARP and shared <= engine.largest_shared - 1024:
        engine.launch(
            "regress",
            (-(-(bottom - top) // _ROWS), -(-width // _COLUMNS)),
            argument,
            threads=32 * _WARPS,
            shared=shared,
            GROUPS=-(-n_neighbors // 8),
            UNTURNED=int(rule.unturned),
            WARPS=_WARPS,
            ROWS=_ROWS,
            COLUMNS=_COLUMNS,
            **macros,
        )
        return out
    room = -(-n_neighbors // 4) * 4
    shared = 4 * (2 * room if mean else 3 * room + 2 * dim + n_neighbors * (dim + 4))
    if shared > engine.largest_shared - 1024:
        raise ValueError(
            f"{n_neighbors} patches are too many for this device; pass a smaller n_neighbors or device='cpu'"
        )
    threads = 64 if mean else 128
    engine.launch(
        "aligned",
        ((bottom - top) * width,),
        argument,
        threads=threads,
        shared=shared,
        MEAN=int(mean),
        THREADS=threads,
        **macros,
    )
    return out
