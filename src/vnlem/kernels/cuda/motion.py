"""How blocks move from frame to frame, and the windows that follow them (motion.cu)."""

from typing import Any

import numpy as np

from vnlem.kernels.cuda.engine import THREADS, Engine
from vnlem.kernels.cuda.match import References

Array = Any  # of the engine's library


def smooth_frame(engine: Engine, frame: Array, blocks: dict[str, int]) -> Array:
    """Means of 3 x 3 pixels of a frame (H, W), maybe part of an array; blocks: see `block_motion`."""
    height, width = frame.shape
    out = engine.xp.empty((height, width), np.float32)
    engine.launch(
        "motion",
        (height, -(-width // THREADS)),
        {
            "frame": frame,
            "out": out,
            "height": height,
            "width": width,
            "stride": frame.strides[0] // frame.itemsize,
        },
        kernel="smooth_frame",
        THREADS=THREADS,
        **blocks,
    )
    return out


def block_motion(
    engine: Engine,
    before: Array,
    after: Array,
    cost: float,
    blocks: dict[str, int],
    into: tuple[Array, Array],
) -> None:
    """The shifts of all blocks from one frame (H, W) to the next, and back.

    cost: of a pixel of shift; blocks: CELL, the pixels between blocks, HALF their side, the LONGEST shift.
    Written: two arrays (rows, columns, 2) of int32.
    """
    height, width = before.shape
    onward, back = into
    engine.launch(
        "motion",
        (*onward.shape[:2], 2),
        {
            "before": before,
            "after": after,
            "onward": onward,
            "back": back,
            "height": height,
            "width": width,
            "cost": cost,
        },
        kernel="block_motion",
        THREADS=THREADS,
        **blocks,
    )


def follow(
    engine: Engine,
    references: References,
    where: tuple[int, int],
    patch_size: int,
    blocks: dict[str, int],
    moves: tuple[Array, Array] | None,
) -> Array:
    """Plane, row and column (references, planes, 3) of the windows of references in one of some planes.

    where: the references' plane, and how many planes; moves: (planes - 1, rows, columns, 2), onward and back;
    None if nothing moves.
    """
    plane, n_planes = where
    count = references.n
    centres = engine.xp.empty((count, n_planes, 3), np.int32)
    cells = (0, 0) if moves is None else moves[0].shape[1:3]
    engine.launch(
        "motion",
        (-(-count // THREADS),),
        {
            "onward": None if moves is None else moves[0],
            "back": None if moves is None else moves[1],
            "reference_rows": references.rows,
            "reference_columns": references.columns,
            "centres": centres,
            "n_references": count,
            "n_reference_columns": len(references.columns),
            "plane": plane,
            "n_planes": n_planes,
            "cell_rows": cells[0],
            "cell_columns": cells[1],
            "middle": patch_size // 2,
        },
        kernel="follow",
        THREADS=THREADS,
        **blocks,
    )
    return centres
