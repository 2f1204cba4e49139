"""Small dense matrices of float64: products, the largest eigenpairs.

NumPy and SciPy would do, but their results depend on the number of BLAS threads, which can be limited only
for the whole process. These threads also spin between calls: if another process uses the cores, the
eigenpairs of a 120x120 matrix take a quarter of a second. This code always takes a millisecond.
"""

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.declare import Double1, Double2, Written, kernel

Numbers = NDArray[np.float64]


@kernel
def solve_symmetric(matrix: Double2, values: Written[Double1], vectors: Written[Double2]) -> None:
    """The largest eigenvalues, descending, as many as `values` holds, and their eigenvectors (columns)."""


@kernel
def add_product(a: Double2, b: Double2, out: Written[Double2]) -> None:
    """out += a @ b."""


def largest_eigenpairs(matrix: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """The `count` largest eigenvalues (descending) and their eigenvectors (columns) of a symmetric matrix."""
    values, vectors = np.empty(count), np.empty((len(matrix), count))
    solve_symmetric(matrix, values, vectors)
    return values, vectors


def multiply(a: Numbers, b: Numbers) -> Numbers:
    """a @ b."""
    out = np.zeros((a.shape[0], b.shape[1]))
    add_product(a, b, out)
    return out


def congruent(matrix: Numbers, columns: Numbers) -> Numbers:
    """columns^T matrix columns."""
    return multiply(np.ascontiguousarray(columns.T), multiply(matrix, columns))
