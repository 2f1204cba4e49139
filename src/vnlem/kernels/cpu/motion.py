"""Where the blocks of one frame lie in the next."""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Float2, Long2, Long3, Long4, Written, kernel


class BlockSearch(NamedTuple):
    """The blocks to search for, and how far."""

    cell: int  # pixels between blocks, an even number; blocks are twice as high and wide
    longest: int  # the longest shift
    cost: float  # of a pixel of shift
    first: int = 0  # row of blocks, that of moves[0]


@kernel
def block_motion(here: Float2, there: Float2, search: BlockSearch, moves: Written[Long3]) -> None:
    """The shift of every block from one frame (H, W) to another, by least squared difference.

    moves (rows, columns, 2): written. Blocks are cut at the border; ties go to the first in reading order.
    Rows of blocks are independent of each other.
    """


class Moves(NamedTuple):
    """How blocks move between the planes in flight, (pairs of planes, rows, columns, 2)."""

    onward: Long4
    back: Long4
    cell: int  # pixels between blocks


@kernel
def follow_motion(moves: Moves, corners: Long2, plane: int, middle: int, centres: Written[Long3]) -> None:
    """Where the windows of patches lie in all planes in flight.

    corners (r, 2): of patches in one plane; middle: from a corner to a patch's middle;
    centres (r, planes, 3): plane, row and column, the patches' own plane first, then the others in order.
    """
