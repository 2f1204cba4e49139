"""VNLR in plain NumPy, group by group in float64: the oracle of the fast version, for small images.

Patches are compared pixel by pixel, the combination is solved with numpy.linalg, and every patch is put back
by an explicit loop.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.reference.change import shrink_change
from vnlem.reference.contrast import restore_contrast, restore_flux
from vnlem.reference.turned import TILE, Copies

Float = NDArray[np.float64]

TURNS: dict[str, list[Any]] = {
    "identity": [lambda patch: patch],
    "c4": [lambda patch, q=q: np.rot90(patch, q, axes=(-2, -1)) for q in range(4)],
}
TURNS["d4"] = TURNS["c4"] + [
    lambda patch, q=q: np.rot90(patch, q, axes=(-2, -1))[..., ::-1] for q in range(4)
]


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
    height, width = noisy.shape[1:]
    compare = weights or [np.ones((len(noisy), 1, 1))] * 2
    pilot = working = noisy
    colours = _colours(params.pattern, (height, width))
    shares = []
    groups: list[tuple[Copies | None, list[tuple[int, int, int]]]] = []
    for number in range(params.passes + 1):
        first = number == 0
        perceptual = params.aim == "perception" and number == params.passes
        size = params.patch_sizes[number]
        turns = TURNS.get(params.group, TURNS["d4"])
        step = params.first_step if first else params.step
        radius = params.first_patch_distance if first else params.patch_distance
        radius = min(radius, max(height, width) - size)
        if first or number in params.rematch:
            weighted = pilot * compare[0 if first else 1]
            groups = []
            tiles: dict[tuple[int, int], Copies | None] = {}
            for corner in _corners(noisy.shape[1:], size, step):
                tile = (corner[0] // TILE, corner[1] // TILE)
                # Copies are used once there is a pilot.
                if tile not in tiles:
                    near = min(params.copied_distance, radius)
                    copying = params.group in ("so2", "similarity") and not first
                    tiles[tile] = Copies((height, width), corner, near, size) if copying else None
                copies = tiles[tile]
                members = _nearest(
                    _with_copies(weighted, copies),
                    _windows((height, width), corner, size, radius, copies),
                    corner,
                    size,
                    count=params.first_n_neighbors if first else params.n_neighbors,
                    turns=turns,
                    factor=1.0 if first else params.match_factor,
                    penalty=_penalty(
                        pilot, variance, compare[0 if first else 1], corner, size, first, params
                    ),
                    colours=colours,
                    cell=len(params.pattern),
                )
                groups.append((copies, members))
        results = []
        # For perception the last pass runs twice, smoother and sharper.
        for boost in (2.2, 0.7) if perceptual else (params.boost,):
            # Channels share their groups but not the combination.
            planes = [
                _pass(
                    [image[c : c + 1] for image in (noisy, working, pilot, variance)],
                    groups,
                    size,
                    turns,
                    number,
                    replace(params, boost=boost * (params.colour_boost if c > 0 else 1)),
                )
                for c in range(len(noisy))
            ]
            results.append([np.concatenate(images) for images in zip(*planes, strict=True)])
        pilot, working = results[-1]
        if perceptual:
            pilot = restore_contrast(results[0][0], pilot, noisy, variance)
        turned = [y >= height or g > 0 for _, group in groups for y, _, g in group]
        shares.append(float(np.mean(turned)))
    if params.aim == "flux":
        pilot = restore_flux(pilot, noisy, variance)
    return shrink_change(noisy, pilot, variance), shares


def _corners(shape: tuple[int, ...], size: int, step: int) -> list[tuple[int, int]]:
    def line(count: int) -> list[int]:
        return sorted({*range(0, count, step), count - 1})

    return [(y, x) for y in line(shape[0] - size + 1) for x in line(shape[1] - size + 1)]


def _colours(pattern: tuple[str, ...], shape: tuple[int, int]) -> NDArray[Any] | None:
    """The colour of every pixel of a mosaic, (1, H, W)."""
    if not pattern:
        return None
    cell = np.array([list(row) for row in pattern])
    return cell[np.ix_(np.arange(shape[0]) % len(cell), np.arange(shape[1]) % len(cell))][None]


def _fit_in(own: list[tuple[int, int]], colours: NDArray[Any] | None, pattern_side: int) -> int:
    """How many patches of a window can be shifted onto its reference; in a mosaic, by whole cells."""
    rows, columns = len({y for y, _ in own}), len({x for _, x in own})
    if colours is None:
        return rows * columns
    cell = colours[0, :pattern_side, :pattern_side]
    same = [
        np.array_equal(np.roll(cell, (y, x), (0, 1)), cell)
        for y in range(pattern_side)
        for x in range(pattern_side)
    ]
    return max(rows // pattern_side * (columns // pattern_side) * sum(same), 1)


def _cut(image: Float, corner: tuple[int, int], size: int) -> Float:
    return image[:, corner[0] : corner[0] + size, corner[1] : corner[1] + size]


def _penalty(pilot, variance, weights, corner, size, first, params):
    """The penalty on the rank of a turned member of this group."""
    noise = float(np.sum(_cut(variance * weights**2, corner, size)))
    if not first:
        return params.match_penalty * noise
    patch = _cut(pilot * weights, corner, size)
    energy = np.sum((patch - patch.mean(axis=(1, 2), keepdims=True)) ** 2)
    return np.inf if energy < params.flat_energy * noise else params.first_match_penalty * noise


def _with_copies(image: Float, copies: Copies | None) -> Float:
    """An image with its copies below it."""
    return image if copies is None else copies.stack(image)


def _windows(shape, corner, size, radius, copies):
    """Corners of the patches to compare with one: those in its window, and those in copies."""

    def line(centre, first, count):
        side = min(2 * radius + 1, count)
        start = first + max(0, min(centre - first - radius, count - side))
        return range(start, start + side)

    own = [
        (y, x)
        for y in line(corner[0], 0, shape[0] - size + 1)
        for x in line(corner[1], 0, shape[1] - size + 1)
    ]
    if copies is None:
        return own, []
    outside = copies.outside()
    turned = []
    for cy, cx in copies.centres(corner, size):
        for dy in range(-copies.radius, copies.radius + 1):
            for dx in range(-copies.radius, copies.radius + 1):
                near = abs(dy) <= 3 and abs(dx) <= 3  # shares the reference's noise
                y, x = cy + dy, cx + dx
                if not near and not outside[y : y + size, x : x + size].any():
                    turned.append((y, x))
    return own, turned


def _nearest(image, windows, corner, size, *, count, turns, factor, penalty, colours, cell):
    """The members (row, column, transform) of one group, the reference first."""
    own, turned = windows
    count = min(count, _fit_in(own, colours, cell))
    # Turned back, the reference is compared with patches as they lie.
    reference = np.stack([undone(_cut(image, corner, size), g) for g in range(len(turns))])
    keeps_colours = {}
    if colours is not None:
        wanted = _cut(colours, corner, size)
        for place in np.ndindex(cell, cell):
            there = _cut(colours, place, size)
            keeps_colours[place] = [np.array_equal(turn(there), wanted) for turn in turns]

    def ranks(place, plain):
        distances = np.sum((reference - _cut(image, place, size)) ** 2, axis=(1, 2, 3))
        if colours is not None:
            distances[~np.array(keeps_colours[place[0] % cell, place[1] % cell])] = np.inf
        return [d if plain and g == 0 else factor * d + penalty for g, d in enumerate(distances)]

    def best(place, found):
        return (min(found), *place, int(np.argmin(found)))

    others = [place for place in own if place != corner]
    ranked = [(place, ranks(place, True)) for place in others]
    shifted = [(own_ranks[0], *place, 0) for place, own_ranks in ranked]
    from_copies = sorted(best(place, ranks(place, False)) for place in turned)[: max(1, int(0.4 * count))]
    found = sorted([best(place, own_ranks) for place, own_ranks in ranked] + from_copies)[: count - 1]
    if 8 * sum(g > 0 or (y, x) in turned for _, y, x, g in found) < count:
        # Chance finds a few turned members anywhere.
        found = sorted(shifted)[: count - 1]
    return [(*corner, 0)] + [item[1:] for item in found]


def _pass(images, groups, size, turns, number, params):
    """All groups of one pass, combined and put back: the new pilot and the new working image."""
    noisy, working, pilot, variance = images
    first = number == 0
    tau = params.noise_kept * (1 - number / params.passes)
    height = noisy.shape[1]
    difference = noisy - working
    total, mixed = np.zeros(noisy.shape), np.zeros(noisy.shape)
    weight_sum = np.zeros(noisy.shape)
    taps = np.kaiser(size, params.window)
    window = np.outer(taps, taps)  # the border of a patch counts less than its centre
    for copies, group in groups:

        def columns(image, group=group):
            return np.stack([turns[g](_cut(image, (y, x), size)).ravel() for y, x, g in group], axis=1)

        x, z = (columns(_with_copies(image, copies)) for image in (pilot, working))
        change = columns(_with_copies(difference, copies) ** 2)
        noise = columns(variance if copies is None else copies.stack_variance(variance)).sum(axis=0)
        left = max(1 - np.sqrt(change.sum() / noise.sum()), 1.02 * tau, 0.02)
        # Members from copies count as noisier: their noise is partly that of others.
        noise = noise * [4.0 if y >= height else 1.0 for y, _, _ in group]
        if first:
            load = params.extra_load * noise
            shrink = noise + load
        else:
            load = shrink = params.boost * left**2 * noise
        theta = combination(x, load, shrink)
        gain = np.sum(theta**2 * noise[:, None], axis=0) / noise
        estimate = z @ theta
        blend = min(tau / left, 1.0)
        for j, (y0, x0, g) in enumerate(group):
            if y0 >= height:
                continue
            weight = max(gain[j], 1 / len(group)) ** -1.5 * window
            patch = undone(estimate[:, j].reshape(len(noisy), size, size), g)
            old = _cut(working, (y0, x0), size)
            _cut(total, (y0, x0), size)[...] += weight * patch
            _cut(mixed, (y0, x0), size)[...] += weight * ((1 - blend) * patch + blend * old)
            _cut(weight_sum, (y0, x0), size)[...] += weight
    if not weight_sum.min() > 0:
        raise RuntimeError("some pixels are covered by no patch")
    return total / weight_sum, mixed / weight_sum


def combination(x: Float, load: Float, shrink: Float) -> Float:
    """The weights Theta of a group's columns, which sum to one in each column.

    Minimises ||X (I - Theta)||^2 + sum_ij load_i Theta_ij^2 under that constraint when load = shrink;
    Stein's estimate for X = Y with load = e, shrink = n sigma^2 + e.

    Examples
    --------
    >>> x = np.array([[1.0, 2.0, 4.0], [0.0, 1.0, 1.0]])
    >>> combination(x, np.full(3, 0.5), np.full(3, 0.5)).sum(axis=0).round(6)
    array([1., 1., 1.])
    """
    centred = x - x.mean(axis=1, keepdims=True)
    gram = centred.T @ centred
    # Part of the definition: double precision resolves no smaller load, relative to the trace.
    raised = np.maximum(load, 1e-12 * gram.trace())
    inverse = np.linalg.inv(gram + np.diag(raised))
    ones = inverse.sum(axis=1)
    inverse -= np.outer(ones, ones) / ones.sum()
    return np.eye(len(load)) - inverse * shrink[None, :]


def undone(patch: Float, g: int) -> Float:
    """The patch in its own orientation again."""
    if g >= 4:
        patch = patch[..., ::-1]
    return np.rot90(patch, -(g % 4), axes=(-2, -1))
