"""Leading eigenpairs of the patch graph: coarse to fine, each level refined by preconditioned LOBPCG.

The graph is local, so its eigenvalues crowd near one: at 512x512 in the paper's preset the gap to the second
is 5e-4, between the 31st and the 40th 6e-3. Methods that only multiply by the matrix need many products.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from vnlem.diffusion.blocks import Numbers
from vnlem.diffusion.levels import Level
from vnlem.kernels.cpu import small

# Up to this many vertices the matrix is made dense and solved at once.
DENSE = 300
# Guard vectors are iterated in addition to the wanted ones, to make the last wanted one converge as quickly
# as the others.
GUARD = 9
# The finest level needs only one guard vector if the next coarser level took at most this many products:
# guard vectors speed up the last of many steps, not the first.
FEW = 4
MAX_ITERATIONS = 40
# Directions shorter than this, relative to the others, are rounding errors.
INDEPENDENT = 1e-5


@dataclass(frozen=True)
class Spectrum:
    """Leading eigenpairs of D^-1/2 W D^-1/2, largest first.

    eigenvalues: (count,).
    vectors: (height, width, count), orthonormal; a view of the solver's memory.
    residual: largest ||A v - lambda v||.
    products: products of the finest level's matrix with a block of vectors.
    """

    eigenvalues: NDArray[np.float64]
    vectors: NDArray[np.float32]
    residual: float
    products: int


def leading_eigenpairs(
    graph: Any, degrees: NDArray[np.float64], count: int, tolerance: float = 1e-4
) -> Spectrum:
    """Top `count` eigenpairs of D^-1/2 W D^-1/2; the graph W is normalised in place.

    The graph is a StencilGraph, or one on a device with the same methods; the vectors lie where it does.

    Blocks of 2x2 pixels make the next coarser graph (weights added up), down to some hundred vertices that
    are solved at once. Every level starts from the eigenvectors of the coarser one, constant on blocks, and
    LOBPCG refines them with corrections from the coarser levels. That suffices because the window is wide:
    what blocks cannot represent has eigenvalues well below one.

    Alternatives, by products on the finest level (camera in the paper's preset, residual 1e-4, all from a
    coarse start): Chebyshev-filtered subspace iteration (degree 8, 40 vectors) takes 25 at 256x256; LOBPCG
    with one solution on a coarse level added to the residual takes 6, and 7 and 12 at 512 and 1024; this
    solver takes at most 5, 5 and 6.

    >>> from vnlem.diffusion.stencil import StencilGraph
    >>> graph = StencilGraph(20, 24, 2)
    >>> graph.inside(graph.weights)[...] = 1
    >>> graph.clip()
    >>> found = leading_eigenpairs(graph, graph.degrees(), 3)
    >>> found.vectors.shape, bool(abs(found.eigenvalues[0] - 1) < 1e-4)
    ((20, 24, 3), True)
    """
    block = 8 * math.ceil((count + GUARD) / 8)
    graphs, all_degrees = [graph], [degrees]
    while graphs[-1].n_vertices > max(DENSE, 4 * block):
        graphs.append(graphs[-1].coarsened())
        all_degrees.append(graphs[-1].degrees())
    level = Level(graphs.pop(), all_degrees.pop(), None)
    size = min(block, level.graph.n_vertices)
    level.values, vectors = _largest_eigenpairs(level.graph.sparse().toarray(), size)
    level.vectors = level.graph.pad(vectors.astype(np.float32))
    worst, products = 0.0, 0
    while graphs:
        level = Level(graphs.pop(), all_degrees.pop(), level)
        if not graphs and products <= FEW:
            size = min(size, 8 * math.ceil((count + 1) / 8))
        # The same residual on every level: what a coarse level leaves costs products on the finer one.
        worst, products = lobpcg(level, size, count, tolerance)
    found = level.graph.inside(level.vectors)[..., :count]
    return Spectrum(level.values[:count], found, worst, products)


def lobpcg(level: Level, size: int, count: int, tolerance: float) -> tuple[float, int]:
    """Locally optimal block preconditioned conjugate gradients for the `size` leading eigenpairs of a level.

    The level keeps them; returns the largest residual of the first `count` and the number of products.
    Converged vectors stay in the basis but get no new direction: it would be only rounding.
    """
    rows = level.rows
    values, x = level.start(size)
    image = level.product(x, "of x")
    products = 1
    # Inner products of the basis with itself and with its image: those of the coarser level's eigenvectors.
    gram, energy = np.eye(size), np.diag(values)
    residual, step, step_image = (rows.room(name, size) for name in ("residual", "steps", "of steps"))
    norms = rows.residual(x, image, values, residual)
    while norms[:count].max() > tolerance and products <= MAX_ITERATIONS:
        # Blocks have a multiple of eight columns.
        moving = 8 * math.ceil(np.count_nonzero(norms > tolerance) / 8)
        active = np.sort(np.argsort(norms, kind="stable")[-moving:])
        direction = rows.take(residual, active, "direction")
        level.correct(direction, values[active])
        rows.scale(direction, 1 / np.maximum(rows.project(direction, x), 1e-30))
        others, images = [direction], [level.product(direction, "of direction")]
        products += 1
        if products > 2:
            others.insert(0, rows.take(step, active, "active steps"))
            images.insert(0, rows.take(step_image, active, "of active steps"))
            kept = np.ix_(*2 * [np.concatenate([np.arange(size), size + active])])
            gram, energy = gram[kept], energy[kept]
        new = rows.inner([x, *others], [direction, images[-1]])
        gram, energy = map(_bordered, (gram, energy), np.hsplit(new, 2))
        values, turn = _ritz(gram, energy, size)
        rows.turn(x, others, turn)
        rows.turn(image, images, turn)
        norms = rows.residual_lengths(x, image, values)
        if norms[:count].max() <= tolerance:
            break
        # The step of each new vector is what the others add to it, at unit length. Few levels need a second
        # step, so its memory is allocated only here: new memory costs more than the work.
        added = turn.copy()
        added[:size] = 0
        scale = 1 / np.sqrt(np.maximum(np.diag(small.congruent(gram, added)), 1e-30))
        both = np.hstack([turn, added * scale])
        gram, energy = small.congruent(gram, both), small.congruent(energy, both)
        rows.combine(others, turn, scale, step)
        rows.combine(images, turn, scale, step_image)
        rows.residual(x, image, values, residual)
    worst = float(norms[:count].max())
    level.values, level.vectors = values, x
    rows.leave()
    return worst, products


def _bordered(matrix: Numbers, columns: Numbers) -> Numbers:
    """A symmetric matrix with more columns at its right and, transposed, at its bottom."""
    above, corner = columns[: len(matrix)], columns[len(matrix) :]
    return np.block([[matrix, above], [above.T, (corner + corner.T) / 2]])


def _ritz(gram: Numbers, energy: Numbers, size: int) -> tuple[Numbers, Numbers]:
    """The `size` largest Ritz values in the span of a basis, and the combinations that attain them.

    Uses the eigenvectors of the Gram matrix: triangular factors (Cholesky, Gram-Schmidt) diverge if a basis
    has very many, nearly dependent vectors.
    """
    lengths, axes = small.largest_eigenpairs(gram, len(gram))
    # Directions that float32 cannot tell from combinations of the others are left out; if fewer than `size`
    # are left, the longest of them stay, too short to count.
    shortest = INDEPENDENT * max(float(lengths[0]), 1e-30)
    kept = lengths > shortest
    kept[:size] = True
    axes = np.ascontiguousarray(axes[:, kept] / np.sqrt(np.maximum(lengths[kept], shortest)))
    values, turn = small.largest_eigenpairs(small.congruent(energy, axes), size)
    return values, small.multiply(axes, turn)


def _largest_eigenpairs(matrix: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """The largest eigenvalues of a dense matrix, largest first, and their eigenvectors."""
    n = len(matrix)
    if n <= DENSE:
        return small.largest_eigenpairs(matrix, count)
    # There are more vertices only if very many coordinates are requested: then LAPACK is quicker.
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=(n - count, n - 1))
    return values[::-1], vectors[:, ::-1]
