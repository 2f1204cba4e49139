"""The vector instructions, and the loops that stand in for them, lane by lane against NumPy."""

from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from vnlem.kernels.numba import loops, panel_loops, symmetries, vectors
from vnlem.kernels.numba.jit import from_python
from vnlem.kernels.numba.lengths import FEW_ROWS, Left
from vnlem.neighbours.groups import symmetries as turns_of


def kernels_with(v):
    """Kernels that use the functions of a module."""

    @from_python
    def arithmetic(a, b, out):
        x, y = v.load(a, 3), v.load(b, 0)
        z = v.minus(v.multiply_add(x, y, x), y)
        z = v.minus(v.plus(z, x), v.spread(np.float32(2)))
        v.store(out, 1, v.times(z, y))

    @from_python
    def reductions(a, out):
        x = v.load(a, 0)
        out[0] = v.total(x)
        out[1] = v.item(a, 2)
        out[2] = v.total(v.lane(v.load(a, 0), 5))

    @from_python
    def lanes(a, b, out):
        x, y = v.load(a, 0), v.load(b, 0)
        v.store(out[0], 0, v.magnitude(x))
        v.store(out[1], 0, v.larger(x, y))
        v.store(out[2], 0, v.where_larger(x, y, y, v.spread(np.float32(7))))

    @from_python
    def eight_totals(table, out):
        a, b, c, d = (
            v.load(table[0], 0),
            v.load(table[1], 0),
            v.load(table[2], 0),
            v.load(table[3], 0),
        )
        e, f, g, h = (
            v.load(table[4], 0),
            v.load(table[5], 0),
            v.load(table[6], 0),
            v.load(table[7], 0),
        )
        v.store(out, 0, v.totals(a, b, c, d, e, f, g, h))

    @from_python
    def squares(source, target):
        v.transpose(source.reshape(-1), 2, 12, target.reshape(-1), 1, 10)

    @from_python
    def squares_from(source, places, target):
        v.transpose_from(source.reshape(-1), places, 1, 2, target.reshape(-1), 1, 10)

    @from_python
    def inverted(source, out):
        v.invert_square(source.reshape(-1), 3, source.shape[1], out)

    @from_python
    def rows_of_pairs(sums, numbers):
        v.add_pairs(sums, 1, np.float32(0.5), np.float32(-2), numbers, 2)

    @from_python
    def bits(a, b, limit, out):
        out[0] = v.bits_up_to(a, 1, limit)
        out[1] = v.bits_near(a, b, 1, np.float32(0.5), np.float32(-0.5), limit)
        out[2] = v.first_bit(out[0])

    @from_python
    def places(numbers):
        v.store_places(numbers, 2, 100, 0x76543210)
        v.store_places(numbers, 5, 16, 0xF0)

    @from_python
    def pairs(numbers):
        v.add_pair(numbers, 2, np.float32(0.5), np.float32(-2), np.float32(3))

    @from_python
    def panels(out, left, right, offsets):
        v.add_panel(out[0], 2, 40, left, right, 1, offsets, np.float32(1))
        v.add_wide_panel(out[1], 2, 40, left, right, 1, offsets, np.float32(-1))
        v.add_half_panel(out[2], 2, 40, left, right, 1, offsets, np.float32(2))
        v.set_panel(out[3], 2, 40, left, right, 1, offsets)
        v.set_wide_panel(out[4], 2, 40, left, right, 1, offsets)
        v.set_half_panel(out[5], 2, 40, left, right, 1, offsets)

    @from_python
    def correlations(out, best, which, taps, image, offsets, side):
        v.correlation_panel(out, 3, 40, taps, image, 2, 40, (2, side, 320))
        v.largest_correlation_panel(best, which, 4, taps, (0, 1, 3), image, 2, offsets)

    @from_python
    def symmetric(best, which, parts, least, image, side):
        v.symmetric_correlation_panel(best, which, 4, parts, (8, least), image, 2, (2, side, 40, 320))

    @from_python
    def windows(out, weights, small_weights, vectors, side):
        v.window_panel(out[0], 8, weights, vectors, 16, 16, 320, side)
        v.half_window_panel(out[1], 8, weights, vectors, 16, 16, 320, side)
        v.small_window_panel(out[2], 8, small_weights, vectors, 16, 16, 320, side)
        v.half_small_window_panel(out[3], 8, small_weights, vectors, 16, 16, 320, side)

    @from_python
    def copies(out, source):
        v.copy_group(out, 13, source, 5)
        v.copy_small_group(out, 1, source, 2)

    return SimpleNamespace(**{name: value for name, value in locals().items() if name != "v"})


# What stands in for the vector instructions, under one name.
PLAIN = ModuleType("plain")
vars(PLAIN).update(vars(loops) | vars(panel_loops))


@pytest.fixture(params=["chosen", "loops"])
def module(request):
    return PLAIN if request.param == "loops" else vectors


MADE = {}


@pytest.fixture
def kernels(module):
    """Compiled once for each module."""
    return MADE.setdefault(module, kernels_with(module))


@pytest.fixture
def numbers():
    return np.random.default_rng(0).standard_normal((8, 12)).astype(np.float32)


def test_arithmetic_works_lane_by_lane_and_leaves_the_rest_alone(kernels, numbers):
    a, b = numbers[0], numbers[1]
    out = np.full(10, 5, dtype=np.float32)
    kernels.arithmetic(a, b, out)
    x, y = a[3:11], b[:8]
    np.testing.assert_allclose(out[1:9], (x * y + x - y + x - 2) * y, rtol=1e-5)
    assert out[0] == 5
    assert out[9] == 5


def test_the_lanes_are_summed_and_a_number_is_read(kernels, numbers):
    a = numbers[0]
    out = np.zeros(3)
    kernels.reductions(a, out)
    assert out[0] == pytest.approx(a[:8].sum(), rel=1e-5)
    assert out[1] == a[2]
    assert out[2] == 8 * a[5]


def test_lanes_are_compared_one_by_one(kernels, numbers):
    a, b = numbers[0], numbers[1]
    out = np.zeros((3, 8), dtype=np.float32)
    a[3] = b[3]
    kernels.lanes(a, b, out)
    np.testing.assert_array_equal(out[0], np.abs(a[:8]))
    np.testing.assert_array_equal(out[1], np.maximum(a[:8], b[:8]))
    np.testing.assert_array_equal(out[2], np.where(a[:8] > b[:8], b[:8], 7))


def test_eight_sums_come_in_their_order(kernels, numbers):
    out = np.zeros(8, dtype=np.float32)
    kernels.eight_totals(numbers, out)
    np.testing.assert_allclose(out, numbers[:, :8].sum(axis=1), rtol=1e-4, atol=1e-5)


def test_a_square_is_transposed_and_nothing_beside_it_touched(kernels, numbers):
    target = np.zeros((8, 10), dtype=np.float32)
    kernels.squares(numbers, target)
    np.testing.assert_array_equal(target[:, 1:9], numbers[:, 2:10].T)
    assert not target[:, [0, 9]].any()


def test_rows_from_anywhere_are_transposed(kernels, numbers):
    places = np.array([0, 5, 30, 2, 77, 11, 40, 8, 60], np.int64)
    target = np.zeros((9, 10), np.float32)
    kernels.squares_from(numbers, places, target)
    flat = numbers.ravel()
    expected = np.array([flat[place + 2 : place + 10] for place in places[1:]]).T
    np.testing.assert_array_equal(target.ravel()[1 : 1 + 80].reshape(8, 10)[:, :8], expected)


def test_a_square_is_inverted(kernels):
    a = np.random.default_rng(1).standard_normal((16, 16))
    square = a @ a.T + np.eye(16)
    source = np.zeros((17, 20), np.float32)
    source[:16, 3:19] = square
    inverse = np.zeros(256, np.float32)
    kernels.inverted(source, inverse)
    np.testing.assert_allclose(inverse.reshape(16, 16) @ square, np.eye(16), atol=1e-4)


def test_comparisons_become_bits(kernels, numbers):
    a, b = numbers[:2].ravel(), numbers[2:4].ravel()
    a[4] = np.nan
    out = np.zeros(3, np.int64)
    kernels.bits(a, b, np.float32(0.8), out)

    def as_bits(found):
        return sum(int(one) << i for i, one in enumerate(found))

    up_to = a[1:17] <= 0.8
    assert out[0] == as_bits(up_to)
    assert out[1] == as_bits((a[1:17] - 0.5) ** 2 + (b[1:17] + 0.5) ** 2 < 0.8)
    assert out[2] == np.argmax(up_to)


def test_eight_pairs_are_added_to(kernels, numbers):
    row = numbers[0]
    sums = np.arange(20, dtype=np.float32)
    kernels.rows_of_pairs(sums, row)
    expected = np.arange(20.0)
    expected[1:17:2] += 0.5 * row[2:10]
    expected[2:18:2] -= 2 * row[2:10]
    np.testing.assert_allclose(sums, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_places_of_four_bits_are_unpacked(kernels, dtype):
    numbers = np.full(14, -1, dtype)
    kernels.places(numbers)
    np.testing.assert_array_equal(numbers, [-1, -1, 100, 101, 102, 16, 31, *6 * [16], -1])


def test_a_pair_is_added_to(kernels):
    numbers = np.arange(6, dtype=np.float32)
    kernels.pairs(numbers)
    np.testing.assert_array_equal(numbers, [0, 1, 3.5, -3, 4, 5])


def test_panels_of_a_product_are_added_and_written(kernels, module):
    rng = np.random.default_rng(2)
    left, right = (rng.standard_normal(shape).astype(np.float32) for shape in ((9, 30), (9, 40)))
    offsets = np.arange(9) * 40
    out = np.ones((6, module.ROWS, 40), np.float32)
    kernels.panels(out, Left(left, 3, 1, 30), right, offsets)
    product = left[:, 3 : 3 + module.ROWS].astype(float).T @ right[:, 1:]
    widths = (16, module.WIDE, 8)
    for found, sign, width in zip(out[:3], (1, -1, 2), widths, strict=True):
        expected = np.ones((module.ROWS, 40))
        expected[:, 2 : 2 + width] += sign * product[:, :width]
        np.testing.assert_allclose(found, expected, atol=1e-4)
    for found, width in zip(out[3:], widths, strict=True):
        expected = np.ones((module.ROWS, 40))
        expected[:, 2 : 2 + width] = product[:, :width]
        np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("side", [1, 3, 8, 11])
def test_correlations_with_one_patch_and_with_the_best_of_several(kernels, module, side):
    rng = np.random.default_rng(3)
    image = rng.standard_normal((32, 40)).astype(np.float32)
    taps = rng.standard_normal((8, 2 * side * side)).astype(np.float32)
    within = 40 * np.arange(side)[:, None] + np.arange(side)
    offsets = np.concatenate([within.ravel(), 320 + within.ravel()])
    out = np.zeros((module.ROWS, 40), np.float32)
    best, which = np.full(24, -np.inf, np.float32), np.zeros(24, np.int32)
    kernels.correlations(out, best, which, taps, image, offsets, side)
    flat = image.ravel().astype(float)
    for a in range(module.ROWS):
        seen = np.array([flat[2 + 40 * a + x + offsets] for x in range(16)])
        np.testing.assert_allclose(out[a, 3:19], seen @ taps[0], atol=1e-4)
    fits = np.array([flat[2 + x + offsets] for x in range(16)]) @ taps[1:3].T
    np.testing.assert_allclose(best[4:20], fits.max(axis=1), atol=1e-4)
    np.testing.assert_array_equal(which[4:20], 1 + fits.argmax(axis=1))
    assert np.isneginf(best[[3, 20]]).all()


@pytest.mark.parametrize("side", [1, 2, 5, 6, 7, 8])
@pytest.mark.parametrize("least", [0, 8, 9])
def test_the_symmetries_of_the_square_are_compared_by_their_parts(kernels, side, least):
    rng = np.random.default_rng(side)
    image = rng.standard_normal((32, 40)).astype(np.float32)
    patch = rng.standard_normal((2, side, side)).astype(np.float32)
    taps = np.empty((8, 2 * side * side), np.float32)
    for g, pixels in enumerate(turns_of("d4", side)):
        for plane in range(2):
            taps[g, plane * side * side + pixels] = patch[plane].ravel()
    n_orbits = from_python(symmetries.orbits_of)(2, side)
    parts = np.empty((n_orbits, 2, 4), np.float32)
    from_python(symmetries.parts_of)(taps, 0, 2, side, parts)
    best, which = np.full(24, -np.inf, np.float32), np.zeros(24, np.int32)
    kernels.symmetric(best, which, parts.ravel(), least, image, side)
    within = 40 * np.arange(side)[:, None] + np.arange(side)
    offsets = np.concatenate([within.ravel(), 320 + within.ravel()])
    fits = np.array([image.ravel().astype(float)[2 + x + offsets] for x in range(16)]) @ taps.T
    if least == 9:
        fits[:, 0] = -np.inf
    np.testing.assert_allclose(best[4:20], fits.max(axis=1), atol=1e-4)
    if side > 2:
        np.testing.assert_array_equal(which[4:20], 8 + fits.argmax(axis=1))
    assert np.isneginf(best[[3, 20]]).all()


def test_windows_side_by_side_are_summed(kernels, module):
    side, dim = 9, 16
    rng = np.random.default_rng(4)
    vectors = rng.standard_normal((20 * side, dim)).astype(np.float32)
    weights = [rng.standard_normal((side, side, rows)).astype(np.float32) for rows in (module.ROWS, FEW_ROWS)]
    out = np.zeros((4, 9 * dim), np.float32)
    kernels.windows(out, *weights, vectors, side)
    field = vectors.reshape(side, 20, dim).astype(float)
    for number, found in enumerate(out):
        own = weights[number // 2]
        width = 8 if number % 2 else 16
        for a in range(own.shape[2]):
            window = field[:, 1 + a : 1 + a + side]
            expected = np.tensordot(own[:, :, a], window, 2)[:width]
            np.testing.assert_allclose(found[8 + a * dim :][:width], expected, atol=1e-4)


def test_a_group_is_copied_and_the_rest_left_alone(kernels, module, numbers):
    out = np.zeros((3, 12), dtype=np.float32)
    kernels.copies(out, numbers)
    expected = np.zeros(36, dtype=np.float32)
    expected[13 : 13 + module.ROWS] = numbers.ravel()[5 : 5 + module.ROWS]
    expected[1 : 1 + FEW_ROWS] = numbers.ravel()[2 : 2 + FEW_ROWS]
    np.testing.assert_array_equal(out.ravel(), expected)
