"""Diffusion maps: a symmetric affinity as a random walk, its leading eigenvectors as coordinates."""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
from numpy.typing import NDArray

from vnlem.diffusion.spectrum import leading_eigenpairs
from vnlem.diffusion.stencil import StencilGraph
from vnlem.pipeline import checks
from vnlem.pipeline.warn import warn

# Up to this many vertices a matrix is solved densely: exact, and no slower.
DENSE = 1000
# Eigenvalues this close to one count as one if a graph's components cannot be counted otherwise.
ONE = 1e-9
RESIDUAL = 1e-4  # of the solver for patch graphs, which works in float32


class DiffusionMap:
    """Embed the vertices of a weighted graph so that distances are diffusion distances.

    With degrees D = diag(W 1) the random walk D^-1 W has right eigenvectors phi = D^-1/2 q, where q are the
    orthonormal eigenvectors of D^-1/2 W D^-1/2. Vertex i is placed at
    (lambda_2^t phi_2(i), ..., lambda_{m+1}^t phi_{m+1}(i)).

    Parameters
    ----------
    affinity : sparse matrix or array, ndarray, LinearOperator, or StencilGraph
        Symmetric n x n, no entry negative (the entries of a LinearOperator are not checked). A
        StencilGraph is normalised in place: its memory is not doubled.
    n_components : int
        Number of coordinates (m), at most n - 1.
    time : float
        Diffusion time (t), positive.
    alpha : float
        The affinity is first divided by (d_i d_j)^alpha; 1 removes the influence of the sampling density.
    seed : int
        Seed of the start vector of the iteration.

    Attributes
    ----------
    eigenvalues : ndarray, shape (m + 1,)
        Largest first; the first is one.
    eigenvectors : ndarray, shape (n, m + 1)
        Right eigenvectors phi of D^-1 W. The entry of largest modulus of each is positive.
    embedding : ndarray, shape (n, m)
    degrees : ndarray, shape (n,)
    residual : float
        Largest ||A q - lambda q|| over the eigenpairs, A = D^-1/2 W D^-1/2.
    n_parts : int
        Connected components of the graph. Above one, with a warning: the first coordinates only tell the
        components apart.

    References
    ----------
    .. [1] R. R. Coifman, S. Lafon, "Diffusion maps", Applied and Computational Harmonic Analysis 21 (2006),
           doi:10.1016/j.acha.2006.04.006

    Examples
    --------
    >>> n = 60
    >>> one_step = np.roll(np.eye(n), 1, axis=0)
    >>> around = scipy.sparse.csr_array(one_step + one_step.T)
    >>> circle = DiffusionMap(around, n_components=2)
    >>> bool(np.allclose(circle.eigenvalues, [1, np.cos(2 * np.pi / n), np.cos(2 * np.pi / n)]))
    True
    >>> radius = np.hypot(*circle.embedding.T)
    >>> bool(np.allclose(radius, radius[0]))
    True
    """

    def __init__(
        self, affinity: Any, n_components: int = 30, time: float = 1, alpha: float = 0.0, seed: int = 0
    ) -> None:
        graph = _checked(affinity)
        n = graph.shape[0]
        count = checks.whole("n_components", n_components) + 1
        if count > n:
            raise ValueError(
                f"n_components is {n_components} but a graph of {n} vertices has only {n - 1} coordinates; "
                "ask for fewer"
            )
        self.time = checks.real("time", time, 0, open_low=True)
        self.alpha = checks.real("alpha", alpha)
        degrees = _positive_degrees(graph)
        if self.alpha != 0:
            graph = _scaled(graph, degrees**-self.alpha)
            degrees = _positive_degrees(graph)
        self.degrees: NDArray[np.float64] = degrees
        self.n_parts = 1
        if isinstance(graph, StencilGraph):
            self.n_parts = graph.count_components()
            found = leading_eigenpairs(graph, degrees, count, RESIDUAL)
            values, self.residual = found.eigenvalues, found.residual
            vectors = found.vectors.reshape(n, count)
            if self.residual > RESIDUAL:
                warn(
                    f"the eigenvectors' residual is {self.residual:.2g}, not {RESIDUAL:g}; "
                    "a wider bandwidth makes the graph easier"
                )
        else:
            normalised = _scaled(graph, degrees**-0.5)
            values, vectors = _eigenpairs(normalised, count, seed)
            self.residual = float(np.linalg.norm(normalised @ vectors - vectors * values, axis=0).max())
            if isinstance(graph, scipy.sparse.linalg.LinearOperator):
                self.n_parts = max(int(np.count_nonzero(values > 1 - ONE)), 1)
            else:
                self.n_parts = int(
                    scipy.sparse.csgraph.connected_components(
                        scipy.sparse.csr_array(graph), directed=False, return_labels=False
                    )
                )
        if self.n_parts > 1:
            warn(
                f"the graph is not connected: it has {self.n_parts} components, "
                "and the first coordinates only tell them apart"
            )
        largest = np.abs(vectors).argmax(axis=0)
        signs = np.where(vectors[largest, np.arange(count)] < 0, -1, 1).astype(vectors.dtype)
        self.eigenvalues: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
        roots = np.sqrt(degrees).astype(vectors.dtype)
        self.eigenvectors: NDArray[Any] = vectors * signs / roots[:, None]

    @property
    def embedding(self) -> NDArray[Any]:
        """Coordinates of every vertex, (n, m)."""
        return coordinates(self.eigenvalues, self.eigenvectors, self.time)

    def diffusion_distance(self, i: Any, j: Any) -> Any:
        """Distance of vertices i and j (numbers, or arrays of numbers that broadcast)."""
        embedding = self.embedding
        return np.linalg.norm(embedding[i].astype(np.float64) - embedding[j], axis=-1)


def coordinates(eigenvalues: NDArray[np.float64], eigenvectors: NDArray[Any], time: float) -> NDArray[Any]:
    """lambda_k^t phi_k for k = 2, 3, ...

    A negative eigenvalue, which bipartite graphs have, counts with its modulus, which has a real power at any
    time.

    >>> coordinates(np.array([1.0, 0.5]), np.array([[1.0, 2.0], [1.0, -2.0]]), 2)
    array([[ 0.5],
           [-0.5]])
    """
    powers = np.abs(eigenvalues[1:]) ** time
    placed: NDArray[Any] = eigenvectors[..., 1:] * powers.astype(eigenvectors.dtype)
    return placed


def _checked(affinity: Any) -> Any:
    """A square, symmetric affinity without negative entries in float64, or a clear error."""
    if isinstance(affinity, StencilGraph):
        return affinity
    if isinstance(affinity, scipy.sparse.linalg.LinearOperator):
        matrix: Any = affinity
    elif scipy.sparse.issparse(affinity):
        matrix = scipy.sparse.csr_array(affinity, dtype=np.float64)
    else:
        matrix = checks.finite("affinity", affinity)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"affinity must be square, got shape {matrix.shape}")
    if isinstance(matrix, scipy.sparse.linalg.LinearOperator):
        return matrix
    entries = matrix.data if scipy.sparse.issparse(matrix) else matrix
    if not np.isfinite(entries).all():
        raise ValueError("affinity holds NaN or infinite weights; replace them first")
    if entries.size and entries.min() < 0:
        raise ValueError(f"affinity must not be negative, its smallest entry is {entries.min():g}")
    asymmetry = abs(matrix - matrix.T).max()
    if asymmetry > 1e-8 * max(entries.max(initial=0.0), 1e-300):
        raise ValueError(
            f"affinity must be symmetric, but differs from its transpose by {asymmetry:g}; "
            "take e.g. (W + W.T) / 2"
        )
    return matrix


def _positive_degrees(graph: Any) -> NDArray[np.float64]:
    if isinstance(graph, StencilGraph):
        degrees = graph.degrees()
    else:
        degrees = np.asarray(graph @ np.ones(graph.shape[0]), dtype=np.float64).ravel()
    isolated = np.flatnonzero(~(degrees > 0))
    if len(isolated):
        shown = ", ".join(map(str, isolated[:5])) + (", ..." if len(isolated) > 5 else "")
        raise ValueError(
            f"{len(isolated)} vertices have no affinity to any vertex (numbers {shown}); "
            "remove them or raise the bandwidth"
        )
    return degrees


def _scaled(graph: Any, factors: NDArray[np.float64]) -> Any:
    """diag(factors) W diag(factors)."""
    if isinstance(graph, StencilGraph):
        graph.scale(factors)
        return graph
    if isinstance(graph, scipy.sparse.linalg.LinearOperator):

        def product(v: NDArray[Any]) -> Any:
            wide = factors.reshape((-1,) + (1,) * (v.ndim - 1))
            return wide * (graph @ (wide * v))

        return scipy.sparse.linalg.LinearOperator(
            graph.shape, matvec=product, matmat=product, dtype=np.dtype(np.float64)
        )
    if scipy.sparse.issparse(graph):
        diagonal = scipy.sparse.dia_array((factors[None], [0]), shape=graph.shape)
        return diagonal @ graph @ diagonal
    return graph * np.multiply.outer(factors, factors)


def _eigenpairs(matrix: Any, count: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Largest eigenvalues and their eigenvectors, largest first."""
    n = matrix.shape[0]
    if n <= DENSE or count > n // 2:
        if isinstance(matrix, scipy.sparse.linalg.LinearOperator):
            matrix = matrix @ np.eye(n)
        elif scipy.sparse.issparse(matrix):
            matrix = matrix.toarray()
        values, vectors = scipy.linalg.eigh((matrix + matrix.T) / 2, subset_by_index=(n - count, n - 1))
        return values[::-1], vectors[:, ::-1]
    start = np.random.default_rng(seed).standard_normal(n)
    values, vectors = scipy.sparse.linalg.eigsh(
        matrix, k=count, which="LA", v0=start, ncv=min(n, max(2 * count + 1, count + 40)), maxiter=20 * n
    )
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]
