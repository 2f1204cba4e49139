"""Groups of similar patches on a device, of an image or a stack (match.cu)."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.match import ANY_MOVE
from vnlem.kernels.cuda.engine import THREADS, Engine

Array = Any  # of the engine's library

# Bytes of shared memory the kernel takes in addition to the ranks and the windows.
_FIXED = 13 * 1024
_STRIP = 8
# Windows of a reference loaded together take at most this much, to let several blocks share a multiprocessor.
_WINDOWS = 40 * 1024
# Blocks that process one reference after another, if their ranks do not fit in shared memory.
_BLOCKS = 528
MOST_WINDOWS = 128


class Members(NamedTuple):
    """The groups of all reference patches, or of those of one plane."""

    positions: Array  # int32 (references, members): index into one channel of the image
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

    # (channels, rows, stride), an image with its copies below it; (planes, channels, rows, stride), a stack.
    image: Array
    sizes: Array  # int32 (planes, 2): rows and columns that hold pixels, without copies
    energy: Array  # of patches at their corners
    penalty: Array | None  # of the references, at their corners; None: even_penalty
    # (transforms, pixels of a patch, plane by plane): pixel of the reference that lies on one of the member
    back: NDArray[np.int16]
    patch_size: int
    radius: int
    factor: float
    n_copied: int = 0  # the most members from copies
    copied_radius: int = 0  # of the search windows in copies
    moves: NDArray[np.uint8] = ANY_MOVE  # see `kernels.cpu.match.Field`; places in `image`
    depth: int = 1  # planes that a patch spans
    even_penalty: float = 0.0


def match(
    engine: Engine,
    field: Field,
    references: References,
    n_members: int,
    *,
    centres: Array | None = None,
    copies: Array | None = None,
) -> Members:
    """The nearest patches of every reference patch, the reference itself first.

    centres: of the windows in a stack, int32 (references, windows, 3): plane, row and column, the reference
    itself first; a negative plane for none. When None, one window around the reference.
    copies: centres in the copies of an image, int32 (references, copies, 2).
    """
    xp, count = engine.xp, references.n
    members = Members(
        xp.empty((count, n_members), np.int32), xp.empty((count, n_members), np.uint8), xp.zeros(1, np.int32)
    )
    channels, rows, stride = field.image.shape[-3:]
    side, size = 2 * field.radius + 1, field.patch_size
    n_windows = 1 if centres is None else centres.shape[1]
    n_copies = 0 if copies is None else copies.shape[1]
    if n_windows > MOST_WINDOWS:
        raise ValueError(
            f"windows in {n_windows} planes are too many for this device; "
            "pass a smaller plane_distance or device='cpu'"
        )
    n_own = n_windows * side**2
    n_best = n_own + n_copies * (2 * field.copied_radius + 1) ** 2
    rank_floats = n_own + n_best + -(-n_best // 4)
    window = 4 * channels * field.depth * (-(-side // _STRIP) * _STRIP + size - 1) * (side + size - 1)
    always = 4 * channels * field.back.size + 4 * n_members
    budget = engine.largest_shared - _FIXED - always
    in_shared = window <= budget
    most = max(1, min(_WINDOWS, budget) // window) if in_shared else n_windows
    together = min(n_windows, most)
    windows = in_shared * together * window
    ranks_in_shared = 4 * rank_floats + windows <= budget
    blocks = count if ranks_in_shared else min(count, _BLOCKS)
    cell = math.isqrt(len(field.moves))
    engine.launch(
        "match",
        (blocks,),
        {
            "image": field.image,
            "energy": field.energy,
            "penalty": field.penalty,
            "back": engine.constant(_in_all_channels(field.back, size**2, channels)),
            "sizes": field.sizes,
            "centres": centres,
            "copies": copies,
            "reference_rows": references.rows,
            "reference_columns": references.columns,
            "moves": engine.constant(field.moves),
            "ranks": None if ranks_in_shared else xp.empty((blocks, rank_floats), np.float32),
            "positions": members.positions,
            "chosen": members.transforms,
            "turned": members.turned,
            "rows": rows,
            "stride": stride,
            "n_references": count,
            "n_reference_columns": len(references.columns),
            "n_windows": n_windows,
            "n_copies": n_copies,
            "radius": field.radius,
            "copied_radius": field.copied_radius,
            "n_members": n_members,
            "n_copied": field.n_copied,
            "together": together,
            "cell": cell,
            "penalty_stride": 0 if field.penalty is None else field.penalty.shape[1],
            "factor": field.factor,
            "even_penalty": field.even_penalty,
        },
        threads=THREADS,
        shared=always + 4 * rank_floats * ranks_in_shared + windows,
        P=size,
        CHANNELS=channels,
        LAYERS=channels * field.depth,
        TRANSFORMS=len(field.back),
        THREADS=THREADS,
        WINDOW_IN_SHARED=int(in_shared),
        CELLS=int(cell > 1),
        COPIES=int(n_copies > 0),
    )
    return members


def _in_all_channels(back: NDArray[np.int16], pixels: int, channels: int) -> NDArray[np.int16]:
    """The same for patches whose planes follow one another, each with all its channels.

    >>> _in_all_channels(np.array([[1, 0]], np.int16), 2, 2)
    array([[1, 0, 3, 2]], dtype=int16)
    """
    depth, within = np.divmod(back.reshape(len(back), -1, 1, pixels), pixels)
    found = (depth * channels + np.arange(channels)[:, None]) * pixels + within
    return found.reshape(len(back), -1).astype(np.int16)
