"""Small dense matrices: products, and eigenpairs by one-sided Jacobi rotations.

NumPy would do, but BLAS threads spin between calls: with another process on the cores the eigenpairs of a
matrix of 120x120 take a quarter of a second. This takes some thousandths, always.
"""

import numpy as np

from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.scratch import empty, zeros

SWEEPS = 30


@nested
def _rotate(u, v, c, s):
    for k in range(u.shape[0]):
        before = u[k]
        u[k] = c * before - s * v[k]
        v[k] = s * before + c * v[k]


@nested
def _dot(u, v):
    total = 0.0
    for k in range(u.shape[0]):
        total += u[k] * v[k]
    return total


@nested
def _add(u, factor, v):
    for k in range(u.shape[0]):
        u[k] += factor * v[k]


@nested
def _factor(rest, rows):
    """Upper triangular rows with rows^T rows = rest (Cholesky); rest is used up, rows are zero at first."""
    n = rest.shape[0]
    for j in range(n):
        pivot = np.sqrt(rest[j, j])
        for k in range(j, n):
            rows[j, k] = rest[j, k] / pivot
        for i in range(j + 1, n):
            _add(rest[i, i:], -rows[j, i], rows[j, i:])


@nested
def _make_orthogonal(rows, squares):
    """Rotate rows until they are orthogonal; squares: scratch for their squared lengths."""
    n = rows.shape[0]
    for _ in range(SWEEPS):
        for i in range(n):
            squares[i] = _dot(rows[i], rows[i])
        largest = 0.0
        for p in range(n - 1):
            for q in range(p + 1, n):
                product = _dot(rows[p], rows[q])
                cosine = abs(product) / np.sqrt(squares[p] * squares[q])
                largest = max(largest, cosine)
                if cosine <= 1e-16:
                    continue
                theta = (squares[q] - squares[p]) / (2 * product)
                t = np.copysign(1.0, theta) / (abs(theta) + np.sqrt(theta * theta + 1))
                c = 1 / np.sqrt(t * t + 1)
                _rotate(rows[p], rows[q], c, t * c)
                squares[p] -= t * product
                squares[q] += t * product
        # Convergence is quadratic: what this sweep left is of the order of the square.
        if largest < 1e-9:
            return


@kernel
def eigh(matrix):
    """Eigenvalues (ascending) and eigenvectors (columns) of a symmetric float64 matrix.

    With a shift the matrix is positive and equals T^T T. Rotations that make the rows of T orthogonal leave
    that product as it is: the rows become eigenvectors, their squared lengths eigenvalues.
    """
    n = matrix.shape[0]
    size = 0.0
    for i in range(n):
        size += _dot(matrix[i], matrix[i])
    shift = 1.5 * np.sqrt(size) + 1e-150
    shifted = matrix.copy()
    for i in range(n):
        shifted[i, i] += shift
    rows = zeros((n, n), np.float64)
    _factor(shifted, rows)
    squares = empty(n, np.float64)
    _make_orthogonal(rows, squares)
    for i in range(n):
        squares[i] = _dot(rows[i], rows[i])
    order = np.argsort(squares)
    values = squares[order] - shift
    vectors = empty((n, n), np.float64)
    for k in range(n):
        length = np.sqrt(squares[order[k]])
        for i in range(n):
            vectors[i, k] = rows[order[k], i] / length
    return values, vectors


@nested
def _add_product(a, b, out):
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            _add(out[i], a[i, k], b[k])


@nested
def _add_transposed_product(a, b, out):
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            _add(out[k], a[i, k], b[i])


@kernel
def congruent(matrix, columns):
    """columns^T matrix columns, all float64 and C-contiguous."""
    product = zeros(columns.shape, np.float64)
    _add_product(matrix, columns, product)
    out = zeros((columns.shape[1], columns.shape[1]), np.float64)
    _add_transposed_product(columns, product, out)
    return out


@kernel
def multiply(a, b):
    """a @ b, both float64 and C-contiguous."""
    out = zeros((a.shape[0], b.shape[1]), np.float64)
    _add_product(a, b, out)
    return out
