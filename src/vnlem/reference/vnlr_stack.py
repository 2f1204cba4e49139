"""VNLR on stacks in plain NumPy, group by group in float64: the oracle of the fast version."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, uniform_filter

from vnlem.reference.vnlr import TURNS, combination, undone

Float = NDArray[np.float64]


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
    variance = [np.full(plane.shape[1:], sigma**2) for plane in noisy]
    if variances[0] is not None:
        variance = [np.asarray(one, np.float64) for one in variances]
    pilot = working = noisy
    groups: list[list[tuple[int, int, int, int]]] = []
    for number in range(params.passes + 1):
        if number == 0 or number in params.rematch:
            shares = np.asarray(weights[number > 0], np.float64)
            groups = _find_groups(pilot, sigma, variance, params, number, shares)
        pilot, working = _combine(noisy, working, pilot, groups, variance, params, number)
    yield from (plane.astype(np.float32) for plane in pilot)


def _find_groups(pilot, sigma, variance, params, number, weights):
    """Members (plane, row, column, transform) of every group, the reference first."""
    first = number == 0
    size, depth = params.patch_sizes[number], params.depths[number]
    centres = _centres([_brightness(plane) for plane in pilot], sigma, params, number)
    compared = [weights[:, None, None] * plane for plane in pilot]
    groups = []
    for plane in _line(len(pilot) - depth + 1, params.plane_step):
        height, width = pilot[plane].shape[1:]
        step = params.first_step if first else params.step
        for y in _line(height - size + 1, step):
            for x in _line(width - size + 1, step):
                sites = centres(plane, y, x)
                noise = _noise_of(variance, (plane, y, x), size, depth) * np.sum(weights**2)
                groups.append(_nearest(compared, (plane, y, x), sites, noise, params, number))
    return groups


def _noise_of(variance, corner, size, depth):
    """The noise energy of a patch in one channel."""
    plane, y, x = corner
    return sum(np.sum(variance[plane + k][y : y + size, x : x + size]) for k in range(depth))


def _brightness(plane):
    """The channel that shows where things are: the first of three opponent colours."""
    return plane[0] if len(plane) in (1, 3) else plane.sum(axis=0) / np.sqrt(len(plane))


def _nearest(pilot, corner, sites, noise, params, number):
    first = number == 0
    size, depth = params.patch_sizes[number], params.depths[number]
    reference = _cut(pilot, corner, size, depth)
    count = len(_turns(params, depth))
    # Turned back, the reference is compared with patches as they lie.
    turned = np.stack([_undo(reference, g, count) for g in range(count)])
    about_mean = np.sum((reference - reference.mean(axis=(1, 2, 3), keepdims=True)) ** 2)
    penalty = (params.first_match_penalty if first else params.match_penalty) * noise
    if first and about_mean < params.flat_energy * noise:
        penalty = np.inf
    factor = 1.0 if first else params.match_factor
    shifted, best = [], []
    for site, centre in enumerate(sites):
        for place in _window(pilot, centre, size, params.patch_distance):
            if site == 0 and place == corner:
                continue
            candidate = _cut(pilot, place, size, depth)
            ranks = np.sum((turned - candidate) ** 2, axis=(1, 2, 3, 4))
            ranks[1:] = factor * ranks[1:] + penalty
            shifted.append((ranks[0], site, *place, 0))
            g = int(np.argmin(ranks))
            best.append((ranks[g], site, *place, g))
    height, width = pilot[corner[0]].shape[1:]
    side = 2 * params.patch_distance + 1
    own = min(side, height - size + 1) * min(side, width - size + 1)
    count = min(params.first_n_neighbors if first else params.n_neighbors, own)
    found = sorted(best)[: count - 1]
    if 8 * sum(item[-1] > 0 for item in found) < count:
        found = sorted(shifted)[: count - 1]
    return [(*corner, 0)] + [item[2:] for item in found]


def _combine(noisy, working, pilot, groups, variance, params, number):
    """All groups of one pass, put back channel by channel: the new pilot and the new working planes."""
    of_channels = [
        _combine_channel(
            *([plane[c : c + 1] for plane in planes] for planes in (noisy, working, pilot)),
            groups,
            variance,
            params,
            number,
        )
        for c in range(len(noisy[0]))
    ]
    return tuple(
        [np.concatenate(planes) for planes in zip(*found, strict=True)]
        for found in zip(*of_channels, strict=True)
    )


def _combine_channel(noisy, working, pilot, groups, variance, params, number):
    first = number == 0
    size, depth = params.patch_sizes[number], params.depths[number]
    turns = _turns(params, depth)
    tau = params.noise_kept * (1 - number / params.passes)
    taps = np.kaiser(size, params.window)
    window = np.outer(taps, taps)  # the border of a patch counts less than its centre
    total, mixed, weights = ([np.zeros(plane.shape) for plane in noisy] for _ in range(3))
    for group in groups:

        def columns(planes, group=group):
            patches = [turns[g](_cut(planes, corner, size, depth)) for *corner, g in group]
            return np.stack([patch.ravel() for patch in patches], axis=1)

        x, z = columns(pilot), columns(working)
        change = np.sum((columns(noisy) - z) ** 2)
        energies = np.array([_noise_of(variance, corner, size, depth) for *corner, _ in group])
        left = max(1 - np.sqrt(change / energies.sum()), 1.02 * tau, 0.02)
        load = (params.extra_load if first else params.boost * left**2) * energies
        theta = combination(x, load, energies + load if first else load)
        gain = np.sum(theta**2 * energies[:, None], axis=0) / energies
        estimate = z @ theta
        blend = min(tau / left, 1.0)
        for j, (plane, y, left_edge, g) in enumerate(group):
            weight = max(gain[j], 1 / len(group)) ** -1.5 * window
            patch = _undo(estimate[:, j].reshape(1, depth, size, size), g, len(turns))[0]
            for k in range(depth):
                if group[0][0] > _last_reference(plane + k, params, number):
                    continue
                here = (0, slice(y, y + size), slice(left_edge, left_edge + size))
                old = working[plane + k][here]
                total[plane + k][here] += weight * patch[k]
                mixed[plane + k][here] += weight * ((1 - blend) * patch[k] + blend * old)
                weights[plane + k][here] += weight
    divided = [[a / w for a, w in zip(sums, weights, strict=True)] for sums in (total, mixed)]
    return divided[0], divided[1]


def _last_reference(plane, params, number):
    """The last plane whose reference patches add to a plane before it leaves the pass."""
    if params.delays is None:
        return np.inf
    _, wait = params.delays[number]
    return max(0, plane + wait - params.depths[number] + 1)


def _line(count, step):
    return sorted({*range(0, count, step), count - 1})


def _cut(planes, corner, size, depth):
    """A patch (channels, depth, size, size)."""
    plane, y, x = corner
    return np.stack([planes[plane + k][:, y : y + size, x : x + size] for k in range(depth)], axis=1)


def _turns(params, depth):
    """The transforms of a patch (channels, depth, p, p): the square's, then the same with depths reversed."""
    square = TURNS[params.group]
    if params.kind != "Z" or params.group != "d4" or depth == 1:
        return square
    return square + [lambda patch, turn=turn: turn(patch[:, ::-1]) for turn in square]


def _undo(patch, g, n_turns):
    if n_turns == 16 and g >= 8:
        patch = patch[:, ::-1]
    return undone(patch, g % 8)


def _window(planes, centre, size, radius):
    plane, y, x = centre
    height, width = planes[plane].shape[-2:]

    def line(middle, count):
        side = min(2 * radius + 1, count)
        start = max(0, min(middle - radius, count - side))
        return range(start, start + side)

    return [(plane, a, b) for a in line(y, height - size + 1) for b in line(x, width - size + 1)]


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
