"""Estimates combined by Stein's estimate of their error: against a plain counterpart, in parts, in VNLEM."""

import numpy as np
import pytest

import vnlem
from vnlem.bench import phantoms
from vnlem.estimate import stein
from vnlem.pipeline.tiles import Tile


@pytest.fixture
def given():
    """A noisy image of two channels and three estimates of it, by averages of different width."""
    rng = np.random.default_rng(3)
    noisy = rng.normal(0, 1, (2, 61, 50)).cumsum(axis=2).astype(np.float32)
    pushed = noisy + np.float32(stein.PUSH * 0.7) * stein.push_of(noisy.shape, (0, 0))

    def averages(image):
        return [sum(np.roll(image, k, axis=2) for k in range(-w, w + 1)) / (2 * w + 1) for w in (1, 2, 4)]

    return noisy, stein.Estimates(averages(noisy), averages(pushed), anchor=(0, 2))


def plainly(noisy, estimates, sigma):
    """The same with loops over blocks and pixels."""
    anchor = sum(estimates.plain[e].astype(float) for e in estimates.anchor) / 2
    moved = sum(estimates.pushed[e].astype(float) for e in estimates.anchor) / 2 - anchor
    signs = stein.push_of(noisy.shape, (0, 0)) / (stein.PUSH * sigma)
    directions, divergences = [], []
    for e in range(len(estimates.plain)):
        if e != estimates.anchor[-1]:
            directions.append(estimates.plain[e] - anchor)
            divergences.append(signs * (estimates.pushed[e].astype(float) - estimates.plain[e] - moved))
    directions.append(stein.OWN * (noisy - anchor))
    divergences.append(stein.OWN * (1 - signs * moved))
    directions, divergences = np.array(directions), np.array(divergences)
    _, height, width = noisy.shape
    rows, columns = -(-height // stein.BLOCK), -(-width // stein.BLOCK)
    shares = np.empty((rows, columns, len(directions)))
    block_y, block_x = np.mgrid[:height, :width] // stein.BLOCK
    for row in range(rows):
        for column in range(columns):
            away_y, away_x = abs(block_y - row), abs(block_x - column)
            weight = np.exp(-0.5 * (away_y**2 + away_x**2) / stein.WIDTH**2)
            weight[(away_y > stein.RADIUS) | (away_x > stein.RADIUS)] = 0
            count = len(noisy) * weight.sum()
            matrix = np.einsum("ichw,jchw,hw->ij", directions, directions, weight) / count
            gain = directions * (noisy - anchor) - sigma**2 * divergences
            wanted = np.einsum("ichw,hw->i", gain, weight) / count
            ridge = stein.RIDGE * sigma**2 * np.eye(len(directions))
            shares[row, column] = np.linalg.solve(matrix + ridge, wanted)
    out = anchor.copy()
    for y in range(height):
        for x in range(width):
            share = np.zeros(len(directions))
            at_y, at_x = (y + 0.5) / stein.BLOCK - 0.5, (x + 0.5) / stein.BLOCK - 0.5
            for row in (int(np.floor(at_y)), int(np.floor(at_y)) + 1):
                for column in (int(np.floor(at_x)), int(np.floor(at_x)) + 1):
                    near = (1 - abs(at_y - row)) * (1 - abs(at_x - column))
                    share += near * shares[min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)]
            out[:, y, x] += share @ directions[:, :, y, x]
    all_of_them = np.array([noisy, *estimates.plain])
    beyond = stein.BEYOND * sigma
    return out.clip(all_of_them.min(axis=0) - beyond, all_of_them.max(axis=0) + beyond)


def test_agrees_with_the_plain_counterpart(given):
    noisy, estimates = given
    found = stein.combine(noisy, estimates, 0.7)
    assert found.dtype == np.float32
    assert found == pytest.approx(plainly(noisy, estimates, 0.7), abs=2e-5)
    assert np.abs(found - noisy).max() > 0.1


def test_next_to_no_noise_does_not_lead_outside():
    levels = np.full((27, 29), 66.0)
    levels[np.random.default_rng(0).random(levels.shape) < 0.1] = 65
    found = vnlem.denoise(levels, 0.05, method="vnlem")
    assert found.min() > 65 - 0.16
    assert found.max() < 66 + 0.16


def test_threads_and_parts_have_the_bytes_of_the_whole():
    rng = np.random.default_rng(5)
    noisy, *others = rng.normal(0, 1, (7, 1, 190, 171)).astype(np.float32)
    estimates = stein.Estimates(others[:3], others[3:], anchor=(1,))
    whole = stein.combine(noisy, estimates, 1.0)
    assert stein.combine(noisy, estimates, 1.0, workers=3).tobytes() == whole.tobytes()
    write = Tile(75, 90, 69, 102)
    read = Tile(write.top - stein.REACH, write.bottom + stein.REACH, write.left - stein.REACH, 171)
    window = (slice(None), slice(read.top, read.bottom), slice(read.left, read.right))
    part = stein.combine(
        noisy[window],
        stein.Estimates([e[window] for e in others[:3]], [e[window] for e in others[3:]], anchor=(1,)),
        1.0,
        origin=(read.top, read.left),
    )
    inside = part[:, stein.REACH : stein.REACH + 15, stein.REACH : stein.REACH + 33]
    assert inside.tobytes() == np.ascontiguousarray(whole[:, 75:90, 69:102]).tobytes()


def test_the_best_share_of_a_single_estimate_is_found():
    """Half of pure noise is too much: the combination removes most of it, as far as the ridge allows."""
    noise = np.random.default_rng(0).normal(0, 1, (1, 160, 160))
    pushed = noise + stein.PUSH * stein.push_of(noise.shape, (0, 0))
    halves = stein.Estimates([0.5 * noise], [0.5 * pushed], anchor=(0,))
    found = stein.combine(noise, halves, 1.0)
    assert np.mean(found**2) < 0.06 < np.mean((0.5 * noise) ** 2)


@pytest.mark.parametrize("contrast", [0.3, 1.0])
def test_vnlem_gains_by_it(contrast):
    cells = contrast * phantoms.discs(5, 18, 3, seed=1, size=96)
    noisy = cells + np.random.default_rng(0).normal(0, 0.3, cells.shape)
    errors = [np.std(vnlem.denoise_vnlem(noisy, 0.3, adapt=adapt) - cells) for adapt in (False, True)]
    assert errors[1] < 0.98 * errors[0]


def test_is_refused_with_a_search_over_the_image():
    noisy = phantoms.discs(5, 18, 3, seed=1, size=32) + np.random.default_rng(0).normal(0, 0.3, (32, 32))
    with pytest.raises(ValueError, match="adapt=True exists for search='window' only"):
        vnlem.denoise_vnlem(noisy, 0.3, search="image", adapt=True)
    _, info = vnlem.denoise_vnlem(noisy, 0.3, search="image", return_info=True)
    assert info.parameters["adapt"] is False


@pytest.mark.filterwarnings("ignore:.*nothing but noise")
@pytest.mark.parametrize("sigma", [20.0, 135.0, 1e4])
def test_far_too_much_noise_does_not_leave_the_range_of_the_image(sigma):
    image = np.random.default_rng(0).uniform(60, 195, (48, 40))
    result = vnlem.denoise_vnlem(image, sigma)
    assert image.min() - 1 < result.min()
    assert result.max() < image.max() + 1
