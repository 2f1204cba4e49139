"""The kernels of VNLR against plain NumPy on random input."""

import numpy as np
import pytest

from vnlem.estimate.aggregate import Aggregate, TileSums, patch_sums, spread
from vnlem.kernels.numba import match, ridge
from vnlem.kernels.numba.panel import ROWS
from vnlem.neighbours.groups import Matcher, symmetries
from vnlem.neighbours.turned import TurnedCopies, turn_square


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("n", "k"), [(36, 16), (49, 64), (64, 80)])
def test_gram_and_multiply_agree_with_matmul(n, k):
    columns = random((n + ROWS - 1) // ROWS * ROWS, k)
    columns[n:] = 0
    strides = np.arange(max(len(columns), k)) * k
    gram = np.empty((k, k), np.float32)
    ridge.gram(columns, strides[: len(columns)], gram)
    blocks = np.arange(k) // 16
    written = blocks[:, None] <= blocks[None, :]
    np.testing.assert_allclose(gram[written], (columns.T @ columns)[written], atol=1e-4)
    gram = random(k, k)
    product = np.empty_like(columns)
    ridge.multiply(columns, gram, strides[:k], product)
    np.testing.assert_allclose(product, columns @ gram, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("k", [16, 64, 96])
def test_invert_agrees_with_numpy(k):
    a = random(k, k).astype(np.float64)
    matrix = (a @ a.T + 5 * np.eye(k)).astype(np.float32)
    blocks = np.arange(k) // 16
    inverse = np.where(blocks[:, None] <= blocks[None, :], matrix, np.float32(np.nan))
    scratch = [np.empty(shape, np.float32) for shape in (64, (8, k), (8, k))]
    ridge.invert(inverse, np.arange(8) * k, *scratch)
    np.testing.assert_allclose(inverse, np.linalg.inv(matrix.astype(np.float64)), atol=2e-5)


@pytest.mark.parametrize("group", ["identity", "c4", "d4"])
@pytest.mark.parametrize(("channels", "width", "steps"), [(1, 40, 0), (1, 40, 5), (3, 40, 5), (2, 11, 5)])
def test_matching_agrees_with_all_distances(group, channels, width, steps):
    height, radius, k, p = 40, 6, 9, 5
    image = random(channels, height, width, seed=3)
    # Steps of brightness: most candidates are left out by their mean, before any transform is tried.
    image += steps * (np.arange(height)[:, None] // 7 % 3 + np.arange(width) // 5 % 2)
    penalty = np.full((height - p + 1, width - p + 1), 0.4 * p * p)
    matcher = Matcher(
        image, None, patch_size=p, radius=radius, n_members=k, group=group, factor=1.1, penalty=penalty
    )
    references = np.array([[0, 0], [17, width // 2], [35, width - p], [3, 3]])
    members = matcher.match(references)
    windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), (p, p), axis=(1, 2))
    patches = np.moveaxis(windows, 0, 2).reshape(*windows.shape[1:3], channels, -1)
    for (top, left), positions, chosen in zip(references, members.positions, members.transforms, strict=True):
        sides = [min(2 * radius + 1, n) for n in patches.shape[:2]]
        corner = [
            min(max(at - radius, 0), n - side)
            for at, n, side in zip((top, left), patches.shape, sides, strict=False)
        ]
        rows, columns = (slice(at, at + side) for at, side in zip(corner, sides, strict=True))
        moved = patches[rows, columns][..., symmetries(group, p)]
        ranks = np.sum((moved - patches[top, left][:, None]) ** 2, axis=(2, 4))
        ranks[..., 1:] = 1.1 * ranks[..., 1:] + 0.4 * p * p
        best, which = ranks.min(axis=-1), ranks.argmin(axis=-1)
        nearest = np.argsort(best, axis=None, kind="stable")[:k]
        if 8 * np.count_nonzero(which.flat[nearest]) < k:  # too few: shifted patches alone
            which[:] = 0
            nearest = np.argsort(ranks[..., 0], axis=None, kind="stable")[:k]
        y, x = np.divmod(positions, width + match.PADDING)
        assert (y[0], x[0], chosen[0]) == (top, left, 0)
        found = set(zip(y - corner[0], x - corner[1], chosen, strict=True))
        assert found == {(*divmod(at, sides[1]), which.flat[at]) for at in nearest}


def test_where_distances_are_no_numbers_the_reference_takes_their_place():
    image = random(1, 20, 20)
    image[0, 8:] = np.nan
    matcher = Matcher(
        image, None, patch_size=5, radius=4, n_members=9, group="d4", factor=1.0, penalty=np.ones((16, 16))
    )
    members = matcher.match(np.array([[12, 12], [3, 3]]))
    y, x = np.divmod(members.positions, 20 + match.PADDING)
    assert y.max() < 16
    assert x.max() < 16


def test_all_but_the_best_become_infinite_and_ties_go_to_the_first():
    values = np.array([3, 1, 2, 2, np.inf, 2, 0], np.float32)
    match.keep_best(values, 4)
    np.testing.assert_array_equal(values, [np.inf, 1, 2, 2, np.inf, np.inf, 0])


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
            tile.sums += random(4, 6, 2, seed=index) * 1e4
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
