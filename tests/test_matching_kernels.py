"""Block matching against a plain search of all candidates."""

import numpy as np
import pytest
from groups_in_image import groups_in

from vnlem.kernels.cpu.match import NOTHING_OUTSIDE, Field, match_tile, measure_patches
from vnlem.kernels.cpu.sheets import Images
from vnlem.neighbours.groups import symmetries
from vnlem.neighbours.patches import blank_planes
from vnlem.neighbours.planes import symmetries_of_block
from vnlem.neighbours.sheets import Layout

Place = tuple[int, ...]


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def steps(height: int, width: int) -> np.ndarray:
    """Steps of brightness: most candidates are left out by their mean, before any transform is tried."""
    return (np.arange(height)[:, None] // 7 % 3 + np.arange(width) // 5 % 2).astype(np.float32)


def all_patches(planes: np.ndarray, p: int) -> np.ndarray:
    """Patches (rows, columns, planes * p * p) of planes (planes, H, W)."""
    windows = np.lib.stride_tricks.sliding_window_view(planes.astype(np.float64), (p, p), axis=(1, 2))
    return np.moveaxis(windows, 0, 2).reshape(*windows.shape[1:3], -1)


def window(centre: Place, radius: int, patches: np.ndarray) -> tuple[slice, slice]:
    """The window around a centre, moved inwards at the border."""
    found = []
    for at, count in zip(centre, patches.shape[:2], strict=True):
        side = min(2 * radius + 1, count)
        first = min(max(at - radius, 0), count - side)
        found.append(slice(first, first + side))
    return found[0], found[1]


def nearest(reference, candidates, transforms, k, factor, penalty):
    """Places among the candidates (n, pixels) and transforms of the k nearest, turned ones only if enough."""
    ranks = np.sum((candidates[:, transforms] - reference) ** 2, axis=2)
    ranks[:, 1:] = factor * ranks[:, 1:] + penalty
    best, which = ranks.min(axis=1), ranks.argmin(axis=1)
    members = np.argsort(best, kind="stable")[:k]
    if 8 * np.count_nonzero(which[members]) < k:
        which[:] = 0
        members = np.argsort(ranks[:, 0], kind="stable")[:k]
    return {(int(at), int(which[at])) for at in members}


SIZES = [(5, 1, 40, 0), (5, 1, 40, 5), (5, 3, 40, 5), (5, 2, 11, 5), (2, 1, 40, 5), (3, 1, 33, 5)]
SIZES += [
    (4, 1, 40, 5),
    (6, 1, 40, 5),
    (7, 1, 41, 5),
    (8, 1, 40, 5),
    (9, 1, 40, 5),
    (12, 2, 37, 5),
    (17, 1, 40, 5),
]


@pytest.mark.parametrize("group", ["identity", "c4", "d4"])
@pytest.mark.parametrize(("p", "channels", "width", "height_of_steps"), SIZES)
@pytest.mark.parametrize("radius", [6, 9])
def test_matching_agrees_with_all_distances(group, p, channels, width, height_of_steps, radius):
    height, k = 40, 9
    image = random(channels, height, width, seed=3) + height_of_steps * steps(height, width)
    last = height - p
    references = np.array([[0, 0], [last // 2, (width - p) // 2], [last, width - p], [min(3, last), 3]])
    penalty = 0.4 * p * p
    corners, chosen = groups_in(
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
    patches = all_patches(image, p)
    turns = symmetries(group, p)
    # All channels move alike.
    turns = np.concatenate([turns + c * p * p for c in range(channels)], axis=1)
    for (top, left), members, numbers in zip(references, corners, chosen, strict=True):
        rows, columns = window((top, left), min(radius, max(height, width) - p), patches)
        candidates = patches[rows, columns]
        expected = nearest(
            patches[top, left], candidates.reshape(-1, patches.shape[2]), turns, k, 1.1, penalty
        )
        assert (*members[0], numbers[0]) == (top, left, 0)
        places = (members - [rows.start, columns.start]) @ [candidates.shape[1], 1]
        assert set(zip(places.tolist(), numbers.tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    ("group", "reflect"), [("identity", True), ("c4", False), ("d4", False), ("d4", True)]
)
@pytest.mark.parametrize(("p", "depth", "width"), [(4, 3, 40), (7, 2, 26), (5, 2, 9), (8, 1, 44)])
@pytest.mark.parametrize("channels", [1, 3])
def test_matching_in_planes_agrees_with_all_distances(group, reflect, p, depth, width, channels):
    if depth == 1 and reflect:
        pytest.skip("one plane has one order")
    n_planes, height, radius, k = 4, 30, 5, 8
    images = random(n_planes * channels, height, width, seed=p) + 3 * steps(height, width)
    images = images.reshape(n_planes, channels, height, width)
    # All channels move alike, and keep their order where the planes come in reverse.
    order, pixel = np.divmod(symmetries_of_block(group, p, depth, reflect_depth=reflect), p * p)
    order, pixel = (part.reshape(len(order), depth, 1, p * p) for part in (order, pixel))
    transforms = ((order * channels + np.arange(channels)[:, None]) * p * p + pixel).reshape(len(order), -1)
    blocks = [
        all_patches(images[first : first + depth].reshape(-1, height, width), p)
        for first in range(n_planes - depth + 1)
    ]
    blank = blank_planes(n_planes, height, width)
    image = np.zeros((n_planes, channels, *blank.shape[1:]), np.float32)
    image[..., :width] = images
    measures = np.zeros((3, *blank.shape), np.float32)
    rows, columns = height - p + 1, width - p + 1
    for first, patches in enumerate(blocks):
        measure_patches(image, p, depth, first, NOTHING_OUTSIDE, measures)
        level = patches.sum(axis=2) / np.sqrt(patches.shape[2])
        squares = (patches**2).sum(axis=2)
        expected = np.stack([squares, level, np.sqrt(np.maximum(squares - level**2, 0))])
        np.testing.assert_allclose(measures[:, first, :rows, :columns], expected, rtol=1e-4, atol=1e-4)
    references = np.array([[0, 0, 0], [1, rows // 2, columns // 2], [len(blocks) - 1, rows - 1, columns - 1]])
    references[:, 0] = np.minimum(references[:, 0], len(blocks) - 1)
    other = (references[:, 0] + 1) % len(blocks)
    missing = np.full((3, 3), -1)
    moved = np.column_stack([other, references[:, 1:] + [2, -1]])
    centres = np.stack([references, missing, moved], axis=1)
    noise = p * p * depth * channels
    positions, chosen = np.empty((3, k), np.int32), np.empty((3, k), np.uint8)
    field = Field(image, measures, len(transforms), p, depth, radius, 3, 0, 1.1, 0.1, 0.0)
    windows = np.zeros((3, 3, 4), np.int64)
    for r, site in np.argwhere(centres[..., 0] >= 0):
        there, *centre = centres[r, site]
        cut = window(centre, radius, blocks[there])
        first = np.ravel_multi_index((there, *(part.start for part in cut)), blank.shape)
        windows[r, site, :3] = (first, *(part.stop - part.start for part in cut))
    at = np.ravel_multi_index(references.T, blank.shape)
    match_tile(field, at, windows, np.full(3, float(noise)), positions, chosen)
    for r, (plane, top, left) in enumerate(references):
        sites = []
        for there, y, x in centres[r, [0, 2]]:
            cut = window((y, x), radius, blocks[there])
            grid = np.stack(np.meshgrid(there, *(np.arange(c.start, c.stop) for c in cut), indexing="ij"), -1)
            sites.append((blocks[there][cut].reshape(-1, blocks[there].shape[2]), grid.reshape(-1, 3)))
        candidates, places = (np.concatenate(parts) for parts in zip(*sites, strict=True))
        expected = nearest(blocks[plane][top, left], candidates, transforms, k, 1.1, 0.1 * noise)
        found = np.stack(np.unravel_index(positions[r], blank.shape), axis=-1)
        assert tuple(found[0]) == (plane, top, left)
        assert set(zip(map(tuple, found.tolist()), chosen[r].tolist(), strict=True)) == {
            (tuple(places[at].tolist()), number) for at, number in expected
        }


class Frame:
    """A sheet of given pixels (H, W)."""

    def __init__(self, pixels, radius, *, put_back, same_noise=False):
        self._pixels, self._radius = pixels, radius
        self.put_back, self.same_noise = put_back, same_noise
        self.height, self.width = pixels.shape
        self.candidates = (2 * radius + 1, 2 * radius + 1)

    def corners(self, references):
        return references - self._radius

    def fill(self, images, weights, tall, first):
        rows = slice(first, first + self.height)
        tall.pilot[0, rows, : self.width] = self._pixels
        tall.compared[0, rows, : self.width] = self._pixels
        tall.variance[:, rows] = 1


def found_in(frames, n_full, n_copied, k, p, radius, reference):
    """Sheet, row, column and transform of the members of one reference."""
    layout = Layout.of(frames)
    pixels = np.zeros((1, 1, 1), np.float32)
    tall = layout.tall(Images(pixels, pixels, pixels, pixels), np.ones(1, np.float32))
    image = tall.compared[None]
    measures = np.empty((3, *image[0].shape), np.float32)
    measure_patches(image, p, 1, 0, tall.outside, measures)
    field = Field(image, measures, 8, p, 1, radius, n_full, n_copied, 1, 0.0, 0.0)
    at = np.array([reference[0] * layout.stride + reference[1]])
    positions, chosen = np.empty((1, k), np.int32), np.empty((1, k), np.uint8)
    match_tile(field, at, layout.windows(np.array([reference])), np.ones(1), positions, chosen)
    rows, columns = np.divmod(positions[0], layout.stride)
    height = frames[0].height
    members = zip(rows // height, rows % height, columns, chosen[0], strict=True)
    return [tuple(int(number) for number in member) for member in members]


def test_members_from_copies_are_limited_in_number_and_may_be_only_shifted():
    p, radius = 4, 3
    image, copy = random(20, 22), random(20, 22, seed=1)
    target = image[8 : 8 + p, 9 : 9 + p].copy()
    copy[5 : 5 + p, 6 : 6 + p] = target + 0.01
    copy[11 : 11 + p, 12 : 12 + p] = np.rot90(target, -1) + 0.02
    copy[5 : 5 + p, 12 : 12 + p] = target[:, ::-1] + 0.03
    frames = [Frame(image, radius, put_back=True), Frame(copy, radius, put_back=False)]
    best = [(1, 5, 6, 0), (1, 11, 12, 1), (1, 5, 12, 4)]
    members = found_in(frames, 1, 8, 6, p, radius, (8, 9))
    assert members[0] == (0, 8, 9, 0)
    assert set(best) <= set(members)
    members = found_in(frames, 1, 2, 6, p, radius, (8, 9))
    assert set(best[:2]) <= set(members)
    assert sum(sheet for sheet, *_ in members) == 2


def test_a_copy_with_the_noise_of_the_image_has_no_members_near_the_reference():
    p, radius = 4, 6
    image = random(26, 28)
    frames = [Frame(image, radius, put_back=True), Frame(image, radius, put_back=False, same_noise=True)]
    members = found_in(frames, 1, 30, 60, p, radius, (10, 11))
    copied = [(y, x) for sheet, y, x, _ in members if sheet == 1]
    assert 10 < len(copied) <= 30
    assert all(max(abs(y - 10), abs(x - 11)) > 3 for y, x in copied)


def test_where_distances_are_no_numbers_the_reference_takes_their_place():
    image = random(1, 20, 20)
    image[0, 8:] = np.nan
    rule = {"patch_size": 5, "radius": 4, "n_members": 9, "group": "d4", "factor": 1.0, "penalty": 0.04}
    corners, _ = groups_in(image, np.array([[12, 12], [3, 3]]), **rule, variance=1.0)
    y, x = np.moveaxis(corners, -1, 0)
    assert y.max() < 16
    assert x.max() < 16
    assert {tuple(corner) for corner in corners[0].tolist()} == {(12, 12)}


def test_the_symmetries_are_the_eight_distinct_ones():
    table = symmetries("d4", 3)
    assert len({tuple(row) for row in table}) == 8
    patch = np.arange(9).reshape(3, 3)
    np.testing.assert_array_equal(patch.ravel()[table[1]].reshape(3, 3), np.rot90(patch))
    np.testing.assert_array_equal(patch.ravel()[table[4]].reshape(3, 3), patch[:, ::-1])
