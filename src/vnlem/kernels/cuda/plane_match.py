"""Groups of similar patches in several planes of a stack (plane_match.cu)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cuda.engine import Engine
from vnlem.kernels.cuda.match import References

Array = Any  # of the engine's library

THREADS = 256
# Bytes of shared memory the kernel takes in addition to the ranks and windows.
_FIXED = 13 * 1024
_STRIP = 8
# Windows loaded together take at most this much, to let several blocks share a multiprocessor.
_WINDOWS = 40 * 1024
# Blocks that process one reference after another, if their ranks do not fit in shared memory.
_BLOCKS = 528
MOST_SITES = 128


class Members(NamedTuple):
    """The groups of the reference patches of one plane."""

    positions: Array  # int32 (references, members): index into the planes in flight
    transforms: Array  # uint8 (references, members)


class Field(NamedTuple):
    """What to search, and how."""

    image: Array  # (planes, channels, height, stride)
    energy: Array  # (planes, height, stride), of patches at their corners
    about_mean: Array | None  # (height, stride), of the references' plane; None: no reference is flat
    sizes: Array  # int32 (planes, 2): rows and columns that hold pixels
    # (transforms, pixels of a patch): pixel of the reference that lies on a pixel of the member; the planes
    # of a patch one after another, each with all channels.
    back: NDArray[np.int16]
    patch_size: int
    depth: int  # planes that a patch spans
    radius: int
    factor: float
    penalty: float
    flat: float  # references with less energy about their mean are only shifted


def match_planes(
    engine: Engine, field: Field, references: References, centres: Array, n_members: int
) -> Members:
    """The nearest patches of every reference patch of one plane, the reference itself first.

    centres: int32 (references, sites, 3), plane, row and column of the patches around which to search, the
    reference itself first; a negative plane for none.
    """
    xp = engine.xp
    count, n_sites, _ = centres.shape
    if n_sites > MOST_SITES:
        raise ValueError(
            f"windows in {n_sites} planes are too many for this device; "
            "pass a smaller plane_distance or device='cpu'"
        )
    members = Members(xp.empty((count, n_members), np.int32), xp.empty((count, n_members), np.uint8))
    _, channels, height, stride = field.image.shape
    side, size = 2 * field.radius + 1, field.patch_size
    n = n_sites * side**2
    rank_bytes = 4 * (2 * n + -(-n // 4))
    window = 4 * channels * field.depth * (-(-side // _STRIP) * _STRIP + size - 1) * (side + size - 1)
    always = 4 * field.back.size + 4 * n_members
    budget = engine.largest_shared - _FIXED - always
    in_shared = window <= budget
    together = min(n_sites, max(1, min(_WINDOWS, budget) // window)) if in_shared else n_sites
    ranks_in_shared = rank_bytes + in_shared * together * window <= budget
    blocks = count if ranks_in_shared else min(count, _BLOCKS)
    engine.launch(
        "plane_match",
        (blocks,),
        {
            "image": field.image,
            "energy": field.energy,
            "about_mean": field.about_mean,
            "back": engine.constant(field.back),
            "sizes": field.sizes,
            "centres": centres,
            "reference_rows": references.rows,
            "reference_columns": references.columns,
            "ranks": None if ranks_in_shared else xp.empty((blocks, rank_bytes // 4), np.float32),
            "positions": members.positions,
            "chosen": members.transforms,
            "height": height,
            "stride": stride,
            "n_references": count,
            "n_reference_columns": len(references.columns),
            "n_sites": n_sites,
            "radius": field.radius,
            "n_members": n_members,
            "together": together,
            "factor": field.factor,
            "penalty": field.penalty,
            "flat": field.flat,
        },
        threads=THREADS,
        shared=always + ranks_in_shared * rank_bytes + in_shared * together * window,
        P=size,
        CHANNELS=channels,
        LAYERS=channels * field.depth,
        TRANSFORMS=len(field.back),
        THREADS=THREADS,
        WINDOW_IN_SHARED=int(in_shared),
    )
    return members
