"""Groups of patches in plain NumPy: the nearest patches, their combination, and putting them back.

Planes are a list of arrays (channels, H, W): one for an image, several for a stack. A patch (channels, depth,
p, p) may span several of them. A member is plane, row, column and transform.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

TURNS: dict[str, list[Any]] = {
    "identity": [lambda patch: patch],
    "c4": [lambda patch, q=q: np.rot90(patch, q, axes=(-2, -1)) for q in range(4)],
}
TURNS["d4"] = TURNS["c4"] + [
    lambda patch, q=q: np.rot90(patch, q, axes=(-2, -1))[..., ::-1] for q in range(4)
]


class Shape(NamedTuple):
    """Of the patches of a pass."""

    size: int
    depth: int  # planes that a patch spans
    turns: list[Any]  # functions that lay a member on its reference


def undone(patch: Float, g: int, n_turns: int) -> Float:
    """The patch in its own orientation again; of 16 transforms the last eight reverse the planes."""
    if n_turns == 16 and g >= 8:
        patch = patch[:, ::-1]
    if g % 8 >= 4:
        patch = patch[..., ::-1]
    return np.rot90(patch, -(g % 4), axes=(-2, -1))


def line(count: int, step: int) -> list[int]:
    """Every `step`-th of `count` positions, and the last one."""
    return sorted({*range(0, count, step), count - 1})


def cut(planes: Any, corner: Any, size: int, depth: int = 1) -> Float:
    """A patch (channels, depth, size, size)."""
    plane, y, x = corner
    return np.stack([planes[plane + k][:, y : y + size, x : x + size] for k in range(depth)], axis=1)


def window(shape: tuple[int, ...], centre: Any, size: int, radius: int) -> list[tuple[int, int, int]]:
    """Corners of the patches around one in a plane; at the border the window moves inwards."""
    plane, *middle = centre
    lines = []
    for at, length in zip(middle, shape, strict=True):
        count = length - size + 1
        side = min(2 * radius + 1, count)
        start = max(0, min(at - radius, count - side))
        lines.append(range(start, start + side))
    return [(plane, y, x) for y in lines[0] for x in lines[1]]


def nearest(planes, corner, own, copied, shape, *, noise, most, number, params, allowed=None):
    """The members of one group, the reference first.

    planes: those in which patches are compared.
    own, copied: places of the candidates in windows that are put back, and in copies.
    noise: energy of the noise in the reference.
    most: the reference, and what can be shifted onto it.
    allowed(place): which of the transforms a member may have.
    """
    first = number == 0
    size, depth, turns = shape
    count = min(params.first_n_neighbors if first else params.n_neighbors, most)
    factor = 1.0 if first else params.match_factor
    penalty = (params.first_match_penalty if first else params.match_penalty) * noise
    reference = cut(planes, corner, size, depth)
    about_mean = np.sum((reference - reference.mean(axis=(1, 2, 3), keepdims=True)) ** 2)
    if first and about_mean < params.flat_energy * noise:
        penalty = np.inf
    # Turned back, the reference is compared with patches as they lie.
    turned = np.stack([undone(reference, g, len(turns)) for g in range(len(turns))])
    places = own + copied
    shifted, best, from_copies = [], [], []
    for index, place in enumerate(places):
        if place == corner:
            continue
        distances = np.sum((turned - cut(planes, place, size, depth)) ** 2, axis=(1, 2, 3, 4))
        if allowed is not None:
            distances[~np.array(allowed(place))] = np.inf
        ranks = factor * distances + penalty
        if index < len(own):
            ranks[0] = distances[0]
            shifted.append((ranks[0], index, 0))
        g = int(np.argmin(ranks))
        (best if index < len(own) else from_copies).append((ranks[g], index, g))
    found = sorted(best + sorted(from_copies)[: max(1, int(0.4 * count))])[: count - 1]
    if 8 * sum(g > 0 or index >= len(own) for _, index, g in found) < count:
        # Chance finds a few turned members anywhere.
        found = sorted(shifted)[: count - 1]
    return [(*corner, 0)] + [(*places[index], g) for _, index, g in found]


def noise_of(variance: list[Float], weights: Float, corner: Any, size: int, depth: int) -> float:
    """The noise energy of a patch whose channels have these weights (channels, 1, 1) in comparisons."""
    return float(np.sum(cut(variance, corner, size, depth) * weights[..., None] ** 2))


def put_back(images, groups, shape, number, params, boosts, adds=lambda plane, group: True):
    """All groups of one pass, combined and put back: the new pilot and the new working planes.

    images: noisy, working and pilot planes, and the variance of the noise, of all channels or of each.
    groups: the copies of the planes that a group may have members in, None for none; and the members.
    boosts: of each channel. Channels share their groups but not the combination.
    adds(plane, group): whether a group adds to a plane.
    """
    channels = []
    for c, boost in enumerate(boosts):
        of_channel = [[plane[c % len(plane)][None] for plane in planes] for planes in images]
        channels.append(_put_back(of_channel, groups, shape, number, params, boost, adds))
    by_kind = zip(*channels, strict=True)
    return [[np.concatenate(plane) for plane in zip(*kind, strict=True)] for kind in by_kind]


def _put_back(images, groups, shape, number, params, boost, adds):
    noisy, working, pilot, variance = images
    size, depth, turns = shape
    first = number == 0
    tau = params.noise_kept * (1 - number / params.passes)
    taps = np.kaiser(size, params.window)
    window = np.outer(taps, taps)  # the border of a patch counts less than its centre
    total, mixed, weights = ([np.zeros(plane.shape) for plane in noisy] for _ in range(3))
    for copies, group in groups:

        def columns(planes, stack, group=group):
            seen = planes if stack is None else [stack(planes[0])]
            patches = [turns[g](cut(seen, corner, size, depth)) for *corner, g in group]
            return np.stack([patch.ravel() for patch in patches], axis=1)

        stack = None if copies is None else copies.stack
        x, z = columns(pilot, stack), columns(working, stack)
        change = np.sum((columns(noisy, stack) - z) ** 2)
        noise = columns(variance, None if copies is None else copies.stack_variance).sum(axis=0)
        left = max(1 - np.sqrt(change / noise.sum()), 1.02 * tau, 0.02)
        # Members from copies count as noisier: their noise is partly that of others.
        copied = [y >= noisy[plane].shape[1] for plane, y, _, _ in group]
        noise = noise * np.where(copied, 4.0, 1.0)
        load = (params.extra_load if first else boost * left**2) * noise
        theta = combination(x, load, noise + load if first else load)
        gain = np.sum(theta**2 * noise[:, None], axis=0) / noise
        estimate = z @ theta
        blend = min(tau / left, 1.0)
        for j, (plane, y0, x0, g) in enumerate(group):
            if copied[j]:
                continue
            weight = max(gain[j], 1 / len(group)) ** -1.5 * window
            patch = undone(estimate[:, j].reshape(1, depth, size, size), g, len(turns))[0]
            for k in range(depth):
                if not adds(plane + k, group):
                    continue
                here = (0, slice(y0, y0 + size), slice(x0, x0 + size))
                old = working[plane + k][here]
                total[plane + k][here] += weight * patch[k]
                mixed[plane + k][here] += weight * ((1 - blend) * patch[k] + blend * old)
                weights[plane + k][here] += weight
    if not min(one.min() for one in weights) > 0:
        raise RuntimeError("some pixels are covered by no patch")
    divided = [[a / w for a, w in zip(sums, weights, strict=True)] for sums in (total, mixed)]
    return divided[0], divided[1]


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
