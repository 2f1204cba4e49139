"""The kernels of VNLR against plain NumPy on random input."""

import numpy as np
import pytest

from vnlem._kernels import match, ridge
from vnlem.estimate.aggregate import Aggregate, TileSums, patch_sums, spread
from vnlem.estimate.groups import symmetries
from vnlem.estimate.turn import TurnedCopies, turn_square


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("n", "k"), [(36, 16), (49, 64), (64, 80)])
def test_gram_and_multiply_agree_with_matmul(n, k):
    columns = random((n + 3) // 4 * 4, k)
    columns[n:] = 0
    strides = np.arange(max(len(columns), k)) * k
    gram = np.empty((k, k), np.float32)
    ridge.gram(columns, strides[: len(columns)], gram)
    np.testing.assert_allclose(gram, columns.T @ columns, atol=1e-4)
    product = np.empty_like(columns)
    ridge.multiply(columns, gram, strides[:k], product)
    np.testing.assert_allclose(product, columns @ gram, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("k", [16, 64, 96])
def test_invert_agrees_with_numpy(k):
    a = random(k, k).astype(np.float64)
    matrix = (a @ a.T + 5 * np.eye(k)).astype(np.float32)
    inverse = matrix.copy()
    scratch = [np.empty(shape, np.float32) for shape in ((8, 8), (8, k), (k, 8))]
    ridge.invert(inverse, np.arange(8) * k, *scratch)
    np.testing.assert_allclose(inverse, np.linalg.inv(matrix.astype(np.float64)), atol=2e-5)


@pytest.mark.parametrize("count", [5, 300, 2000])
def test_smallest_agrees_with_a_stable_sort(count):
    values = np.round(np.abs(random(count, seed=count)) * 50) / 50
    values = values.astype(np.float32)
    for k in {1, count // 3, count}:
        order = np.empty(max(k, 1), np.int64)
        if k < 1:
            continue
        limit = match.smallest(values, count, k, np.empty(4096, np.int32), order)
        expected = np.sort(np.argsort(values, kind="stable")[:k])
        np.testing.assert_array_equal(order, expected)
        assert limit == np.sort(values)[k - 1]


def test_the_symmetries_are_the_eight_distinct_ones():
    table = symmetries("d4", 3)
    assert len({tuple(row) for row in table}) == 8
    patch = np.arange(9).reshape(3, 3)
    np.testing.assert_array_equal(patch.ravel()[table[1]].reshape(3, 3), np.rot90(patch))
    np.testing.assert_array_equal(patch.ravel()[table[4]].reshape(3, 3), patch[:, ::-1])


def test_patch_sums_and_spread_are_adjoint():
    values = random(9, 11).astype(np.float64)
    corners = random(9, 11, seed=1)
    corners[7:], corners[:, 9:] = 0, 0
    left = np.sum(patch_sums(values, 3) * corners[:7, :9])
    assert left == pytest.approx(np.sum(values * spread(corners, 3)), rel=1e-5)


def test_tiles_join_in_their_order_whatever_order_they_come_in():
    def total(order):
        aggregate = Aggregate(6, 6)
        for index in order:
            tile = TileSums.empty((index % 2, 0), 4, 6)
            tile.sums += random(4, 6, seed=index) * 1e4
            tile.weights += 1.0
            aggregate.add(index, tile)
        return aggregate.images(np.zeros((6, 6), np.float32), 2)[0]

    assert total([0, 1, 2, 3]).tobytes() == total([3, 1, 0, 2]).tobytes()


def test_turning_keeps_white_noise_white_and_undoes_itself():
    square = np.random.default_rng(0).standard_normal((64, 64))
    turned = turn_square(square, 30.0)
    assert turned.std() == pytest.approx(square.std(), rel=0.02)
    np.testing.assert_allclose(turn_square(turned, -30.0)[16:48, 16:48], square[16:48, 16:48], atol=0.3)


@pytest.mark.parametrize("angle", [15.0, 45.0, 60.0, 75.0])
def test_a_turned_copy_shows_each_point_where_it_says(angle):
    y, x = np.mgrid[:40, :50]
    spot = np.exp(-((y - 12) ** 2 + (x - 31) ** 2) / 8.0)[None].astype(np.float32)
    copies = TurnedCopies(40, 50, (angle,))
    tall = copies.stack(spot)[0]
    (centre,) = copies.centres(np.array([[12, 31]]), 1)
    row, column = centre[0]
    assert tall[row, column] > 0.85
    assert not copies.outside()[row, column]
