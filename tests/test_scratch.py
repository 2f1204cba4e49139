"""What kernels use in place of NumPy's functions does the same."""

import numpy as np
import pytest

from vnlem.kernels.numba.arrays import LINE
from vnlem.kernels.numba.jit import PLAIN, from_python
from vnlem.kernels.numba.scratch import as_row, as_rows, bits_as, bits_of, empty, from_bits, multiples, zeros


@from_python
def _new(n, m):
    row, table, block = empty(n, np.int32), zeros((n, m), np.float32), zeros((2, n, m), np.float64)
    row[:] = 7
    begins = (row.ctypes.data, table.ctypes.data, block.ctypes.data)
    return row, table, block, begins


@from_python
def _views(table):
    return as_row(table), as_rows(table)


@from_python
def _bits(numbers, number):
    return bits_as(numbers, np.int32), bits_of(number), from_bits(bits_of(number))


@from_python
def _multiples(count, factor):
    return multiples(count, factor)


@from_python
def _too_large(n):
    return empty(n, np.float64)


@pytest.mark.parametrize(("n", "m"), [(3, 5), (1, 1), (0, 4), (4, 0)])
def test_new_arrays_are_those_of_numpy_and_begin_at_a_cache_line(n, m):
    row, table, block, begins = _new(n, m)
    for found, expected in (
        (row, np.full(n, 7, np.int32)),
        (table, np.zeros((n, m), np.float32)),
        (block, np.zeros((2, n, m))),
    ):
        assert found.dtype == expected.dtype
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, expected)
    assert PLAIN or all(begin % LINE == 0 for begin in begins)


@pytest.mark.parametrize("shape", [(6,), (2, 3), (4, 3, 2), (2, 2, 2, 5)])
def test_views_are_those_of_numpy_and_no_copies(shape):
    table = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    row, rows = _views(table)
    np.testing.assert_array_equal(row, table.reshape(-1))
    np.testing.assert_array_equal(rows, table.reshape(int(np.prod(shape[:-1])), shape[-1]))
    table += 1
    np.testing.assert_array_equal(row, table.reshape(-1))


def test_bits_are_those_of_numpy():
    numbers = np.float32([0.0, -1.5, np.inf, 3e-40])
    found, one, back = _bits(numbers, np.float32(-2.5))
    np.testing.assert_array_equal(found, numbers.view(np.int32))
    assert one == np.float32(-2.5).view(np.int32)
    assert back == np.float32(-2.5)


def test_multiples():
    np.testing.assert_array_equal(_multiples(4, 3), [0, 3, 6, 9])


def test_an_array_larger_than_any_memory_is_an_error():
    with pytest.raises(MemoryError):
        _too_large(1 << 58)
