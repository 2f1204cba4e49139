"""VNLR in plain NumPy, group by group in float64: the oracle of the fast version, for small images.

Patches are compared pixel by pixel, the combination is solved with numpy.linalg, and every patch is put back
by an explicit loop.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.reference.change import shrink_change
from vnlem.reference.contrast import restore_contrast, restore_flux
from vnlem.reference.groups import TURNS, Float, Shape, cut, line, nearest, noise_of, put_back, window
from vnlem.reference.turned import TILE, Copies


def denoise(
    noisy: Float, variance: Float, params: Any, weights: list[Float] | None = None
) -> tuple[Float, list[float]]:
    """Denoise planes with known noise variance.

    Parameters
    ----------
    noisy : ndarray
        (channels, height, width), standardised.
    variance : ndarray
        The noise variance of every value of `noisy`.
    params : VnlrParams
        As the fast version takes them.
    weights : list of ndarray, optional
        Weight of each channel in comparisons, (channels, 1, 1): in the first pass, and in pilot passes.

    Returns
    -------
    denoised : ndarray
    shares : list of float
        Share of turned or reflected members in each pass.

    Examples
    --------
    >>> from vnlem.methods.vnlr import resolve
    >>> noisy = np.random.default_rng(0).normal(0, 0.5, (1, 12, 12))
    >>> params = resolve(0.5, "fast", patch_size=4, n_neighbors=8, patch_distance=3, step=4, passes=1)
    >>> result, shares = denoise(noisy, np.full(noisy.shape, 0.25), params)
    >>> bool(np.abs(result).mean() < 0.5 * np.abs(noisy).mean())
    True
    """
    height = noisy.shape[1]
    compare = weights or [np.ones((len(noisy), 1, 1))] * 2
    pilot = working = noisy
    shares = []
    groups: list[tuple[Copies | None, list[tuple[int, int, int, int]]]] = []
    for number in range(params.passes + 1):
        size = params.patch_sizes[number]
        perceptual = params.aim == "perception" and number == params.passes
        if number == 0 or number in params.rematch:
            groups = _find_groups(pilot, variance, params, number, compare[number > 0])
        results = []
        # For perception the last pass runs twice, smoother and sharper.
        for boost in (2.2, 0.7) if perceptual else (params.boost,):
            boosts = [boost, *[boost * params.colour_boost] * (len(noisy) - 1)]
            images = [[image] for image in (noisy, working, pilot, variance)]
            planes = put_back(images, groups, Shape(size, 1, _turns(params)), number, params, boosts)
            results.append([kind[0] for kind in planes])
        pilot, working = results[-1]
        if perceptual:
            pilot = restore_contrast(results[0][0], pilot, noisy, variance)
        turned = [y >= height or g > 0 for _, group in groups for _, y, _, g in group]
        shares.append(float(np.mean(turned)))
    if params.aim == "flux":
        pilot = restore_flux(pilot, noisy, variance)
    return shrink_change(noisy, pilot, variance), shares


def _turns(params: Any) -> list[Any]:
    return TURNS.get(params.group, TURNS["d4"])


def _find_groups(pilot, variance, params, number, weights):
    """The copies and the members of every group, the reference first."""
    first = number == 0
    shape, size, turns = pilot.shape[1:], params.patch_sizes[number], _turns(params)
    step = params.first_step if first else params.step
    radius = params.first_patch_distance if first else params.patch_distance
    radius = min(radius, max(shape) - size)
    colours, cell = _colours(params.pattern, shape), len(params.pattern)
    weighted = pilot * weights
    groups = []
    tiles = {}
    rows, columns = (line(length - size + 1, step) for length in shape)
    for corner in ((0, y, x) for y in rows for x in columns):
        tile = (corner[1] // TILE, corner[2] // TILE)
        # Copies are used once there is a pilot.
        if tile not in tiles:
            copying = params.group in ("so2", "similarity") and not first
            near = min(params.copied_distance, radius)
            tiles[tile] = Copies(shape, corner[1:], near, size) if copying else None
        copies = tiles[tile]
        own = window(shape, corner, size, radius)
        members = nearest(
            [weighted if copies is None else copies.stack(weighted)],
            corner,
            own,
            _in_copies(copies, corner[1:], size),
            Shape(size, 1, turns),
            noise=noise_of([variance], weights, corner, size, 1),
            most=_fit_in(own, colours, cell),
            number=number,
            params=params,
            allowed=_keeps_colours(colours, corner, size, turns, cell),
        )
        groups.append((copies, members))
    return groups


def _colours(pattern: tuple[str, ...], shape: tuple[int, int]) -> NDArray[Any] | None:
    """The colour of every pixel of a mosaic, (1, H, W)."""
    if not pattern:
        return None
    cell = np.array([list(row) for row in pattern])
    return cell[np.ix_(np.arange(shape[0]) % len(cell), np.arange(shape[1]) % len(cell))][None]


def _fit_in(own: list[tuple[int, int, int]], colours: NDArray[Any] | None, pattern_side: int) -> int:
    """How many patches of a window can be shifted onto its reference; in a mosaic, by whole cells."""
    rows, columns = len({y for _, y, _ in own}), len({x for _, _, x in own})
    if colours is None:
        return rows * columns
    cell = colours[0, :pattern_side, :pattern_side]
    same = [
        np.array_equal(np.roll(cell, (y, x), (0, 1)), cell)
        for y in range(pattern_side)
        for x in range(pattern_side)
    ]
    return max(rows // pattern_side * (columns // pattern_side) * sum(same), 1)


def _keeps_colours(colours, corner, size, turns, cell):
    """A function: place -> which transforms put every pixel of a mosaic on one of the same colour."""
    if colours is None:
        return None
    wanted = cut([colours], corner, size)
    kept = {}
    for place in np.ndindex(cell, cell):
        there = cut([colours], (0, *place), size)
        kept[place] = [np.array_equal(turn(there), wanted) for turn in turns]
    return lambda place: kept[place[1] % cell, place[2] % cell]


def _in_copies(copies, corner, size):
    """Corners of the patches of copies to compare with one."""
    if copies is None:
        return []
    outside = copies.outside()
    found = []
    for cy, cx in copies.centres(corner, size):
        for dy in range(-copies.radius, copies.radius + 1):
            for dx in range(-copies.radius, copies.radius + 1):
                near = abs(dy) <= 3 and abs(dx) <= 3  # shares the reference's noise
                y, x = cy + dy, cx + dx
                if not near and not outside[y : y + size, x : x + size].any():
                    found.append((0, y, x))
    return found
