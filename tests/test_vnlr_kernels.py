"""The kernels of VNLR against plain NumPy on random input."""

import numpy as np
import pytest

from vnlem.estimate.aggregate import Aggregate
from vnlem.kernels.cpu.sheets import Images, Sums
from vnlem.kernels.numba import combine, group_algebra, match, ridge
from vnlem.kernels.numba.jit import from_python
from vnlem.kernels.numba.members import centre, gather, gather_rows, put_back, row_length, rows_for
from vnlem.neighbours.groups import groups_in, symmetries
from vnlem.neighbours.scaled import ScaledSheet
from vnlem.neighbours.sheets import TILE, Layout, Reach
from vnlem.neighbours.turned import TurnedSheet, square_side
from vnlem.pipeline.regions import Region
from vnlem.pipeline.schedule import Spans, Step
from vnlem.pipeline.tiles import Tile
from vnlem.reference.copies import Copies, turn_square


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("n", "k"), [(36, 16), (49, 64), (64, 80)])
def test_gram_matrices_agree_with_matmul(n, k):
    columns = random(n + 3, k)
    gram = np.empty((k, k), np.float32)
    from_python(group_algebra.gram)(columns, np.arange(n) * k, gram)
    blocks = np.arange(k) // 16
    written = blocks[:, None] <= blocks[None, :]
    np.testing.assert_allclose(gram[written], (columns[:n].T @ columns[:n])[written], atol=1e-4)


@pytest.mark.parametrize(("n", "k", "width"), [(9, 16, 8), (20, 32, 48), (64, 64, 56), (80, 80, 72)])
def test_products_agree_with_matmul(n, k, width):
    left, right, product = random(k, k), random(k, width, seed=1), np.empty((k, width), np.float32)
    from_python(group_algebra.multiply)(left, right, np.arange(n) * width, product)
    np.testing.assert_allclose(product[:n], left[:n, :n].T @ right[:n], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("k", [16, 64, 96])
def test_sweeping_leaves_minus_the_inverse(k):
    a = random(k, k).astype(np.float64)
    matrix = (a @ a.T + 5 * np.eye(k)).astype(np.float32)
    blocks = np.arange(k) // 16
    swept = np.where(blocks[:, None] <= blocks[None, :], matrix, np.float32(np.nan))
    scratch = [np.empty(shape, np.float32) for shape in (256, (16, k), (16, k))]
    from_python(group_algebra.sweep)(swept, np.arange(16) * k, *scratch)
    np.testing.assert_allclose(swept, -np.linalg.inv(matrix.astype(np.float64)), atol=2e-5)


@pytest.mark.parametrize(("p", "k"), [(3, 5), (6, 20), (7, 16), (8, 24), (11, 9)])
def test_patches_come_into_columns_and_rows_and_go_back_where_they_were(p, k):
    rng = np.random.default_rng(p)
    height, stride, size = 40, 70, (k + 15) // 16 * 16
    image = random(height, stride, seed=p)
    turns = symmetries("d4", p)
    offsets = (turns // p * stride + turns % p).astype(np.int64)
    corners = rng.integers(0, height - p, k) * stride + rng.integers(0, stride - p - 24, k)
    chosen = (rng.integers(0, 8, k) * rng.integers(0, 2, k)).astype(np.uint8)
    places = np.zeros(size, np.int64)
    places[:k] = corners
    columns = np.full((from_python(rows_for)(p * p, p), size), 7, np.float32)
    columns[:, k:] = 0
    from_python(gather)(image.ravel(), offsets, places, chosen, columns)
    expected = image.ravel()[corners + offsets[chosen].T]
    np.testing.assert_array_equal(columns[: p * p, :k], expected)
    assert not columns[: p * p, k:].any()

    lanes = (p + 7) // 8 * 8
    rows = np.zeros((k, from_python(row_length)(p * p, p)), np.float32)
    mask = (np.arange(lanes) < p).astype(np.float32)
    from_python(gather_rows)(image.ravel(), offsets, places, chosen, mask, rows)
    patches = rows.reshape(k, p, lanes)
    first = image.ravel()[corners[0] + offsets[0]]
    np.testing.assert_array_equal(patches[:, :, :p].reshape(k, p * p), (expected.T - first))
    assert not patches[:, :, p:].any()

    corners[1] = -1
    factors = random(2, k, seed=1)
    sums = np.zeros(2 * image.size, np.float32)
    from_python(put_back)(rows, 2 * offsets, corners, chosen, factors, p, sums)
    wanted = np.zeros((image.size, 2))
    for j in range(k):
        if j != 1:
            at = corners[j] + offsets[chosen[j]]
            wanted[at] += (expected[:, j] - first)[:, None].astype(float) * factors[:, j]
    np.testing.assert_allclose(sums.reshape(-1, 2), wanted, atol=1e-5)


@pytest.mark.parametrize("k", [3, 8, 20])
def test_centred_columns_have_no_mean(k):
    columns = np.zeros((16, 32), np.float32)
    columns[:, :k] = random(16, k)
    expected = columns - np.where(np.arange(32) < k, columns[:, :k].mean(axis=1, keepdims=True), 0)
    from_python(centre)(columns, k)
    np.testing.assert_allclose(columns, expected, atol=1e-6)
    assert not columns[:, k:].any()


@pytest.mark.parametrize("group", ["identity", "c4", "d4"])
@pytest.mark.parametrize(("channels", "width", "steps"), [(1, 40, 0), (1, 40, 5), (3, 40, 5), (2, 11, 5)])
def test_matching_agrees_with_all_distances(group, channels, width, steps):
    height, radius, k, p = 40, 6, 9, 5
    image = random(channels, height, width, seed=3)
    # Steps of brightness: most candidates are left out by their mean, before any transform is tried.
    image += steps * (np.arange(height)[:, None] // 7 % 3 + np.arange(width) // 5 % 2)
    references = np.array([[0, 0], [17, width // 2], [35, width - p], [3, 3]])
    corners, transforms = groups_in(
        image,
        references,
        patch_size=p,
        radius=radius,
        n_members=k,
        group=group,
        factor=1.1,
        penalty=0.4 / channels,
        variance=1.0,
    )
    windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), (p, p), axis=(1, 2))
    patches = np.moveaxis(windows, 0, 2).reshape(*windows.shape[1:3], channels, -1)
    for (top, left), members, chosen in zip(references, corners, transforms, strict=True):
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
        y, x = members.T
        assert (y[0], x[0], chosen[0]) == (top, left, 0)
        found = set(zip(y - corner[0], x - corner[1], chosen, strict=True))
        assert found == {(*divmod(at, sides[1]), which.flat[at]) for at in nearest}


def test_where_distances_are_no_numbers_the_reference_takes_their_place():
    image = random(1, 20, 20)
    image[0, 8:] = np.nan
    corners, _ = groups_in(
        image,
        np.array([[12, 12], [3, 3]]),
        patch_size=5,
        radius=4,
        n_members=9,
        group="d4",
        factor=1.0,
        penalty=0.04,
        variance=1.0,
    )
    y, x = np.moveaxis(corners, -1, 0)
    assert y.max() < 16
    assert x.max() < 16


def test_all_but_the_best_become_infinite_and_ties_go_to_the_first():
    values = np.array([3, 1, 2, 2, np.inf, 2, 0], np.float32)
    from_python(match.keep_best)(values, 4)
    np.testing.assert_array_equal(values, [np.inf, 1, 2, 2, np.inf, np.inf, 0])


def test_the_symmetries_are_the_eight_distinct_ones():
    table = symmetries("d4", 3)
    assert len({tuple(row) for row in table}) == 8
    patch = np.arange(9).reshape(3, 3)
    np.testing.assert_array_equal(patch.ravel()[table[1]].reshape(3, 3), np.rot90(patch))
    np.testing.assert_array_equal(patch.ravel()[table[4]].reshape(3, 3), patch[:, ::-1])


def settled(images, patch_size, tiles):
    """Tiles (first row, sums), as high as the image and one after the other."""
    height = images.noisy.shape[1]
    spans = Spans([(first, height) for first, _ in tiles], [(0, images.noisy.shape[2])])
    aggregate = Aggregate(images, Tile(0, height, 0, images.noisy.shape[2]))
    aggregate.add_pass(spans, patch_size, Tile(0, height, 0, images.noisy.shape[2]))
    for row, (first, sums) in enumerate(tiles):
        aggregate.put(Step(0, row, 0), sums, (first, 0, *sums.weights.shape[1:]))
        aggregate.settle(Step(0, row, 0))
    return aggregate


def test_changes_are_weighted_means_over_the_patches_that_cover_a_pixel():
    corners, changes = np.abs(random(1, 9, 11)), random(1, 1, 9, 11, 2)
    corners[:, 7:], corners[:, :, 9:] = 0, 0
    weights = np.zeros((9, 11))
    for y in range(7):
        for x in range(9):
            weights[y : y + 3, x : x + 3] += corners[0, y, x]
    # As one tile, or as three that overlap.
    for shares in ([(0, 1.0)], [(0, 0.5), (0, 0.25), (4, 0.25)]):
        images = Images(*(random(1, 9, 11, seed=s) for s in range(4)))
        before = images.working[0].copy()
        parts = []
        for first, share in shares:
            sums = Sums(share * changes, share * corners)
            parts.append((first, Sums(sums.changes[:, :, first:], sums.weights[:, first:])))
        # What the last one has not got the first one has.
        parts[0][1].changes[:, :, : parts[-1][0]] += (1 - sum(s for f, s in shares if f == 0)) * changes[
            :, :, : parts[-1][0]
        ]
        parts[0][1].weights[:, : parts[-1][0]] += (1 - sum(s for f, s in shares if f == 0)) * corners[
            :, : parts[-1][0]
        ]
        settled(images, 3, parts)
        np.testing.assert_allclose(images.pilot[0], before + changes[0, 0, :, :, 0] / weights, rtol=1e-4)
        np.testing.assert_allclose(images.working[0], before + changes[0, 0, :, :, 1] / weights, rtol=1e-4)


def test_a_pixel_that_no_patch_covers_is_told():
    images = Images(*(np.zeros((1, 6, 6), np.float32) for _ in range(4)))
    sums = Sums(np.ones((1, 1, 4, 6, 2), np.float32), np.ones((1, 4, 6), np.float32))
    with pytest.raises(RuntimeError, match="no patch covers 6 pixels"):
        settled(images, 2, [(0, sums)])


@pytest.mark.parametrize("k", [9, 20])
def test_groups_are_combined_alike_in_single_and_in_double_precision(k):
    size = (k + 15) // 16 * 16
    columns = np.zeros((40, size), np.float32)
    columns[:36, :k] = random(36, k)
    from_python(centre)(columns, k)
    strides = np.arange(64) * size
    numbers = np.ones((5, size), np.float32)
    numbers[:3, :k] = 1 + np.abs(random(3, k))
    single, double = np.empty((size, size), np.float32), np.empty((size, size), np.float32)
    from_python(group_algebra.gram)(columns, strides[:40], single)
    gain = np.empty(size, np.float32)
    from_python(combine.delicate_combination)(
        columns, numbers[0], numbers[1], numbers[2], k, np.empty((k + 1, k)), double, gain
    )
    scratch = np.empty(256, np.float32), np.empty((2, 16, size), np.float32)
    from_python(combine.combination)(single, numbers, k, strides[:16], *scratch)
    np.testing.assert_allclose(single[:k], double[:k], atol=1e-5)
    np.testing.assert_allclose(numbers[4, :k], gain[:k], rtol=1e-4)


def test_members_are_found_in_every_sheet_and_planes_of_a_patch_are_compared_together():
    # Three frames, the first the image itself, and patches of two planes: only their sum tells them apart.
    rng = np.random.default_rng(5)
    height, width, p, radius = 20, 22, 4, 3
    frames = rng.normal(size=(3, 2, height, width)).astype(np.float32)
    target = frames[0, :, 8 : 8 + p, 9 : 9 + p].copy()
    frames[1, :, 6 : 6 + p, 10 : 10 + p] = target + 0.01
    frames[2, :, 9 : 9 + p, 7 : 7 + p] = target - 0.02
    frames[2, 0, 5 : 5 + p, 9 : 9 + p] = target[0]  # agrees in one plane alone

    class Frame:
        put_back, same_noise = True, False
        candidates = (2 * radius + 1, 2 * radius + 1)

        def __init__(self, planes):
            self._planes = planes
            self.height, self.width = planes.shape[1:]

        def corners(self, references):
            return references - radius

        def fill(self, images, weights, tall, first):
            rows = slice(first, first + self.height)
            for array in (tall.pilot, tall.working):
                array[0, :, rows, : self.width] = self._planes
            tall.compared[:, rows, : self.width] = self._planes
            tall.variance[:, :, rows] = 0.01

    layout = Layout.of([Frame(planes) for planes in frames], radius)
    tall = layout.tall(Images(*[frames[:1, 0]] * 4), np.ones(1, np.float32), depth=2)
    search = match.Search(
        symmetries("identity", p),
        np.ones(1, np.float32),
        layout.table(),
        3,
        1,
        p,
        radius,
        np.float32(1),
        np.float32(1),
        np.float32(0),
    )
    reference = np.array([[8, 9]])
    positions, chosen = np.empty((1, 3), np.int32), np.empty((1, 3), np.uint8)
    match.match_tile(tall, search, reference, layout.corners(reference), positions, chosen)
    rows, columns = np.divmod(positions[0], layout.stride)
    assert set(zip(rows // height, rows % height, columns, strict=True)) == {(0, 8, 9), (1, 6, 10), (2, 9, 7)}
    sums = layout.sums(1, depth=2)
    rule = combine.Rule(False, np.float32(0), np.float32(1), np.float32(0))
    settings = ridge.Ridge(symmetries("identity", p), p, layout.own_rows, rule)
    ridge.filter_tile(tall, settings, positions, chosen, sums)
    # Every member gets its change back, in both planes of its own frame.
    touched = np.abs(sums.changes[0, :, :, :, 0]) > 0
    for row, column in zip(rows, columns, strict=True):
        assert sums.weights[0, row, column] > 0
        assert touched[:, row : row + p, column : column + p].all()
    assert np.count_nonzero(touched) == 3 * 2 * p * p


def test_turning_keeps_white_noise_white_and_undoes_itself():
    square = np.random.default_rng(0).standard_normal((160, 160))
    inner = np.s_[48:112, 48:112]
    turned = turn_square(square, 30.0)[inner]
    # The taps let the highest frequencies go: a little of the noise, and no correlation of neighbours.
    assert turned.std() == pytest.approx(square.std(), rel=0.05)
    assert abs(np.corrcoef(turned[:, 1:].ravel(), turned[:, :-1].ravel())[0, 1]) < 0.1
    y, x = np.mgrid[:160, :160] / 160
    smooth = np.sin(20 * x) * np.cos(16 * y)
    back = turn_square(turn_square(smooth, 30.0), -30.0)
    np.testing.assert_allclose(back[inner], smooth[inner], atol=0.04)


@pytest.mark.parametrize("angle", [15.0, 45.0, 60.0, 75.0])
def test_a_turned_sheet_shows_each_point_where_it_says(angle):
    y, x = np.mgrid[:80, :90]
    spot = np.exp(-((y - 42) ** 2 + (x - 71) ** 2) / 8.0)[None].astype(np.float32)
    reach = Reach(1, 6, Region.whole(80, 90))
    sheet = TurnedSheet(reach, Tile(0, 64, 64, 128), square_side(TILE, 6, 1), angle, 0.0)
    layout = Layout.of([sheet], 6)
    tall = layout.tall(Images(spot, spot, spot, np.ones((1, 1, 1), np.float32)), np.ones(1, np.float32))
    row, column = sheet.corners(np.array([[42, 71]]))[0] + 6
    assert tall.pilot[0, 0, row, column] > 0.85
    assert not tall.outside[row, column]
    np.testing.assert_allclose(tall.compared[0], tall.pilot[0, 0])


def scaled_sheet(image, factor, corner, radius=6, patch_size=7):
    """A scaled sheet of the tile at a corner, as arrays: pixels, noise variance, outside."""
    height, width = image.shape
    reach = Reach(patch_size, radius, Region.whole(height, width))
    tile = Tile(corner[0], corner[0] + TILE, corner[1], corner[1] + TILE)
    sheet = ScaledSheet(reach, tile, factor, 0.0)
    planes = image[None].astype(np.float32)
    images = Images(planes, planes, planes, np.full((1, 1, 1), 2.0, np.float32))
    tall = Layout.of([sheet], radius).tall(images, np.ones(1, np.float32))
    side = sheet.height
    return sheet, tall.pilot[0, 0, :side, :side], tall.variance[0, 0, 0, 0], tall.outside[:side, :side]


@pytest.mark.parametrize("corner", [(0, 0), (0, 64), (64, 64)])
def test_scaled_sheets_agree_with_the_reference(corner):
    image = np.random.default_rng(0).standard_normal((100, 130))
    copies = Copies("similarity", image.shape, corner, 6, 7)
    expected, outside = copies.stack(image[None])[0], copies.outside()
    variance = copies.stack_variance(np.full((1, *image.shape), 2.0))[0]
    scaled = [copy for copy in copies.copies if copy.factor != 1]
    assert len(scaled) == 4
    for copy in scaled:
        sheet, pixels, noise, hidden = scaled_sheet(image, copy.factor, corner)
        part = np.s_[copy.first : copy.first + copy.side, : copy.side]
        np.testing.assert_allclose(pixels, expected[part], atol=1e-5)
        np.testing.assert_array_equal(hidden.astype(bool), outside[part])
        assert noise == pytest.approx(variance[copy.first, 0], rel=1e-5)
        where = sheet.corners(np.array([[corner[0] + 9, corner[1] + 20]]))[0] + 6
        row, column = copies.centres((corner[0] + 9, corner[1] + 20), 7)[copies.copies.index(copy)]
        assert tuple(where) == (row - copy.first, column)


@pytest.mark.parametrize("factor", [0.5, 0.6, 0.7, 0.84, 1.25])
def test_the_noise_of_a_scaled_sheet_is_what_it_says(factor):
    noise = np.sqrt(2.0) * np.random.default_rng(1).standard_normal((192, 192))
    _, pixels, variance, _ = scaled_sheet(noise, factor, (64, 64), radius=20)
    assert pixels.var() == pytest.approx(variance, rel=0.1)
    assert variance == pytest.approx(2.0 * min(factor, 1.0) ** 2, rel=0.06)


@pytest.mark.parametrize("factor", [0.5, 0.7])
def test_a_smaller_copy_has_no_aliases(factor):
    x = np.arange(192)
    too_fine = np.tile(np.cos(np.pi * (factor + 0.2) * x), (192, 1))
    coarse = np.tile(np.cos(np.pi * (factor - 0.2) * x), (192, 1))
    assert scaled_sheet(too_fine, factor, (64, 64))[1].std() < 0.03
    assert scaled_sheet(coarse, factor, (64, 64))[1].std() == pytest.approx(np.sqrt(0.5), rel=0.05)
