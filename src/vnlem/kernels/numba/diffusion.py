"""Distances of the diffusion map over search windows, in place of distances of patches."""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import nested
from vnlem.kernels.numba.vectors import LANES, load, minus, multiply_add, spread, store, totals


class Diffusion(NamedTuple):
    """Diffusion coordinates of a region; with no coordinates patches alone decide."""

    embedding: np.ndarray  # (height, width, coordinates)
    trust: np.ndarray  # (height, width) in [0, 1]: share of the diffusion distance in the ranking
    blended: bool  # whether trust is below one anywhere


@nested
def squared_distances(own, line, first, count, out):
    """out[c] = |own - line[first + c]|^2 for c < count, and up to seven numbers of no meaning after them.

    From differences: neighbours' coordinates agree in their leading digits. Coordinates come in eights.
    """
    last = line.shape[0] - 1
    zero = spread(np.float32(0))
    for c in range(0, count, LANES):
        at = first + c
        e0, e1, e2, e3 = line[at], line[min(at + 1, last)], line[min(at + 2, last)], line[min(at + 3, last)]
        e4, e5 = line[min(at + 4, last)], line[min(at + 5, last)]
        e6, e7 = line[min(at + 6, last)], line[min(at + 7, last)]
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
        store(out, c, totals(s0, s1, s2, s3, s4, s5, s6, s7))


@nested
def rank_by_diffusion(diffusion, patch_distance, y, x, n_pixels, rows, columns, windows, buffer):
    """Put squared diffusion distances in windows (see search_windows), for pixels (y, x)..(y, x + n_pixels).

    With trust t below one: t * diffusion + (1 - t) * what windows held, each divided by its mean over the
    pixel's own window. buffer: room for the distances of one window and seven more.
    """
    stride = columns[1] - columns[0]
    one = np.float32(1)
    for p in range(n_pixels):
        own = diffusion.embedding[y, x + p]
        left = max(x + p - patch_distance, columns[0])
        right = min(x + p + patch_distance + 1, columns[1])
        n_columns = right - left
        window = windows[p]
        mean = np.float32(0)
        for row in range(rows[1] - rows[0]):
            line = diffusion.embedding[rows[0] + row]
            squared_distances(own, line, left, n_columns, buffer[row * n_columns :])
        for c in range((rows[1] - rows[0]) * n_columns):
            mean += buffer[c]
        trust = diffusion.trust[y, x + p] if diffusion.blended else one
        if trust == one:
            for row in range(rows[1] - rows[0]):
                for column in range(n_columns):
                    at = row * stride + left - columns[0] + column
                    window[at] = buffer[row * n_columns + column]
            continue
        # Noise lifts all distances of patches alike: they count from the smallest but the pixel's own.
        lowest = np.float32(np.inf)
        total = np.float32(0)
        for row in range(rows[1] - rows[0]):
            for column in range(n_columns):
                value = window[row * stride + left - columns[0] + column]
                if rows[0] + row != y or left + column != x + p:
                    lowest = min(lowest, value)
                total += value
        count = np.float32((rows[1] - rows[0]) * n_columns)
        share = trust * count / max(mean, np.float32(1e-30))
        rest = (one - trust) * count / max(total - count * lowest, np.float32(1e-30))
        for row in range(rows[1] - rows[0]):
            for column in range(n_columns):
                at = row * stride + left - columns[0] + column
                patches = max(window[at] - lowest, np.float32(0))
                window[at] = share * buffer[row * n_columns + column] + rest * patches
