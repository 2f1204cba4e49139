"""Distances of the diffusion map over search windows, in place of distances of patches."""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import nested
from vnlem.kernels.numba.neighbours import first_column, mark_windows
from vnlem.kernels.numba.vectors import LANES, load, minus, multiply_add, plus, spread, store, totals


class Diffusion(NamedTuple):
    """Diffusion coordinates of a region; with no coordinates patches alone decide."""

    embedding: np.ndarray  # (height, width, coordinates)
    trust: np.ndarray  # (height, width) in [0, 1]: share of the diffusion distance in the ranking
    blended: bool  # whether trust is below one anywhere


@nested
def squared_distances(own, line, first, mask, out, at):
    """out[at + c] = |own - line[first + c]|^2 + mask[c] for every column of the mask.

    From differences: neighbours' coordinates agree in their leading digits. Coordinates come in eights. What
    lies past the end of the line is infinite in the mask; the last vector stands for it.
    """
    last = line.shape[0] - 1
    zero = spread(np.float32(0))
    for c in range(0, mask.shape[0], LANES):
        a = first + c
        e0, e1 = line[min(a, last)], line[min(a + 1, last)]
        e2, e3 = line[min(a + 2, last)], line[min(a + 3, last)]
        e4, e5 = line[min(a + 4, last)], line[min(a + 5, last)]
        e6, e7 = line[min(a + 6, last)], line[min(a + 7, last)]
        s0, s1, s2, s3, s4, s5, s6, s7 = zero, zero, zero, zero, zero, zero, zero, zero
        for k in range(0, own.shape[0], LANES):
            o = load(own, k)
            d = minus(o, load(e0, k))
            s0 = multiply_add(d, d, s0)
            d = minus(o, load(e1, k))
            s1 = multiply_add(d, d, s1)
            d = minus(o, load(e2, k))
            s2 = multiply_add(d, d, s2)
            d = minus(o, load(e3, k))
            s3 = multiply_add(d, d, s3)
            d = minus(o, load(e4, k))
            s4 = multiply_add(d, d, s4)
            d = minus(o, load(e5, k))
            s5 = multiply_add(d, d, s5)
            d = minus(o, load(e6, k))
            s6 = multiply_add(d, d, s6)
            d = minus(o, load(e7, k))
            s7 = multiply_add(d, d, s7)
        store(out, at + c, plus(totals(s0, s1, s2, s3, s4, s5, s6, s7), load(mask, c)))


@nested
def rank_by_diffusion(diffusion, y, span, rows, scratch):
    """Put squared diffusion distances in scratch.windows, for the pixels of a span in row y.

    With trust t below one: t * diffusion + (1 - t) * what the windows held, each divided by its mean over the
    pixel's own window; scratch.unturned is used up.
    """
    columns = scratch.masks.shape[1]
    mark_windows(span, scratch.masks)
    for p in range(span.pixels):
        own = diffusion.embedding[y, span.x + p]
        trust = diffusion.trust[y, span.x + p] if diffusion.blended else np.float32(1)
        # Where patches count too, their distances are still needed.
        out = scratch.windows[p] if trust == np.float32(1) else scratch.unturned[p]
        left = first_column(span, p)
        for row in range(rows[1] - rows[0]):
            line = diffusion.embedding[rows[0] + row]
            squared_distances(own, line, left, scratch.masks[p], out, row * columns)
        if trust < np.float32(1):
            own_place = (y - rows[0]) * columns + span.x + p - left
            n_values = (rows[1] - rows[0]) * columns
            _blend(trust, out[:n_values], own_place, scratch.windows[p])


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
