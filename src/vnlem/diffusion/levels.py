"""Coarser and coarser graphs of an image, and corrections of eigenvectors found on the coarser ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.diffusion.blocks import Block, Numbers

# Steps of conjugate gradients on a level, which starts from the solution on the next coarser one, and on the
# coarsest, which starts from zero.
STEPS = 3
STEPS_AT_THE_BOTTOM = 15
# How far a shift stays above the eigenvalues it must avoid, as a share of their distance to one: nearer, the
# errors of the coarse level would swamp the residual.
MARGIN = 0.3


class Level:
    """A graph A = D^-1/2 W D^-1/2, its leading eigenpairs once they are known, the next coarser level.

    With P constant on blocks of 2x2 pixels, D^1/2 P Dc^-1/2 has orthonormal columns, and the coarse level's
    matrix is A projected on them. The graph is a StencilGraph, or one on a device with the same methods.
    """

    def __init__(self, graph: Any, degrees: Numbers, coarser: "Level | None") -> None:
        self.graph, self.coarser = graph, coarser
        self.rows = graph.rows()
        self.root = np.sqrt(degrees)
        graph.scale(1 / self.root)
        self.values: Numbers = np.empty(0)
        self.vectors: Block = np.empty((0, 0), dtype=np.float32)
        if coarser is not None:
            blocks = coarser.root.reshape(coarser.graph.height, coarser.graph.width)
            wide = blocks.repeat(2, axis=0)[: graph.height].repeat(2, axis=1)[:, : graph.width]
            share = (self.root / wide.ravel()).astype(np.float32)
            self.share: NDArray[np.float32] = graph.pad(share[:, None])[:, 0]

    def product(self, vectors: Block, name: str) -> Block:
        """A @ vectors, in the room of that name."""
        out: Block = self.rows.room(name, vectors.shape[1])
        self.graph.apply(vectors, out)
        return out

    def restricted(self, fine: Block) -> Block:
        """A block of this level on the next coarser."""
        coarser: Any = self.coarser
        out: Block = coarser.rows.room("residual", fine.shape[1])
        self.graph.restrict(fine, self.share, coarser.graph, out)
        return out

    def prolong(self, coarse: Block, fine: Block) -> None:
        """Add a block of the next coarser level to one of this level."""
        coarser: Any = self.coarser
        self.graph.prolong(coarse, coarser.graph, self.share, fine)

    def start(self, size: int) -> tuple[Numbers, Block]:
        """The first eigenpairs of the next coarser level on this one: values, vectors constant on blocks."""
        coarser: Any = self.coarser
        out: Block = self.rows.zeros(size)
        self.prolong(coarser.rows.take(coarser.vectors, np.arange(size), "direction"), out)
        return coarser.values[:size], out

    def correct(self, residual: Block, values: Numbers) -> None:
        """Turn residuals A v - value v into directions in which the v should move, in place.

        Away from the eigenvectors this is the Jacobi-Davidson equation, (value - A) direction = residual. The
        next coarser level solves it nearly; on what that level cannot represent A is small, and the direction
        is the residual itself.
        """
        if self.coarser is not None:
            self.prolong(self.coarser.solve(self.restricted(residual), values), residual)

    def solve(self, right: Block, values: Numbers) -> Block:
        """(values - A) x = right away from the leading eigenvectors, where the matrix is positive.

        A few steps of conjugate gradients from the solution on the next coarser level; overwrites `right`.
        """
        rows = self.rows
        lowest = self.values[-1] + MARGIN * (1 - self.values[-1])
        shifts = np.maximum(values, lowest).astype(np.float32)
        x: Block = rows.room("direction", right.shape[1])
        rows.clear(x)
        steps = STEPS_AT_THE_BOTTOM
        if self.coarser is not None:
            self.prolong(self.coarser.solve(self.restricted(right), values), x)
            rows.project(x, self.vectors)
            steps = STEPS
        squares = rows.project(right, self.vectors) ** 2
        if self.coarser is not None:
            image = self.product(x, "of direction")
            rows.shifted(x, image, shifts)
            squares = rows.residual(image, right, np.ones(len(values)), right) ** 2
        step = rows.copied(right, "steps")
        for _ in range(steps):
            image = self.product(step, "of direction")
            energy = rows.shifted(step, image, shifts)
            before = squares
            squares = rows.advance(x, right, step, image, _ratio(before, energy))
            rows.follow(step, right, _ratio(squares, before))
        return x


def _ratio(a: Numbers, b: Numbers) -> Numbers:
    """a / b, zero if b is not positive: nothing is left to solve there."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
