"""VNLEM's kernels against plain NumPy: random features, odd sizes, borders."""

import numpy as np
import pytest

from vnlem.features.rings import layout
from vnlem.kernels.cpu import vnlem as kernels
from vnlem.methods.vnlem import NO_DIFFUSION
from vnlem.neighbours.window import find_neighbours, make_search
from vnlem.reference.regression import irls

SPARE = 8  # columns of padding


def random_region(rings, height, width, seed=0):
    """Features of patches that are alike in groups, so that some are near."""
    rng = np.random.default_rng(seed)
    shape = (height, width + SPARE)
    lanes = rings.channels * rings.lanes
    kinds = rng.normal(0, 1, (5, lanes)) + 1j * rng.normal(0, 1, (5, lanes))
    noise = rng.normal(0, 0.5, (*shape, lanes)) + 1j * rng.normal(0, 0.5, (*shape, lanes))
    orders = np.tile(rings.lane_order, rings.channels)
    padding = np.tile(rings.lane_ring, rings.channels) < 0
    canonical = kinds[rng.integers(0, 5, shape)] + noise
    canonical[..., padding] = 0
    canonical[..., orders == 0] = canonical[..., orders == 0].real
    angle = rng.uniform(-np.pi, np.pi, shape).astype(np.float32)
    raw = canonical * np.exp(-1j * orders * angle[..., None])
    for each in (canonical, raw):
        each[:, width:] = 0
    parts = [np.concatenate([each.real, each.imag], axis=-1).astype(np.float32) for each in (raw, canonical)]
    region = kernels.Features(
        raw=parts[0],
        canonical=parts[1],
        lengths=np.empty(shape, np.float32),
        sharp=rng.uniform(0, 2, shape).astype(np.float32),
        angle=angle,
        pixels=rng.normal(0, 1, (*shape, rings.channels)).astype(np.float32),
        width=width,
    )
    kernels.squared_lengths(region.canonical, region.lengths)
    np.testing.assert_allclose(region.lengths, (region.canonical.astype(float) ** 2).sum(axis=-1), rtol=1e-5)
    return region


def rule_of(margin=0.0, gamma=0.1, bandwidths=(40.0,)):
    return kernels.Rule(
        with_margin=margin > 0,
        factor=1 + margin,
        offset=margin,
        noise=1.0 if margin else 0.0,
        inverse_bandwidths=np.array([1 / width for width in bandwidths], np.float32),
        own_as_best=margin > 0,
        gamma=gamma,
        step=1e-4,
    )


class Plain:
    """Neighbours and estimate of one pixel in float64."""

    def __init__(self, region, rings, search, rule, step):
        self.region, self.search, self.rule, self.width = region, search, rule, region.width
        lanes = region.canonical.shape[2] // 2
        self.orders = np.tile(rings.lane_order, rings.channels)
        self.raw, self.canonical = (
            (part[..., :lanes] + 1j * part[..., lanes:].astype(np.float64))
            for part in (region.raw, region.canonical)
        )
        count = len(search.cos) - 1
        self.angles = np.radians(step) * np.arange(-count, count + 1)

    def margin(self, squared):
        return self.rule.factor * squared + self.rule.offset if self.rule.with_margin else squared

    def window(self, y, x):
        reach = self.search.patch_distance
        rows = np.arange(max(y - reach, 0), min(y + reach + 1, self.raw.shape[0]))
        columns = np.arange(max(x - reach, 0), min(x + reach + 1, self.width))
        return (part.ravel() for part in np.meshgrid(rows, columns, indexing="ij"))

    def ranked(self, y, x, rows, columns):
        squared = self.margin(squares(self.canonical[rows, columns] - self.canonical[y, x]))
        if self.rule.with_margin:
            squared = np.minimum(squared, squares(self.raw[rows, columns] - self.raw[y, x]))
        return squared

    def accurate(self, y, x, rows, columns):
        turned = self.canonical[rows, columns][:, None] * np.exp(-1j * np.outer(self.angles, self.orders))
        every = squares(turned - self.canonical[y, x])
        best = every.argmin(axis=1)
        patches, squared = turned[np.arange(len(rows)), best], self.margin(every.min(axis=1))
        own = (rows == y) & (columns == x)
        if self.search.with_identity:
            plain = squares(self.raw[rows, columns] - self.raw[y, x])
            frame = np.exp(1j * self.orders * float(self.region.angle[y, x]))
            patches[plain <= squared] = (self.raw[rows, columns] * frame)[plain <= squared]
            squared = np.minimum(squared, plain)
        patches[own] = self.canonical[y, x]
        return np.where(own, 0, squared), patches

    def neighbours(self, y, x, rank=None):
        rows, columns = self.window(y, x)
        squared = self.ranked(y, x, rows, columns)
        own = (rows == y) & (columns == x)
        ranking = np.where(own, -1, squared if rank is None else rank(y, x, rows, columns, squared, own))
        first = np.sort(np.argsort(ranking, kind="stable")[: self.search.n_candidates])
        rows, columns = rows[first], columns[first]
        squared, patches = self.accurate(y, x, rows, columns)
        half = np.sort(np.argsort(squared, kind="stable")[: self.search.n_neighbors])
        return rows[half], columns[half], squared[half], patches[half]

    def value(self, y, x, bandwidth=0, rank=None):
        rows, columns, squared, patches = self.neighbours(y, x, rank)
        own = (rows == y) & (columns == x)
        sharp = np.where(own, 0, self.region.sharp[y, x].astype(float))
        corrected = np.maximum(squared + sharp - self.rule.noise, 0)
        weights = np.exp(-corrected * self.rule.inverse_bandwidths[bandwidth])
        if self.rule.own_as_best and len(rows) > 1:
            weights[own] = max(weights[~own].max(), 1e-6)
        pixels = self.region.pixels[rows, columns].astype(float)
        points = np.concatenate([patches.real, patches.imag, np.sqrt(sharp)[:, None], 1e-6 * pixels], axis=1)
        return irls(points, weights, self.rule.gamma)[-pixels.shape[1] :] / 1e-6


def squares(difference):
    return (np.abs(difference) ** 2).sum(axis=-1)


def scene(patch_size, channels, shape, margin, *, unturned, reach=4, candidates=30, **rule):
    rings = layout(patch_size, 2, channels)
    region = random_region(rings, *shape)
    search = make_search(rings, reach, candidates, candidates // 2, 25.0, 5.0, unturned)
    made = rule_of(margin, **rule)
    return rings, region, search, made, Plain(region, rings, search, made, 5.0)


CASES = [
    (13, 1, (11, 37), 0.0, False),
    (5, 1, (9, 16), 0.5, True),
    (7, 3, (13, 5), 0.5, True),
    (9, 1, (1, 1), 0.0, True),
    (3, 2, (3, 50), 0.0, False),
]


@pytest.mark.parametrize(("patch_size", "channels", "shape", "margin", "unturned"), CASES)
def test_neighbours_are_those_of_the_definition(patch_size, channels, shape, margin, unturned):
    _, region, search, rule, plain = scene(patch_size, channels, shape, margin, unturned=unturned)
    found = find_neighbours(region, search, rule, (0, 0), shape)
    stride = region.raw.shape[1]
    for y, x in np.ndindex(shape):
        rows, columns, squared, _ = plain.neighbours(y, x)
        n = found.counts[y, x]
        assert n == len(rows)
        order = np.argsort(found.position[y, x, :n])
        np.testing.assert_array_equal(found.position[y, x, :n][order], np.sort(rows * stride + columns))
        np.testing.assert_allclose(
            np.sort(found.squared[y, x, :n]), np.sort(squared), rtol=1e-4, atol=1e-4 * squared.max()
        )


@pytest.mark.parametrize("gamma", [0.1, 1.0, 2.0])
@pytest.mark.parametrize(("patch_size", "channels", "shape", "margin", "unturned"), CASES)
def test_estimates_are_those_of_the_definition(patch_size, channels, shape, margin, unturned, gamma):
    rings, region, search, rule, plain = scene(
        patch_size, channels, shape, margin, unturned=unturned, gamma=gamma, bandwidths=(40.0, 90.0)
    )
    out = np.empty((2, *shape, channels), np.float32)
    orders = np.tile(rings.lane_order, channels)
    kernels.denoise_tile(region, search, rule, NO_DIFFUSION, orders, 0, 0, out)
    for y, x in list(np.ndindex(shape))[::7]:
        for bandwidth in (0, 1):
            np.testing.assert_allclose(out[bandwidth, y, x], plain.value(y, x, bandwidth), atol=3e-3)


@pytest.mark.parametrize("blended", [False, True])
def test_diffusion_ranks_the_candidates(blended):
    shape = (10, 21)
    rings, region, search, rule, plain = scene(7, 1, shape, 0.5, unturned=True, gamma=2.0)
    rng = np.random.default_rng(1)
    embedding = rng.normal(0, 1, (*shape, 24)).astype(np.float32)
    trust = (
        rng.uniform(0, 1.5, shape).clip(0, 1).astype(np.float32) if blended else np.ones(shape, np.float32)
    )

    def rank(y, x, rows, columns, squared, own):
        by_diffusion = ((embedding[rows, columns] - embedding[y, x]).astype(float) ** 2).sum(axis=1)
        if trust[y, x] == 1:
            return by_diffusion
        # The kernel has the rounded zero of the pixel itself among the distances of patches.
        above = np.maximum(np.where(own, 0, squared) - squared[~own].min(), 0)
        total = np.where(own, 0, squared).sum() - len(squared) * squared[~own].min()
        share = trust[y, x] * len(rows) / by_diffusion.sum()
        return share * by_diffusion + (1 - trust[y, x]) * len(rows) / total * above

    out = np.empty((1, *shape, 1), np.float32)
    diffusion = kernels.Diffusion(embedding, trust, blended)
    kernels.denoise_tile(region, search, rule, diffusion, rings.lane_order, 0, 0, out)
    for y, x in list(np.ndindex(shape))[::5]:
        np.testing.assert_allclose(out[0, y, x], plain.value(y, x, rank=rank), atol=3e-3)


def test_a_tile_gets_what_the_whole_gets():
    shape = (12, 45)
    rings, region, search, rule, _ = scene(7, 1, shape, 0.5, unturned=True)
    whole = np.empty((1, *shape, 1), np.float32)
    kernels.denoise_tile(region, search, rule, NO_DIFFUSION, rings.lane_order, 0, 0, whole)
    for top, left, height, width in ((3, 1, 5, 17), (0, 33, 12, 12), (11, 44, 1, 1)):
        part = np.empty((1, height, width, 1), np.float32)
        kernels.denoise_tile(region, search, rule, NO_DIFFUSION, rings.lane_order, top, left, part)
        np.testing.assert_array_equal(part, whole[:, top : top + height, left : left + width])


def test_given_neighbours_give_the_estimate_of_the_search():
    shape = (9, 18)
    rings, region, search, rule, _ = scene(7, 1, shape, 0.5, unturned=True)
    whole = np.empty((1, *shape, 1), np.float32)
    kernels.denoise_tile(region, search, rule, NO_DIFFUSION, rings.lane_order, 0, 0, whole)
    found = find_neighbours(region, search, rule, (0, 0), shape)
    pixels = (np.arange(shape[0])[:, None] * region.raw.shape[1] + np.arange(shape[1])).ravel()
    enough = found.counts.ravel() == search.n_neighbors
    flat = [np.ascontiguousarray(part.reshape(-1, search.n_neighbors)[enough]) for part in found[:3]]
    out = np.empty((enough.sum(), 1), np.float32)
    kernels.estimate_all(region, search, rule, rings.lane_order, pixels[enough], *flat, out)
    np.testing.assert_array_equal(out, whole.reshape(-1, 1)[enough])
    candidates = np.repeat(pixels[enough][:, None], 2, axis=1)
    candidates[:, 1] = (candidates[:, 1] + 1) % shape[1]
    kernels.estimate_candidates(region, search, rule, rings.lane_order, pixels[enough], candidates, out)
    assert np.isfinite(out).all()


@pytest.mark.parametrize("gamma", [0.1, 2.0])
def test_a_pixel_without_weights_keeps_its_value(gamma):
    rings, region, search, rule, _ = scene(5, 1, (6, 9), 0.0, unturned=False, gamma=gamma, bandwidths=(1e-9,))
    pixels, others = np.array([3, 20]), np.array([[40, 41], [1, 2]])
    squared, which = np.ones((2, 2), np.float32), np.zeros((2, 2), np.int64)
    out = np.empty((2, 1), np.float32)
    kernels.estimate_all(region, search, rule, rings.lane_order, pixels, others, squared, which, out)
    np.testing.assert_array_equal(out, region.pixels.reshape(-1, 1)[pixels])
