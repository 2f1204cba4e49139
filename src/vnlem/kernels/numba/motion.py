"""Where the blocks of one frame lie in the next."""

import numpy as np

from vnlem.kernels.numba.jit import kernel


@kernel
def block_motion(here, there, settings, moves):
    """The shift of every block from one frame (H, W) to another, of least squared difference.

    settings: pixels between blocks, half the side of a block, the longest shift, and what a pixel of shift
    costs. moves (rows, columns, 2), int64: written. Blocks are cut at the border; among equals the first in
    reading order wins.
    """
    cell, half, longest, cost = settings
    height, width = here.shape
    for i in range(moves.shape[0]):
        for j in range(moves.shape[1]):
            top, bottom = max(0, i * cell + cell // 2 - half), min(height, i * cell + cell // 2 + half)
            left, right = max(0, j * cell + cell // 2 - half), min(width, j * cell + cell // 2 + half)
            least = np.float32(np.inf)
            moves[i, j, 0] = 0
            moves[i, j, 1] = 0
            for dy in range(max(-longest, -top), min(longest, height - bottom) + 1):
                for dx in range(max(-longest, -left), min(longest, width - right) + 1):
                    total = cost * np.float32(abs(dy) + abs(dx))
                    for y in range(top, bottom):
                        a = here[y, left:right]
                        b = there[y + dy, left + dx : right + dx]
                        part = np.float32(0)
                        for x in range(a.size):
                            part += (a[x] - b[x]) * (a[x] - b[x])
                        total += part
                        if total >= least:
                            break
                    if total < least:
                        least = total
                        moves[i, j, 0] = dy
                        moves[i, j, 1] = dx
