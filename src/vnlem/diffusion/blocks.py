"""Blocks of vectors on the pixels of a graph: their algebra, in pieces of rows, on threads."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu import tall
from vnlem.pipeline.workers import Pool

# Vectors as columns, a multiple of eight of them, padded as a StencilGraph takes them.
Block = NDArray[np.float32]
Numbers = NDArray[np.float64]

# Rows of a piece; fixed, because sums must not depend on the number of workers.
PIECE = 8192
# A missing block.
NOTHING: Block = np.empty((0, 0), dtype=np.float32)


class Rooms:
    """Memory for the blocks of one graph, which has n vertices; xp is NumPy or CuPy."""

    def __init__(self, n: int, xp: Any) -> None:
        self._n, self._xp = n, xp
        self._rooms: dict[str, Any] = {}

    def room(self, name: str, width: int) -> Any:
        """Memory for a block, reused by calls with the same name: new memory costs more than the work."""
        held = self._rooms.get(name)
        if held is None or held.size < self._n * width:
            held = self._rooms[name] = self._xp.empty(self._n * width, np.float32)
        return held[: self._n * width].reshape(self._n, width)

    def leave(self) -> None:
        """Free the memory, so that other levels can reuse it."""
        self._rooms.clear()

    def zeros(self, width: int) -> Any:
        """A new block of zeros."""
        return self._xp.zeros((self._n, width), np.float32)


class Rows(Rooms):
    """Operations on the blocks of one graph. Float32 vectors, float64 inner products."""

    def __init__(self, n: int, pool: Pool) -> None:
        super().__init__(n, np)
        self.pieces = [(first, min(first + PIECE, n)) for first in range(0, n, PIECE)]
        self._pool = pool

    def _each(self, work: Callable[[int, int], Any]) -> None:
        self._pool.for_each(lambda piece: work(*piece), self.pieces)

    def _sum(self, shape: Any, work: Callable[[int, int, Numbers], Any]) -> Numbers:
        """Sum over pieces, in their order, of what `work` adds to an array of zeros."""
        parts = {piece: np.zeros(shape) for piece in self.pieces}
        self._each(lambda first, last: work(first, last, parts[first, last]))
        total: Numbers = np.sum(list(parts.values()), axis=0)
        return total

    def clear(self, block: Block) -> None:
        """Set a block to zero."""
        self._each(lambda first, last: block[first:last].fill(0))

    def copied(self, block: Block, name: str) -> Block:
        """A block's numbers in the room of that name."""
        out: Block = self.room(name, block.shape[1])
        self._each(lambda first, last: np.copyto(out[first:last], block[first:last]))
        return out

    def inner(self, lefts: Sequence[Block], rights: Sequence[Block]) -> Numbers:
        """Inner products of all columns of some blocks (rows) with all columns of others (columns)."""
        shape = tuple(sum(block.shape[1] for block in side) for side in (lefts, rights))
        left, right = _three(lefts), _three(rights)
        return self._sum(shape, lambda first, last, out: tall.inner_products(left, right, first, last, out))

    def project(self, block: Block, x: Block) -> Numbers:
        """Subtract from a block its part in the span of x (orthonormal), in place; returns column lengths."""
        along = self.inner([x], [block]).astype(np.float32)
        squares = self._sum(
            block.shape[1],
            lambda first, last, out: tall.subtract_product(block, x, along, first, last, out),
        )
        return np.sqrt(squares)

    def turn(self, x: Block, others: Sequence[Block], turn: Numbers) -> None:
        """x becomes the combination `turn` of x and of others."""
        self._combine([x, *others], turn, np.ones(x.shape[1]), x)

    def combine(self, others: Sequence[Block], turn: Numbers, scale: Numbers, out: Block) -> None:
        """out = the others' share of the combination `turn`, times scale; it may be one of the others."""
        self._combine(others, turn[-sum(block.shape[1] for block in others) :], scale, out)

    def _combine(self, blocks: Sequence[Block], turn: Numbers, scale: Numbers, out: Block) -> None:
        three, matrix, factors = _three(blocks), turn.astype(np.float32), scale.astype(np.float32)
        self._each(lambda first, last: tall.combine(three, matrix, factors, first, last, out))

    def residual(self, x: Block, image: Block, values: Numbers, out: Block) -> Numbers:
        """out = image - x * values; returns the length of its columns."""
        factors = values.astype(np.float32)
        squares = self._sum(
            len(values), lambda first, last, sums: tall.residual(x, image, factors, first, last, out, sums)
        )
        return np.sqrt(squares)

    def residual_lengths(self, x: Block, image: Block, values: Numbers) -> Numbers:
        """The lengths of the columns of image - x * values."""
        return self.residual(x, image, values, NOTHING)

    def scale(self, block: Block, factors: Numbers) -> None:
        """Columns of a block times factors, in place."""
        single = factors.astype(np.float32)
        self._each(lambda first, last: np.multiply(block[first:last], single, out=block[first:last]))

    def take(self, block: Block, columns: NDArray[np.int64], name: str) -> Block:
        """Some columns of a block: in the room of that name, or the block itself if they are all."""
        if len(columns) == block.shape[1]:
            return block
        out: Block = self.room(name, len(columns))
        self._each(lambda first, last: tall.take_columns(block, columns, first, last, out))
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


def _three(blocks: Sequence[Block]) -> tall.Blocks:
    """Up to three blocks in the form the kernels take."""
    first, second, third = (*blocks, *[NOTHING] * (3 - len(blocks)))
    return tall.Blocks(first, second, third)
