"""Non-local patch regression on a device (nlem.cu)."""

from typing import Any

import numpy as np

from vnlem.kernels.cuda.engine import Engine

Array = Any  # of the engine's library

MOST_CHANNELS = 32  # a lane of a warp writes a channel


def nlem(
    engine: Engine,
    image: Array,
    window: Any,
    n_neighbors: int,
    decay: Any,
    *,
    gamma: float,
    remainder: float,
) -> Array:
    """The gamma-power regression of the nearest patches of every pixel's window.

    image : (channels, height, width); window, decay : as in `vnlem.kernels.cpu.nlem.nlem_tile`; remainder :
    allowed distance to the median (gamma = 1).
    """
    channels, height, width = image.shape
    radius_y, radius_x, reach_y, reach_x = window
    size_y, size_x = 2 * radius_y + 1, 2 * radius_x + 1
    if channels > MOST_CHANNELS:
        raise ValueError(
            f"{channels} channels are too many for this device; pass at most {MOST_CHANNELS} or device='cpu'"
        )
    area = (2 * reach_y + 1) * (2 * reach_x + 1)
    count = min(n_neighbors, area)
    length = channels * size_y * size_x
    median = gamma == 1.0

    def shared_of(warps: int) -> int:
        tile = channels * (2 * reach_y + size_y) * (2 * reach_x + size_x + warps - 1)
        floats: int = tile + length + warps * (area + 3 * count + (2 if median else 1) * length)
        return 4 * floats

    fitting = [warps for warps in (8, 4, 2, 1) if shared_of(warps) <= engine.largest_shared - 1024]
    if not fitting:
        raise ValueError(
            f"patches of {size_x} pixels in a window of {2 * reach_x + 1} are too large for this device; "
            "pass a smaller patch_size or patch_distance, or device='cpu'"
        )
    warps = fitting[0]
    out = engine.xp.empty_like(image)
    engine.launch(
        "nlem",
        (height, -(-width // warps)),
        {
            "image": image,
            "out": out,
            "height": height,
            "width": width,
            "reach_y": reach_y,
            "reach_x": reach_x,
            "n_neighbors": count,
            "decay": np.float32(decay.rate),
            "floor": np.float32(decay.floor),
            "gamma": float(gamma),
            "remainder": float(remainder),
        },
        threads=32 * warps,
        shared=shared_of(warps),
        SIZE_Y=size_y,
        SIZE_X=size_x,
        CHANNELS=channels,
        WARPS=warps,
        MEDIAN=int(median),
    )
    return out
