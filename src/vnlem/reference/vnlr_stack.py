"""VNLR on stacks in plain NumPy, group by group in float64: the oracle of the fast version."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, uniform_filter

from vnlem.reference.groups import TURNS, Shape, line, nearest, noise_of, put_back, window


def denoise(
    planes: Iterator[NDArray[Any]],
    sigma: float,
    params: Any,
    weights: Any = ((1.0,), (1.0,)),
    variances: Any = (None,),
) -> Iterator[NDArray[np.float32]]:
    """Denoise standardised planes with noise of standard deviation sigma.

    Parameters
    ----------
    planes : iterator of ndarray
        (channels, H, W); of several sizes only for a set of images.
    sigma : float
    params : StackParams
        As the fast version takes them.
    weights : pair of sequences
        Of each channel in comparisons, in the first pass and in the others.
    variances : sequence
        Of the noise of each plane, (H, W); None if it is sigma^2 everywhere.

    Examples
    --------
    >>> from vnlem.methods.vnlr_stack_params import resolve_stack
    >>> noisy = np.random.default_rng(0).normal(0, 0.5, (3, 1, 9, 9))
    >>> params = resolve_stack("T", 3, patch_size=4, n_neighbors=8, patch_distance=2, step=4, passes=1)
    >>> result = np.stack(list(denoise(iter(noisy), 0.5, params)))
    >>> bool(np.abs(result).mean() < 0.5 * np.abs(noisy).mean())
    True
    """
    noisy = [np.asarray(plane, np.float64) for plane in planes]
    variance = [np.full((1, *plane.shape[1:]), sigma**2) for plane in noisy]
    if variances[0] is not None:
        variance = [np.asarray(one, np.float64)[None] for one in variances]
    pilot = working = noisy
    groups: list[tuple[None, list[tuple[int, int, int, int]]]] = []
    for number in range(params.passes + 1):
        if number == 0 or number in params.rematch:
            shares = np.asarray(weights[number > 0], np.float64)
            groups = _find_groups(pilot, sigma, variance, params, number, shares)
        images = (noisy, working, pilot, variance)
        depth = params.depths[number]
        shape = Shape(params.patch_sizes[number], depth, _turns(params, depth))
        boosts = [params.boost] * len(noisy[0])

        def adds(plane: int, group: Any, number: int = number) -> bool:
            return bool(group[0][0] <= _last_reference(plane, params, number))

        pilot, working = put_back(images, groups, shape, number, params, boosts, adds)
    yield from (plane.astype(np.float32) for plane in pilot)


def _find_groups(pilot, sigma, variance, params, number, weights):
    """Members (plane, row, column, transform) of every group, the reference first."""
    first = number == 0
    size, depth = params.patch_sizes[number], params.depths[number]
    centres = _centres([_brightness(plane) for plane in pilot], sigma, params, number)
    weights = weights[:, None, None]
    compared = [weights * plane for plane in pilot]
    groups = []
    shape = Shape(size, depth, _turns(params, depth))
    step = params.first_step if first else params.step
    for plane in line(len(pilot) - depth + 1, params.plane_step):
        rows, columns = (line(length - size + 1, step) for length in pilot[plane].shape[1:])
        for corner in ((plane, y, x) for y in rows for x in columns):
            windows = [
                window(pilot[site[0]].shape[1:], site, size, params.patch_distance)
                for site in centres(*corner)
            ]
            places = [place for places in windows for place in places]
            noise = noise_of(variance, weights, corner, size, depth)
            most = len(windows[0])
            members = nearest(
                compared, corner, places, [], shape, noise=noise, most=most, number=number, params=params
            )
            groups.append((None, members))
    return groups


def _brightness(plane):
    """The channel that shows where things are: the first of three opponent colours."""
    return plane[0] if len(plane) in (1, 3) else plane.sum(axis=0) / np.sqrt(len(plane))


def _last_reference(plane, params, number):
    """The last plane whose reference patches add to a plane before it leaves the pass."""
    if params.delays is None:
        return np.inf
    _, wait = params.delays[number]
    return max(0, plane + wait - params.depths[number] + 1)


def _turns(params, depth):
    """The transforms of a patch (channels, depth, p, p): the square's, then the same with depths reversed."""
    square = TURNS[params.group]
    if params.kind != "Z" or params.group != "d4" or depth == 1:
        return square
    return square + [lambda patch, turn=turn: turn(patch[:, ::-1]) for turn in square]


def _centres(pilot, sigma, params, number):
    """A function: reference corner -> plane and centre of every window, its own first."""
    total, first = len(pilot), number == 0
    size, depth = params.patch_sizes[number], params.depths[number]
    if params.kind == "N":
        return _alike_centres(pilot, params, first, size)
    count = min(2 * params.reach + depth, total)
    moves = _all_moves(pilot, sigma, first) if params.kind == "T" else None

    def find(plane, y, x):
        oldest = max(0, min(plane - params.reach, total - count))
        end = oldest + count
        if params.delays is not None:
            ahead, _ = params.delays[number]
            end = min(total, plane + depth + ahead if plane else max(depth, ahead + 1))
            oldest = max(0, end - 2 * params.reach - depth)
        planes = range(oldest, end - depth + 1)
        places = {plane: (y, x)}
        for direction in (1, -1):
            here = plane
            while here + direction in planes:
                y0, x0 = places[here]
                dy, dx = (0, 0) if moves is None else _move_at(moves[direction][here], y0, x0, size)
                places[here + direction] = (y0 + dy, x0 + dx)
                here += direction
        order = [plane, *(other for other in planes if other != plane)]
        return [(other, *places[other]) for other in order]

    return find


def _all_moves(pilot, sigma, first):
    """Shifts of blocks of 16 x 16 around every eighth pixel, to the next frame and to the one before."""
    seen = [uniform_filter(plane, 3) if first else plane for plane in pilot]
    cost = (0.02 / 9 if first else 1e-5) * 256 * sigma**2
    return {
        direction: [
            _moves(seen[i], seen[i + direction], cost) if 0 <= i + direction < len(seen) else None
            for i in range(len(seen))
        ]
        for direction in (1, -1)
    }


def _moves(here, there, cost):
    height, width = here.shape
    found = np.zeros((-(-height // 8), -(-width // 8), 2), int)
    for i in range(found.shape[0]):
        for j in range(found.shape[1]):
            top, bottom = max(0, 8 * i - 4), min(height, 8 * i + 12)
            left, right = max(0, 8 * j - 4), min(width, 8 * j + 12)
            block = here[top:bottom, left:right]
            least = np.inf
            for dy in range(max(-12, -top), min(12, height - bottom) + 1):
                for dx in range(max(-12, -left), min(12, width - right) + 1):
                    other = there[top + dy : bottom + dy, left + dx : right + dx]
                    total = cost * (abs(dy) + abs(dx)) + np.sum((block - other) ** 2)
                    if total < least:
                        least = total
                        found[i, j] = dy, dx
    return found


def _move_at(moves, y, x, size):
    row = min(max((y + size // 2) // 8, 0), moves.shape[0] - 1)
    column = min(max((x + size // 2) // 8, 0), moves.shape[1] - 1)
    return moves[row, column]


def _alike_centres(pilot, params, first, size):
    """For every patch the place of least feature distance in the images that come nearest."""
    scales = (2.0, 3.5) if first else (1.0, 2.5)
    features = [_features(plane, scales) for plane in pilot]
    wanted = min(params.reach, len(pilot) - 1)

    def find(plane, y, x):
        own = features[plane][:, y + size // 2, x + size // 2]
        places = []
        for other in range(len(pilot)):
            gaps = np.sum((features[other][:, ::2, ::2] - own[:, None, None]) ** 2, axis=0)
            places += [
                (gap, other, 2 * row - size // 2, 2 * column - size // 2)
                for (row, column), gap in np.ndenumerate(gaps)
            ]
        found = {plane: (plane, y, x)}
        # More of the nearest places than wanted are examined, since many lie in one image.
        for _, other, row, column in sorted(places)[: 4 * (wanted + 1)]:
            if len(found) <= wanted:
                found.setdefault(other, (other, row, column))
        return list(found.values())

    return find


def _features(plane, scales):
    found = []
    for s in scales:

        def derivative(a, b, s=s):
            return s ** (a + b) * gaussian_filter(plane, s, (a, b))

        yy, xx, xy = derivative(2, 0), derivative(0, 2), derivative(1, 1)
        slope = np.hypot(derivative(1, 0), derivative(0, 1))
        found += [derivative(0, 0), slope, yy + xx, np.hypot(yy - xx, 2 * xy)]
    return np.stack(found)
