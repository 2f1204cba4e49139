"""Blocks of vectors on the pixels of a graph: their algebra, a piece of the rows at a time, on threads."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem import tiles
from vnlem._kernels import tall
from vnlem.neighbours.stencil import StencilGraph

# Vectors as columns, a multiple of eight of them, padded as StencilGraph wants them.
Block = NDArray[np.float32]
Numbers = NDArray[np.float64]

# Rows of a piece; fixed, so that sums do not depend on the number of workers.
PIECE = 4096


class Rows:
    """Operations on the blocks of one graph. Float32 vectors, float64 inner products."""

    def __init__(self, graph: StencilGraph) -> None:
        n = graph.padded_size
        self.pieces = [(first, min(first + PIECE, n)) for first in range(0, n, PIECE)]
        self.workers = graph.workers

    def _each(self, work: Callable[[int, int], Any]) -> None:
        tiles.for_each(lambda piece: work(*piece), self.pieces, self.workers)

    def _sum(self, shape: Any, work: Callable[[int, int, Numbers], Any]) -> Numbers:
        """Sum of what `work` adds to an array of zeros for every piece, in their order."""
        parts = {piece: np.zeros(shape) for piece in self.pieces}
        self._each(lambda first, last: work(first, last, parts[first, last]))
        return np.sum(list(parts.values()), axis=0)

    def inner(self, a: Block, b: Block) -> Numbers:
        """a^T b."""
        shape = (a.shape[1], b.shape[1])
        return self._sum(shape, lambda first, last, out: tall.inner(a, b, first, last, out))

    def project(self, block: Block, x: Block) -> Numbers:
        """Take from a block its part in the span of x (orthonormal), in place; returns columns' lengths."""
        along = self.inner(x, block).astype(np.float32)
        squares = self._sum(
            block.shape[1],
            lambda first, last, out: tall.subtract_product(block, x, along, first, last, out),
        )
        return np.sqrt(squares)

    def turn(self, x: Block, others: Sequence[Block], turn: Numbers, scale: Numbers) -> Block:
        """x becomes the combination `turn` of x and of others; returns the others' share times scale."""
        step = np.empty_like(x)
        ends = np.cumsum([x.shape[1]] + [block.shape[1] for block in others])
        own, *rest = np.split(turn.astype(np.float32), ends[:-1])
        factors = scale.astype(np.float32)
        self._each(
            lambda first, last: tall.turn(x, tuple(others), own, tuple(rest), factors, first, last, step)
        )
        return step

    def residual(self, x: Block, image: Block, values: Numbers, out: Block) -> Numbers:
        """out = image - x * values; returns the length of its columns."""
        factors = values.astype(np.float32)
        squares = self._sum(
            len(values), lambda first, last, sums: tall.residual(x, image, factors, first, last, out, sums)
        )
        return np.sqrt(squares)

    def scale(self, block: Block, factors: Numbers) -> None:
        """Columns of a block times factors, in place."""
        single = factors.astype(np.float32)
        self._each(lambda first, last: tall.scale(block, single, first, last))

    def take(self, block: Block, columns: NDArray[np.int64]) -> Block:
        """Some columns of a block."""
        out = np.empty((len(block), len(columns)), dtype=np.float32)
        self._each(lambda first, last: tall.take(block, columns, first, last, out))
        return out

    def shifted(self, x: Block, image: Block, shifts: Block) -> Numbers:
        """image = shifts * x - image, in place; returns the inner products of its columns with x's."""
        return self._sum(
            len(shifts), lambda first, last, out: tall.shifted(x, image, shifts, first, last, out)
        )

    def advance(self, x: Block, r: Block, p: Block, q: Block, factors: Numbers) -> Numbers:
        """x += factors * p, r -= factors * q, in place; returns the squared lengths of r's columns."""
        single = factors.astype(np.float32)
        return self._sum(
            len(single), lambda first, last, out: tall.advance(x, r, p, q, single, first, last, out)
        )

    def follow(self, p: Block, r: Block, factors: Numbers) -> None:
        """p = r + factors * p, in place."""
        single = factors.astype(np.float32)
        self._each(lambda first, last: tall.follow(p, r, single, first, last))
