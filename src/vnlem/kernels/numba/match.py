"""Block matching: the nearest patches of a window under the symmetries of the square.

The reference patch is transformed, never the candidates, so that every load from the image is contiguous and
the loops run over neighbouring candidates. Squared distances come as |c|^2 - 2 <c, r> + |r|^2, one
multiply-add per pixel.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.panel import COLUMNS, ROWS, correlation_panel, largest_correlation_panel
from vnlem.kernels.numba.select import largest_up_to, smallest, threshold_of

# Candidates are computed in blocks of sixteen, so images carry spare columns.
PADDING = 24
# Turned patches this near to the reference are not taken.
NEAR = 3
# With fewer turned members than one in so many, a group does without: a few are found by chance anywhere.
ONE_IN = 8
INFINITY = np.float32(np.inf)
# Distances and their bounds may be wrong by this share of themselves and of the patches' squared norm.
ROUNDING = np.float32(1e-5)


@nested
def correlate(window, offsets, taps, n_rows, out):
    """Correlation with one patch, of one channel or several.

    window (channels, ., width); offsets (n): of each pixel of a patch from its corner in `window`; taps
    (., n), of which the first patch is used; out (., columns), columns a multiple of 16. Rows are written in
    whole panels, at least n_rows of them.
    """
    width = window.shape[2]
    n_columns = out.shape[1]
    for row in range(0, n_rows, ROWS):
        for x in range(0, n_columns, COLUMNS):
            at = row * n_columns + x
            correlation_panel(out, at, n_columns, taps, 0, window, row * width + x, width, offsets)


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


class Field(NamedTuple):
    """What is searched, and how."""

    image: np.ndarray  # (channels, H, stride), the sheets one below the other
    energy: np.ndarray  # (H - p + 1, stride), squared norms of the patches; infinite where there is none
    # (2, H - p + 1, at least stride and 2 radius + COLUMNS): numbers of a patch that no transform changes,
    # and whose differences are no longer than the patches' distance.
    invariants: np.ndarray
    # (g, p * p), the identity first: [g, u] is the pixel of a member that lies on pixel u of the reference.
    transforms: np.ndarray
    sheets: np.ndarray  # (s, 3): first row, number of rows and of columns, the image itself first
    patch_size: int
    radius: int  # of the search window
    factor: np.float32  # a member that is turned or reflected ranks with factor * d^2 + a penalty
    n_turned: int  # the most members from turned sheets


@kernel
def match_tile(field, references, centres, penalties, positions, chosen):
    """The nearest patches of every reference patch.

    references (r, 2) top left corners; centres (r, s, 2): of the search window in each sheet, which is moved
    inwards at the border; penalties (r), see Field: there are either enough members that are turned or
    reflected, or none.
    Written: positions (r, k), row * stride + column, the reference first; chosen (r, k), the index of the
    transform.
    """
    n_channels = field.image.shape[0]
    n_transforms, n_pixels = field.transforms.shape
    n_sheets = field.sheets.shape[0]
    patch_size = field.patch_size
    side = 2 * field.radius + 1
    rows = (side + ROWS - 1) // ROWS * ROWS
    lanes = (side + COLUMNS - 1) // COLUMNS * COLUMNS
    window = np.zeros((n_channels, rows + patch_size - 1, lanes + patch_size - 1), np.float32)
    _, height, width = window.shape
    offsets = np.empty(n_channels * n_pixels, np.int64)
    for channel in range(n_channels):
        for u in range(n_pixels):
            row = channel * height + u // patch_size
            offsets[channel * n_pixels + u] = row * width + u % patch_size
    _match_references(
        field,
        references,
        centres,
        penalties,
        window,
        offsets,
        # Missing transforms stay zero and are not looked at.
        np.zeros(((n_transforms + ROWS - 1) // ROWS * ROWS, n_channels * n_pixels), np.float32),
        np.empty((rows, lanes), np.float32),
        np.empty((rows, lanes), np.float32),
        np.empty(lanes, np.float32),
        np.empty(lanes, np.int32),
        np.empty((n_sheets + 1) * side * lanes, np.float32),
        np.empty(n_sheets * side * lanes, np.int32),
        np.empty((n_sheets, 2), np.int64),
        np.empty(positions.shape[1] + 1, np.int32),
        positions,
        chosen,
    )


@nested
def _match_references(
    field,
    references,
    centres,
    penalties,
    window,
    offsets,
    taps,
    products,
    norms,
    fits,
    winners,
    ranks,
    which,
    corners,
    order,
    positions,
    chosen,
):
    """`match_tile` with its scratch."""
    image, energy, invariants, transforms, sheets, patch_size, radius, factor, n_turned = field
    stride = image.shape[2]
    n_transforms = transforms.shape[0]
    n_sheets = sheets.shape[0]
    n_members = positions.shape[1]
    side = 2 * radius + 1
    lanes = norms.shape[1]
    per_sheet = side * lanes
    shifted = ranks[:per_sheet]  # of patches that are shifted, no more
    best = ranks[per_sheet:]  # under all transforms
    limit = np.float32(0)
    for r in range(references.shape[0]):
        top, left = references[r, 0], references[r, 1]
        norm = energy[top, left]
        _load_taps(image, transforms, patch_size, top, left, taps)
        n_rows = _load_window(
            image, energy, sheets[0], centres[r, 0], patch_size, norm, side, window, norms, corners[0]
        )
        correlate(window, offsets, taps, n_rows, products)
        _rank_shifted(products, norms, n_rows, shifted)
        own = (top - corners[0, 0]) * lanes + left - corners[0, 1]
        shifted[own] = 0.0
        limit = largest_up_to(shifted, threshold_of(shifted, n_members, limit))
        n_moved = 0
        # Where enough shifted patches are nearer than the penalty no other can rank among the members.
        if (n_transforms > 1 or n_sheets > 1) and penalties[r] < limit:
            # A transform has to bring a patch nearer than this.
            reach = (limit - penalties[r]) / factor * (np.float32(1) + ROUNDING) + ROUNDING * norm
            own_invariants = (invariants[0, top, left], invariants[1, top, left])
            for i in range(per_sheet):
                best[i] = shifted[i]
                which[i] = 0
            for sheet in range(n_sheets):
                values = best[sheet * per_sheet : (sheet + 1) * per_sheet]
                marks = which[sheet * per_sheet : (sheet + 1) * per_sheet]
                if sheet > 0:
                    n_rows = _load_window(
                        image,
                        energy,
                        sheets[sheet],
                        centres[r, sheet],
                        patch_size,
                        norm,
                        side,
                        window,
                        norms,
                        corners[sheet],
                    )
                    values[:] = INFINITY
                competing = (1 if sheet == 0 else 0, n_transforms)
                for y in range(n_rows):
                    row = corners[sheet, 0] + y
                    _correlate_near(
                        window,
                        offsets,
                        taps,
                        competing,
                        y,
                        own_invariants,
                        invariants[0, row, corners[sheet, 1] :],
                        invariants[1, row, corners[sheet, 1] :],
                        reach,
                        fits,
                        winners,
                    )
                    _rank_moved(
                        fits,
                        winners,
                        norms[y],
                        factor,
                        penalties[r],
                        values[y * lanes : (y + 1) * lanes],
                        marks[y * lanes : (y + 1) * lanes],
                    )
                if sheet > 0:
                    _forget_near(centres[r, sheet], corners[sheet], n_rows, lanes, values)
            if n_sheets > 1:
                keep_best(best[per_sheet:], n_turned)
            _fill(order, smallest(best, n_members, own, limit, order)[0], own)
            for j in range(n_members):
                n_moved += order[j] >= per_sheet or which[order[j]] > 0
        if n_moved * ONE_IN < n_members:
            _fill(order, smallest(shifted, n_members, own, limit, order)[0], own)
            for j in range(n_members):
                which[order[j]] = 0
        for j in range(n_members):
            sheet, at = order[j] // per_sheet, order[j] % per_sheet
            positions[r, j] = (corners[sheet, 0] + at // lanes) * stride + corners[sheet, 1] + at % lanes
            chosen[r, j] = which[order[j]]


@nested
def _fill(order, count, own):
    """The reference in every place that is left over: too few distances are numbers."""
    for j in range(count, order.size):
        order[j] = own


@nested
def _load_taps(image, transforms, patch_size, top, left, taps):
    """The reference patch under every transform."""
    n_transforms, n_pixels = transforms.shape
    for channel in range(image.shape[0]):
        for g in range(n_transforms):
            for u in range(n_pixels):
                value = image[channel, top + u // patch_size, left + u % patch_size]
                taps[g, channel * n_pixels + transforms[g, u]] = value


@nested
def _load_window(image, energy, sheet, centre, patch_size, norm, side, window, norms, corner):
    """The part of a sheet that is searched, its corner, and |candidate|^2 + |reference|^2.

    Returns the number of rows of candidates.
    """
    n_channels, _, stride = image.shape
    first_row, n_sheet_rows, n_sheet_columns = sheet
    rows_of_patches = n_sheet_rows - patch_size + 1
    columns_of_patches = n_sheet_columns - patch_size + 1
    n_rows = min(side, rows_of_patches)
    radius = side // 2
    top = first_row + max(0, min(centre[0] - first_row - radius, rows_of_patches - n_rows))
    left = max(0, min(centre[1] - radius, columns_of_patches - side))
    corner[0], corner[1] = top, left
    width = min(window.shape[2], stride - left)
    for channel in range(n_channels):
        for y in range(n_rows + patch_size - 1):
            line = window[channel, y]
            source = image[channel, top + y, left : left + width]
            for x in range(width):
                line[x] = source[x]
    valid = min(side, stride - left)
    for y in range(n_rows):
        line = norms[y]
        source = energy[top + y, left : left + valid]
        for x in range(valid):
            line[x] = source[x] + norm
        for x in range(valid, line.size):
            line[x] = INFINITY
    return n_rows


@nested
def _rank_shifted(products, norms, n_rows, values):
    """Squared distances of shifted patches; infinite in rows that are not searched."""
    lanes = norms.shape[1]
    for y in range(n_rows):
        line, total = products[y], norms[y]
        value = values[y * lanes : (y + 1) * lanes]
        for x in range(lanes):
            value[x] = max(total[x] - np.float32(2.0) * line[x], np.float32(0.0))
    for i in range(n_rows * lanes, values.size):
        values[i] = INFINITY


@nested
def _correlate_near(
    window, offsets, taps, competing, y, own, first_invariant, second_invariant, reach, fits, winners
):
    """The best correlation of each candidate in row y with the reference under the competing transforms.

    Blocks of candidates whose invariants differ too much from the reference's `own` are left out: none of
    them can be nearer than `reach`, whatever the transform.
    """
    least, most = competing
    for x in range(0, fits.size, COLUMNS):
        nearest = INFINITY
        for i in range(x, x + COLUMNS):
            fits[i] = -INFINITY
            winners[i] = 0
            a = first_invariant[i] - own[0]
            b = second_invariant[i] - own[1]
            nearest = min(nearest, a * a + b * b)
        if nearest >= reach:
            continue
        at = y * window.shape[2] + x
        for first in range(0, most, ROWS):
            largest_correlation_panel(fits, winners, x, taps, first, least, most, window, at, offsets)


@nested
def _rank_moved(fits, winners, norms, factor, penalty, values, marks):
    """Give the candidates of a row to the transform that fits them best, where its rank is better.

    All transforms have the same factor and penalty: the largest correlation has the best rank.
    """
    for x in range(values.size):
        rank = factor * max(norms[x] - np.float32(2.0) * fits[x], np.float32(0.0)) + penalty
        better = rank < values[x]
        values[x] = rank if better else values[x]
        marks[x] = winners[x] if better else marks[x]


@nested
def _forget_near(centre, corner, n_rows, lanes, values):
    """The reference turned in place shares its noise: no help, and no independent witness."""
    top, left = centre[0] - corner[0], centre[1] - corner[1]
    for y in range(max(top - NEAR, 0), min(top + NEAR + 1, n_rows)):
        for x in range(max(left - NEAR, 0), min(left + NEAR + 1, lanes)):
            values[y * lanes + x] = INFINITY
