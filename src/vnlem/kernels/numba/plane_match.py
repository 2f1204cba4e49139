"""Block matching in several planes: the nearest patches in a small window of each, under transforms.

Patches may span consecutive planes. Distances and bounds are those of `match`.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.candidates import (
    INFINITY,
    ONE_IN,
    ROUNDING,
    Fits,
    correlate,
    correlate_near,
    fill_up,
    largest_member,
    make_few,
    make_fits,
    rank_moved,
    rank_shifted,
    split_taps,
)
from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.scratch import empty, zeros
from vnlem.kernels.numba.select import Few, smallest_of_few, take_smallest, take_up_to
from vnlem.kernels.numba.vectors import COLUMNS, ROWS


class Planes(NamedTuple):
    """What is searched, and how."""

    image: np.ndarray  # (planes, H, stride)
    energy: np.ndarray  # (planes, H, stride), squared norms of patches at their corners; infinite for none
    invariants: np.ndarray  # (2, planes, H, at least stride + COLUMNS), as in `match.Scratch`
    # (g, depth * p * p), the identity first: [g, u] is the pixel of a member that lies on pixel u of the
    # reference.
    transforms: np.ndarray
    patch_size: int
    depth: int  # planes that a patch spans
    radius: int  # of the window in every plane
    factor: np.float32  # a member that is turned or reflected ranks with factor * d^2 + a penalty


class _Scratch(NamedTuple):
    """What matching writes to on its way."""

    window: np.ndarray  # (depth, rows, columns): the pixels that are searched
    fits: Fits
    products: np.ndarray  # (rows, lanes): correlations
    norms: np.ndarray  # (rows, lanes): |candidate|^2 + |reference|^2
    ranks: np.ndarray  # (2, sites * side * lanes): of shifted patches, and under all transforms
    which: np.ndarray  # (sites * side * lanes): the transform
    corners: np.ndarray  # (sites, 2): of the windows
    few: Few  # the nearest of some ranks
    order: np.ndarray  # (members + 1)


@kernel
def match_planes_tile(planes, sizes, references, centres, penalties, positions, chosen):
    """The nearest patches of every reference patch.

    sizes (planes, 2): rows and columns of each plane that hold pixels; references (r, 3): plane and top left
    corner; centres (r, s, 3): plane and centre of each window, which is moved inwards at the border, the
    reference's own first, a negative plane for none; penalties (r), see `Planes`: a group has either enough
    members that are turned or reflected, or none. Written: positions (r, k), index into the flat image, the
    reference first; chosen (r, k), the index of the transform.
    """
    n_transforms = planes.transforms.shape[0]
    p, depth = planes.patch_size, planes.depth
    n_sites = centres.shape[1]
    side = 2 * planes.radius + 1
    rows = (side + ROWS - 1) // ROWS * ROWS
    lanes = (side + COLUMNS - 1) // COLUMNS * COLUMNS
    window = zeros((depth, rows + p - 1, lanes + p - 1), np.float32)
    scratch = _Scratch(
        window,
        make_fits(n_transforms, p, window, lanes),
        empty((rows, lanes), np.float32),
        empty((rows, lanes), np.float32),
        empty((2, n_sites * side * lanes), np.float32),
        zeros(n_sites * side * lanes, np.int32),
        empty((n_sites, 2), np.int64),
        make_few(n_sites * side * lanes),
        empty(positions.shape[1] + 1, np.int32),
    )
    _match_references(planes, sizes, references, centres, penalties, scratch, positions, chosen)


@nested
def _match_references(planes, sizes, references, centres, penalties, scratch, positions, chosen):
    """`match_planes_tile` with its scratch."""
    image, energy, invariants, transforms, p, depth, radius, factor = planes
    window, fits, products, norms, ranks, which, corners, few, order = scratch
    _, height, stride = image.shape
    n_transforms = transforms.shape[0]
    n_sites = centres.shape[1]
    n_members = positions.shape[1]
    side = 2 * radius + 1
    lanes = norms.shape[1]
    per_site = side * lanes
    shifted, best = ranks[0], ranks[1]
    guess = np.float32(0)
    for r in range(references.shape[0]):
        plane, top, left = references[r, 0], references[r, 1], references[r, 2]
        norm = energy[plane, top, left]
        _load_taps(image, transforms, p, references[r], fits.taps)
        for site in range(n_sites):
            values = shifted[site * per_site : (site + 1) * per_site]
            if centres[r, site, 0] < 0:
                values[:] = INFINITY
                continue
            n_rows = _load_window(planes, sizes, centres[r, site], norm, window, norms, corners[site])
            correlate(window, p, fits.taps, n_rows, products)
            rank_shifted(products, norms, n_rows, values)
        own = (top - corners[0, 0]) * lanes + left - corners[0, 1]
        shifted[own] = 0.0
        n_taken, guess = take_smallest(shifted, n_members, guess, few)
        limit = largest_member(few, n_taken, n_members, guess)
        n_moved = 0
        # Where enough shifted patches are nearer than the penalty no other can rank among the members.
        if n_transforms > 1 and penalties[r] < limit:
            split_taps(fits, depth, p)
            # A transform has to bring a patch nearer than this.
            reach = (limit - penalties[r]) / factor * (np.float32(1) + ROUNDING) + ROUNDING * norm
            own_invariants = (invariants[0, plane, top, left], invariants[1, plane, top, left])
            for i in range(shifted.size):
                best[i] = shifted[i]
                which[i] = 0
            for site in range(n_sites):
                there = centres[r, site, 0]
                if there < 0:
                    continue
                n_rows = _load_window(planes, sizes, centres[r, site], norm, window, norms, corners[site])
                for y in range(n_rows):
                    row, column = corners[site, 0] + y, corners[site, 1]
                    lines = (invariants[0, there, row, column:], invariants[1, there, row, column:])
                    if not correlate_near(
                        window, p, fits, y, (1, n_transforms), own_invariants, lines, reach
                    ):
                        continue
                    at = site * per_site + y * lanes
                    rank_moved(
                        fits,
                        norms[y],
                        factor,
                        penalties[r],
                        best[at : at + lanes],
                        which[at : at + lanes],
                    )
            # The reference turned in place shares its noise: it is there as itself alone.
            best[own] = 0.0
            which[own] = 0
            n_taken = take_up_to(best, limit, few)
            fill_up(order, smallest_of_few(few, n_taken, n_members, own, limit, order), own)
            for j in range(n_members):
                n_moved += which[order[j]] > 0
            if n_moved * ONE_IN < n_members:
                n_taken = take_up_to(shifted, limit, few)
        if n_moved * ONE_IN < n_members:
            fill_up(order, smallest_of_few(few, n_taken, n_members, own, limit, order), own)
            for j in range(n_members):
                which[order[j]] = 0
        for j in range(n_members):
            site, at = order[j] // per_site, order[j] % per_site
            row = centres[r, site, 0] * height + corners[site, 0] + at // lanes
            positions[r, j] = row * stride + corners[site, 1] + at % lanes
            chosen[r, j] = which[order[j]]


@nested
def _load_taps(image, transforms, p, reference, taps):
    """The reference patch under every transform."""
    n_transforms, n_pixels = transforms.shape
    plane, top, left = reference[0], reference[1], reference[2]
    for g in range(n_transforms):
        for u in range(n_pixels):
            pixel = u % (p * p)
            taps[g, transforms[g, u]] = image[plane + u // (p * p), top + pixel // p, left + pixel % p]


@nested
def _load_window(planes, sizes, centre, norm, window, norms, corner):
    """The pixels of one window, its corner, and |candidate|^2 + |reference|^2; returns its rows."""
    image, energy, p, depth = planes.image, planes.energy, planes.patch_size, planes.depth
    stride = image.shape[2]
    plane = centre[0]
    radius = planes.radius
    side = 2 * radius + 1
    rows_of_patches = sizes[plane, 0] - p + 1
    columns_of_patches = sizes[plane, 1] - p + 1
    n_rows = min(side, rows_of_patches)
    top = max(0, min(centre[1] - radius, rows_of_patches - n_rows))
    left = max(0, min(centre[2] - radius, columns_of_patches - side))
    corner[0], corner[1] = top, left
    width = min(window.shape[2], stride - left)
    for k in range(depth):
        for y in range(n_rows + p - 1):
            line = window[k, y]
            source = image[plane + k, top + y, left : left + width]
            for x in range(width):
                line[x] = source[x]
    valid = min(side, stride - left)
    for y in range(n_rows):
        line = norms[y]
        source = energy[plane, top + y, left : left + valid]
        for x in range(valid):
            line[x] = source[x] + norm
        for x in range(valid, line.size):
            line[x] = INFINITY
    return n_rows
