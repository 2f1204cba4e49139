"""Small dense matrices: products, the largest eigenpairs.

NumPy would do, but BLAS threads spin between calls: with another process on the cores the eigenpairs of a
matrix of 120x120 take a quarter of a second. This takes a thousandth, always.
"""

import numpy as np

from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.scratch import empty, zeros

# Of QL steps for one eigenvalue; two are usual.
STEPS = 60
EPSILON = 2.0**-52


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
def _rotate(u, v, c, s):
    for k in range(u.shape[0]):
        before = u[k]
        u[k] = c * before - s * v[k]
        v[k] = s * before + c * v[k]


# Squared lengths below it count as zero: two divided by them may be infinite.
SMALLEST = 1e-290


@nested
def _make_tridiagonal(matrix, factors, beside, images):
    """Householder's reflections make a symmetric matrix tridiagonal, its diagonal in place.

    Reflection k, I - factors[k] v v^T, acts on what follows k; v takes the place of matrix[k, k + 1 :].
    beside (n): the numbers beside the diagonal. images (n): scratch.
    """
    n = matrix.shape[0]
    for k in range(n - 1):
        v, p = matrix[k, k + 1 :], images[k + 1 :]
        length = np.sqrt(_dot(v, v))
        beside[k] = -length if v[0] > 0 else length
        v[0] -= beside[k]
        square = _dot(v, v)
        factors[k] = 2 / square if square > SMALLEST else 0.0
        rest = matrix[k + 1 :, k + 1 :]
        for i in range(n - k - 1):
            p[i] = factors[k] * _dot(rest[i], v)
        _add(p, -0.5 * factors[k] * _dot(p, v), v)
        for i in range(n - k - 1):
            row, a, b = rest[i], v[i], p[i]
            for j in range(n - k - 1):
                row[j] -= a * p[j] + b * v[j]


@nested
def _make_diagonal(diagonal, beside, rows):
    """QL steps with implicit shifts until what is beside the diagonal vanishes; rows: rotated with it."""
    n = diagonal.shape[0]
    beside[n - 1] = 0
    for first in range(n):
        for _ in range(STEPS):
            last = first
            while last < n - 1:
                size = abs(diagonal[last]) + abs(diagonal[last + 1])
                if abs(beside[last]) <= EPSILON * size:
                    break
                last += 1
            if last == first:
                break
            # Wilkinson's shift: the eigenvalue of the first 2x2 numbers that is nearer to the first.
            half = (diagonal[first + 1] - diagonal[first]) / (2 * beside[first])
            g = (
                diagonal[last]
                - diagonal[first]
                + beside[first] / (half + np.copysign(np.sqrt(half * half + 1), half))
            )
            c, s, moved = 1.0, 1.0, 0.0
            for i in range(last - 1, first - 1, -1):
                f, b = s * beside[i], c * beside[i]
                r = np.sqrt(f * f + g * g)
                beside[i + 1] = r
                c, s = (g / r, f / r) if r > 0 else (1.0, 0.0)
                g = diagonal[i + 1] - moved
                r = (diagonal[i] - g) * s + 2 * c * b
                moved = s * r
                diagonal[i + 1] = g + moved
                g = c * r - b
                _rotate(rows[i], rows[i + 1], c, s)
            diagonal[first] -= moved
            beside[first] = g
            beside[last] = 0


@kernel
def largest_eigenpairs(matrix, count):
    """The `count` largest eigenvalues (descending) and their eigenvectors (columns) of a symmetric matrix.

    float64, C-contiguous.
    """
    n = matrix.shape[0]
    reflected = matrix.copy()
    factors, beside, diagonal = zeros(n, np.float64), zeros(n, np.float64), empty(n, np.float64)
    _make_tridiagonal(reflected, factors, beside, diagonal)
    rows = zeros((n, n), np.float64)
    for i in range(n):
        diagonal[i] = reflected[i, i]
        rows[i, i] = 1
    _make_diagonal(diagonal, beside, rows)
    order = np.argsort(-diagonal)
    vectors = empty((n, count), np.float64)
    for j in range(count):
        row = rows[order[j]]
        _reflect(reflected, factors, row)
        for i in range(n):
            vectors[i, j] = row[i]
    return diagonal[order[:count]], vectors


@nested
def _reflect(reflected, factors, row):
    """An eigenvector of the tridiagonal matrix becomes one of the matrix itself (see _make_tridiagonal)."""
    for k in range(row.shape[0] - 2, -1, -1):
        v, part = reflected[k, k + 1 :], row[k + 1 :]
        _add(part, -factors[k] * _dot(v, part), v)


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
