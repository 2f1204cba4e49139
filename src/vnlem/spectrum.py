"""Leading eigenpairs of the patch graph: coarse to fine, each level polished by preconditioned LOBPCG.

The graph is local, so its eigenvalues crowd at one (at 512x512 in the paper's preset the gap to the second is
5e-4, between the 31st and the 40th 6e-3) and methods that only multiply by the matrix pay for every product.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from vnlem import tiles
from vnlem._kernels import jacobi
from vnlem.neighbours.stencil import StencilGraph

Block = NDArray[np.float32]  # vectors as columns, padded as StencilGraph wants them

# Up to so many vertices the matrix is made dense and solved at once.
DENSE = 400
# The finest level that is factorised, for the preconditioner.
FACTORISED = 1100
# Vectors iterated beside the wanted ones, so that the last wanted one converges as quickly as the others.
GUARD = 9
# Keeps the factorised matrix regular; below the first gap it changes little.
SHIFT = 1e-3
MAX_ITERATIONS = 40
# Rows of a block that one BLAS call gets: so few that BLAS works in the calling thread. Its own threads
# would spin while others compute, and their number would decide the last bits.
CHUNK = 128
# Rows of a piece: all blocks of an iteration together stay in the second-level cache.
PIECE = 16 * CHUNK


@dataclass(frozen=True)
class Spectrum:
    """Leading eigenpairs of D^-1/2 W D^-1/2, largest first.

    Attributes
    ----------
    eigenvalues : ndarray, shape (count,)
    vectors : ndarray of float32, shape (vertices, count)
        Orthonormal columns.
    residual : float
        Largest ||A v - lambda v||.
    products : int
        Products of the finest level's matrix with a block of vectors.
    """

    eigenvalues: NDArray[np.float64]
    vectors: NDArray[np.float32]
    residual: float
    products: int


def leading_eigenpairs(
    graph: StencilGraph, degrees: NDArray[np.float64], count: int, tolerance: float = 1e-4
) -> Spectrum:
    """Top `count` eigenpairs of D^-1/2 W D^-1/2; the graph W is normalised in place.

    Blocks of 2x2 pixels make the next coarser graph (weights added up), down to some hundred vertices that
    are solved at once. On every level the eigenvectors of the coarser one, constant on blocks, are the
    start, and LOBPCG polishes them; its preconditioner is the residual itself plus the solution on a coarse
    level. That suffices because the window is wide: what a block of 16x16 pixels cannot show has eigenvalues
    well below one.

    Camera, 256x256, paper's preset, residual 1e-4, both from a coarse start: Chebyshev-filtered subspace
    iteration (degree 8, 40 vectors) takes 25 products on the finest level, this 6 (7 at 512x512).
    """
    block = 8 * math.ceil((count + GUARD) / 8)
    levels, roots = [graph], [np.sqrt(degrees)]
    while levels[-1].n_vertices > max(DENSE, 4 * block):
        levels.append(levels[-1].coarsened(2))
        roots.append(np.sqrt(levels[-1].degrees()))
    for level, root in zip(levels, roots, strict=True):
        level.scale(1 / root)
    n = levels[-1].n_vertices
    block = min(block, n)
    values, vectors = scipy.linalg.eigh(levels[-1].sparse().toarray(), subset_by_index=(n - block, n - 1))
    found = Spectrum(values[::-1], vectors[:, ::-1].astype(np.float32), 0.0, 0)
    factorised = next(k for k, level in enumerate(levels) if level.n_vertices <= max(FACTORISED, n))
    for depth in range(len(levels) - 2, -1, -1):
        level, root = levels[depth], roots[depth]
        start = _prolong(found.vectors / roots[depth + 1][:, None], levels[depth + 1], level) * root[:, None]
        bottom = max(depth, factorised)
        precondition = _preconditioner(levels[depth : bottom + 1], root, roots[bottom])
        found = lobpcg(level, start, count, tolerance if depth == 0 else 10 * tolerance, precondition)
    return Spectrum(found.eigenvalues[:count], found.vectors[:, :count], found.residual, found.products)


def _prolong(functions: NDArray[Any], coarse: StencilGraph, fine: StencilGraph) -> NDArray[Any]:
    """Functions on blocks as functions on pixels, constant on each block."""
    planes = functions.reshape(coarse.height, coarse.width, -1)
    planes = planes.repeat(2, axis=0)[: fine.height].repeat(2, axis=1)[:, : fine.width]
    return planes.reshape(fine.n_vertices, -1)


def _preconditioner(
    levels: list[StencilGraph], root: NDArray[np.float64], coarse_root: NDArray[np.float64]
) -> Callable[[Block], Block]:
    """Roughly the inverse of (1 + SHIFT) I - A on the first level, from a factorisation on the last."""
    graph, coarse = levels[0], levels[-1]
    identity = scipy.sparse.identity(coarse.n_vertices, format="csc")
    factors = scipy.sparse.linalg.splu(((1 + SHIFT) * identity - coarse.sparse()).tocsc())
    per_block = 2 ** (len(levels) - 1)
    rows, columns = (np.arange(0, size, per_block) for size in (graph.height, graph.width))
    fine = root.astype(np.float32).reshape(graph.height, graph.width, 1)

    def precondition(residual: Block) -> Block:
        inside = graph.inside(residual)
        if len(levels) == 1:
            solved = factors.solve(inside.reshape(graph.n_vertices, -1).astype(np.float64))
            return graph.pad(solved.astype(np.float32))
        sums = np.add.reduceat(np.add.reduceat(inside * fine, rows, axis=0), columns, axis=1)
        flat = sums.reshape(coarse.n_vertices, -1) / coarse_root[:, None]
        solved = (factors.solve(flat) / coarse_root[:, None]).astype(np.float32).reshape(sums.shape)
        solved = solved.repeat(per_block, axis=0)[: graph.height]
        out = residual.copy()
        graph.inside(out)[...] += solved.repeat(per_block, axis=1)[:, : graph.width] * fine
        return out

    return precondition


def lobpcg(
    graph: StencilGraph,
    start: NDArray[np.float32],
    count: int,
    tolerance: float,
    precondition: Callable[[Block], Block],
) -> Spectrum:
    """Locally optimal block preconditioned conjugate gradients for the largest eigenvalues of a graph.

    Float32 vectors, float64 inner products. Vectors that have converged stay in the basis but get no new
    direction: theirs would be rounding alone.
    """
    rows = Rows(graph)
    x = graph.pad(start)
    image = _apply(graph, x)
    products = 1
    size = x.shape[1]
    values, turn = _ritz(rows, [x], [image], size)
    rows.turn([x], turn)
    rows.turn([image], turn)
    step: list[Block] = []
    step_image: list[Block] = []
    residual = np.empty_like(x)
    while True:
        norms = rows.residual(x, image, values, residual)
        worst = float(norms[:count].max())
        if worst <= tolerance or products > MAX_ITERATIONS:
            break
        # A multiple of eight: the product's inner loop runs over the vectors.
        moving = 8 * math.ceil(np.count_nonzero(norms > 0.5 * tolerance) / 8)
        active = np.sort(np.argsort(norms, kind="stable")[-moving:])
        direction = precondition(np.ascontiguousarray(residual[:, active]))
        rows.project(direction, x)
        basis, images = [x, direction], [image, _apply(graph, direction)]
        products += 1
        basis += [np.ascontiguousarray(block[:, active]) for block in step]
        images += [np.ascontiguousarray(block[:, active]) for block in step_image]
        values, turn = _ritz(rows, basis, images, size)
        step, step_image = [rows.turn(basis, turn)], [rows.turn(images, turn)]
        rows.normalise(step[0], step_image[0])
    vectors = np.ascontiguousarray(graph.inside(x).reshape(graph.n_vertices, -1))
    return Spectrum(values, vectors, worst, products)


def _apply(graph: StencilGraph, vectors: Block) -> Block:
    out = np.zeros_like(vectors)
    graph.apply(vectors, out)
    return out


def _ritz(
    rows: "Rows", basis: list[Block], images: list[Block], size: int
) -> tuple[NDArray[np.float64], Block]:
    """Largest Ritz values in the span of blocks, and the combinations of their columns that attain them."""
    gram, energy = rows.gram(basis, basis), rows.gram(basis, images)
    lengths, axes = jacobi.eigh(gram)
    # Directions that float32 cannot tell from combinations of the others are left out.
    kept = lengths > 1e-5 * lengths[-1]
    axes = axes[:, kept] / np.sqrt(lengths[kept])
    reduced = axes.T @ energy @ axes
    values, turn = jacobi.eigh((reduced + reduced.T) / 2)
    chosen = (axes @ turn[:, ::-1][:, :size]).astype(np.float32)
    return values[::-1][:size], np.ascontiguousarray(chosen)


class Rows:
    """Work on tall blocks, a piece of their rows at a time: on threads, with sums in the order of pieces."""

    def __init__(self, graph: StencilGraph) -> None:
        n = graph.padded_size
        self.pieces = [slice(first, min(first + PIECE, n)) for first in range(0, n, PIECE)]
        self.workers = graph.workers

    def _sum(self, work: Callable[[slice], NDArray[Any]]) -> NDArray[np.float64]:
        parts: list[Any] = [None] * len(self.pieces)

        def store(number: int) -> None:
            parts[number] = work(self.pieces[number])

        tiles.for_each(store, range(len(parts)), self.workers)
        total: NDArray[np.float64] = np.sum(parts, axis=0, dtype=np.float64)
        return total

    def gram(self, left: list[Block], right: list[Block]) -> NDArray[np.float64]:
        """Inner products of all columns, which are those of a symmetric form."""
        ends = np.cumsum([0] + [block.shape[1] for block in left])
        spans = [slice(first, last) for first, last in itertools.pairwise(ends)]

        def work(piece: slice) -> NDArray[Any]:
            out = np.zeros((ends[-1], ends[-1]))
            for i, a in enumerate(left):
                for j, b in enumerate(right[i:], i):
                    out[spans[i], spans[j]] = _inner(a[piece], b[piece])
            return out

        upper = np.triu(self._sum(work))
        return upper + np.triu(upper, 1).T

    def project(self, block: Block, x: Block) -> None:
        """Take from a block its part in the span of x (orthonormal), in place; then unit columns."""
        along = self._sum(lambda piece: _inner(x[piece], block[piece])).astype(np.float32)

        def work(piece: slice) -> NDArray[Any]:
            block[piece] -= _turned(x[piece], along)
            return _squares(block[piece])

        block /= np.sqrt(self._sum(work)).astype(np.float32)

    def turn(self, basis: list[Block], turn: Block) -> Block:
        """basis[0] becomes the combination of all blocks; returns the share of the others, the step."""
        parts = np.split(turn, np.cumsum([block.shape[1] for block in basis])[:-1])
        step = np.empty_like(basis[0]) if len(basis) > 1 else basis[0][:0]

        def work(piece: slice) -> None:
            new = _turned(basis[0][piece], parts[0])
            if len(basis) > 1:
                moved = _turned(basis[1][piece], parts[1])
                for block, part in zip(basis[2:], parts[2:], strict=True):
                    moved += _turned(block[piece], part)
                step[piece] = moved
                new += moved
            basis[0][piece] = new

        tiles.for_each(work, self.pieces, self.workers)
        return step

    def residual(
        self, x: Block, image: Block, values: NDArray[np.float64], out: Block
    ) -> NDArray[np.float64]:
        """out = image - x * values; returns the length of its columns."""
        factors = values.astype(np.float32)

        def work(piece: slice) -> NDArray[Any]:
            np.multiply(x[piece], factors, out=out[piece])
            np.subtract(image[piece], out[piece], out=out[piece])
            return _squares(out[piece])

        lengths: NDArray[np.float64] = np.sqrt(self._sum(work))
        return lengths

    def normalise(self, block: Block, image: Block) -> None:
        """Columns of a block to unit length, its image with them."""
        lengths = np.sqrt(self._sum(lambda piece: _squares(block[piece])))
        factors = (1 / np.maximum(lengths, 1e-20)).astype(np.float32)

        def work(piece: slice) -> None:
            block[piece] *= factors
            image[piece] *= factors

        tiles.for_each(work, self.pieces, self.workers)


def _squares(block: Block) -> NDArray[Any]:
    squares: NDArray[Any] = np.einsum("pk,pk->k", block, block)
    return squares


def _inner(a: Block, b: Block) -> NDArray[np.float64]:
    """a^T b, chunks in float32 and their sum in float64."""
    whole = len(a) // CHUNK * CHUNK
    left = a[:whole].reshape(-1, CHUNK, a.shape[1]).transpose(0, 2, 1)
    parts = left @ b[:whole].reshape(-1, CHUNK, b.shape[1])
    total: NDArray[np.float64] = parts.sum(axis=0, dtype=np.float64) + a[whole:].T @ b[whole:]
    return total


def _turned(a: Block, turn: Block) -> Block:
    """a @ turn."""
    out = np.empty((len(a), turn.shape[1]), dtype=np.float32)
    whole = len(a) // CHUNK * CHUNK
    np.matmul(
        a[:whole].reshape(-1, CHUNK, a.shape[1]), turn, out=out[:whole].reshape(-1, CHUNK, turn.shape[1])
    )
    np.matmul(a[whole:], turn, out=out[whole:])
    return out
