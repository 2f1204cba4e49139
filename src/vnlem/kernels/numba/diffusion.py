"""Distances of the diffusion map over search windows, in place of distances of patches."""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import inlined, nested
from vnlem.kernels.numba.neighbours import first_column, mark_windows
from vnlem.kernels.numba.scratch import as_row
from vnlem.kernels.numba.vectors import LANES, load, minus, multiply_add, plus, spread, store, totals


class Diffusion(NamedTuple):
    """Diffusion coordinates of a region; with no coordinates patches alone decide."""

    embedding: np.ndarray  # (height, width, coordinates)
    trust: np.ndarray  # (height, width) in [0, 1]: share of the diffusion distance in the ranking
    blended: bool  # whether trust is below one anywhere


@nested
def squared_distances(embedding, y, span, rows, masks, out):
    """Squared distances of coordinates, as window_distances has those of features.

    From differences: neighbours' coordinates agree in their leading digits. Coordinates come in eights. What
    lies right of the image is infinite in the masks; its last column stands for it.
    """
    width, dim = embedding.shape[1:]
    row_length = masks.shape[1]
    every = as_row(embedding)
    zero = spread(np.float32(0))
    for cy in range(rows[0], rows[1]):
        line, end = cy * width * dim, ((cy + 1) * width - 1) * dim
        at = (cy - rows[0]) * row_length
        for p in range(0, span.pixels, 2):
            own = (y * width + span.x + p) * dim
            pair = min(own + dim, ((y + 1) * width - 1) * dim)
            mask_a, mask_b, out_a, out_b = masks[p], masks[p + 1], out[p], out[p + 1]
            first = line + first_column(span, p) * dim
            for column in range(0, row_length, LANES):
                c = first + column * dim
                c0, c1, c2, c3 = min(c, end), min(c + dim, end), min(c + 2 * dim, end), min(c + 3 * dim, end)
                c4, c5 = min(c + 4 * dim, end), min(c + 5 * dim, end)
                c6, c7 = min(c + 6 * dim, end), min(c + 7 * dim, end)
                a0, a1, a2, a3, a4, a5, a6, a7 = zero, zero, zero, zero, zero, zero, zero, zero
                b0, b1, b2, b3, b4, b5, b6, b7 = zero, zero, zero, zero, zero, zero, zero, zero
                for k in range(0, dim, LANES):
                    a, b = load(every, own + k), load(every, pair + k)
                    a0, b0 = _add_squares(a, b, load(every, c0 + k), a0, b0)
                    a1, b1 = _add_squares(a, b, load(every, c1 + k), a1, b1)
                    a2, b2 = _add_squares(a, b, load(every, c2 + k), a2, b2)
                    a3, b3 = _add_squares(a, b, load(every, c3 + k), a3, b3)
                    a4, b4 = _add_squares(a, b, load(every, c4 + k), a4, b4)
                    a5, b5 = _add_squares(a, b, load(every, c5 + k), a5, b5)
                    a6, b6 = _add_squares(a, b, load(every, c6 + k), a6, b6)
                    a7, b7 = _add_squares(a, b, load(every, c7 + k), a7, b7)
                squared = totals(a0, a1, a2, a3, a4, a5, a6, a7)
                store(out_a, at + column, plus(squared, load(mask_a, column)))
                squared = totals(b0, b1, b2, b3, b4, b5, b6, b7)
                store(out_b, at + column, plus(squared, load(mask_b, column)))


@inlined
def _add_squares(a, b, other, sum_a, sum_b):
    """The squared differences of two vectors to a third, added to two sums."""
    from_a, from_b = minus(a, other), minus(b, other)
    return multiply_add(from_a, from_a, sum_a), multiply_add(from_b, from_b, sum_b)


@nested
def rank_by_diffusion(diffusion, y, span, rows, scratch):
    """Put squared diffusion distances in scratch.windows, for the pixels of a span in row y.

    With trust t below one: t * diffusion + (1 - t) * what the windows held, each divided by its mean over the
    pixel's own window; scratch.unturned is used up.
    """
    columns = scratch.masks.shape[1]
    mark_windows(span, scratch.masks)
    if not diffusion.blended:
        squared_distances(diffusion.embedding, y, span, rows, scratch.masks, scratch.windows)
        return
    squared_distances(diffusion.embedding, y, span, rows, scratch.masks, scratch.unturned)
    n_values = (rows[1] - rows[0]) * columns
    for p in range(span.pixels):
        own = (y - rows[0]) * columns + span.x + p - first_column(span, p)
        by_diffusion, by_patches = scratch.unturned[p], scratch.windows[p]
        trust = diffusion.trust[y, span.x + p]
        if trust < np.float32(1):
            _blend(trust, by_diffusion[:n_values], own, by_patches)
        else:
            for c in range(n_values):
                by_patches[c] = by_diffusion[c]


@nested
def _blend(trust, by_diffusion, own, by_patches):
    """Both distances of a window as one ranking, into by_patches; outside the window both are infinite."""
    one, infinity, least = np.float32(1), np.float32(np.inf), np.float32(1e-30)
    # Noise lifts all distances of patches alike: they count from the smallest but the pixel's own.
    lowest = infinity
    mean, total, count = np.float32(0), np.float32(0), np.float32(0)
    for c in range(by_diffusion.shape[0]):
        value = by_patches[c]
        if value < infinity:
            mean += by_diffusion[c]
            total += value
            count += one
            if c != own:
                lowest = min(lowest, value)
    share = trust * count / max(mean, least)
    rest = (one - trust) * count / max(total - count * lowest, least)
    for c in range(by_diffusion.shape[0]):
        patches = max(by_patches[c] - lowest, np.float32(0))
        by_patches[c] = share * by_diffusion[c] + rest * patches
