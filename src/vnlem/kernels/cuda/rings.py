"""Ring features of all pixels on a device (rings.cu)."""

import itertools
from typing import Any

import numpy as np

from vnlem.kernels.cpu.rings import Sampling
from vnlem.kernels.cuda.engine import Engine

Array = Any  # of the engine's library


def ring_features(
    engine: Engine, planes: Array, angles: Array, sampling: Sampling, halo: int, lanes: int
) -> tuple[Array, Array, Array]:
    """Features in the image's frame and turned by minus the angles, and their squared lengths.

    planes (channels, k, k, H + 2 halo, W + 2 halo), angles (H, W) -> two of (H, W, dim), (H, W).
    """
    xp = engine.xp
    channels, upsample, _, full_height, full_width = planes.shape
    height, width = angles.shape
    raw, canonical = (xp.empty((height, width, 2 * channels * lanes), np.float32) for _ in range(2))
    lengths = xp.empty((height, width), np.float32)
    phase_y, phase_x, dy, dx = np.moveaxis(sampling.where, -1, 0)
    where = ((phase_y * upsample + phase_x) * full_height + dy) * full_width + dx
    n_rings, n_orders, _ = sampling.real.shape
    order_of = np.zeros(lanes, np.int32)
    for orders in sampling.lane_of:
        held = np.flatnonzero(orders >= 0)
        order_of[orders[held]] = held
    # Groups of four orders side by side, real and imaginary, for each sample.
    fours = -(-n_orders // 4)
    rows = np.zeros((sampling.starts[-1], 2, 4 * fours), np.float32)
    for ring, (first, last) in enumerate(itertools.pairwise(sampling.starts)):
        for part, table in enumerate((sampling.real, sampling.imag)):
            rows[first:last, part, :n_orders] = table[ring, :, : last - first].T
    fours_of = -(-(sampling.lane_of >= 0).sum(axis=1) // 4)
    # A warp collects the features of 32 pixels.
    of_warp = 4 * 32 * (2 * lanes + 1 + 2 * n_orders)
    warps = 2 if 2 * of_warp <= engine.largest_shared - 1024 else 1
    engine.launch(
        "rings",
        (height, -(-width // (32 * warps))),
        {
            "planes": planes,
            "angles": angles,
            "where": engine.constant(where.astype(np.int32)),
            "weights": engine.constant(sampling.weights),
            "starts": engine.constant(sampling.starts.astype(np.int32)),
            "rows": engine.constant(rows),
            "fours_of": engine.constant(fours_of.astype(np.int32)),
            "lane_of": engine.constant(sampling.lane_of.astype(np.int32)),
            "order_of": engine.constant(order_of),
            "raw": raw,
            "canonical": canonical,
            "lengths": lengths,
            "height": height,
            "width": width,
            "channels": channels,
            "n_rings": n_rings,
            "lanes": lanes,
            "centre_lane": sampling.centre_lane,
            "halo": halo,
            "plane": upsample**2 * full_height * full_width,
            "full_width": full_width,
            "centre": float(sampling.centre),
        },
        threads=32 * warps,
        shared=warps * of_warp,
        ORDERS=n_orders,
    )
    return raw, canonical, lengths
