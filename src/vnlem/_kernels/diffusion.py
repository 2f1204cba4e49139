"""Distances of the diffusion map over search windows, in place of distances of patches."""

from typing import NamedTuple

import numpy as np

from vnlem._kernels.jit import nested


class Diffusion(NamedTuple):
    """Diffusion coordinates of a region; with no coordinates patches alone decide."""

    embedding: np.ndarray  # (height, width, coordinates)
    trust: np.ndarray  # (height, width) in [0, 1]: share of the diffusion distance in the ranking
    blended: bool  # whether trust is below one anywhere


@nested
def squared_distance(a, b):
    """|a - b|^2, from differences: neighbours' coordinates agree in their leading digits."""
    total = np.float32(0)
    for k in range(a.shape[0]):
        difference = a[k] - b[k]
        total += difference * difference
    return total


@nested
def rank_by_diffusion(diffusion, patch_distance, y, x, n_pixels, rows, columns, windows, buffer):
    """Put squared diffusion distances in windows (see search_windows), for pixels (y, x)..(y, x + n_pixels).

    With trust t below one: t * diffusion + (1 - t) * what windows held, each divided by its mean over the
    pixel's own window. buffer: room for the distances of one window.
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
            for column in range(n_columns):
                value = squared_distance(own, diffusion.embedding[rows[0] + row, left + column])
                buffer[row * n_columns + column] = value
                mean += value
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
