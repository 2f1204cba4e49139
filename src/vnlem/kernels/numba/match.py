"""Block matching: the nearest patches of a window under the symmetries of the square."""

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
from vnlem.kernels.numba.jit import nested, quick_kernel
from vnlem.kernels.numba.scratch import empty, fill, larger_of, part, smaller_of, view_at, zeros
from vnlem.kernels.numba.select import Few, smallest_of_few, take_smallest, take_up_to, threshold_of
from vnlem.kernels.numba.sheets import patch_squares, patch_sums
from vnlem.kernels.numba.symmetries import SYMMETRIES
from vnlem.kernels.numba.vectors import COLUMNS, ROWS

# Turned patches this near to the reference are not taken.
NEAR = 3


@nested
def keep_best(values, k):
    """Make all but the k smallest values infinite; ties go to the lower index."""
    threshold = threshold_of(values, k, np.float32(0))
    ties = k
    for i in range(values.size):
        ties -= np.int64(values[i] < threshold)
    for i in range(values.size):
        if values[i] == threshold and ties > 0:
            ties -= 1
        elif not values[i] < threshold:
            values[i] = INFINITY


class Search(NamedTuple):
    """What is searched in a tile, and how."""

    # (g, p * p), the identity first: [g, u] is the pixel of a member that lies on pixel u of the reference.
    transforms: np.ndarray
    weights: np.ndarray  # (channels): of each channel in comparisons
    # (s, 4): first row of each sheet in the tall arrays, rows and columns of candidates in one window, and
    # whether the sheet has the image's own noise.
    sheets: np.ndarray
    n_full: int  # so many sheets, the first ones, are put back; members of the others only contribute
    n_copied: int  # the most members from sheets that are not put back
    patch_size: int
    radius: int  # of the search window
    factor: np.float32  # a member that is turned or reflected, or not put back, ranks with factor * d^2 + ...
    penalty: np.float32  # ... this times the noise energy of the reference
    flat_energy: np.float32  # with less energy about its mean, in units of its noise, a patch is only shifted


class Scratch(NamedTuple):
    """What matching writes to on its way."""

    energy: np.ndarray  # (rows, stride), squared norms of the patches; infinite where there is none
    # (2, rows, stride): numbers of a patch that no transform changes, and whose differences are no longer
    # than the patches' distance: its part along a constant patch, and the length of the rest.
    invariants: np.ndarray
    sums: np.ndarray  # (2, stride), double
    window: np.ndarray  # (planes, height, width): a copy of what is searched
    fits: Fits
    products: np.ndarray  # (rows, lanes) of the search window: correlations
    norms: np.ndarray  # (rows, lanes): |candidate|^2 + |reference|^2
    shifted: np.ndarray  # ranks of patches that are shifted, no more
    best: np.ndarray  # ranks under all transforms, all sheets
    which: np.ndarray  # the transform of `best`
    few: Few  # the nearest of `shifted` or `best`
    order: np.ndarray


@quick_kernel
def match_tile(tall, search, references, corners, positions, chosen):
    """The nearest patches of every reference patch.

    references (r, 2): top left corners in the first sheet; corners (r, s, 2): of the search window in each
    sheet; both in the tall arrays. Written: positions (r, k), row * stride + column in the tall arrays, the
    reference first; chosen (r, k), the index of the transform. There are either enough members that are
    turned or reflected, or none.
    """
    n_planes, rows, stride = tall.compared.shape
    n_transforms = search.transforms.shape[0]
    n_sheets = search.sheets.shape[0]
    patch_size = search.patch_size
    side = 2 * search.radius + 1
    window_rows = (side + ROWS - 1) // ROWS * ROWS
    lanes = (side + COLUMNS - 1) // COLUMNS * COLUMNS
    window = zeros((n_planes, window_rows + patch_size - 1, lanes + patch_size - 1), np.float32)
    scratch = Scratch(
        empty((rows, stride), np.float32),
        zeros((2, rows, stride), np.float32),
        empty((2, stride), np.float64),
        window,
        make_fits(n_transforms, patch_size, window, lanes),
        empty((window_rows, lanes), np.float32),
        empty((window_rows, lanes), np.float32),
        empty(search.n_full * side * lanes, np.float32),
        empty(n_sheets * side * lanes, np.float32),
        empty(n_sheets * side * lanes, np.int32),
        make_few(n_sheets * side * lanes),
        empty(positions.shape[1] + 1, np.int32),
    )
    fill(scratch.energy, INFINITY)
    _prepare(tall, patch_size, scratch)
    _match_references(tall, search, references, corners, scratch, positions, chosen)


@nested
def _prepare(tall, patch_size, scratch):
    """Squared norms and invariants of all patches."""
    energy, invariants = scratch.energy, scratch.invariants
    rows, stride = energy.shape
    patch_squares(tall.compared, patch_size, scratch.sums, energy)
    patch_sums(tall.compared, patch_size, scratch.sums, invariants[0])
    scale = np.float32(1 / (patch_size * np.sqrt(tall.compared.shape[0])))
    for y in range(rows - patch_size + 1):
        for x in range(stride - patch_size + 1):
            level = scale * invariants[0, y, x]
            invariants[0, y, x] = level
            invariants[1, y, x] = np.sqrt(larger_of(energy[y, x] - level * level, np.float32(0.0)))
    shown = True
    for y in range(rows):
        line = view_at(tall.outside, y)
        hidden = 0
        for x in range(stride):
            hidden |= line[x]
        shown &= hidden == 0
    if not shown:
        _leave_out_hidden(tall.outside, patch_size, energy)


@nested
def _leave_out_hidden(outside, patch_size, energy):
    """No patch that shows what lies outside of its sheet's image is a candidate."""
    rows, stride = energy.shape
    last = patch_size - 1
    for y in range(rows - last):
        for x in range(stride - last):
            # A sheet shows a convex part of its image: the corners of a patch tell of its inside.
            hidden = outside[y, x] + outside[y + last, x] + outside[y, x + last] + outside[y + last, x + last]
            if hidden > 0:
                energy[y, x] = INFINITY


@nested
def _penalty_of(tall, search, top, left):
    """What a turned member of this group has to make up for."""
    n_channels, depth = tall.pilot.shape[:2]
    p = search.patch_size
    noise = 0.0
    for c in range(n_channels):
        of_channel = 0.0
        for plane in range(depth):
            for y in range(top, top + p):
                for x in range(left, left + p):
                    of_channel += tall.variance[c, plane, y, x]
        noise += of_channel * search.weights[c] * search.weights[c]
    if search.flat_energy > 0:
        energy = 0.0
        for plane in range(n_channels * depth):
            mean = 0.0
            for y in range(top, top + p):
                for x in range(left, left + p):
                    mean += tall.compared[plane, y, x]
            mean /= p * p
            for y in range(top, top + p):
                for x in range(left, left + p):
                    difference = tall.compared[plane, y, x] - mean
                    energy += difference * difference
        if energy < search.flat_energy * noise:
            return INFINITY
    return np.float32(search.penalty * noise)


@nested
def _match_references(tall, search, references, corners, scratch, positions, chosen):
    """`match_tile` with its scratch."""
    image, fits = tall.compared, scratch.fits
    taps = fits.taps
    stride = image.shape[2]
    energy, invariants, window, norms = scratch.energy, scratch.invariants, scratch.window, scratch.norms
    shifted, best, which, few, order = (
        scratch.shifted,
        scratch.best,
        scratch.which,
        scratch.few,
        scratch.order,
    )
    n_transforms = search.transforms.shape[0]
    n_sheets, n_full = search.sheets.shape[0], search.n_full
    n_members = positions.shape[1]
    lanes = norms.shape[1]
    per_sheet = (2 * search.radius + 1) * lanes
    guess = np.float32(0)
    for r in range(references.shape[0]):
        top, left = references[r, 0], references[r, 1]
        norm = energy[top, left]
        _load_taps(image, search, top, left, 0, 1, taps)
        for sheet in range(n_full):
            n_rows = search.sheets[sheet, 1]
            _load_window(image, energy, search, sheet, view_at(corners, (r, sheet)), norm, window, norms)
            correlate(window, search.patch_size, taps, n_rows, scratch.products)
            values = part(shifted, sheet * per_sheet, (sheet + 1) * per_sheet)
            rank_shifted(scratch.products, norms, n_rows, values)
        own = (top - corners[r, 0, 0]) * lanes + left - corners[r, 0, 1]
        shifted[own] = 0.0
        n_taken, guess = take_smallest(shifted, n_members, guess, few)
        limit = largest_member(few, n_taken, n_members, guess)
        n_moved = 0
        penalty = INFINITY
        if n_transforms > 1 or n_sheets > n_full:
            penalty = _penalty_of(tall, search, top, left)
        # Where enough shifted patches are nearer than the penalty no other can rank among the members.
        if penalty < limit:
            # Of all symmetries of the square two say everything, see `symmetries`.
            _load_taps(image, search, top, left, 1, 2 if n_transforms == SYMMETRIES else n_transforms, taps)
            split_taps(fits, image.shape[0], search.patch_size)
            # A transform has to bring a patch nearer than this.
            reach = (limit - penalty) / search.factor * (np.float32(1) + ROUNDING) + ROUNDING * norm
            own_invariants = (invariants[0, top, left], invariants[1, top, left])
            for i in range(n_full * per_sheet):
                best[i] = shifted[i]
                which[i] = 0
            for sheet in range(n_sheets):
                n_rows = search.sheets[sheet, 1]
                values = part(best, sheet * per_sheet, (sheet + 1) * per_sheet)
                marks = part(which, sheet * per_sheet, (sheet + 1) * per_sheet)
                corner = view_at(corners, (r, sheet))
                if n_full > 1 or sheet > 0:
                    _load_window(image, energy, search, sheet, corner, norm, window, norms)
                if sheet >= n_full:
                    fill(values, INFINITY)
                competing = (1 if sheet < n_full else 0, n_transforms)
                for y in range(n_rows):
                    lines = (
                        part(view_at(invariants, (0, corner[0] + y)), corner[1], stride),
                        part(view_at(invariants, (1, corner[0] + y)), corner[1], stride),
                    )
                    if correlate_near(
                        window, search.patch_size, fits, y, competing, own_invariants, lines, reach
                    ):
                        rank_moved(
                            fits,
                            view_at(norms, y),
                            search.factor,
                            penalty,
                            part(values, y * lanes, (y + 1) * lanes),
                            part(marks, y * lanes, (y + 1) * lanes),
                        )
                if sheet >= n_full and search.sheets[sheet, 3]:
                    _forget_near(n_rows // 2, lanes, values)
            if n_sheets > n_full:
                keep_best(part(best, n_full * per_sheet, best.size), search.n_copied)
            n_taken = take_up_to(best, limit, few)
            fill_up(order, smallest_of_few(few, n_taken, n_members, own, limit, order), own)
            for j in range(n_members):
                n_moved += order[j] >= n_full * per_sheet or which[order[j]] > 0
            if n_moved * ONE_IN < n_members:
                n_taken = take_up_to(shifted, limit, few)
        if n_moved * ONE_IN < n_members:
            fill_up(order, smallest_of_few(few, n_taken, n_members, own, limit, order), own)
            for j in range(n_members):
                which[order[j]] = 0
        for j in range(n_members):
            sheet, at = order[j] // per_sheet, order[j] % per_sheet
            row = corners[r, sheet, 0] + at // lanes
            positions[r, j] = row * stride + corners[r, sheet, 1] + at % lanes
            chosen[r, j] = which[order[j]]


@nested
def _load_taps(image, search, top, left, first, last, taps):
    """The reference patch under the transforms first..last."""
    area = search.transforms.shape[1]
    p = search.patch_size
    for plane in range(image.shape[0]):
        for g in range(first, last):
            places = view_at(search.transforms, g)
            to = part(view_at(taps, g), plane * area, (plane + 1) * area)
            for y in range(p):
                line = part(view_at(image, (plane, top + y)), left, left + p)
                for x in range(p):
                    to[places[y * p + x]] = line[x]


@nested
def _load_window(image, energy, search, sheet, corner, norm, window, norms):
    """The part of a sheet that is searched, and |candidate|^2 + |reference|^2."""
    n_planes, _, stride = image.shape
    _, n_rows, n_columns, _ = search.sheets[sheet]
    top, left = corner[0], corner[1]
    width = smaller_of(window.shape[2], stride - left)
    for plane in range(n_planes):
        for y in range(n_rows + search.patch_size - 1):
            line = view_at(window, (plane, y))
            source = part(view_at(image, (plane, top + y)), left, left + width)
            for x in range(width):
                line[x] = source[x]
    for y in range(n_rows):
        line = view_at(norms, y)
        source = part(view_at(energy, top + y), left, left + n_columns)
        for x in range(n_columns):
            line[x] = source[x] + norm
        for x in range(n_columns, line.size):
            line[x] = INFINITY


@nested
def _forget_near(radius, lanes, values):
    """The reference turned in place shares its noise: no help, and no independent witness."""
    for y in range(larger_of(radius - NEAR, 0), smaller_of(radius + NEAR + 1, 2 * radius + 1)):
        for x in range(larger_of(radius - NEAR, 0), smaller_of(radius + NEAR + 1, 2 * radius + 1)):
            values[y * lanes + x] = INFINITY
