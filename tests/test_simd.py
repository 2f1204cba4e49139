"""Vectors of eight numbers, lane by lane against NumPy."""

import numpy as np
import pytest

from vnlem.kernels.numba import masks, simd
from vnlem.kernels.numba import squares as blocks
from vnlem.kernels.numba.jit import from_python


@from_python
def arithmetic(a, b, out):
    x, y = simd.load(a, 3), simd.load(b, 0)
    z = x * y + x - y
    z += x
    z -= simd.spread(np.float32(2))
    z *= y
    simd.store(out, 1, z)


@from_python
def reductions(a, out):
    x = simd.load(a, 0)
    out[0] = simd.total(x)
    out[1] = simd.largest(x)
    out[2] = simd.first_equal(x, simd.largest(x))
    out[3] = simd.first_equal(x, np.float32(1e9))
    out[4] = simd.lane(x, 5)
    out[5] = simd.item(a, 2)


@from_python
def lanes(a, b, out):
    x, y = simd.load(a, 0), simd.load(b, 0)
    simd.store(out[0], 0, simd.magnitude(x))
    simd.store(out[1], 0, simd.larger(x, y))


@from_python
def eight_totals(table, out):
    a, b, c, d = (
        simd.load(table[0], 0),
        simd.load(table[1], 0),
        simd.load(table[2], 0),
        simd.load(table[3], 0),
    )
    e, f, g, h = (
        simd.load(table[4], 0),
        simd.load(table[5], 0),
        simd.load(table[6], 0),
        simd.load(table[7], 0),
    )
    simd.store(out, 0, simd.totals(a, b, c, d, e, f, g, h))


@from_python
def squares(source, target):
    blocks.transpose(source.reshape(-1), 2, 12, target.reshape(-1), 1, 10)


@from_python
def squares_from(source, places, target):
    blocks.transpose_from(source.reshape(-1), places, 1, 2, target.reshape(-1), 1, 10)


@from_python
def inverted(source, out):
    blocks.invert_square(source.reshape(-1), 3, source.shape[1], out)


@from_python
def rows_of_pairs(sums, numbers, mask):
    simd.add_pairs(sums, 1, np.float32(0.5), np.float32(-2), numbers, 2, mask)


@from_python
def bits(a, b, limit, out):
    out[0] = masks.bits_up_to(a, 1, limit)
    out[1] = masks.bits_near(a, b, 1, np.float32(0.5), np.float32(-0.5), limit)
    out[2] = masks.first_bit(out[0])


@from_python
def pairs(numbers):
    simd.add_pair(numbers, 2, np.float32(0.5), np.float32(-2), np.float32(3))


@pytest.fixture
def numbers():
    return np.random.default_rng(0).standard_normal((8, 12)).astype(np.float32)


def test_arithmetic_works_lane_by_lane_and_leaves_the_rest_alone(numbers):
    a, b = numbers[0], numbers[1]
    out = np.full(10, 5, dtype=np.float32)
    arithmetic(a, b, out)
    x, y = a[3:11], b[:8]
    np.testing.assert_allclose(out[1:9], (x * y + x - y + x - 2) * y, rtol=1e-5)
    assert out[0] == 5
    assert out[9] == 5


def test_sums_and_maxima_over_the_lanes(numbers):
    a = numbers[0]
    out = np.zeros(6)
    reductions(a, out)
    first = a[:8]
    assert out[0] == pytest.approx(first.sum(), rel=1e-5)
    np.testing.assert_array_equal(out[1:], [first.max(), first.argmax(), 8, a[5], a[2]])


def test_the_first_of_equal_lanes_is_found():
    out = np.zeros(6)
    reductions(np.array([1, 3, 3, 2, 3, 0, 0, 0], dtype=np.float32), out)
    assert (out[1], out[2]) == (3, 1)


def test_lanes_are_compared_one_by_one(numbers):
    a, b = numbers[0], numbers[1]
    out = np.zeros((2, 8), dtype=np.float32)
    lanes(a, b, out)
    np.testing.assert_array_equal(out[0], np.abs(a[:8]))
    np.testing.assert_array_equal(out[1], np.maximum(a[:8], b[:8]))


def test_eight_sums_come_in_their_order(numbers):
    out = np.zeros(8, dtype=np.float32)
    eight_totals(numbers, out)
    np.testing.assert_allclose(out, numbers[:, :8].sum(axis=1), rtol=1e-4, atol=1e-5)


def test_a_square_is_transposed_and_nothing_beside_it_touched(numbers):
    target = np.zeros((8, 10), dtype=np.float32)
    squares(numbers, target)
    np.testing.assert_array_equal(target[:, 1:9], numbers[:, 2:10].T)
    assert not target[:, [0, 9]].any()


def test_rows_from_anywhere_are_transposed(numbers):
    places = np.array([0, 5, 30, 2, 77, 11, 40, 8, 60], np.int64)
    target = np.zeros((9, 10), np.float32)
    squares_from(numbers, places, target)
    flat = numbers.ravel()
    expected = np.array([flat[place + 2 : place + 10] for place in places[1:]]).T
    np.testing.assert_array_equal(target.ravel()[1 : 1 + 80].reshape(8, 10)[:, :8], expected)


def test_a_square_is_inverted():
    a = np.random.default_rng(1).standard_normal((16, 16))
    square = a @ a.T + np.eye(16)
    source = np.zeros((17, 20), np.float32)
    source[:16, 3:19] = square
    inverse = np.zeros(256, np.float32)
    inverted(source, inverse)
    np.testing.assert_allclose(inverse.reshape(16, 16) @ square, np.eye(16), atol=1e-4)


def test_comparisons_become_bits(numbers):
    a, b = numbers[:2].ravel(), numbers[2:4].ravel()
    a[4] = np.nan
    out = np.zeros(3, np.int64)
    bits(a, b, np.float32(0.8), out)

    def as_bits(found):
        return sum(int(one) << i for i, one in enumerate(found))

    up_to = a[1:17] <= 0.8
    assert out[0] == as_bits(up_to)
    assert out[1] == as_bits((a[1:17] - 0.5) ** 2 + (b[1:17] + 0.5) ** 2 < 0.8)
    assert out[2] == np.argmax(up_to)


def test_eight_pairs_are_added_to_except_where_the_mask_is_zero(numbers):
    row = numbers[0]
    sums = np.arange(20, dtype=np.float32)
    rows_of_pairs(sums, row, np.array([1, 1, 1, 0, 1, 1, 0, 0], np.float32))
    expected = np.arange(20.0)
    for i in (0, 1, 2, 4, 5):
        expected[1 + 2 * i] += 0.5 * row[2 + i]
        expected[2 + 2 * i] -= 2 * row[2 + i]
    np.testing.assert_allclose(sums, expected, rtol=1e-6)


def test_a_pair_is_added_to():
    numbers = np.arange(6, dtype=np.float32)
    pairs(numbers)
    np.testing.assert_array_equal(numbers, [0, 1, 3.5, -3, 4, 5])
