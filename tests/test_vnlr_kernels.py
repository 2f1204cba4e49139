"""The kernels of VNLR against plain NumPy on random input."""

import numpy as np
import pytest

from vnlem.estimate.aggregate import Aggregate
from vnlem.kernels.cpu import match
from vnlem.kernels.cpu.ridge import (
    Corner,
    GroupImages,
    Ridge,
    RidgeRule,
    box_of_members,
    filter_tile,
    join_planes_tile,
)
from vnlem.kernels.cpu.sheets import PADDING, Images, Sums, TilePlace
from vnlem.neighbours.groups import symmetries
from vnlem.neighbours.planes import symmetries_of_block
from vnlem.neighbours.sheets import TILE, Layout, Reach
from vnlem.neighbours.turned import TurnedSheet, square_side
from vnlem.pipeline.regions import Region
from vnlem.pipeline.schedule import Spans, Step
from vnlem.pipeline.tiles import Tile
from vnlem.reference.groups import combination
from vnlem.reference.turned import turn_square


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def flat(p):
    return np.ones(p, np.float32)


HERE = Corner(0, 0, 0, 0)
PILOT, STEIN = RidgeRule(False, 0.0, 1.1, 1.4, 0.3), RidgeRule(True, 0.6, 0.0, 1.0, 0.75)


def filtered(images, offsets, places, positions, chosen, n_own, rule, size, window=1.0):
    """Changes (size, 2) and weights (size) of groups, in double precision; images: flat.

    window: weights of the pixels of a patch.
    """
    pilot, working, change, variance = (image.astype(np.float64) for image in images)
    sums, weights = np.zeros((size, 2)), np.zeros(size)
    for members, turns in zip(positions, chosen, strict=True):
        at = members[:, None] + offsets[turns]
        noise = variance[at].sum(axis=1)
        left = max(1 - np.sqrt(change[at].sum() / noise.sum()), 1.02 * rule.tau, 0.02)
        noise = noise * np.where(members < n_own, 1.0, 4.0)
        load = noise * (rule.extra_load if rule.without_pilot else rule.boost * left**2)
        theta = combination(pilot[at].T, load, noise + load if rule.without_pilot else load)
        gain = np.sum(theta**2 * noise[:, None], axis=0) / noise
        changes = (theta - np.eye(len(members))).T @ working[at]
        shares = [1.0, 1.0 - min(rule.tau / left, 1.0)]
        for j in np.flatnonzero(members < n_own):
            weight = max(gain[j], 1 / len(members)) ** -1.5
            sums[members[j] + places[turns[j]]] += weight * np.outer(window * changes[j], shares)
            weights[members[j]] += weight
    return sums, weights


def a_tile(p, k, scale, groups=3, channels=2):
    """Random images whose last rows are not put back, and random groups in them."""
    rng = np.random.default_rng(p * k)
    rows, own_rows, stride = 33 + p, 29, 37 + PADDING
    shape = (channels, rows, stride)
    pilot, working = (scale * rng.standard_normal(shape) for _ in range(2))
    change, variance = rng.uniform(0, 0.3, shape), rng.uniform(0.5, 1.5, shape)
    images = GroupImages(*(a.astype(np.float32) for a in (pilot, working, change, variance)), plane_rows=0)
    y, x = rng.integers(0, rows - p + 1, (groups, k)), rng.integers(0, 37 - p + 1, (groups, k))
    y[(y < own_rows) & (y + p > own_rows)] = own_rows  # no patch is cut
    chosen = rng.integers(0, 8, (groups, k)) * rng.integers(0, 2, (groups, k))
    return images, own_rows, (y * stride + x).astype(np.int32), chosen.astype(np.uint8)


@pytest.mark.parametrize("beta", [0.0, 3.0])
@pytest.mark.parametrize("rule", [PILOT, STEIN])
@pytest.mark.parametrize(("p", "k"), [(2, 3), (5, 2), (6, 20), (7, 64), (8, 37), (8, 80), (11, 9), (17, 5)])
def test_groups_are_filtered_as_the_formulas_say(p, k, rule, beta):
    taps = np.kaiser(p, beta).astype(np.float32)
    window = np.outer(taps, taps).ravel()
    given, own_rows, positions, chosen = a_tile(p, k, 3.0)
    stride = given.pilot.shape[2]
    turns = symmetries("d4", p)
    tile = Sums(np.zeros((2, own_rows, stride, 2), np.float32), np.zeros((2, own_rows, stride), np.float32))
    moved = filter_tile(given, Ridge(turns, taps, rule), positions, chosen, HERE, tile)
    n_own = own_rows * stride
    assert moved == np.count_nonzero((chosen > 0) | (positions >= n_own))
    offsets = turns // p * stride + turns % p
    for c in range(2):
        images = [image[c].ravel() for image in given[:4]]
        own = rule._replace(boost=rule.boost * (rule.colour_boost if c > 0 else 1.0))
        sums, weights = filtered(images, offsets, offsets, positions, chosen, n_own, own, n_own, window)
        np.testing.assert_allclose(
            tile.changes[c].reshape(-1, 2), sums, rtol=1e-3, atol=1e-3 * np.abs(sums).max()
        )
        np.testing.assert_allclose(tile.weights[c].ravel(), weights, rtol=1e-3)


@pytest.mark.parametrize("scale", [10.0, 30.0, 1e3, 1e5, 1e6])
def test_groups_with_little_noise_are_filtered_in_double_precision(scale):
    # From the second scale on the noise is too weak for single precision; at the last, even for double.
    given, own_rows, positions, chosen = a_tile(6, 20, scale, channels=1)
    stride, turns = given.pilot.shape[2], symmetries("d4", 6)
    tile = Sums(np.zeros((1, own_rows, stride, 2), np.float32), np.zeros((1, own_rows, stride), np.float32))
    filter_tile(given, Ridge(turns, flat(6), PILOT), positions, chosen, HERE, tile)
    offsets, n_own = turns // 6 * stride + turns % 6, own_rows * stride
    images = [image[0].ravel() for image in given[:4]]
    sums, weights = filtered(images, offsets, offsets, positions, chosen, n_own, PILOT, n_own)
    np.testing.assert_allclose(tile.changes.reshape(-1, 2), sums, atol=2e-3 * np.abs(sums).max())
    np.testing.assert_allclose(tile.weights.ravel(), weights, rtol=2e-3)


@pytest.mark.parametrize("beta", [0.0, 3.0])
@pytest.mark.parametrize(("p", "k", "depth"), [(4, 7, 3), (7, 24, 1), (5, 64, 2)])
def test_groups_in_planes_are_filtered_as_the_formulas_say(p, k, depth, beta):
    rng = np.random.default_rng(k)
    shape, width = (5, 24, 23 + PADDING), 23
    pilot, working = (3 * rng.standard_normal(shape).astype(np.float32) for _ in range(2))
    change, variance = (rng.uniform(a, b, shape).astype(np.float32) for a, b in ((0, 0.3), (0.5, 1.5)))
    pixels = symmetries_of_block("d4", p, depth, reflect_depth=True)
    offsets = ((pixels // p**2 * shape[1]) + pixels % p**2 // p) * shape[2] + pixels % p
    first, size = np.array([1, 2, 3]), np.array([depth + 1, 17, 19])
    corners = first + rng.integers(0, size - (depth, p, p) + 1, (3, k, 3))
    positions = np.ravel_multi_index(tuple(np.moveaxis(corners, -1, 0)), shape).astype(np.int32)
    chosen = rng.integers(0, len(pixels), (3, k)).astype(np.uint8)
    totals = [np.zeros(shape, np.float32) for _ in range(2)]
    flat = [image.ravel() for image in (change, variance)]
    for z, y, x in np.ndindex(5 - depth + 1, 24 - p + 1, width - p + 1):
        at = np.ravel_multi_index((z, y, x), shape) + offsets[0]
        for total, image in zip(totals, flat, strict=True):
            total[z, y, x] = image[at].sum()
    room = np.zeros(2 * size.prod() + PADDING, np.float32)
    sums, weights = room[: 2 * size.prod()].reshape(*size, 2), np.zeros(size, np.float32)
    taps = np.kaiser(p, beta).astype(np.float32)
    given = GroupImages(*(one.reshape(1, -1, shape[2]) for one in (pilot, working, *totals)), shape[1])
    tile = Sums(sums.reshape(1, -1, size[2], 2), weights.reshape(1, -1, size[2]))
    corner = Corner(*first, plane_rows=size[1])
    filter_tile(given, Ridge(pixels, taps, PILOT), positions, chosen, corner, tile)
    images = [image.ravel() for image in (pilot, working, change, variance)]
    window = np.tile(np.outer(taps, taps).ravel(), depth)
    everywhere = filtered(images, offsets, offsets, positions, chosen, pilot.size, PILOT, pilot.size, window)
    part = tuple(slice(a, a + n) for a, n in zip(first, size, strict=True))
    for found, wanted in zip((sums, weights), everywhere, strict=True):
        expected = wanted.reshape(*shape, *found.shape[3:])[part]
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    assert not room[2 * size.prod() :].any()


def test_a_box_holds_all_members():
    positions = np.random.default_rng(0).integers(7000, 7900, (5, 9)).astype(np.int32)
    box = np.empty((2, 3), np.int64)
    box_of_members(positions, 20, 31, box)
    places = np.unravel_index(positions, (20, 20, 31))
    assert box.tolist() == [[int(one.min()) for one in places], [int(one.max()) for one in places]]


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_sums_of_a_tile_are_added_to_those_of_the_planes(depth):
    sums, weights, before = random(2, 4, 5, 6, 2), random(2, 4, 5, 6), random(2, 7, 20, 30)
    all_sums, all_weights = np.zeros((*before.shape, 2), np.float32), before.copy()
    join_planes_tile(sums, weights, Corner(2, 9, 11, 5), depth, all_sums, all_weights)
    part = np.s_[:, 2:6, 9:14, 11:17]
    np.testing.assert_array_equal(all_sums[part], sums)
    assert np.count_nonzero(all_sums) == sums.size
    covered = sum(np.pad(weights, ((0, 0), (shift, 0), (0, 0), (0, 0)))[:, :4] for shift in range(depth))
    np.testing.assert_allclose((all_weights - before)[part], covered, atol=1e-5)


def settled(images, taps, tiles):
    """Tiles (first row, sums), as high as the image and one after another."""
    height = images.noisy.shape[1]
    spans = Spans([(first, height) for first, _ in tiles], [(0, images.noisy.shape[2])])
    aggregate = Aggregate(images, Tile(0, height, 0, images.noisy.shape[2]))
    aggregate.add_pass(spans, taps, Tile(0, height, 0, images.noisy.shape[2]))
    for row, (first, sums) in enumerate(tiles):
        aggregate.put(Step(0, row, 0), sums, TilePlace(first, 0, *sums.weights.shape[1:]))
        aggregate.settle(Step(0, row, 0))
    return aggregate


@pytest.mark.parametrize("taps", [[1.0, 1.0, 1.0], [0.25, 1.0, 0.25]])
def test_changes_are_weighted_means_over_the_patches_that_cover_a_pixel(taps):
    corners, changes = np.abs(random(1, 9, 11)), random(1, 9, 11, 2)
    corners[:, 7:], corners[:, :, 9:] = 0, 0
    weights = np.zeros((9, 11))
    for y in range(7):
        for x in range(9):
            weights[y : y + 3, x : x + 3] += corners[0, y, x] * np.outer(taps, taps)
    # As one tile, or as three that overlap.
    for shares in ([(0, 1.0)], [(0, 0.5), (0, 0.25), (4, 0.25)]):
        images = Images(*(random(1, 9, 11, seed=s) for s in range(4)))
        before = images.working[0].copy()
        parts = []
        for first, share in shares:
            sums = Sums(share * changes, share * corners)
            parts.append((first, Sums(sums.changes[:, first:], sums.weights[:, first:])))
        # What the last one lacks, the first one has.
        parts[0][1].changes[:, : parts[-1][0]] += (1 - sum(s for f, s in shares if f == 0)) * changes[
            :, : parts[-1][0]
        ]
        parts[0][1].weights[:, : parts[-1][0]] += (1 - sum(s for f, s in shares if f == 0)) * corners[
            :, : parts[-1][0]
        ]
        settled(images, np.array(taps, np.float32), parts)
        np.testing.assert_allclose(images.pilot[0], before + changes[0, :, :, 0] / weights, rtol=1e-4)
        np.testing.assert_allclose(images.working[0], before + changes[0, :, :, 1] / weights, rtol=1e-4)


def test_a_pixel_that_no_patch_covers_is_told():
    images = Images(*(np.zeros((1, 6, 6), np.float32) for _ in range(4)))
    sums = Sums(np.ones((1, 4, 6, 2), np.float32), np.ones((1, 4, 6), np.float32))
    with pytest.raises(RuntimeError, match="no patch covers 6 pixels"):
        settled(images, flat(2), [(0, sums)])


def test_members_are_found_in_every_sheet_and_channels_are_compared_together():
    # Three frames, the first the image itself, and two channels: only their sum distinguishes them.
    rng = np.random.default_rng(5)
    height, width, p, radius = 20, 22, 4, 3
    frames = rng.normal(size=(3, 2, height, width)).astype(np.float32)
    target = frames[0, :, 8 : 8 + p, 9 : 9 + p].copy()
    frames[1, :, 6 : 6 + p, 10 : 10 + p] = target + 0.01
    frames[2, :, 9 : 9 + p, 7 : 7 + p] = target - 0.02
    frames[2, 0, 5 : 5 + p, 9 : 9 + p] = target[0]  # agrees in one channel alone

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
                array[:, rows, : self.width] = self._planes
            tall.compared[:, rows, : self.width] = self._planes
            tall.variance[:, rows] = 0.01

    layout = Layout.of([Frame(planes) for planes in frames])
    tall = layout.tall(Images(*[frames[0]] * 4), np.ones(2, np.float32))
    image = tall.compared[None]
    measures = np.empty((3, *image[:, 0].shape), np.float32)
    match.measure_patches(image, p, 1, 0, tall.outside, measures)
    field = match.Field(image, measures, 1, p, 1, radius, 3, 1, 1.0, 1.0, 0.0)
    positions, chosen = np.empty((1, 3), np.int32), np.empty((1, 3), np.uint8)
    windows, at = layout.windows(np.array([[8, 9]])), np.array([8 * layout.stride + 9])
    match.match_tile(field, at, windows, np.ones(1), positions, chosen)
    rows, columns = np.divmod(positions[0], layout.stride)
    assert set(zip(rows // height, rows % height, columns, strict=True)) == {(0, 8, 9), (1, 6, 10), (2, 9, 7)}
    sums = layout.sums(2)
    settings = Ridge(symmetries("identity", p), flat(p), RidgeRule(False, 0.0, 1.0, 1.0, 0.0))
    given = GroupImages(tall.pilot, tall.working, tall.change, tall.variance, plane_rows=0)
    filter_tile(given, settings, positions, chosen, HERE, sums)
    # Every member gets its change, in both channels of its own frame.
    touched = np.abs(sums.changes[..., 0]) > 0
    for row, column in zip(rows, columns, strict=True):
        assert sums.weights[0, row, column] > 0
        assert touched[:, row : row + p, column : column + p].all()
    assert np.count_nonzero(touched) == 3 * 2 * p * p


def test_turning_keeps_white_noise_white_and_undoes_itself():
    square = np.random.default_rng(0).standard_normal((160, 160))
    inner = np.s_[48:112, 48:112]
    turned = turn_square(square, 30.0)[inner]
    # The taps remove the highest frequencies: a little of the noise, without correlating neighbours.
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
    layout = Layout.of([sheet])
    tall = layout.tall(Images(spot, spot, spot, np.ones((1, 1, 1), np.float32)), np.ones(1, np.float32))
    row, column = sheet.corners(np.array([[42, 71]]))[0] + 6
    assert tall.pilot[0, row, column] > 0.85
    assert not tall.outside[row, column]
    np.testing.assert_allclose(tall.compared[0], tall.pilot[0])
