"""Groups of similar patches on a device (match.cu)."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.match import ANY_MOVE
from vnlem.kernels.cuda.engine import THREADS, Engine

Array = Any  # of the engine's library

# Bytes of shared memory the kernel takes in addition to the ranks and the window.
_FIXED = 10 * 1024
_STRIP = 8


class Members(NamedTuple):
    """The groups of all reference patches."""

    positions: Array  # int32 (references, members): row * stride + column in the tall array
    transforms: Array  # uint8 (references, members)
    turned: Array  # int32 (1): how many members are turned or reflected


class References(NamedTuple):
    """The grid of reference patches."""

    rows: Array  # int32
    columns: Array  # int32

    @property
    def n(self) -> int:
        return len(self.rows) * len(self.columns)


class Field(NamedTuple):
    """What to search, and how."""

    image: Array  # (channels, rows, stride), the sheets one below another
    energy: Array  # (rows - p + 1, stride)
    penalty: Array  # (height - p + 1, width - p + 1)
    back: NDArray[np.int16]  # (transforms, p * p): pixel of the reference that lies on a pixel of the member
    shape: tuple[int, int]  # height and width of the first sheet, the image itself
    patch_size: int
    radius: int
    factor: float
    n_copied: int  # the most members from copies
    copied_radius: int = 0  # of the search windows in copies
    moves: NDArray[np.uint8] = ANY_MOVE  # see `kernels.cpu.match.Field`; places in `image`


def match(
    engine: Engine, field: Field, references: References, n_members: int, centres: Array | None = None
) -> Members:
    """The nearest patches of every reference patch, the reference itself first.

    centres: int32 (references, copies, 2), patches in the tall array around which to search as well.
    """
    xp = engine.xp
    count = references.n
    members = Members(
        xp.empty((count, n_members), np.int32), xp.empty((count, n_members), np.uint8), xp.zeros(1, np.int32)
    )
    channels, rows, stride = field.image.shape
    patch_size = field.patch_size
    side = 2 * field.radius + 1
    height, width = field.shape
    n_sheets = 1 if centres is None else 1 + centres.shape[1]
    per_sheet = min(side, height - patch_size + 1) * min(side, width - patch_size + 1)
    n_best = per_sheet + (n_sheets - 1) * (2 * field.copied_radius + 1) ** 2
    rank_floats = per_sheet + n_best + -(-n_best // 4)
    window = 4 * channels * (-(-side // _STRIP) * _STRIP + patch_size - 1) * (side + patch_size - 1)
    always = 4 * channels * field.back.size + 4 * n_members
    budget = engine.largest_shared - _FIXED - always
    in_shared = window <= budget
    ranks_in_shared = 4 * rank_floats + window * in_shared <= budget
    ranks = None if ranks_in_shared else xp.empty((count, rank_floats), np.float32)
    engine.launch(
        "match",
        (count,),
        {
            "image": field.image,
            "energy": field.energy,
            "penalty": field.penalty,
            "back": engine.constant(field.back),
            "centres": centres,
            "reference_rows": references.rows,
            "reference_columns": references.columns,
            "moves": engine.constant(field.moves),
            "ranks": ranks,
            "positions": members.positions,
            "chosen": members.transforms,
            "turned": members.turned,
            "rows": rows,
            "stride": stride,
            "height": height,
            "width": width,
            "n_sheets": n_sheets,
            "radius": field.radius,
            "copied_radius": field.copied_radius,
            "n_members": n_members,
            "n_copied": field.n_copied,
            "n_reference_columns": len(references.columns),
            "cell": math.isqrt(len(field.moves)),
            "factor": field.factor,
        },
        shared=always + 4 * rank_floats * ranks_in_shared + window * in_shared,
        P=patch_size,
        LAYERS=channels,
        TRANSFORMS=len(field.back),
        THREADS=THREADS,
        WINDOW_IN_SHARED=int(in_shared),
        COPIES=int(n_sheets > 1),
    )
    return members
