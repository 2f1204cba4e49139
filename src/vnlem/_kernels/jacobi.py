"""Eigenpairs of a small symmetric matrix by cyclic Jacobi rotations.

LAPACK would do, but its BLAS threads spin between calls: with another process on the cores a matrix of
120x120 takes a quarter of a second. This takes some hundredths, always.
"""

import numpy as np

from vnlem._kernels.jit import kernel, nested

SWEEPS = 30


@nested
def _rotate(u, v, c, s):
    for k in range(u.shape[0]):
        before = u[k]
        u[k] = c * before - s * v[k]
        v[k] = s * before + c * v[k]


@kernel
def eigh(matrix):
    """Eigenvalues (ascending) and eigenvectors (columns) of a symmetric float64 matrix."""
    n = matrix.shape[0]
    a = matrix.copy()
    rows = np.eye(n)  # eigenvectors as rows, so that rotations run along memory
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += a[i, j] * a[i, j]
    for _ in range(SWEEPS):
        off = 0.0
        for i in range(n):
            for j in range(i):
                off += a[i, j] * a[i, j]
        if off <= 1e-26 * total:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(a[p, q]) <= 1e-16 * np.sqrt(total):
                    continue
                theta = (a[q, q] - a[p, p]) / (2 * a[p, q])
                t = np.copysign(1.0, theta) / (abs(theta) + np.sqrt(theta * theta + 1))
                c = 1 / np.sqrt(t * t + 1)
                s = t * c
                shift = t * a[p, q]
                low, high = a[p, p] - shift, a[q, q] + shift
                _rotate(a[p], a[q], c, s)
                _rotate(rows[p], rows[q], c, s)
                for k in range(n):
                    a[k, p] = a[p, k]
                    a[k, q] = a[q, k]
                a[p, p] = low
                a[q, q] = high
                a[p, q] = 0.0
                a[q, p] = 0.0
    values = np.empty(n)
    for i in range(n):
        values[i] = a[i, i]
    order = np.argsort(values)
    vectors = np.empty((n, n))
    for k in range(n):
        for i in range(n):
            vectors[i, k] = rows[order[k], i]
    return values[order], vectors
