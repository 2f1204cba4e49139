"""Where the blocks of one frame lie in the next."""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Float2, Long3, Written, kernel


class BlockSearch(NamedTuple):
    """The blocks to search for, and how far."""

    cell: int  # pixels between blocks
    half: int  # half the side of a block
    longest: int  # the longest shift
    cost: float  # of a pixel of shift


@kernel
def block_motion(here: Float2, there: Float2, search: BlockSearch, moves: Written[Long3]) -> None:
    """The shift of every block from one frame (H, W) to another, by least squared difference.

    moves (rows, columns, 2): written. Blocks are cut at the border; ties go to the first in reading order.
    """
