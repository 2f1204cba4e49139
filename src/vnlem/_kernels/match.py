"""Block matching: the nearest patches of a window under the symmetries of the square.

The reference patch is transformed, never the candidates, so that every load from the image is contiguous and
the loops run over neighbouring candidates. Squared distances come as |c|^2 - 2 <c, r> + |r|^2, one
multiply-add per pixel.
"""

import numpy as np

from vnlem._kernels.jit import allocating, kernel, nested
from vnlem._kernels.panel import add_panel

# Candidates are computed in blocks of sixteen, so images carry spare columns.
LANES = 16
PADDING = 24
# Turned patches this near to the reference are not taken.
NEAR = 3
# With fewer turned members than one in so many, a group does without: a few are found by chance anywhere.
ONE_IN = 8


@nested
def correlate_four(window, offsets, taps, first, n_rows, n_columns, out):
    """Correlation with four patches at once, of one channel or several: they share the loads of the window.

    window (channels, ., width) flat memory; offsets (n): of each pixel of a patch from its corner in
    `window`; taps (g, n), of which first .. first + 3 are used; out (4, n_rows, n_columns), n_columns a
    multiple of 16.
    """
    width = window.shape[2]
    n_pixels = taps.shape[1]
    out[:] = 0.0
    for row in range(n_rows):
        for x in range(0, n_columns, 16):
            add_panel(
                out,
                row * n_columns + x,
                out.shape[1] * n_columns,
                taps,
                first * n_pixels,
                n_pixels,
                1,
                window,
                row * width + x,
                offsets,
                np.float32(1.0),
            )


@allocating
def smallest(values, count, k, bins, order):
    """Indices of the k smallest of values[:count] (all >= 0), in index order; ties go to the lower index.

    A histogram over the leading bits of the floats finds the bin of the k-th value, so no more than one bin
    has to be sorted. bins: int32 scratch of 4096; order: int64 output, of which the first k are written.
    Returns the k-th smallest value.
    """
    bits = values.view(np.int32)
    bins[:] = 0
    # Without the sign bit 8 bits of exponent and 4 of mantissa remain.
    for i in range(count):
        bins[(bits[i] & 0x7FFFFFFF) >> 19] += 1
    below = 0
    chosen = 0
    while below + bins[chosen] < k:
        below += bins[chosen]
        chosen += 1
    inside = bins[chosen]
    if below + inside == k:
        found = 0
        limit = np.float32(0.0)
        for i in range(count):
            if (bits[i] & 0x7FFFFFFF) >> 19 <= chosen:
                order[found] = i
                limit = max(limit, values[i])
                found += 1
        return limit
    members = np.empty(inside, np.int64)
    found = 0
    for i in range(count):
        if (bits[i] & 0x7FFFFFFF) >> 19 == chosen:
            members[found] = i
            found += 1
    needed = k - below
    limit = _kth(values, members, needed)
    found = 0
    for i in range(count):
        if values[i] < limit:
            found += 1
    ties = k - found
    found = 0
    for i in range(count):
        if values[i] < limit:
            order[found] = i
            found += 1
        elif values[i] == limit and ties > 0:
            order[found] = i
            found += 1
            ties -= 1
    return limit


@nested
def _kth(values, members, k):
    """The k-th smallest of values[members] by quickselect; members is reordered."""
    low, high = 0, members.size - 1
    target = k - 1
    while low < high:
        pivot = values[members[(low + high) // 2]]
        i, j = low, high
        while i <= j:
            while values[members[i]] < pivot:
                i += 1
            while values[members[j]] > pivot:
                j -= 1
            if i <= j:
                members[i], members[j] = members[j], members[i]
                i += 1
                j -= 1
        if target <= j:
            high = j
        elif target >= i:
            low = i
        else:
            break
    return values[members[target]]


@allocating
def keep_best(values, k, bins, order):
    """Make all but the k smallest values infinite; order: int64 scratch of k."""
    kept = np.empty(k, np.float32)
    smallest(values, values.size, k, bins, order)
    for j in range(k):
        kept[j] = values[order[j]]
    for i in range(values.size):
        values[i] = np.inf
    for j in range(k):
        values[order[j]] = kept[j]


@kernel
def match_tile(
    image,
    energy,
    transforms,
    sheets,
    patch_size,
    references,
    centres,
    radius,
    factor,
    penalties,
    n_turned,
    positions,
    chosen,
):
    """The nearest patches of every reference patch.

    image (channels, H, stride), the sheets one below the other; energy (H - p + 1, stride), the patches'
    squared norms, infinite where there is no whole patch; transforms (g, p * p), the identity first:
    transforms[g, u] is the pixel of a member that lies on pixel u of the reference; sheets (s, 2): first
    row and number of rows, the image itself first; references (r, 2) top left corners; centres (r, s, 2):
    of the search window in each sheet, which is moved inwards at the border; a member that is turned or
    reflected ranks with factor * d^2 + penalties[r], and there are either enough of them or none; n_turned:
    the most members from turned sheets.
    Written: positions (r, k), row * stride + column, the reference first; chosen (r, k), the index of the
    transform.
    """
    n_channels, _, stride = image.shape
    n_transforms, n_pixels = transforms.shape
    n_sheets = sheets.shape[0]
    n_members = positions.shape[1]
    side = 2 * radius + 1
    lanes = (side + LANES - 1) // LANES * LANES
    per_sheet = side * lanes
    window = np.zeros((n_channels, side + patch_size - 1, lanes + patch_size + 3), np.float32)
    # Patches are taken in fours; missing transforms stay zero and are not looked at.
    taps = np.zeros(((n_transforms + 3) // 4 * 4, n_channels * n_pixels), np.float32)
    offsets = np.empty(n_channels * n_pixels, np.int64)
    for channel in range(n_channels):
        for u in range(n_pixels):
            offsets[channel * n_pixels + u] = (channel * window.shape[1] + u // patch_size) * window.shape[
                2
            ] + u % patch_size
    correlation = np.empty((4, side, lanes), np.float32)
    own = np.empty((side, lanes), np.float32)
    values = np.empty(n_sheets * per_sheet, np.float32)
    which = np.empty(n_sheets * per_sheet, np.uint8)
    corners = np.empty((n_sheets, 2), np.int64)
    bins = np.empty(4096, np.int32)
    order = np.empty(n_members, np.int64)
    shifted = np.empty(n_members, np.int64)
    turned = np.empty(n_turned, np.int64)
    infinity = np.float32(np.inf)
    two = np.float32(2.0)
    zero = np.float32(0.0)
    for r in range(references.shape[0]):
        top, left = references[r, 0], references[r, 1]
        norm = energy[top, left]
        penalty = penalties[r]
        for g in range(n_transforms):
            for channel in range(n_channels):
                for u in range(n_pixels):
                    taps[g, channel * n_pixels + transforms[g, u]] = image[
                        channel, top + u // patch_size, left + u % patch_size
                    ]
        limit = infinity
        count = 0
        for sheet in range(n_sheets):
            if sheet > 0 and penalty >= limit:
                # No turned patch can rank among the members: enough shifted ones are this near.
                break
            rows_of_patches = sheets[sheet, 1] - patch_size + 1
            columns_of_patches = stride - PADDING - patch_size + 1
            n_rows = min(side, rows_of_patches)
            first_row = sheets[sheet, 0] + max(
                0, min(centres[r, sheet, 0] - sheets[sheet, 0] - radius, rows_of_patches - n_rows)
            )
            first_column = max(0, min(centres[r, sheet, 1] - radius, columns_of_patches - side))
            corners[sheet, 0] = first_row
            corners[sheet, 1] = first_column
            width = min(window.shape[2], stride - first_column)
            for channel in range(n_channels):
                for y in range(n_rows + patch_size - 1):
                    line = window[channel, y]
                    source = image[channel, first_row + y, first_column : first_column + width]
                    for x in range(width):
                        line[x] = source[x]
            valid = min(side, stride - first_column)
            for y in range(n_rows):
                line = own[y]
                source = energy[first_row + y, first_column : first_column + valid]
                for x in range(valid):
                    line[x] = source[x] + norm
                for x in range(valid, lanes):
                    line[x] = infinity
            base = sheet * per_sheet
            for g in range(n_transforms):
                if g > 0 and penalty >= limit:
                    break
                if g % 4 == 0:
                    correlate_four(window, offsets, taps, g, n_rows, lanes, correlation)
                product = correlation[g % 4]
                if g == 0:
                    scale = np.float32(1.0) if sheet == 0 else factor
                    extra = zero if sheet == 0 else penalty
                    for y in range(n_rows):
                        line = product[y]
                        bound = own[y]
                        value = values[base + y * lanes : base + (y + 1) * lanes]
                        for x in range(lanes):
                            value[x] = max(bound[x] - two * line[x], zero) * scale + extra
                    which[base : base + n_rows * lanes] = 0
                    if sheet == 0:
                        values[(top - first_row) * lanes + left - first_column] = 0.0
                        if n_transforms > 1 or n_sheets > 1:
                            limit = smallest(values, n_rows * lanes, n_members, bins, shifted)
                else:
                    for y in range(n_rows):
                        line = product[y]
                        bound = own[y]
                        value = values[base + y * lanes : base + (y + 1) * lanes]
                        mark = which[base + y * lanes : base + (y + 1) * lanes]
                        for x in range(lanes):
                            candidate = factor * max(bound[x] - two * line[x], zero) + penalty
                            better = candidate < value[x]
                            value[x] = candidate if better else value[x]
                            mark[x] = np.uint8(g) if better else mark[x]
            for at in range(base + n_rows * lanes, base + per_sheet):
                values[at] = infinity
            if sheet > 0:
                # The reference turned in place shares its noise: no help, and no independent witness.
                for y in range(
                    max(centres[r, sheet, 0] - NEAR - first_row, 0),
                    min(centres[r, sheet, 0] + NEAR + 1 - first_row, n_rows),
                ):
                    for x in range(
                        max(centres[r, sheet, 1] - NEAR - first_column, 0),
                        min(centres[r, sheet, 1] + NEAR + 1 - first_column, lanes),
                    ):
                        values[base + y * lanes + x] = infinity
            count = base + per_sheet
        if count > per_sheet:
            keep_best(values[per_sheet:count], n_turned, bins, turned)
        smallest(values, count, n_members, bins, order)
        found = 0
        for j in range(n_members):
            found += order[j] >= per_sheet or which[order[j]] > 0
        if 0 < found * ONE_IN < n_members:
            for j in range(n_members):
                order[j] = shifted[j]
                which[order[j]] = 0
        # The reference itself comes first, whatever ties there are.
        self_index = (top - corners[0, 0]) * lanes + left - corners[0, 1]
        place = n_members - 1
        for j in range(n_members):
            if order[j] == self_index:
                place = j
        order[place] = order[0]
        order[0] = self_index
        for j in range(n_members):
            sheet, at = order[j] // per_sheet, order[j] % per_sheet
            y, x = at // lanes, at % lanes
            positions[r, j] = (corners[sheet, 0] + y) * stride + corners[sheet, 1] + x
            chosen[r, j] = which[order[j]]
