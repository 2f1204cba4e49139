"""Leading eigenpairs of the patch graph: coarse to fine, each level polished by preconditioned LOBPCG.

The graph is local, so its eigenvalues crowd at one (at 512x512 in the paper's preset the gap to the second is
5e-4, between the 31st and the 40th 6e-3) and methods that only multiply by the matrix pay for every product.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

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

    Camera, 256x256, paper's preset, residual 1e-4 from the same start: Chebyshev-filtered subspace iteration
    (degree 8, 40 vectors) 25 products on the finest level, this 6 (7 at 512x512).
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
    x = graph.pad(start)
    image = _apply(graph, x)
    products = 1
    size = x.shape[1]
    values, turn = _ritz([x], [image], size)
    x, image = _turned(x, turn), _turned(image, turn)
    step: Block | None = None
    step_image: Block | None = None
    while True:
        residual = image - x * values.astype(np.float32)
        norms = np.sqrt(np.einsum("pk,pk->k", residual, residual, dtype=np.float64))
        worst = float(norms[:count].max())
        if worst <= tolerance or products > MAX_ITERATIONS:
            break
        # A multiple of eight: the product's inner loop runs over the vectors.
        moving = 8 * math.ceil(np.count_nonzero(norms > 0.5 * tolerance) / 8)
        active = np.sort(np.argsort(norms, kind="stable")[-moving:])
        direction = precondition(np.ascontiguousarray(residual[:, active]))
        direction -= _turned(x, _inner(x, direction).astype(np.float32))
        direction /= np.sqrt(np.einsum("pk,pk->k", direction, direction))
        basis, images = [x, direction], [image, _apply(graph, direction)]
        products += 1
        if step is not None and step_image is not None:
            basis.append(np.ascontiguousarray(step[:, active]))
            images.append(np.ascontiguousarray(step_image[:, active]))
        values, turn = _ritz(basis, images, size)
        parts = np.split(turn, np.cumsum([part.shape[1] for part in basis])[:-1])
        step, step_image = (_combined(blocks[1:], parts[1:]) for blocks in (basis, images))
        x = _turned(x, parts[0]) + step
        image = _turned(image, parts[0]) + step_image
        length = np.sqrt(np.einsum("pk,pk->k", step, step))
        step /= np.maximum(length, np.float32(1e-20))
        step_image /= np.maximum(length, np.float32(1e-20))
    vectors = np.ascontiguousarray(graph.inside(x).reshape(graph.n_vertices, -1))
    return Spectrum(values, vectors, worst, products)


def _apply(graph: StencilGraph, vectors: Block) -> Block:
    out = np.zeros_like(vectors)
    graph.apply(vectors, out)
    return out


def _ritz(basis: list[Block], images: list[Block], size: int) -> tuple[NDArray[np.float64], Block]:
    """Largest Ritz values in the span of blocks, and the combinations of their columns that attain them."""
    gram = np.block([[_inner(a, b) for b in basis] for a in basis])
    energy = np.block([[_inner(a, b) for b in images] for a in basis])
    lengths, axes = jacobi.eigh((gram + gram.T) / 2)
    # Directions that float32 cannot tell from combinations of the others are left out.
    kept = lengths > 1e-5 * lengths[-1]
    axes = axes[:, kept] / np.sqrt(lengths[kept])
    reduced = axes.T @ energy @ axes
    values, turn = jacobi.eigh((reduced + reduced.T) / 2)
    chosen = (axes @ turn[:, ::-1][:, :size]).astype(np.float32)
    return values[::-1][:size], np.ascontiguousarray(chosen)


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


def _combined(blocks: list[Block], parts: list[Block]) -> Block:
    total = _turned(blocks[0], parts[0])
    for block, part in zip(blocks[1:], parts[1:], strict=True):
        total += _turned(block, part)
    return total
