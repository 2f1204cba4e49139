"""What kernels use in place of NumPy's functions does the same."""

import numpy as np
import pytest

from vnlem.kernels.numba.arrays import LINE
from vnlem.kernels.numba.jit import PLAIN, from_python
from vnlem.kernels.numba.scratch import (
    as_row,
    as_rows,
    bits_as,
    bits_of,
    empty,
    fill,
    from_bits,
    larger_of,
    multiples,
    part,
    smaller_of,
    view_at,
    zeros,
)


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
def _part(table, begin, end):
    return part(table, begin, end)


@from_python
def _view_at(table, index):
    return view_at(table, index)


@from_python
def _fill(table, value):
    fill(table, value)


@from_python
def _ordered(a, b):
    return smaller_of(a, b), larger_of(a, b)


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


@pytest.mark.parametrize("shape", [(6,), (4, 3), (5, 3, 2)])
@pytest.mark.parametrize(("begin", "end"), [(0, 4), (1, 3), (2, 2), (3, 4)])
def test_a_part_of_an_array_is_numpys_slice(shape, begin, end):
    table = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    found = _part(table, begin, end)
    assert found.strides == table.strides
    np.testing.assert_array_equal(found, table[begin:end])
    found += 1
    np.testing.assert_array_equal(found, table[begin:end])


@pytest.mark.parametrize("index", [2, (1,), (1, 2), (np.uint8(3), 1), (2, 1, 1)])
def test_a_view_in_an_array_is_numpys(index):
    table = np.arange(4 * 3 * 2 * 5, dtype=np.float32).reshape(4, 3, 2, 5)
    found = _view_at(table, index)
    assert found.shape == table[index].shape
    assert found.strides == table[index].strides
    np.testing.assert_array_equal(found, table[index])
    found += 1
    np.testing.assert_array_equal(found, table[index])


@pytest.mark.parametrize("shape", [(0,), (7,), (4, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float64])
def test_an_array_is_filled(shape, dtype):
    table = np.zeros(shape, dtype)
    _fill(table, 3)
    np.testing.assert_array_equal(table, np.full(shape, 3, dtype))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 2),
        (2, 1),
        (-1, 0),
        (0.0, -0.0),
        (np.float32(1), np.float32(np.nan)),
        (np.nan, 1.0),
        (np.float32(3), np.float32(np.inf)),
        (np.uint8(200), np.uint8(100)),
        (2.5, 2),
    ],
)
def test_the_smaller_and_the_larger_of_two_numbers_are_pythons(a, b):
    np.testing.assert_array_equal(_ordered(a, b), (min(a, b), max(a, b)))
    np.testing.assert_array_equal(np.signbit(_ordered(a, b)), np.signbit((min(a, b), max(a, b))))
